// SPDX-License-Identifier: MIT
//! Computations that go on more than once, by copies of their frames.
//!
//! The handler is one of C, with a general clause, because C copies what its own handlers capture.
//! The body's result, and a clause's, goes through the state in the frame of [`handle_multi_shot`]:
//! it is taken there as soon as C returns to the call that has resumed.
//!
//! ```text
//!   handle_multi_shot, resume --> C --> the fiber: body --> perform_by_c, slot in its frame
//!        ^        State.outcome <-- what the body has returned      |
//!        +----- State.outcome <-- the clause's answer <-- enter <---+ effect, taken from the slot
//! ```

use crate::effects::{Effect, Slot, descriptor, once_for};
use haft_sys as sys;
use std::any::TypeId;
use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::thread;

/// A computation that waits in a perform, as the clause of [`handle_multi_shot`] gets it. It may be
/// resumed any number of times; when it is dropped, the computation ends where it waits, without
/// its destructors.
pub struct MultiShot<'k, E: Effect, R> {
    state: &'k State<'k, E, R>,
    k: sys::haft_resumption_t,
    not_send: PhantomData<*mut ()>,
}

/// The part of the state whose type depends on the effect alone.
#[repr(C)]
struct Handler<E: Effect> {
    /// Calls the clause of the state that this begins.
    call: unsafe fn(*const Handler<E>, E, sys::haft_resumption_t),
}

#[repr(C)]
struct State<'a, E: Effect, R> {
    handler: Handler<E>,
    body: &'a dyn Fn() -> R,
    clause: &'a dyn Fn(E, MultiShot<'_, E, R>) -> R,
    /// The result with which the computation, or a clause, has just ended.
    outcome: Cell<Option<thread::Result<R>>>,
}

impl<E: Effect, R> State<'_, E, R> {
    /// # Safety
    /// The argument is a state that lives as long as the computation.
    unsafe extern "C" fn run(argument: *mut c_void) -> *mut c_void {
        // SAFETY: the caller promises it.
        let state = unsafe { &*argument.cast::<Self>() };
        let outcome = catch_unwind(AssertUnwindSafe(state.body));
        state.outcome.set(Some(outcome));
        ptr::null_mut()
    }

    /// # Safety
    /// The handler begins a state of this type, and the resumption has not been used.
    unsafe fn call(handler: *const Handler<E>, effect: E, k: sys::haft_resumption_t) {
        // SAFETY: the caller promises it.
        let state = unsafe { &*handler.cast::<Self>() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let k = MultiShot {
                state,
                k,
                not_send: PhantomData,
            };
            (state.clause)(effect, k)
        }));
        state.outcome.set(Some(outcome));
    }

    fn answer(&self) -> R {
        match self.outcome.take() {
            Some(outcome) => outcome.unwrap_or_else(|payload| resume_unwind(payload)),
            None => unreachable!("what is resumed ends, or performs"),
        }
    }

    fn go_on(&self, k: sys::haft_resumption_t, answer: E::Output) -> R {
        let answer = ManuallyDrop::new(answer);
        let address = ptr::from_ref(&answer).cast_mut().cast();
        // SAFETY: the resumption is used once, by this; it waits in `perform_by_c`, which reads the
        // answer before this returns. Body and clause let no panic out.
        unsafe { sys::haft_rust_go_on(descriptor::<E>(), k, address) };
        self.answer()
    }
}

/// The general clause of C, for every handler of the effect.
unsafe extern "C" fn enter<E: Effect>(
    state: *mut c_void,
    slot: *mut c_void,
    k: sys::haft_resumption_t,
) -> sys::haft_answer_t {
    // SAFETY: the state is that of `handle_multi_shot`, whose frame is around this; the payload is
    // the slot of the performer, which waits. Its effect is taken once: the slots of copies are
    // copied after this, with the effect gone.
    unsafe {
        let effect = ManuallyDrop::take(&mut (*slot.cast::<Slot<E>>()).effect);
        let handler: *const Handler<E> = state.cast();
        ((*handler).call)(handler, effect, k);
    }
    sys::haft_answer_t::ZERO
}

/// Whether frames that have nothing to drop have nothing in the tables either. Without optimisation
/// the compiler leaves cleanups there that do nothing.
const TABLES_TELL: bool = cfg!(not(debug_assertions));

/// The key under which an effect's C handler is kept.
struct Copied<E>(PhantomData<E>);

fn make<E: Effect>() -> *mut c_void {
    // SAFETY: the descriptor is valid, and the clause takes its payload for what it is. It has a
    // table of Rust's, as no panic may leave it.
    let made = unsafe {
        if TABLES_TELL {
            sys::haft_know_frames_of(enter::<E> as *const c_void);
        }
        sys::haft_rust_copied_new(descriptor::<E>(), enter::<E>)
    };
    assert!(!made.is_null(), "no memory for a handler");
    made.cast()
}

impl<E: Effect<Output: Copy>, R> MultiShot<'_, E, R> {
    /// Goes on in a copy: answers the effect, and returns the result of the computation, or of the
    /// clause for its next effect.
    ///
    /// ```
    /// haft::effect! { struct Flip -> bool }
    ///
    /// let body = || (haft::perform(Flip), haft::perform(Flip));
    /// // SAFETY: booleans lie in the frames of the body.
    /// let counted = unsafe {
    ///     haft::handle_multi_shot(|Flip, k| k.resume(true) + k.resume(false), || {
    ///         let (one, other) = body();
    ///         u32::from(one != other)
    ///     })
    /// };
    /// assert_eq!(counted, 2);
    /// ```
    pub fn resume(&self, answer: E::Output) -> R {
        self.state.go_on(self.another(), answer)
    }

    /// Goes on for the last time, without a copy.
    ///
    /// ```
    /// haft::effect! { struct Ask -> u32 }
    ///
    /// // SAFETY: numbers lie in the frames of the body.
    /// let sum = unsafe {
    ///     haft::handle_multi_shot(|Ask, k| k.resume(1) + k.resume_last(20), || haft::perform(Ask))
    /// };
    /// assert_eq!(sum, 21);
    /// ```
    pub fn resume_last(self, answer: E::Output) -> R {
        let this = ManuallyDrop::new(self);
        this.state.go_on(this.k, answer)
    }

    fn another(&self) -> sys::haft_resumption_t {
        // SAFETY: the resumption has not been used, as this is there; the caller of
        // `handle_multi_shot` promises that the frames may be copied.
        unsafe {
            if TABLES_TELL {
                sys::haft_copy_looked_at(self.k)
            } else {
                sys::haft_resumption_copy(self.k)
            }
        }
    }
}

/// Another resumption of the same computation.
impl<E: Effect<Output: Copy>, R> Clone for MultiShot<'_, E, R> {
    fn clone(&self) -> Self {
        MultiShot {
            state: self.state,
            k: self.another(),
            not_send: PhantomData,
        }
    }
}

impl<E: Effect, R> Drop for MultiShot<'_, E, R> {
    fn drop(&mut self) {
        // SAFETY: the resumption has not been used. Its frames are given up, and not unwound.
        unsafe { sys::haft_resumption_drop(self.k) };
    }
}

impl<E: Effect, R> fmt::Debug for MultiShot<'_, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiShot").finish_non_exhaustive()
    }
}

/// Like [`handle_general`](crate::handle_general), but the clause may resume the computation more
/// than once, each time with another answer: for search, backtracking, probabilistic programs. The
/// frames between the perform and this handler are copied, byte by byte. [`replay`](crate::replay())
/// does the same without copies, slower, and in safe code.
///
/// ```
/// haft::effect! { struct Choose(u32) -> u32 }
///
/// fn triples() -> u32 {
///     let (a, b, c) = (haft::perform(Choose(9)), haft::perform(Choose(9)), haft::perform(Choose(14)));
///     u32::from(a * a + b * b == c * c && a < b)
/// }
///
/// // SAFETY: nothing but numbers lies in the frames of `triples`.
/// let found = unsafe {
///     haft::handle_multi_shot(
///         |Choose(count), k| (1..=count).map(|n| k.resume(n)).sum::<u32>(),
///         triples,
///     )
/// };
/// assert_eq!(found, 2); // 3, 4, 5 and 6, 8, 10
/// ```
///
/// All copies share the values that the body captures, and those to which its frames refer. Copies
/// run one at a time, where the first one ran: a clause runs outside of the computation, so it may
/// resume; code inside of the computation cannot, which C reports, and the process ends. The body's
/// result and the clauses' answers may be of any type.
///
/// # Safety
///
/// Wherever the body performs an `E`, all frames from there out to this call are copied byte by
/// byte, and may be given up without their destructors. So while the computation waits there, each
/// value in these frames
///
/// - has no destructor to run, as numbers, characters, arrays and structs of such, and shared
///   references have not; a `Box`, a `Vec`, a `Rc`, the guard of a lock or of a `RefCell`, an
///   iterator that owns, a [`Computation`](crate::Computation), the resumption of another handler
///   and a frame of [`handle_general`](crate::handle_general), [`run`](crate::run) or a scope have.
///   So have temporaries: `vec![perform(E)]` may have its memory before it performs;
/// - borrows exclusively (`&mut`) nothing but other values in these frames;
/// - borrows, of what lies elsewhere, nothing that another copy moves, drops or overwrites;
/// - is not one that something outside of the frames relies on, as on a value that is pinned, or
///   that has given its address away.
///
/// Optimised code (without `debug_assertions`) looks for destructors when a computation is copied
/// first, in the tables by which panics unwind: where a frame has one to run at the call by
/// which it waits, the process ends, with a message that names the call. With `panic = "abort"`
/// there are no such tables.
///
/// # Panics
/// If the body or the clause does, or there is no memory for a stack.
pub unsafe fn handle_multi_shot<E: Effect<Output: Copy>, R>(
    clause: impl Fn(E, MultiShot<'_, E, R>) -> R,
    body: impl Fn() -> R,
) -> R {
    let state = State {
        handler: Handler {
            call: State::<E, R>::call,
        },
        body: &body,
        clause: &clause,
        outcome: Cell::new(None),
    };
    let argument = ptr::from_ref(&state).cast_mut().cast::<c_void>();
    descriptor::<E>(); // made first, because making one takes the lock under which `make` is called
    let handler = once_for(TypeId::of::<Copied<E>>(), make::<E>).cast();
    // SAFETY: the state lives in this frame until the call returns. A computation that is
    // still suspended then goes on no more: its resumptions were forgotten. Body and clause let no
    // panic out.
    let had_a_stack =
        unsafe { sys::haft_rust_copied_handle(handler, argument, State::<E, R>::run, argument) };
    assert!(had_a_stack, "no memory for the stack of a computation");
    state.answer()
}

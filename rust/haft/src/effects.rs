// SPDX-License-Identifier: MIT
//! Effects and their handlers.
//!
//! To C the payload of an effect of Rust is the address of a [`Slot`] in the performer's frame,
//! with the effect and, later, the answer. C identifies an effect by a descriptor, one for each
//! type in the process; a handler handles the effects of one type, so the type of a slot is
//! certain.
//!
//! ```text
//!   perform(e)          Slot { effect, answer }   on the performer's stack, which does not move
//!        |                ^            |
//!        | descriptor     | takes      | Value(v): perform returns v
//!        v                | effect,    | Raise(p): perform raises the panic p, and so unwinds
//!   the handler ----------+ writes answer
//! ```
//!
//! Between a fiber and its resumer, effects and answers need no slot: they go along with the
//! switch, see [`sys::hot`].

use crate::brief::Brief;
use crate::wait::Call;
use haft_sys as sys;
use haft_sys::hot::Word;
use std::any::{Any, TypeId, type_name};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CString, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{fmt, ptr, thread};

/// An operation whose meaning the handlers around it decide: a type, and the type of its answer.
///
/// ```
/// struct Ask {
///     question: &'static str,
/// }
/// impl haft::Effect for Ask {
///     type Output = u32;
/// }
///
/// let answer = haft::handle(
///     |ask: Ask| ask.question.len() as u32,
///     || haft::perform(Ask { question: "how long?" }) + 1,
/// );
/// assert_eq!(answer, 10);
/// ```
pub trait Effect: Sized + 'static {
    /// The type of the answer, which [`perform`] returns.
    type Output: 'static;

    /// The default handler: answers where no other does, outside of all handlers. On a task it may
    /// wait. The one that is provided panics, with a message that names the effect.
    ///
    /// ```
    /// struct Verbose;
    /// impl haft::Effect for Verbose {
    ///     type Output = bool;
    ///     fn unhandled(self) -> bool {
    ///         false
    ///     }
    /// }
    ///
    /// assert!(!haft::perform(Verbose));
    /// assert!(haft::handle(|Verbose| true, || haft::perform(Verbose)));
    /// ```
    fn unhandled(self) -> Self::Output {
        panic!("nobody handles the effect {}", type_name::<Self>())
    }
}

/// Declares effects: structs, each with the type that [`perform`] returns. A type that needs
/// parameters, or a default handler, implements [`Effect`] itself.
///
/// ```
/// use haft::{handle, perform};
///
/// haft::effect! {
///     /// Has fields.
///     pub struct Ask {
///         pub question: &'static str,
///     } -> u32;
///     #[derive(Debug)]
///     struct Tell(String) -> ();
///     struct Next -> u64;
/// }
///
/// let answer = handle(|ask: Ask| ask.question.len() as u32, || perform(Ask { question: "how?" }));
/// assert_eq!(answer, 4);
/// let mut said = Vec::new();
/// handle(|Tell(text)| said.push(text), || perform(Tell("hello".to_owned())));
/// assert_eq!(said, ["hello"]);
/// assert_eq!(handle(|Next| 7, || perform(Next)), 7);
/// ```
#[macro_export]
macro_rules! effect {
    ($($(#[$meta:meta])* $visibility:vis struct $name:ident
       $({ $($fields:tt)* })? $(( $($values:tt)* ))? -> $output:ty);+ $(;)?) => {$(
        $crate::effect!(@struct $(#[$meta])* $visibility $name $({ $($fields)* })? $(( $($values)* ))?);
        impl $crate::Effect for $name {
            type Output = $output;
        }
    )+};
    (@struct $(#[$meta:meta])* $visibility:vis $name:ident { $($fields:tt)* }) => {
        $(#[$meta])* $visibility struct $name { $($fields)* }
    };
    (@struct $(#[$meta:meta])* $visibility:vis $name:ident $(( $($values:tt)* ))?) => {
        $(#[$meta])* $visibility struct $name $(( $($values)* ))?;
    };
}

/// The payload of the panic that unwinds a computation which is dropped where it waits.
///
/// ```
/// # struct Ask;
/// # impl haft::Effect for Ask {
/// #     type Output = u32;
/// # }
/// use std::panic::catch_unwind;
///
/// let clean = haft::handle_general(
///     |Ask, _dropped| false,
///     || {
///         let payload = catch_unwind(|| haft::perform(Ask)).unwrap_err();
///         payload.is::<haft::Discontinued>()
///     },
/// );
/// assert!(!clean); // the clause's answer: what the body returns while it is unwound is nobody's
/// ```
pub struct Discontinued(pub(crate) ());

impl fmt::Debug for Discontinued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Discontinued")
    }
}

pub(crate) type Payload = Box<dyn Any + Send>;

pub(crate) enum Answer<T> {
    Value(T),
    Raise(Payload),
}

pub(crate) struct Slot<E: Effect> {
    /// Taken by the handler, once.
    pub(crate) effect: ManuallyDrop<E>,
    /// Written by the handler before the performer goes on.
    pub(crate) answer: MaybeUninit<Answer<E::Output>>,
}

// ---- Descriptors ----

/// C's descriptor of a type of Rust: made once, and never freed.
#[derive(Clone, Copy)]
struct Made(*mut c_void);
// SAFETY: the C library's own, which any thread may use.
unsafe impl Send for Made {}

/// A hasher that takes a part of the type's id, which is a hash already.
struct OfType(u64);
impl Hasher for OfType {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns what `make` has made for the type, now or in an earlier call. Each perform calls this.
#[inline]
pub(crate) fn once_for(of: TypeId, make: fn() -> *mut c_void) -> *mut c_void {
    const PLACES: usize = 32;
    type Place = Cell<Option<(TypeId, Made)>>;
    thread_local! {
        /// The last types, by a hash; a type may replace another.
        static KNOWN: [Place; PLACES] = const { [const { Cell::new(None) }; PLACES] };
    }
    let mut hash = OfType(0);
    of.hash(&mut hash);
    KNOWN.with(|known| {
        let place = &known[hash.finish() as usize % PLACES];
        match place.get() {
            Some((other, made)) if other == of => made.0,
            _ => {
                let made = look_up(of, make);
                place.set(Some((of, made)));
                made.0
            }
        }
    })
}

#[cold]
fn look_up(of: TypeId, make: fn() -> *mut c_void) -> Made {
    static ALL: Brief<Vec<(TypeId, Made)>> = Brief::new(Vec::new());
    ALL.with(|all| {
        let known = all.iter().find(|(other, _)| *other == of);
        if let Some((_, made)) = known {
            return *made;
        }
        let made = Made(make());
        all.push((of, made));
        made
    })
}

/// Answers in place an effect whose payload C has.
///
/// # Safety
/// The payload is a slot of this type, in the frame of the performer, which waits; nothing else
/// takes the effect.
unsafe fn answer<E: Effect>(payload: *mut c_void, clause: impl FnOnce(E) -> E::Output) {
    // SAFETY: the caller promises it.
    let slot = unsafe { &mut *payload.cast::<Slot<E>>() };
    // SAFETY: as above.
    let effect = unsafe { ManuallyDrop::take(&mut slot.effect) };
    slot.answer
        .write(match catch_unwind(AssertUnwindSafe(|| clause(effect))) {
            Ok(value) => Answer::Value(value),
            Err(payload) => Answer::Raise(payload),
        });
}

/// Called where no handler takes the effect.
unsafe extern "C" fn unhandled<E: Effect>(_: *mut c_void, payload: *mut c_void) {
    // SAFETY: the payload of an effect of this descriptor is a slot of this type.
    unsafe { answer(payload, E::unhandled) };
}

/// Called where `handle` handles the effect, for performs that go through C.
unsafe extern "C" fn in_place<E: Effect>(state: *mut c_void, payload: *mut c_void) {
    // SAFETY: the state is that of `handle`, whose frame is around the performer's; and as above.
    unsafe {
        let handler = &*state.cast::<InPlace<'_, E>>();
        answer(payload, |effect| handler.answer(effect));
    }
}

fn make<E: Effect>() -> *mut c_void {
    let name = CString::new(type_name::<E>()).unwrap_or_default();
    // SAFETY: the name lives for ever, and the functions fit the effect's type.
    let made = unsafe { sys::haft_rust_effect_new(name.into_raw(), unhandled::<E>, in_place::<E>) };
    assert!(!made.is_null(), "no memory for an effect");
    made.cast()
}

/// The function to which the descriptor's word belongs: no other type's function is like this one.
/// (Of functions whose code is the same, as that of `make` for types with one name, an optimizing
/// compiler makes one.)
fn key<E: Effect>() -> TypeId {
    TypeId::of::<E>()
}

/// The descriptor, or [`sys::hot::UNMADE`].
#[inline(always)]
pub(crate) fn known<E: Effect>() -> *mut sys::haft_rust_effect_t {
    // SAFETY: the word is that of this type, and all writers write the same value.
    unsafe { sys::word_of!(key::<E>, value, *mut sys::haft_rust_effect_t) }
}

#[inline]
pub(crate) fn descriptor<E: Effect>() -> *mut sys::haft_rust_effect_t {
    let known = known::<E>();
    if known != sys::hot::UNMADE {
        return known;
    }
    let made = look_up(key::<E>(), make::<E>).0;
    // SAFETY: as above.
    let word = unsafe { AtomicPtr::from_ptr(sys::word_of!(key::<E>, address, *mut *mut c_void)) };
    word.store(made, Ordering::Relaxed);
    made.cast()
}

// ---- Performing ----

/// Performs an effect: returns what its innermost handler answers. May suspend the computation.
///
/// # Panics
/// If nobody handles the effect, or the clause panics; with [`Discontinued`], if the handler drops
/// the computation.
///
/// ```
/// # struct Ask;
/// # impl haft::Effect for Ask {
/// #     type Output = u32;
/// # }
/// assert_eq!(haft::handle(|Ask| 21, || haft::perform(Ask) * 2), 42);
/// ```
#[inline(always)]
pub fn perform<E: Effect>(effect: E) -> E::Output {
    let made = known::<E>();
    let effect = ManuallyDrop::new(effect);
    // SAFETY: the fiber's resumer gets such a word, and answers it, unless nothing was done. The
    // handler in place is dropped before this call returns, or is left by a panic, which passes no
    // frame of C; its state is that of `handle`, whose frame is around this one.
    unsafe {
        match sys::hot::perform(made, sys::hot::encode(&effect)) {
            Ok(woken) if woken.is_ordinary() => return sys::hot::decode(woken.word),
            Ok(woken) => return woken_otherwise::<E>(woken.word, woken.tag),
            Err(here) => {
                not_so_often();
                if let Some(found) = sys::hot::find(here, made) {
                    let handler = &*found.state.cast::<InPlace<'_, E>>();
                    return handler.answer(ManuallyDrop::into_inner(effect));
                }
            }
        }
    }
    perform_by_c(ManuallyDrop::into_inner(effect))
}

/// Marks the code after it as cold.
#[cold]
#[inline(always)]
fn not_so_often() {}

#[cold]
#[inline(never)]
fn perform_by_c<E: Effect>(effect: E) -> E::Output {
    let slot = UnsafeCell::new(Slot {
        effect: ManuallyDrop::new(effect),
        answer: MaybeUninit::uninit(),
    });
    // SAFETY: the slot lies in this frame until the call returns, and the handler of this effect's
    // descriptor knows its type. Nothing is unwound through C.
    let elsewhere = unsafe { sys::hot::perform_by_c(descriptor::<E>(), slot.get().cast()) };
    if !elsewhere.is_null() {
        // SAFETY: a `MultiShot` has resumed this, with the address of such an answer, and waits.
        return unsafe { elsewhere.cast::<E::Output>().read() };
    }
    // SAFETY: a performer goes on only after its answer is written: `answer`, or `Fiber::resume`.
    match unsafe { slot.into_inner().answer.assume_init() } {
        Answer::Value(value) => value,
        Answer::Raise(payload) => resume_unwind(payload),
    }
}

/// Calls the function outside of all handlers.
pub(crate) fn outside<T>(function: impl FnOnce() -> T) -> T {
    /// An effect without handlers, so its default answers.
    struct Outside(sys::haft_body_t, *mut c_void);
    impl Effect for Outside {
        type Output = ();
        fn unhandled(self) {
            // SAFETY: the body and its argument live until this perform returns.
            unsafe { (self.0)(self.1) };
        }
    }
    let mut call = Call::new(function);
    let argument = call.argument();
    perform(Outside(call.body(), argument));
    call.result()
}

/// # Safety
/// The word is that of an answer, of a payload, or of the effect itself, by the tag.
#[cold]
#[inline(never)]
unsafe fn woken_otherwise<E: Effect>(word: Word, tag: usize) -> E::Output {
    // SAFETY: the caller promises it.
    unsafe {
        match tag {
            sys::hot::ANSWER => sys::hot::decode(word),
            sys::hot::NOT_DONE => perform_by_c::<E>(sys::hot::decode(word)),
            _ => {
                assert!(tag == sys::hot::RAISE, "nobody else wakes a computation");
                resume_unwind(sys::hot::decode::<Payload>(word))
            }
        }
    }
}

// ---- Handling in place ----

/// A clause that runs on the performer's stack, outside of its own handler.
struct InPlace<'a, E: Effect> {
    /// Called with the closure.
    call: unsafe fn(*mut (), E) -> E::Output,
    clause: *mut (),
    lent: PhantomData<&'a mut ()>,
}

impl<'a, E: Effect> InPlace<'a, E> {
    fn new<C: FnMut(E) -> E::Output>(clause: &'a mut C) -> Self {
        unsafe fn call<E: Effect, C: FnMut(E) -> E::Output>(
            clause: *mut (),
            effect: E,
        ) -> E::Output {
            // SAFETY: as for `answer`.
            unsafe { (*clause.cast::<C>())(effect) }
        }
        InPlace {
            call: call::<E, C>,
            clause: ptr::from_mut(clause).cast(),
            lent: PhantomData,
        }
    }

    #[inline(always)]
    fn answer(&self, effect: E) -> E::Output {
        // SAFETY: the closure is lent for as long as this lives. It does not run already: while it
        // does its handler is out of reach, and the code inside of the handler waits for it.
        unsafe { (self.call)(self.clause, effect) }
    }
}

/// Calls a function from C.
struct Body<F, R> {
    function: Option<F>,
    outcome: Option<thread::Result<R>>,
}
impl<F: FnOnce() -> R, R> Body<F, R> {
    /// # Safety
    /// The argument is a body that lives, and that nobody else uses meanwhile.
    unsafe extern "C" fn enter(argument: *mut c_void) -> *mut c_void {
        // SAFETY: the caller promises it.
        let body = unsafe { &mut *argument.cast::<Self>() };
        if let Some(function) = body.function.take() {
            body.outcome = Some(catch_unwind(AssertUnwindSafe(function)));
        }
        ptr::null_mut()
    }
}

/// Calls the body, whose effects of type `E` are answered by the clause: at once, without a switch,
/// on the performer's stack. Effects that the clause performs go to the handlers further out; its
/// panic continues where the effect was performed.
///
/// ```
/// struct Next;
/// impl haft::Effect for Next {
///     type Output = u64;
/// }
///
/// let mut count = 0;
/// let sum = haft::handle(
///     |Next| {
///         count += 1;
///         count
///     },
///     || (0..4).map(|_| haft::perform(Next)).sum::<u64>(),
/// );
/// assert_eq!((sum, count), (10, 4));
/// ```
pub fn handle<E: Effect, R>(mut clause: impl FnMut(E) -> E::Output, body: impl FnOnce() -> R) -> R {
    fn body_of<F: FnOnce() -> R, R>(_: &Body<F, R>) -> sys::haft_body_t {
        Body::<F, R>::enter
    }
    let state = InPlace::<E>::new(&mut clause);
    let mut body = Body {
        function: Some(body),
        outcome: None,
    };
    let function = body_of(&body);
    // SAFETY: the state and the body live in this frame until the call returns; the descriptor's
    // clause knows the state's type. The body lets no panic out.
    unsafe {
        sys::haft_rust_handle(
            descriptor::<E>(),
            ptr::from_ref(&state).cast_mut().cast(),
            function,
            ptr::from_mut(&mut body).cast(),
        );
    }
    match body.outcome {
        Some(outcome) => outcome.unwrap_or_else(|payload| resume_unwind(payload)),
        None => unreachable!("a handler in place needs no memory"),
    }
}

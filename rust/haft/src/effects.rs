// SPDX-License-Identifier: MIT
//! Effects and their handlers.
//!
//! All effects of Rust have the same payload in C: the address of a [`Slot`] in the performer's
//! frame, with the effect and, later, the answer. C knows an effect by a descriptor, one for each
//! type in the process; a handler handles the effects of one type, so it knows of what type a slot
//! is.
//!
//! ```text
//!   perform(e)          Slot { effect, answer }   on the performer's stack, which does not move
//!        |                ^            |
//!        | descriptor     | takes      | Value(v): perform returns v
//!        v                | effect,    | Raise(p): perform raises the panic p, and so unwinds
//!   the handler ----------+ writes answer
//! ```

use haft_sys as sys;
use std::any::{Any, TypeId, type_name};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CString, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::{fmt, ptr, thread};

/// An operation whose meaning the handlers around it decide: a type, and what performing it
/// returns.
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
    /// What [`perform`] returns.
    type Output: 'static;
}

/// The payload of the panic that unwinds a computation which is dropped where it waits.
pub struct Discontinued(());

impl fmt::Debug for Discontinued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Discontinued")
    }
}

type Payload = Box<dyn Any + Send>;

enum Answer<T> {
    Value(T),
    Raise(Payload),
    Unhandled,
}

struct Slot<E: Effect> {
    effect: Option<E>,
    answer: Option<Answer<E::Output>>,
}

// ---- Descriptors ----

/// What C has for a type of Rust: made once, and for ever.
#[derive(Clone, Copy)]
struct Made(*mut c_void);
// SAFETY: the C library's own, which any thread may use.
unsafe impl Send for Made {}

/// A hash of a type is a part of what the type is known by.
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

/// What `make` has made for the type, by this call or an earlier one. Each perform asks this.
pub(crate) fn once_for(of: TypeId, make: fn() -> *mut c_void) -> *mut c_void {
    const PLACES: usize = 32;
    type Place = Cell<Option<(TypeId, Made)>>;
    thread_local! {
        /// By the type's hash; a type may push out another.
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
    static ALL: Mutex<Vec<(TypeId, Made)>> = Mutex::new(Vec::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().find(|(other, _)| *other == of);
    if let Some((_, made)) = known {
        return *made;
    }
    let made = Made(make());
    all.push((of, made));
    made
}

/// In place, where nobody handles the effect.
unsafe extern "C" fn unhandled<E: Effect>(_: *mut c_void, payload: *mut c_void) {
    // SAFETY: the payload of an effect of this descriptor is the address of a slot of this type, in
    // the frame of the performer, who waits.
    let slot = unsafe { &mut **payload.cast::<*mut Slot<E>>() };
    slot.answer = Some(Answer::Unhandled);
}

/// In place, where `handle` does.
unsafe extern "C" fn in_place<E: Effect>(state: *mut c_void, payload: *mut c_void) {
    // SAFETY: the state is that of `handle`, whose frame is around the performer's; and as above.
    let (clause, slot) = unsafe {
        (
            &*state.cast::<InPlace<'_, E>>(),
            &mut **payload.cast::<*mut Slot<E>>(),
        )
    };
    slot.answer = Some(clause.answer(slot.effect.take()));
}

fn make<E: Effect>() -> *mut c_void {
    let name = CString::new(type_name::<E>()).unwrap_or_default();
    // SAFETY: the name lives for ever, and the functions fit the effect's type.
    let made = unsafe { sys::haft_rust_effect_new(name.into_raw(), unhandled::<E>, in_place::<E>) };
    assert!(!made.is_null(), "no memory for an effect");
    made.cast()
}

fn descriptor<E: Effect>() -> *mut sys::haft_rust_effect_t {
    once_for(TypeId::of::<E>(), make::<E>).cast()
}

// ---- Performing ----

/// Performs an effect: returns what its innermost handler answers. May suspend the computation.
///
/// # Panics
/// If nobody handles the effect, or the clause panics; with [`Discontinued`], if the handler drops
/// the computation.
pub fn perform<E: Effect>(effect: E) -> E::Output {
    let slot = UnsafeCell::new(Slot {
        effect: Some(effect),
        answer: None,
    });
    // SAFETY: the slot lies in this frame until the call returns, and the handler of this effect's
    // descriptor knows its type. Nothing is unwound through C.
    unsafe { sys::haft_rust_perform(descriptor::<E>(), slot.get().cast()) };
    match slot.into_inner().answer {
        Some(Answer::Value(value)) => value,
        Some(Answer::Raise(payload)) => resume_unwind(payload),
        Some(Answer::Unhandled) => panic!("nobody handles the effect {}", type_name::<E>()),
        None => unreachable!("a computation is resumed with an answer"),
    }
}

// ---- Handling in place ----

/// A clause that runs on the performer's stack, outside of its own handler.
struct InPlace<'a, E: Effect> {
    clause: RefCell<&'a mut dyn FnMut(E) -> E::Output>,
}

impl<E: Effect> InPlace<'_, E> {
    fn answer(&self, effect: Option<E>) -> Answer<E::Output> {
        let call = || {
            let effect = effect.expect("an effect is handled once");
            // (The clause is outside of its handler, so it does not come here from inside.)
            (self.clause.borrow_mut())(effect)
        };
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(value) => Answer::Value(value),
            Err(payload) => Answer::Raise(payload),
        }
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
        // SAFETY: the caller says so.
        let body = unsafe { &mut *argument.cast::<Self>() };
        if let Some(function) = body.function.take() {
            body.outcome = Some(catch_unwind(AssertUnwindSafe(function)));
        }
        ptr::null_mut()
    }
}

/// Calls the body, whose effects of type `E` are answered by the clause: at once, without a switch,
/// on the performer's stack. What the clause performs itself goes to the handlers further out; its
/// panic goes on where the effect was performed.
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
    let state: InPlace<'_, E> = InPlace {
        clause: RefCell::new(&mut clause),
    };
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

// ---- Computations on a fiber of their own ----

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Suspended,
    Running,
    Finished,
}

/// A fiber whose function is a closure of Rust. Dropped, it unwinds what it does; forgotten, it
/// leaks.
///
/// The body lies in a box of its own, `outcome` is written by the fiber when the body has ended,
/// and
/// `slot` is that in which the fiber waits, null before it has begun.
struct Fiber<E: Effect, R> {
    fiber: *mut sys::haft_fiber_t,
    shared: *mut Shared<R>,
    slot: Cell<*mut Slot<E>>,
    state: Cell<State>,
}

struct Shared<R> {
    body: Option<Box<dyn FnOnce() -> R>>,
    outcome: Option<thread::Result<R>>,
}

unsafe extern "C" fn run_body<R>(argument: *mut c_void) -> *mut c_void {
    let shared: *mut Shared<R> = argument.cast();
    // SAFETY: the owner of the fiber does not touch it while the fiber runs.
    let body = unsafe { (*shared).body.take() };
    if let Some(body) = body {
        let outcome = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: as above.
        unsafe { (*shared).outcome = Some(outcome) };
    }
    ptr::null_mut()
}

impl<E: Effect, R> Fiber<E, R> {
    /// # Safety
    /// The fiber is dropped, or finished, before what the body borrows ends; or it is leaked, and
    /// the body borrows nothing.
    unsafe fn new<'a>(body: Box<dyn FnOnce() -> R + 'a>) -> Self {
        // SAFETY: the caller keeps to the lifetime.
        let body: Box<dyn FnOnce() -> R> = unsafe { std::mem::transmute(body) };
        let shared = Box::into_raw(Box::new(Shared {
            body: Some(body),
            outcome: None,
        }));
        // SAFETY: `shared` lives as long as the fiber, and the function lets no panic out.
        let fiber = unsafe { sys::haft_rust_fiber_new(0, run_body::<R>, shared.cast()) };
        if fiber.is_null() {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(shared) });
            panic!("no memory for the stack of a computation");
        }
        Fiber {
            fiber,
            shared,
            slot: Cell::new(ptr::null_mut()),
            state: Cell::new(State::Suspended),
        }
    }

    /// Whether the fiber has begun.
    fn has_begun(&self) -> bool {
        !self.slot.get().is_null() || self.state.get() != State::Suspended
    }

    /// Goes on with an answer, or, before it has begun, without one.
    fn resume(&self, answer: Option<Answer<E::Output>>) -> Step<E, R> {
        assert!(
            self.state.get() == State::Suspended,
            "a computation is resumed that {}",
            if self.state.get() == State::Running {
                "runs"
            } else {
                "has ended"
            }
        );
        if answer.is_some() {
            // SAFETY: the fiber waits in the perform in whose frame the slot lies.
            unsafe { (*self.slot.get()).answer = answer };
        }
        self.state.set(State::Running);
        // SAFETY: the fiber is suspended, on this thread, since it is not `Send`. Its body lets no
        // panic out.
        let slot = unsafe { sys::haft_rust_resume(self.fiber, descriptor::<E>()) };
        self.slot.set(slot.cast());
        if slot.is_null() {
            self.state.set(State::Finished);
            // SAFETY: the fiber has ended.
            let outcome = unsafe { (*self.shared).outcome.take() };
            return Step::Returned(match outcome {
                Some(outcome) => outcome.unwrap_or_else(|payload| resume_unwind(payload)),
                None => unreachable!("a fiber ends when its body has"),
            });
        }
        self.state.set(State::Suspended);
        // SAFETY: the fiber waits in a perform of the effect that it is resumed to handle: a slot
        // of this type.
        let effect = unsafe { (*self.slot.get()).effect.take() };
        Step::Performed(effect.expect("an effect is handled once"))
    }

    /// Unwinds what the fiber does, until it has ended.
    fn end(&self) {
        if !self.has_begun() {
            self.state.set(State::Finished);
        }
        while self.state.get() == State::Suspended {
            let raise = Answer::Raise(Box::new(Discontinued(())));
            // What ends the body is nobody's any more; a panic has been reported by the panic hook.
            // If the body performs the effect again while it is unwound, that raises, too.
            drop(catch_unwind(AssertUnwindSafe(|| {
                drop(self.resume(Some(raise)))
            })));
        }
    }
}

impl<E: Effect, R> Drop for Fiber<E, R> {
    fn drop(&mut self) {
        self.end();
        if self.state.get() == State::Running {
            return; // A computation drops itself: it is leaked.
        }
        // SAFETY: nothing runs on the fiber, nor is suspended there, so C has nothing to unwind.
        unsafe { sys::haft_fiber_drop(self.fiber) };
        // SAFETY: the fiber, which had it too, is gone.
        drop(unsafe { Box::from_raw(self.shared) });
    }
}

// ---- Shallow handling ----

/// What a [`Computation`] has come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<E, R> {
    /// It has performed the effect, and waits for the answer.
    Performed(E),
    /// It has returned.
    Returned(R),
}

/// A function on a stack of its own, which is suspended whenever it performs an effect of type `E`.
///
/// It is handled by requests, as in "High-level effect handlers in C": each step returns what the
/// computation has performed, and the next gives the answer. Dropping it unwinds it, so its
/// destructors run. The body is `'static`, since a computation may be leaked; for one that borrows
/// there is [`handle_general`].
///
/// ```
/// use haft::{perform, Computation, Effect, Step};
///
/// struct Get;
/// impl Effect for Get {
///     type Output = i32;
/// }
///
/// let mut sum: Computation<Get, i32> = Computation::new(|| perform(Get) + perform(Get));
/// let mut step = sum.start();
/// let mut next = 20;
/// while let Step::Performed(Get) = step {
///     next += 1;
///     step = sum.resume(next);
/// }
/// let Step::Returned(total) = step else { unreachable!() };
/// assert_eq!(total, 43);
/// ```
pub struct Computation<E: Effect, R> {
    fiber: ManuallyDrop<Fiber<E, R>>,
    /// Fibers stay on their thread: their frames may hold what is not `Send`.
    not_send: PhantomData<*mut ()>,
}

/// Whether the destructors of the thread's thread-local variables run.
///
/// A computation that waits may have references to such variables, which are for frames that end
/// before that. One that lies in such a variable is still there. So it goes on no more.
fn thread_ends() -> bool {
    // SAFETY: any thread may call it.
    unsafe { sys::haft_rust_thread_ends() }
}

/// Before the thread makes a computation.
fn check_thread() {
    struct Watched;
    impl Drop for Watched {
        fn drop(&mut self) {}
    }
    thread_local! {
        /// It has a destructor, so std has an entry made, which is seen.
        static WATCHED: Watched = const { Watched };
    }
    let _ = WATCHED.try_with(|_| ());
    // SAFETY: any thread may call it.
    let watched = unsafe { sys::haft_rust_watches_thread() };
    assert!(watched, "this C library does not tell when a thread ends");
    assert!(
        !thread_ends(),
        "a computation is made when the thread has ended"
    );
}

impl<E: Effect, R: 'static> Computation<E, R> {
    /// Nothing runs until [`start`](Self::start).
    ///
    /// # Panics
    /// If there is no memory for a stack.
    pub fn new(body: impl FnOnce() -> R + 'static) -> Self {
        check_thread();
        Computation {
            // SAFETY: the body borrows nothing.
            fiber: ManuallyDrop::new(unsafe { Fiber::new(Box::new(body)) }),
            not_send: PhantomData,
        }
    }

    /// Begins.
    ///
    /// # Panics
    /// If it has begun, or the body panics before it performs the effect.
    pub fn start(&mut self) -> Step<E, R> {
        assert!(
            !thread_ends(),
            "a computation goes on when the thread has ended"
        );
        assert!(!self.fiber.has_begun(), "a computation is started twice");
        self.fiber.resume(None)
    }

    /// Answers the effect in which the computation waits.
    ///
    /// # Panics
    /// If it does not wait, or the body panics.
    pub fn resume(&mut self, answer: E::Output) -> Step<E, R> {
        self.go_on(Answer::Value(answer))
    }

    /// Raises a panic with this payload where the computation waits.
    ///
    /// # Panics
    /// If it does not wait, or the body panics: by this payload, unless it catches that.
    pub fn discontinue(&mut self, payload: Payload) -> Step<E, R> {
        self.go_on(Answer::Raise(payload))
    }

    fn go_on(&mut self, answer: Answer<E::Output>) -> Step<E, R> {
        assert!(
            !thread_ends(),
            "a computation goes on when the thread has ended"
        );
        assert!(
            self.fiber.has_begun(),
            "a computation is resumed before its start"
        );
        self.fiber.resume(Some(answer))
    }

    /// Whether the body has returned or panicked.
    pub fn is_finished(&self) -> bool {
        self.fiber.state.get() == State::Finished
    }
}

impl<E: Effect, R> Drop for Computation<E, R> {
    fn drop(&mut self) {
        let waits = self.fiber.has_begun() && self.fiber.state.get() == State::Suspended;
        if waits && thread_ends() {
            return; // It is leaked.
        }
        // SAFETY: the field is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.fiber) };
    }
}

impl<E: Effect, R> fmt::Debug for Computation<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computation").finish_non_exhaustive()
    }
}

// ---- Deep handling ----

/// A computation that waits in a perform, as the clause of [`handle_general`] gets it: it is
/// resumed, discontinued or dropped, once. Dropping it unwinds the computation.
pub struct Resumption<'k, E: Effect, R> {
    handler: &'k dyn Handler<E, R>,
    fiber: &'k Fiber<E, R>,
    not_send: PhantomData<*mut ()>,
}

/// The clause, whatever its type is.
trait Handler<E: Effect, R> {
    fn call(&self, effect: E, k: Resumption<'_, E, R>) -> R;
}
struct Clause<C>(C);
impl<E: Effect, R, C: for<'k> Fn(E, Resumption<'k, E, R>) -> R> Handler<E, R> for Clause<C> {
    fn call(&self, effect: E, k: Resumption<'_, E, R>) -> R {
        (self.0)(effect, k)
    }
}

fn drive<E: Effect, R>(
    handler: &dyn Handler<E, R>,
    fiber: &Fiber<E, R>,
    answer: Option<Answer<E::Output>>,
) -> R {
    match fiber.resume(answer) {
        Step::Returned(result) => result,
        Step::Performed(effect) => {
            let k = Resumption {
                handler,
                fiber,
                not_send: PhantomData,
            };
            handler.call(effect, k)
        }
    }
}

impl<E: Effect, R> Resumption<'_, E, R> {
    /// Answers the effect. Returns what the computation returns, or what the clause does for its
    /// next effect.
    pub fn resume(self, answer: E::Output) -> R {
        self.go_on(Answer::Value(answer))
    }
    /// Raises a panic with this payload where the computation waits.
    pub fn discontinue(self, payload: Payload) -> R {
        self.go_on(Answer::Raise(payload))
    }
    fn go_on(self, answer: Answer<E::Output>) -> R {
        let (handler, fiber) = (self.handler, self.fiber);
        std::mem::forget(self);
        drive(handler, fiber, Some(answer))
    }
}

impl<E: Effect, R> Drop for Resumption<'_, E, R> {
    fn drop(&mut self) {
        self.fiber.end();
    }
}

impl<E: Effect, R> fmt::Debug for Resumption<'_, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumption").finish_non_exhaustive()
    }
}

/// Calls the body on a stack of its own. When it performs an effect of type `E` it is suspended,
/// and the clause gets the effect and the computation, as a [`Resumption`]; what the clause returns
/// is the result, of this call or of the [`Resumption::resume`] that let the computation run. When
/// this returns the computation has ended: one that the clause has not resumed has been unwound.
///
/// Each resume is a call inside the clause, so the caller's stack grows with the number of effects;
/// where the clause only answers, [`handle`] does so in constant space and faster.
///
/// ```
/// use haft::{handle_general, perform, Effect};
///
/// struct Rollback(&'static str);
/// impl Effect for Rollback {
///     type Output = ();
/// }
///
/// let outcome = handle_general(
///     |Rollback(reason), _dropped| Err(reason),
///     || {
///         perform(Rollback("no money"));
///         Ok(42)
///     },
/// );
/// assert_eq!(outcome, Err("no money"));
/// ```
///
/// # Panics
/// If the body or the clause does, or there is no memory for a stack.
pub fn handle_general<E: Effect, R>(
    clause: impl for<'k> Fn(E, Resumption<'k, E, R>) -> R,
    body: impl FnOnce() -> R,
) -> R {
    let clause = Clause(clause);
    // SAFETY: the fiber is dropped at the end of this call, also when it is left by a panic: it is
    // a local variable that is lent to nobody for longer.
    let fiber = unsafe { Fiber::new(Box::new(body)) };
    drive(&clause, &fiber, None)
}

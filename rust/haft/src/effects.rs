// SPDX-License-Identifier: MIT
//! Effects and their handlers.
//!
//! To C the payload of an effect of Rust is the address of a [`Slot`] in the performer's frame, with
//! the effect and, later, the answer. C knows an effect by a descriptor, one for each type in the
//! process; a handler handles the effects of one type, so it knows of what type a slot is.
//!
//! ```text
//!   perform(e)          Slot { effect, answer }   on the performer's stack, which does not move
//!        |                ^            |
//!        | descriptor     | takes      | Value(v): perform returns v
//!        v                | effect,    | Raise(p): perform raises the panic p, and so unwinds
//!   the handler ----------+ writes answer
//! ```
//!
//! A computation that has ended suspends its fiber a last time, with a word that is no slot: the
//! fiber is idle then, and runs the next computation of its thread.

use crate::wait::{drop_quietly, must_unwind};
use haft_sys as sys;
use haft_sys::hot::Found;
use std::any::{Any, TypeId, type_name};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CString, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
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

    /// The default handler: answers where no other does, outside of all handlers. Unless it is given
    /// it panics, with a message that names the effect.
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
}

struct Slot<E: Effect> {
    /// Taken by the handler, once.
    effect: ManuallyDrop<E>,
    /// Written by the handler before the performer goes on.
    answer: MaybeUninit<Answer<E::Output>>,
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
#[inline]
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

/// Answers in place what C has the payload of.
///
/// # Safety
/// The payload is a slot of this type, in the frame of the performer, who waits; nobody else takes
/// the effect.
unsafe fn answer<E: Effect>(payload: *mut c_void, clause: impl FnOnce(E) -> E::Output) {
    // SAFETY: the caller says so.
    let slot = unsafe { &mut *payload.cast::<Slot<E>>() };
    // SAFETY: as above.
    let effect = unsafe { ManuallyDrop::take(&mut slot.effect) };
    slot.answer
        .write(match catch_unwind(AssertUnwindSafe(|| clause(effect))) {
            Ok(value) => Answer::Value(value),
            Err(payload) => Answer::Raise(payload),
        });
}

/// Where nobody handles the effect.
unsafe extern "C" fn unhandled<E: Effect>(_: *mut c_void, payload: *mut c_void) {
    // SAFETY: the payload of an effect of this descriptor is a slot of this type.
    unsafe { answer(payload, E::unhandled) };
}

/// Where `handle` does: for performs that go through C.
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

#[inline(always)]
fn descriptor<E: Effect>() -> *mut sys::haft_rust_effect_t {
    #[cfg(target_arch = "x86_64")]
    {
        use std::sync::atomic::{AtomicPtr, Ordering};
        // SAFETY: the word is that of this type, and is written by atomic stores of what is always
        // the same.
        let word = unsafe { AtomicPtr::from_ptr(sys::word_of!(make::<E>)) };
        let made = word.load(Ordering::Relaxed);
        if !made.is_null() {
            return made.cast();
        }
        let made = look_up(TypeId::of::<E>(), make::<E>).0;
        word.store(made, Ordering::Relaxed);
        made.cast()
    }
    #[cfg(not(target_arch = "x86_64"))]
    once_for(TypeId::of::<E>(), make::<E>).cast()
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
    // SAFETY: the descriptor is one of the library's.
    perform_by(effect, |made| unsafe { sys::hot::find(made) })
}

/// As [`perform`], by code that has been on this fiber: see [`sys::hot::find_on`].
#[inline(always)]
pub(crate) fn perform_on<E: Effect>(fiber: usize, effect: E) -> E::Output {
    // SAFETY: as above.
    perform_by(effect, |made| unsafe { sys::hot::find_on(fiber, made) })
}

#[inline(always)]
fn perform_by<E: Effect>(
    effect: E,
    find: impl FnOnce(*mut sys::haft_rust_effect_t) -> Found,
) -> E::Output {
    let made = descriptor::<E>();
    // (A panic of the clause passes no frame of C, and drops what was found.)
    let found = find(made);
    if let Found::InPlace(found) = found {
        // SAFETY: the state is that of `handle`, whose frame is around this one.
        let handler = unsafe { &*found.state.cast::<InPlace<'_, E>>() };
        return handler.answer(effect);
    }
    let slot = UnsafeCell::new(Slot {
        effect: ManuallyDrop::new(effect),
        answer: MaybeUninit::uninit(),
    });
    // SAFETY: the slot lies in this frame until the call returns, and the handler of this effect's
    // descriptor knows its type. Nothing is unwound through C.
    unsafe { sys::hot::perform(found, made, slot.get().cast()) };
    // SAFETY: whoever lets a performer go on has answered it: `answer`, or `Fiber::resume`.
    match unsafe { slot.into_inner().answer.assume_init() } {
        Answer::Value(value) => value,
        Answer::Raise(payload) => raise(payload),
    }
}

#[cold]
fn raise(payload: Payload) -> ! {
    resume_unwind(payload)
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
            // SAFETY: as `answer` says.
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

// ---- Fibers, and what is on them ----

/// Where a computation lies until it begins, and its outcome when it has ended; and the fiber on
/// which it runs. A fiber whose computation has ended, or has never begun, takes a further one of its
/// thread.
#[repr(C)]
struct Room {
    content: UnsafeCell<MaybeUninit<[u128; 8]>>,
    /// What the fiber does when it is resumed: none to end. Then it suspends itself by `effect`.
    job: Cell<Option<unsafe fn(&Room)>>,
    effect: Cell<*mut sys::haft_rust_effect_t>,
    fiber: Cell<*mut sys::haft_fiber_t>,
    /// Another one whose fiber is idle.
    next: Cell<Place>,
}

/// A room with its fiber: to take both is not to wait for one when the other is read. Both are null
/// where there is none.
#[derive(Clone, Copy)]
struct Place {
    room: *const Room,
    fiber: *mut sys::haft_fiber_t,
}

impl Place {
    const NONE: Place = Place {
        room: ptr::null(),
        fiber: ptr::null_mut(),
    };
}

impl Room {
    /// # Panics
    /// If there is no memory for a stack.
    #[cold]
    fn make() -> Place {
        check_thread();
        let room = Box::into_raw(Box::new(Room {
            content: UnsafeCell::new(MaybeUninit::uninit()),
            job: Cell::new(None),
            effect: Cell::new(ptr::null_mut()),
            fiber: Cell::new(ptr::null_mut()),
            next: Cell::new(Place::NONE),
        }));
        // SAFETY: the room lives as long as the fiber, and the function lets no panic out.
        let fiber = unsafe { sys::haft_rust_fiber_new(0, work, room.cast()) };
        // SAFETY: it has just been made.
        unsafe { &*room }.fiber.set(fiber);
        if fiber.is_null() {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(room) });
            panic!("no memory for the stack of a computation");
        }
        Place { room, fiber }
    }

    /// Puts the value, or its box if it is large, where [`Room::take`] finds it.
    fn put<T>(&self, value: T) {
        let place = self.content.get();
        // SAFETY: the place is large enough, aligned, and nobody else's.
        unsafe {
            if fits::<T>() {
                place.cast::<T>().write(value);
            } else {
                place.cast::<Box<T>>().write(Box::new(value));
            }
        }
    }

    /// # Safety
    /// A value of this type was put there, and was not taken.
    unsafe fn take<T>(&self) -> T {
        let place = self.content.get();
        // SAFETY: the caller says so.
        unsafe {
            if fits::<T>() {
                place.cast::<T>().read()
            } else {
                *place.cast::<Box<T>>().read()
            }
        }
    }

    /// # Safety
    /// The fiber is new, or waits in [`work`] for something to do; nobody has the room any more.
    unsafe fn end(this: *const Room) {
        // SAFETY: the caller says so. The function of the fiber returns; the effect is not
        // performed.
        unsafe {
            (*this).job.set(None);
            let fiber = (*this).fiber.get();
            sys::haft_rust_resume(fiber, descriptor::<Nothing>());
            sys::haft_fiber_drop(fiber);
            drop(Box::from_raw(this.cast_mut()));
        }
    }
}

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<[u128; 8]>() && align_of::<T>() <= align_of::<[u128; 8]>()
}

/// What a fiber is resumed to handle that only returns.
struct Nothing;
impl Effect for Nothing {
    type Output = ();
}

/// In place of a slot: the computation has ended, and its outcome is in the room.
const ENDED: *mut c_void = ptr::without_provenance_mut(1);

/// The function of all fibers.
unsafe extern "C" fn work(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the room lives as long as the fiber.
    let room = unsafe { &*argument.cast::<Room>() };
    while let Some(job) = room.job.get() {
        let effect = room.effect.get();
        // SAFETY: whoever resumes the fiber has given it a job, and handles this effect; no handler
        // is further in.
        unsafe {
            job(room);
            let found = sys::hot::find_on(room.fiber.get().addr(), effect);
            sys::hot::perform(found, effect, ENDED);
        }
    }
    ptr::null_mut()
}

/// Fibers of this thread that have nothing to do.
struct Idle {
    first: Cell<Place>,
    count: Cell<usize>,
}

impl Idle {
    /// Their stacks keep the memory that they have used.
    const MOST: usize = 16;

    fn take(&self) -> Option<Place> {
        let place = self.first.get();
        if place.room.is_null() {
            return None;
        }
        // SAFETY: those in the list are there.
        self.first.set(unsafe { &*place.room }.next.get());
        self.count.set(self.count.get() - 1);
        Some(place)
    }

    /// # Safety
    /// As for [`Room::end`].
    unsafe fn give(&self, place: Place) {
        if self.count.get() == Self::MOST {
            // SAFETY: as the caller says.
            return unsafe { Room::end(place.room) };
        }
        // SAFETY: the room is there.
        unsafe { &*place.room }.next.set(self.first.replace(place));
        self.count.set(self.count.get() + 1);
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        while let Some(place) = self.take() {
            // SAFETY: those in the list wait in `work`, and are nobody's.
            unsafe { Room::end(place.room) };
        }
    }
}

thread_local! {
    static IDLE: Idle = const {
        Idle {
            first: Cell::new(Place::NONE),
            count: Cell::new(0),
        }
    };
    /// Whether the destructors of the thread's thread-local variables run.
    ///
    /// A computation that waits may have references to such variables, which are for frames that
    /// end before that. One that lies in such a variable is still there. So it goes on no more.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

fn thread_ends() -> bool {
    ENDS.get()
}

/// Before the thread makes its first fiber, after it has looked into `IDLE`, which has a destructor:
/// so std has had an entry made, which is seen.
fn check_thread() {
    // SAFETY: the variable has no destructor, so it is there as long as the thread.
    let watched = ENDS.with(|ends| unsafe { sys::haft_rust_watch_thread(ends.as_ptr()) });
    assert!(watched, "this C library does not tell when a thread ends");
}

// ---- Computations ----

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// It waits if it has a slot, else it runs.
    Begun,
    Finished,
}

/// A computation. Dropped, it unwinds what it does; forgotten, it leaks, with its fiber.
struct Fiber<E: Effect, R> {
    room: *const Room,
    /// That of the room. Each switch gives it anew: see [`sys::hot::Resumed`].
    fiber: Cell<*mut sys::haft_fiber_t>,
    effect: *mut sys::haft_rust_effect_t,
    /// In which it waits, or null.
    slot: Cell<*mut Slot<E>>,
    state: Cell<State>,
    /// See [`sys::hot::resume`].
    is_ordinary: Cell<bool>,
    /// Drops the body, which has not begun.
    discard: unsafe fn(&Room),
    returns: PhantomData<fn() -> R>,
}

/// # Safety
/// The room has a body of this type.
unsafe fn run_body<F: FnOnce() -> R, R>(room: &Room) {
    // SAFETY: as the caller says.
    let body = unsafe { room.take::<F>() };
    room.put(catch_unwind(AssertUnwindSafe(body)));
}

impl<E: Effect, R> Fiber<E, R> {
    /// # Panics
    /// If there is no memory for a stack.
    ///
    /// # Safety
    /// It is dropped, or finished, before what the body borrows ends; or it is leaked, and the body
    /// borrows nothing.
    #[inline]
    unsafe fn new<F: FnOnce() -> R>(body: F) -> Self {
        let idle = IDLE.try_with(Idle::take).ok().flatten();
        let Place { room, fiber } = idle.unwrap_or_else(Room::make);
        // SAFETY: a room lives as long as its fiber.
        let given = unsafe { &*room };
        let effect = descriptor::<E>();
        given.put(body);
        given.job.set(Some(run_body::<F, R>));
        given.effect.set(effect);
        Fiber {
            room,
            fiber: Cell::new(fiber),
            effect,
            slot: Cell::new(ptr::null_mut()),
            state: Cell::new(State::New),
            is_ordinary: Cell::new(false),
            // SAFETY: the room has such a body.
            discard: |room| drop(unsafe { room.take::<F>() }),
            returns: PhantomData,
        }
    }

    /// # Panics
    /// If it has begun, or the body panics before it performs the effect.
    #[inline(always)]
    fn start(&self) -> Step<E, R> {
        if self.state.get() != State::New {
            self.refuse("started");
        }
        self.state.set(State::Begun);
        // SAFETY: the fiber is new, or waits for something to do; as for `resume`.
        unsafe {
            let (fiber, effect) = (self.fiber.get(), self.effect);
            self.arrive(sys::hot::start(fiber, effect, &self.is_ordinary))
        }
    }

    /// # Panics
    /// If it does not wait, or the body panics.
    #[inline(always)]
    fn resume(&self, answer: Answer<E::Output>) -> Step<E, R> {
        let slot = self.slot.replace(ptr::null_mut());
        if slot.is_null() {
            self.refuse("resumed");
        }
        // SAFETY: the fiber waits in the perform in whose frame the slot lies; on this thread, since
        // it is not `Send`. What it runs lets no panic out.
        unsafe {
            (*slot).answer.write(answer);
            let (fiber, effect) = (self.fiber.get(), self.effect);
            self.arrive(sys::hot::resume(fiber, effect, &self.is_ordinary))
        }
    }

    #[inline]
    fn waits(&self) -> bool {
        !self.slot.get().is_null()
    }

    #[cold]
    fn refuse(&self, what: &str) -> ! {
        panic!(
            "a computation is {what} that {}",
            match self.state.get() {
                State::New => "has not begun",
                State::Begun if self.waits() => "has begun",
                State::Begun => "runs",
                State::Finished => "has ended",
            }
        )
    }

    /// # Safety
    /// It has just been resumed.
    #[inline(always)]
    unsafe fn arrive(&self, resumed: sys::hot::Resumed) -> Step<E, R> {
        self.fiber.set(resumed.fiber);
        if resumed.slot != ENDED {
            let slot: *mut Slot<E> = resumed.slot.cast();
            self.slot.set(slot);
            // SAFETY: the fiber waits in a perform of the effect that it is resumed to handle.
            return Step::Performed(unsafe { ManuallyDrop::take(&mut (*slot).effect) });
        }
        // SAFETY: `run_body` has put the outcome there.
        let outcome = unsafe { (*self.room).take::<thread::Result<R>>() };
        self.state.set(State::Finished);
        self.give_room();
        match outcome {
            Ok(result) => Step::Returned(result),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// The computation has ended, or never begins.
    #[inline]
    fn give_room(&self) {
        // SAFETY: the fiber waits in `work` for something to do, or is new; this has it no more.
        unsafe {
            let (room, fiber) = (self.room, self.fiber.get());
            let gave = IDLE.try_with(|idle| idle.give(Place { room, fiber }));
            if gave.is_err() {
                Room::end(self.room);
            }
        }
    }

    /// Unwinds what the fiber does, until it has ended.
    #[cold]
    fn end(&self) {
        if self.state.get() == State::New {
            self.state.set(State::Finished);
            // SAFETY: the body has not begun, and does not begin any more.
            unsafe { (self.discard)(&*self.room) };
            self.give_room();
        }
        while self.waits() {
            let raise = Answer::Raise(Box::new(Discontinued(())));
            // What ends the body is nobody's any more; a panic has been reported by the panic hook.
            // If the body performs the effect again while it is unwound, that raises, too.
            must_unwind("a computation that waits is dropped");
            let outcome = catch_unwind(AssertUnwindSafe(|| drop(self.resume(raise))));
            outcome.unwrap_or_else(drop_quietly);
        }
    }
}

/// (A computation that drops itself, while it runs, is leaked.)
impl<E: Effect, R> Drop for Fiber<E, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.state.get() != State::Finished {
            self.end();
        }
    }
}

// ---- Shallow handling ----

/// What a [`Computation`] has come to.
///
/// ```
/// # struct Ask;
/// # impl haft::Effect for Ask {
/// #     type Output = u32;
/// # }
/// use haft::{Computation, Step};
///
/// let mut computation = Computation::new(|| haft::perform(Ask) + 1);
/// assert!(matches!(computation.start(), Step::Performed(Ask)));
/// assert!(matches!(computation.resume(41), Step::Returned(42)));
/// ```
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

/// Called by the owner of a computation: a deep handler has none that outlives it.
#[inline]
fn may_go_on() {
    assert!(
        !thread_ends(),
        "a computation goes on when the thread has ended"
    );
}

impl<E: Effect, R: 'static> Computation<E, R> {
    /// Nothing runs until [`start`](Self::start).
    ///
    /// # Panics
    /// If there is no memory for a stack.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let mut nothing_yet = haft::Computation::<Ask, u32>::new(|| panic!("never"));
    /// assert!(!nothing_yet.is_finished());
    /// ```
    pub fn new(body: impl FnOnce() -> R + 'static) -> Self {
        assert!(
            !thread_ends(),
            "a computation is made when the thread has ended"
        );
        Computation {
            // SAFETY: the body borrows nothing.
            fiber: ManuallyDrop::new(unsafe { Fiber::new(body) }),
            not_send: PhantomData,
        }
    }

    /// Begins.
    ///
    /// # Panics
    /// If it has begun, or the body panics before it performs the effect.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let mut computation = haft::Computation::<Ask, u32>::new(|| 42);
    /// assert!(matches!(computation.start(), haft::Step::Returned(42)));
    /// ```
    #[inline(always)]
    pub fn start(&mut self) -> Step<E, R> {
        may_go_on();
        self.fiber.start()
    }

    /// Answers the effect in which the computation waits.
    ///
    /// # Panics
    /// If it does not wait, or the body panics.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let mut computation = haft::Computation::<Ask, u32>::new(|| haft::perform(Ask) + 1);
    /// computation.start();
    /// assert!(matches!(computation.resume(41), haft::Step::Returned(42)));
    /// ```
    #[inline(always)]
    pub fn resume(&mut self, answer: E::Output) -> Step<E, R> {
        may_go_on();
        self.fiber.resume(Answer::Value(answer))
    }

    /// Raises a panic with this payload where the computation waits.
    ///
    /// # Panics
    /// If it does not wait, or the body panics: by this payload, unless it catches that.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let body = || std::panic::catch_unwind(|| haft::perform(Ask)).is_err();
    /// let mut computation = haft::Computation::<Ask, bool>::new(body);
    /// computation.start();
    /// let step = computation.discontinue(Box::new("no answer"));
    /// assert!(matches!(step, haft::Step::Returned(true)));
    /// ```
    pub fn discontinue(&mut self, payload: Payload) -> Step<E, R> {
        may_go_on();
        self.fiber.resume(Answer::Raise(payload))
    }

    /// Starts, or answers; none if the body has ended.
    #[inline(always)]
    pub(crate) fn step(&mut self, answer: E::Output) -> Option<Step<E, R>> {
        match self.fiber.state.get() {
            State::New => Some(self.start()),
            State::Begun => Some(self.resume(answer)),
            State::Finished => None,
        }
    }

    /// Whether the body has returned or panicked.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let mut computation = haft::Computation::<Ask, u32>::new(|| 42);
    /// computation.start();
    /// assert!(computation.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.fiber.state.get() == State::Finished
    }
}

impl<E: Effect, R> Drop for Computation<E, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.fiber.waits() && thread_ends() {
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
///
/// ```
/// # struct Ask;
/// # impl haft::Effect for Ask {
/// #     type Output = u32;
/// # }
/// // What the clause returns is the result; the computation goes on inside of the clause.
/// let doubled = haft::handle_general(|Ask, k| 2 * k.resume(20), || haft::perform(Ask) + 1);
/// assert_eq!(doubled, 42);
/// ```
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

fn drive<E: Effect, R>(handler: &dyn Handler<E, R>, fiber: &Fiber<E, R>, step: Step<E, R>) -> R {
    match step {
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
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let sum = haft::handle_general(
    ///     |Ask, k| 100 + k.resume(1),
    ///     || haft::perform(Ask) + haft::perform(Ask),
    /// );
    /// assert_eq!(sum, 202);
    /// ```
    pub fn resume(self, answer: E::Output) -> R {
        self.go_on(Answer::Value(answer))
    }
    /// Raises a panic with this payload where the computation waits.
    ///
    /// ```
    /// # struct Ask;
    /// # impl haft::Effect for Ask {
    /// #     type Output = u32;
    /// # }
    /// let body = || std::panic::catch_unwind(|| haft::perform(Ask)).unwrap_or(7);
    /// let answer = haft::handle_general(|Ask, k| k.discontinue(Box::new("no answer")), body);
    /// assert_eq!(answer, 7);
    /// ```
    pub fn discontinue(self, payload: Payload) -> R {
        self.go_on(Answer::Raise(payload))
    }
    fn go_on(self, answer: Answer<E::Output>) -> R {
        let (handler, fiber) = (self.handler, self.fiber);
        std::mem::forget(self);
        drive(handler, fiber, fiber.resume(answer))
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
    let fiber = unsafe { Fiber::new(body) };
    drive(&clause, &fiber, fiber.start())
}

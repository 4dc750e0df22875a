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
//! Between a fiber and whoever has resumed it effects and answers need no slot: they go along with the
//! switch, see [`sys::hot`]. A fiber whose computation has ended is idle, and runs the next one of its
//! thread.

use crate::wait::{Call, drop_quietly, must_unwind};
use haft_sys as sys;
use haft_sys::hot::{Arrived, Outcome, Room, Waiting, Word};
use std::any::{Any, TypeId, type_name};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CString, c_void};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
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

    /// The default handler: answers where no other does, outside of all handlers. On a task it may
    /// wait. Unless it is given it panics, with a message that names the effect.
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

/// Declares effects: structs, each with what [`perform`] returns. A type that needs parameters, or a
/// default handler, implements [`Effect`] itself.
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

/// Has the descriptor's word: no other type's function is like this one. (Of functions whose code
/// is the same, as that of `make` for types with one name, an optimizing compiler makes one.)
fn key<E: Effect>() -> TypeId {
    TypeId::of::<E>()
}

/// The descriptor, or [`sys::hot::UNMADE`].
#[inline(always)]
fn known<E: Effect>() -> *mut sys::haft_rust_effect_t {
    // SAFETY: the word is that of this type, and whoever writes it writes the same.
    unsafe { sys::word_of!(key::<E>, value, *mut sys::haft_rust_effect_t) }
}

#[inline]
fn descriptor<E: Effect>() -> *mut sys::haft_rust_effect_t {
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
    // SAFETY: whoever has resumed the fiber gets such a word, and answers it, unless nothing was
    // done. The handler in place is dropped before this call returns, or is left by a panic, which
    // passes no frame of C; its state is that of `handle`, whose frame is around this one.
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

/// Has the compiler lay out the code after it apart.
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
    unsafe { sys::hot::perform_by_c(descriptor::<E>(), slot.get().cast()) };
    // SAFETY: whoever lets a performer go on has answered it: `answer`, or `Fiber::resume`.
    match unsafe { slot.into_inner().answer.assume_init() } {
        Answer::Value(value) => value,
        Answer::Raise(payload) => resume_unwind(payload),
    }
}

/// Calls the function outside of all handlers.
pub(crate) fn outside<T>(function: impl FnOnce() -> T) -> T {
    /// Nobody handles it, so its default answers.
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
/// The word is that of an answer, of a payload, or of the effect itself, as the tag says.
#[cold]
#[inline(never)]
unsafe fn woken_otherwise<E: Effect>(word: Word, tag: usize) -> E::Output {
    // SAFETY: the caller says so.
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

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<[u128; 8]>() && align_of::<T>() <= align_of::<[u128; 8]>()
}

/// Puts the value, or its box if it is large, where [`take`] finds it.
///
/// # Safety
/// Nobody else uses the room.
unsafe fn put<T>(room: *mut Room, value: T) {
    // SAFETY: as the caller says; the place is large enough, and aligned.
    unsafe {
        let place = &raw mut (*room).content;
        if fits::<T>() {
            place.cast::<T>().write(value);
        } else {
            place.cast::<Box<T>>().write(Box::new(value));
        }
    }
}

/// # Safety
/// A value of this type was put there, and was not taken.
unsafe fn take<T>(room: *mut Room) -> T {
    // SAFETY: the caller says so.
    unsafe {
        let place = &raw mut (*room).content;
        if fits::<T>() {
            place.cast::<T>().read()
        } else {
            *place.cast::<Box<T>>().read()
        }
    }
}

type Place = *mut sys::haft_fiber_t;

/// What fibers are resumed to handle that are to end.
struct Nothing;
impl Effect for Nothing {
    type Output = ();
}

/// In place of a fiber in [`LAST`]: the thread ends.
const NO_MORE: Place = ptr::without_provenance_mut(1);
/// Besides that in `LAST`: their stacks keep the memory that they have used.
const MOST_IDLE: usize = 15;

thread_local! {
    /// An idle fiber of this thread, the first to be used; or null.
    static LAST: Cell<Place> = const { Cell::new(ptr::null_mut()) };
    /// Further ones: a list, and its length.
    static IDLE: Cell<(Place, usize)> = const { Cell::new((ptr::null_mut(), 0)) };
    /// Whether the destructors of the thread's thread-local variables run.
    ///
    /// A computation that waits may have references to such variables, which are for frames that
    /// end before that. One that lies in such a variable is still there. So it goes on no more:
    /// nothing is resumed without a call of C then, and that call asks.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// A variable with a destructor.
    static WATCHED: Watched = const { Watched };
}

struct Watched;
impl Drop for Watched {
    fn drop(&mut self) {}
}

fn thread_ends() -> bool {
    ENDS.get()
}

extern "C" fn note_end() {
    ENDS.set(true);
    let last = LAST.replace(NO_MORE);
    if last > NO_MORE {
        end_fiber(last);
    }
    while let Some(idle) = take_idle() {
        end_fiber(idle);
    }
}

/// Before the thread makes a fiber.
fn check_thread() {
    // Has std make an entry, which is seen.
    let _ = WATCHED.try_with(|_| ());
    // SAFETY: the function needs no variable that has a destructor.
    let watched = unsafe { sys::haft_rust_watch_thread(note_end) };
    assert!(watched, "this C library does not tell when a thread ends");
}

fn end_fiber(idle: Place) {
    // SAFETY: it is idle, and nobody has it any more.
    unsafe { sys::hot::end_fiber(idle, descriptor::<Nothing>()) };
}

fn take_idle() -> Option<Place> {
    let (first, count) = IDLE.get();
    if first.is_null() {
        return None;
    }
    // SAFETY: those in the list are there.
    let next = unsafe { (*sys::hot::room_of(first)).next.get() };
    IDLE.set((next, count - 1));
    Some(first)
}

/// An idle fiber. `may_make` is called before one is made, and where the thread ends.
///
/// # Panics
/// If there is no memory for a stack.
#[inline(always)]
fn take_fiber<E: Effect>(may_make: fn()) -> Place {
    let last = LAST.get();
    if last <= NO_MORE {
        return take_further(descriptor::<E>, may_make);
    }
    LAST.set(ptr::null_mut());
    last
}

#[cold]
#[inline(never)]
fn take_further(effect: fn() -> *mut sys::haft_rust_effect_t, may_make: fn()) -> Place {
    take_idle().unwrap_or_else(|| {
        check_thread();
        may_make();
        // SAFETY: it is a descriptor.
        let fiber = unsafe { sys::hot::new_fiber(effect()) };
        assert!(!fiber.is_null(), "no memory for the stack of a computation");
        fiber
    })
}

/// The fiber is idle, and nobody has it any more.
#[inline(always)]
fn give_fiber(idle: Place) {
    if LAST.get().is_null() {
        LAST.set(idle);
    } else {
        give_further(idle);
    }
}

#[cold]
#[inline(never)]
fn give_further(idle: Place) {
    let (first, count) = IDLE.get();
    if count == MOST_IDLE || thread_ends() {
        return end_fiber(idle);
    }
    // SAFETY: the fiber is there.
    unsafe { (*sys::hot::room_of(idle)).next.set(first) };
    IDLE.set((idle, count + 1));
}

// ---- Computations ----

/// Where a computation is: one of these, or it waits in a perform by C, whose slot this is.
type At<E> = *mut Slot<E>;
const fn at<E: Effect>(number: usize) -> At<E> {
    ptr::without_provenance_mut(number)
}
const ENDED: usize = 0;
/// Or it waits for a word: see `Fiber::waits`.
const RUNS: usize = 1;
/// It has not begun.
const NEW: usize = 2;

/// What it has come to, and where it is then.
type Came<E, R> = (Step<E, R>, At<E>);
/// As it was, and what it was to be given.
type NotResumed<E> = (Waiting, <E as Effect>::Output);

/// What a computation does.
struct Work {
    job: sys::hot::Job,
    /// Drops the body, which has not begun.
    discard: unsafe fn(*mut Room),
}

struct WorkOf<F, R>(PhantomData<(F, R)>);
impl<F: FnOnce() -> R, R> WorkOf<F, R> {
    const WORK: Work = Work {
        job: Self::job,
        discard: Self::discard,
    };

    /// # Safety
    /// The room has a body of this type.
    unsafe extern "C" fn job(room: *mut Room) -> Outcome {
        // SAFETY: as the caller says; the outcome has the room after the body.
        unsafe {
            let body = take::<F>(room);
            match catch_unwind(AssertUnwindSafe(body)) {
                Ok(result) => {
                    let tag = sys::hot::ENDED;
                    if sys::hot::is_word::<R>() {
                        let word = sys::hot::encode(&ManuallyDrop::new(result));
                        return Outcome { word, tag };
                    }
                    put(room, result);
                    let word = Word::uninit();
                    Outcome { word, tag }
                }
                Err(payload) => {
                    put(room, payload);
                    let (word, tag) = (Word::uninit(), sys::hot::PANICKED);
                    Outcome { word, tag }
                }
            }
        }
    }

    /// # Safety
    /// The room has a body of this type.
    unsafe fn discard(room: *mut Room) {
        // SAFETY: as the caller says.
        drop(unsafe { take::<F>(room) });
    }
}

#[cold]
fn refuse(what: &str, at: usize, otherwise: &str) -> ! {
    panic!(
        "a computation is {what} that {}",
        match at {
            ENDED => "has ended",
            NEW => "has not begun",
            _ => otherwise,
        }
    )
}

/// A computation. Dropped, it unwinds what it does; forgotten, it leaks, with its fiber.
struct Fiber<E: Effect, R> {
    fiber: Place,
    /// The fiber, if it waits for a word; else [`sys::hot::nowhere`]. So whether it waits need not be
    /// asked before it is resumed. Each switch gives it anew: see [`Arrived`].
    waits: Cell<Waiting>,
    at: Cell<At<E>>,
    work: &'static Work,
    returns: PhantomData<fn() -> R>,
}

// What is called where C resumes, or where nothing is resumed, takes and returns values: so a fiber
// that is a local variable stays in registers.
impl<E: Effect, R> Fiber<E, R> {
    /// # Panics
    /// If there is no memory for a stack.
    ///
    /// # Safety
    /// It is dropped, or finished, before what the body borrows ends; or it is leaked, and the body
    /// borrows nothing.
    #[inline(always)]
    unsafe fn new<F: FnOnce() -> R>(body: F, may_make: fn()) -> Self {
        let fiber = take_fiber::<E>(may_make);
        // SAFETY: the room is that of an idle fiber, which is this one's now.
        unsafe { put(sys::hot::room_of(fiber), body) };
        Fiber {
            fiber,
            waits: Cell::new(sys::hot::nowhere()),
            at: Cell::new(at(NEW)),
            work: const { &WorkOf::<F, R>::WORK },
            returns: PhantomData,
        }
    }

    #[inline(always)]
    fn waits_for_word(&self) -> bool {
        self.waits.get() != sys::hot::nowhere()
    }

    #[inline(always)]
    fn waits(&self) -> bool {
        self.waits_for_word() || self.at.get() > at(NEW)
    }

    #[inline(always)]
    fn is_at(&self, number: usize) -> bool {
        self.at.get() == at(number) && !self.waits_for_word()
    }

    /// `may_go_on` is called where that may not be so.
    ///
    /// # Panics
    /// If it has begun, or the body panics before it performs the effect.
    #[inline(always)]
    fn start(&self, may_go_on: fn()) -> Step<E, R> {
        if self.at.get() != at(NEW) {
            refuse("started", self.at.get().addr(), "has begun");
        }
        let (fiber, job) = (self.fiber, self.work.job);
        self.at.set(at(RUNS));
        // SAFETY: the fiber is idle, and has the body of this job in its room.
        let resumed = unsafe { sys::hot::start(fiber, known::<E>(), job) };
        if resumed.tag == sys::hot::ENDED {
            self.at.set(at(ENDED));
            // SAFETY: so the job has.
            return Step::Returned(unsafe { Self::result(resumed.fiber(), resumed.word) });
        }
        if resumed.tag == sys::hot::NOT_DONE {
            self.at.set(at(NEW));
            may_go_on();
            self.at.set(at(RUNS));
            // SAFETY: as above.
            return self.arrive(unsafe { Self::start_by_c(fiber, job) });
        }
        self.arrive(resumed)
    }

    /// # Panics
    /// If it does not wait, or the body panics.
    #[inline(always)]
    fn resume(&self, answer: E::Output, may_go_on: fn()) -> Step<E, R> {
        match self.try_resume(answer) {
            Ok(step) => step,
            Err(answer) => self.resume_by_c(Answer::Value(answer), may_go_on),
        }
    }

    /// As `resume`, of one that has not begun, too; or none: it has ended.
    #[inline(always)]
    fn step(&self, answer: E::Output, may_go_on: fn()) -> Option<Step<E, R>> {
        match self.try_resume(answer) {
            Ok(step) => Some(step),
            Err(answer) => match self.at.get().addr() {
                ENDED => None,
                NEW => Some(self.start(may_go_on)),
                _ => Some(self.resume_by_c(Answer::Value(answer), may_go_on)),
            },
        }
    }

    /// Or nothing is done, and returns the answer.
    #[inline(always)]
    fn try_resume(&self, answer: E::Output) -> Result<Step<E, R>, E::Output> {
        let answer = ManuallyDrop::new(answer);
        let fiber = self.waits.replace(sys::hot::nowhere());
        // SAFETY: the fiber waits in a perform of the effect; on this thread, since it is not `Send`.
        // What it runs lets no panic out.
        let resumed = unsafe { sys::hot::resume(fiber, sys::hot::encode(&answer)) };
        if resumed.is_ordinary() {
            return Ok(self.performed(resumed));
        }
        let before = self.at.replace(at(ENDED));
        // SAFETY: it has just been resumed, or nothing was done.
        match unsafe { Self::otherwise(resumed.fiber(), resumed.word, resumed.tag) } {
            Ok((step, at)) => {
                self.at.set(at);
                Ok(step)
            }
            Err((fiber, answer)) => {
                self.at.set(before);
                self.waits.set(fiber);
                Err(answer)
            }
        }
    }

    /// As `resume`.
    #[inline(always)]
    fn resume_by_c(&self, answer: Answer<E::Output>, may_go_on: fn()) -> Step<E, R> {
        if !self.waits() {
            refuse("resumed", self.at.get().addr(), "runs");
        }
        may_go_on();
        let for_word = self.waits_for_word();
        self.waits.set(sys::hot::nowhere());
        let slot = self.at.replace(at(RUNS));
        // SAFETY: as in `try_resume`.
        let resumed = unsafe {
            if for_word {
                Self::word_by_c(self.fiber, answer)
            } else {
                Self::slot_by_c(self.fiber, slot, answer)
            }
        };
        self.arrive(resumed)
    }

    /// # Safety
    /// The fiber is idle, and the job may run on it.
    #[cold]
    unsafe fn start_by_c(fiber: Place, job: sys::hot::Job) -> Arrived {
        let words = (Word::new(job as *mut c_void), sys::hot::ANSWER);
        // SAFETY: as the caller says.
        unsafe { sys::hot::resume_by_c(fiber, descriptor::<E>(), Some(words)) }
    }

    /// # Safety
    /// The fiber waits for a word.
    #[cold]
    unsafe fn word_by_c(fiber: Place, answer: Answer<E::Output>) -> Arrived {
        let go_on = |word, tag| {
            // SAFETY: as the caller says. The frame of the answer waits until the performer has it.
            unsafe { sys::hot::resume_by_c(fiber, descriptor::<E>(), Some((word, tag))) }
        };
        match answer {
            Answer::Value(value) => {
                let value = ManuallyDrop::new(value);
                go_on(sys::hot::encode(&value), sys::hot::ANSWER)
            }
            Answer::Raise(payload) => {
                let payload = ManuallyDrop::new(payload);
                go_on(sys::hot::encode(&payload), sys::hot::RAISE)
            }
        }
    }

    /// # Safety
    /// The fiber waits in the perform in whose frame the slot lies.
    #[cold]
    unsafe fn slot_by_c(fiber: Place, slot: At<E>, answer: Answer<E::Output>) -> Arrived {
        // SAFETY: as the caller says.
        unsafe {
            (*slot).answer.write(answer);
            sys::hot::resume_by_c(fiber, descriptor::<E>(), None)
        }
    }

    #[inline(always)]
    fn arrive(&self, resumed: Arrived) -> Step<E, R> {
        if resumed.is_ordinary() {
            return self.performed(resumed);
        }
        self.at.set(at(ENDED));
        // SAFETY: it has just been resumed.
        let (step, at) = unsafe { Self::step_of(resumed.fiber(), resumed.word, resumed.tag) };
        self.at.set(at);
        step
    }

    /// What is ordinary.
    #[inline(always)]
    fn performed(&self, resumed: Arrived) -> Step<E, R> {
        self.waits.set(resumed.waiting());
        // SAFETY: the fiber waits in a perform of the effect that it is resumed to handle.
        Step::Performed(unsafe { sys::hot::decode(resumed.word) })
    }

    /// As `step_of`. Or nothing was done: returns what was given.
    ///
    /// # Safety
    /// As there.
    #[cold]
    #[inline(never)]
    unsafe fn otherwise(fiber: Place, word: Word, tag: usize) -> Result<Came<E, R>, NotResumed<E>> {
        // SAFETY: as the caller says; nobody has taken the answer.
        unsafe {
            if tag == sys::hot::NOT_DONE {
                return Err((Waiting::of(fiber), sys::hot::decode(word)));
            }
            Ok(Self::step_of(fiber, word, tag))
        }
    }

    /// # Safety
    /// The job has ended so.
    #[inline(always)]
    unsafe fn result(fiber: Place, word: Word) -> R {
        // SAFETY: as the caller says.
        let result = unsafe {
            if sys::hot::is_word::<R>() {
                sys::hot::decode(word)
            } else {
                take(sys::hot::room_of(fiber))
            }
        };
        give_fiber(fiber);
        result
    }

    /// What any fiber of this type that does not wait for a word has come to, and where it is then.
    ///
    /// # Panics
    /// As its job has.
    ///
    /// # Safety
    /// It has just been resumed.
    #[cold]
    #[inline(never)]
    unsafe fn step_of(fiber: Place, word: Word, tag: usize) -> Came<E, R> {
        // SAFETY: a fiber performs the effect that it is resumed to handle, and waits then; or its job
        // has ended, and has left a result or the payload of a panic.
        unsafe {
            match tag {
                sys::hot::ENDED => (Step::Returned(Self::result(fiber, word)), at(ENDED)),
                sys::hot::PANICKED => {
                    let payload = take::<Payload>(sys::hot::room_of(fiber));
                    give_fiber(fiber);
                    resume_unwind(payload)
                }
                _ => {
                    let slot: At<E> = word.assume_init().cast();
                    let effect = ManuallyDrop::take(&mut (*slot).effect);
                    (Step::Performed(effect), slot)
                }
            }
        }
    }

    /// Unwinds what the fiber does, until it has ended.
    #[cold]
    fn end(&self) {
        if self.is_at(NEW) {
            self.at.set(at(ENDED));
            let fiber = self.fiber;
            // SAFETY: the body has not begun, and does not begin any more.
            unsafe { (self.work.discard)(sys::hot::room_of(fiber)) };
            give_fiber(fiber);
        }
        while self.waits() {
            let raise = Answer::Raise(Box::new(Discontinued(())));
            // What ends the body is nobody's any more; a panic has been reported by the panic hook.
            // If the body performs the effect again while it is unwound, that raises, too.
            must_unwind("a computation that waits is dropped");
            let step = AssertUnwindSafe(|| drop(self.resume_by_c(raise, || ())));
            catch_unwind(step).unwrap_or_else(drop_quietly);
        }
    }
}

/// (A computation that drops itself, while it runs, is leaked.)
impl<E: Effect, R> Drop for Fiber<E, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_at(NEW) || self.waits() {
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
#[must_use = "a computation does nothing before it is started"]
pub struct Computation<E: Effect, R> {
    fiber: ManuallyDrop<Fiber<E, R>>,
    /// Fibers stay on their thread: their frames may hold what is not `Send`.
    not_send: PhantomData<*mut ()>,
}

/// Of the owner of a computation: a deep handler has none that outlives it.
fn may_go_on() {
    assert!(
        !thread_ends(),
        "a computation goes on when the thread has ended"
    );
}
fn may_be_made() {
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
        Computation {
            // SAFETY: the body borrows nothing.
            fiber: ManuallyDrop::new(unsafe { Fiber::new(body, may_be_made) }),
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
        self.fiber.start(may_go_on)
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
        self.fiber.resume(answer, may_go_on)
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
        self.fiber.resume_by_c(Answer::Raise(payload), may_go_on)
    }

    /// Starts, or answers; none if the body has ended.
    #[inline(always)]
    pub(crate) fn step(&mut self, answer: E::Output) -> Option<Step<E, R>> {
        self.fiber.step(answer, may_go_on)
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
        self.fiber.is_at(ENDED)
    }
}

impl<E: Effect, R> Drop for Computation<E, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.fiber.at.get() >= at(NEW) || self.fiber.waits_for_word() {
            let waits = self.fiber.waits.replace(sys::hot::nowhere());
            let at = self.fiber.at.replace(at(RUNS));
            end::<E, R>(self.fiber.fiber, waits, at, self.fiber.work);
        }
    }
}

/// Of a computation that has not ended. (If this took the address of one that is a local variable, it
/// would not stay in registers.)
#[cold]
#[inline(never)]
fn end<E: Effect, R>(fiber: Place, waits: Waiting, at: At<E>, work: &'static Work) {
    let fiber = Fiber::<E, R> {
        fiber,
        waits: Cell::new(waits),
        at: Cell::new(at),
        work,
        returns: PhantomData,
    };
    if fiber.waits() && thread_ends() {
        std::mem::forget(fiber); // It is leaked.
    }
}

impl<E: Effect, R> fmt::Debug for Computation<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computation").finish_non_exhaustive()
    }
}

// ---- Deep handling ----

/// A computation that waits in a perform, as the clause of [`handle_general`] gets it: it is
/// resumed, discontinued or dropped, once. Dropping it unwinds the computation, under its handler:
/// if a destructor performs the effect, the clause is called.
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
        self.go_on(|fiber| fiber.resume(answer, || ()))
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
    #[must_use]
    pub fn discontinue(self, payload: Payload) -> R {
        self.go_on(|fiber| fiber.resume_by_c(Answer::Raise(payload), || ()))
    }
    fn go_on(self, step: impl FnOnce(&Fiber<E, R>) -> Step<E, R>) -> R {
        let (handler, fiber) = (self.handler, self.fiber);
        std::mem::forget(self);
        drive(handler, fiber, step(fiber))
    }
}

/// The body is unwound under its handler: the clause gets what a destructor performs.
impl<E: Effect, R> Drop for Resumption<'_, E, R> {
    fn drop(&mut self) {
        while self.fiber.waits() {
            must_unwind("a computation that waits is dropped");
            let step = AssertUnwindSafe(|| {
                let raise = Answer::Raise(Box::new(Discontinued(())));
                let step = self.fiber.resume_by_c(raise, || ());
                drop(drive(self.handler, self.fiber, step));
            });
            // What ends the body, or a clause, is nobody's any more; the panic hook has reported a
            // panic.
            catch_unwind(step).unwrap_or_else(drop_quietly);
        }
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
    let fiber = unsafe { Fiber::new(body, || ()) };
    drive(&clause, &fiber, fiber.start(|| ()))
}

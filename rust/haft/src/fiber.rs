// SPDX-License-Identifier: MIT
//! Fibers, and the computations that run on them, one after the other.
//!
//! A fiber whose computation has ended is idle, and runs the next one of its thread. [`At`] has the
//! state of a computation; [`Fiber::waits`] has a fiber that waits for a word.

use crate::effects::{Answer, Discontinued, Effect, Payload, Slot, descriptor, known};
use crate::wait::{drop_quietly, must_unwind};
use haft_sys as sys;
use haft_sys::hot::{Arrived, Outcome, Room, Waiting, Word};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<[u128; 8]>() && align_of::<T>() <= align_of::<[u128; 8]>()
}

/// Puts the value, or its box if it is large, where [`take`] finds it.
///
/// # Safety
/// Nobody else uses the room.
unsafe fn put<T>(room: *mut Room, value: T) {
    // SAFETY: as the caller promises; the place is large enough, and aligned.
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
    // SAFETY: the caller promises it.
    unsafe {
        let place = &raw mut (*room).content;
        if fits::<T>() {
            place.cast::<T>().read()
        } else {
            *place.cast::<Box<T>>().read()
        }
    }
}

pub(crate) type Place = *mut sys::haft_fiber_t;

/// The effect under which a fiber is resumed in order to end it.
struct Nothing;
impl Effect for Nothing {
    type Output = ();
}

/// The value of [`LAST`] when the thread ends.
const NO_MORE: Place = ptr::without_provenance_mut(1);
/// The number of idle fibers besides that in `LAST`: their stacks keep the memory that they have
/// used.
const MOST_IDLE: usize = 15;

thread_local! {
    /// An idle fiber of this thread, the first to be used; or null.
    static LAST: Cell<Place> = const { Cell::new(ptr::null_mut()) };
    /// Further ones: a list, and its length.
    static IDLE: Cell<(Place, usize)> = const { Cell::new((ptr::null_mut(), 0)) };
    /// Whether the destructors of the thread's thread-local variables run.
    ///
    /// A computation that waits may have references to such variables, which are for frames that
    /// end before that. One that lies in such a variable is still there. So no computation goes on
    /// from then on: every resume goes through C, which checks this.
    static ENDS: Cell<bool> = const { Cell::new(false) };
    /// A variable with a destructor.
    static WATCHED: Watched = const { Watched };
}

struct Watched;
impl Drop for Watched {
    fn drop(&mut self) {}
}

pub(crate) fn thread_ends() -> bool {
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

/// To be called before the thread makes a fiber.
fn check_thread() {
    // Makes std add an entry, which is noticed.
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

/// Returns an idle fiber. `may_make` is called before one is made, and where the thread ends.
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

/// Takes back a fiber that is idle and no longer used.
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

/// The state of a computation: one of these, or the slot of the perform by C in which it waits.
pub(crate) type At<E> = *mut Slot<E>;
pub(crate) const fn at<E: Effect>(number: usize) -> At<E> {
    ptr::without_provenance_mut(number)
}
pub(crate) const ENDED: usize = 0;
/// Or it waits for a word: see `Fiber::waits`.
pub(crate) const RUNS: usize = 1;
/// It has not begun.
pub(crate) const NEW: usize = 2;

/// Result of starting or resuming a [`Computation`](crate::Computation).
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

/// The step, and the state of the computation after it.
type Came<E, R> = (Step<E, R>, At<E>);
/// The fiber as it was, and the answer that it was to be given.
type NotResumed<E> = (Waiting, <E as Effect>::Output);

/// The functions of a computation, by the type of its body.
pub(crate) struct Work {
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
        // SAFETY: as the caller promises; the outcome has the room after the body.
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
        // SAFETY: as the caller promises.
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
pub(crate) struct Fiber<E: Effect, R> {
    pub(crate) fiber: Place,
    /// The fiber, if it waits for a word; else [`sys::hot::nowhere`]. So it is resumed without a
    /// test whether it waits. Each switch gives it anew: see [`Arrived`].
    pub(crate) waits: Cell<Waiting>,
    pub(crate) at: Cell<At<E>>,
    pub(crate) work: &'static Work,
    pub(crate) returns: PhantomData<fn() -> R>,
}

// Functions that are called where C resumes, or where nothing is resumed, take and return values:
// so a fiber that is a local variable stays in registers.
impl<E: Effect, R> Fiber<E, R> {
    /// # Panics
    /// If there is no memory for a stack.
    ///
    /// # Safety
    /// It is dropped, or finished, before what the body borrows ends; or it is leaked, and the body
    /// borrows nothing.
    #[inline(always)]
    pub(crate) unsafe fn new<F: FnOnce() -> R>(body: F, may_make: fn()) -> Self {
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
    pub(crate) fn waits_for_word(&self) -> bool {
        self.waits.get() != sys::hot::nowhere()
    }

    #[inline(always)]
    pub(crate) fn waits(&self) -> bool {
        self.waits_for_word() || self.at.get() > at(NEW)
    }

    #[inline(always)]
    pub(crate) fn is_at(&self, number: usize) -> bool {
        self.at.get() == at(number) && !self.waits_for_word()
    }

    /// `may_go_on` is called where that may not be so.
    ///
    /// # Panics
    /// If it has begun, or the body panics before it performs the effect.
    #[inline(always)]
    pub(crate) fn start(&self, may_go_on: fn()) -> Step<E, R> {
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
    pub(crate) fn resume(&self, answer: E::Output, may_go_on: fn()) -> Step<E, R> {
        match self.try_resume(answer) {
            Ok(step) => step,
            Err(answer) => self.resume_by_c(Answer::Value(answer), may_go_on),
        }
    }

    /// Like `resume`, but also starts a new computation. `None` if it has ended.
    #[inline(always)]
    pub(crate) fn step(&self, answer: E::Output, may_go_on: fn()) -> Option<Step<E, R>> {
        match self.try_resume(answer) {
            Ok(step) => Some(step),
            Err(answer) => match self.at.get().addr() {
                ENDED => None,
                NEW => Some(self.start(may_go_on)),
                _ => Some(self.resume_by_c(Answer::Value(answer), may_go_on)),
            },
        }
    }

    /// If nothing was done, returns the answer.
    #[inline(always)]
    fn try_resume(&self, answer: E::Output) -> Result<Step<E, R>, E::Output> {
        let answer = ManuallyDrop::new(answer);
        let fiber = self.waits.replace(sys::hot::nowhere());
        // SAFETY: the fiber waits in a perform of the effect; on this thread, since it is not
        // `Send`. Its job lets no panic out.
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

    /// Like `resume`, but through C; it can raise a panic in the fiber, too.
    #[inline(always)]
    pub(crate) fn resume_by_c(&self, answer: Answer<E::Output>, may_go_on: fn()) -> Step<E, R> {
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
        // SAFETY: as the caller promises.
        unsafe { sys::hot::resume_by_c(fiber, descriptor::<E>(), Some(words)) }
    }

    /// # Safety
    /// The fiber waits for a word.
    #[cold]
    unsafe fn word_by_c(fiber: Place, answer: Answer<E::Output>) -> Arrived {
        let go_on = |word, tag| {
            // SAFETY: as the caller promises. The frame of the answer waits until the performer has it.
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
        // SAFETY: as the caller promises.
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

    /// The ordinary case: the fiber has performed the effect.
    #[inline(always)]
    fn performed(&self, resumed: Arrived) -> Step<E, R> {
        self.waits.set(resumed.waiting());
        // SAFETY: the fiber waits in a perform of the effect that it is resumed to handle.
        Step::Performed(unsafe { sys::hot::decode(resumed.word) })
    }

    /// Like `step_of`; but if nothing was done, returns what was given.
    ///
    /// # Safety
    /// The same as for `step_of`.
    #[cold]
    #[inline(never)]
    unsafe fn otherwise(fiber: Place, word: Word, tag: usize) -> Result<Came<E, R>, NotResumed<E>> {
        // SAFETY: as the caller promises; nobody has taken the answer.
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
        // SAFETY: as the caller promises.
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

    /// The step of a fiber that does not wait for a word, and where the computation is then.
    ///
    /// # Panics
    /// If its job has, with the same payload.
    ///
    /// # Safety
    /// It has just been resumed.
    #[cold]
    #[inline(never)]
    unsafe fn step_of(fiber: Place, word: Word, tag: usize) -> Came<E, R> {
        // SAFETY: a fiber performs the effect that it is resumed to handle, and waits then; or its
        // job has ended, and has left a result or the payload of a panic.
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

    /// Unwinds the computation of the fiber until it has ended.
    #[cold]
    pub(crate) fn end(&self) {
        if self.is_at(NEW) {
            self.at.set(at(ENDED));
            let fiber = self.fiber;
            // SAFETY: the body has not begun, and does not begin any more.
            unsafe { (self.work.discard)(sys::hot::room_of(fiber)) };
            give_fiber(fiber);
        }
        while self.waits() {
            let raise = Answer::Raise(Box::new(Discontinued(())));
            // The payload that ends the body is dropped; the panic hook has reported a panic.
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

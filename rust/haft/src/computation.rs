// SPDX-License-Identifier: MIT
//! Shallow handling: a computation whose owner resumes it step by step.

use crate::effects::{Answer, Effect, Payload};
use crate::fiber::{At, ENDED, Fiber, NEW, Place, RUNS, Step, Work, at, thread_ends};
use haft_sys as sys;
use haft_sys::hot::Waiting;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A function on a stack of its own, which is suspended whenever it performs an effect of type `E`.
///
/// It is handled by requests, as in "High-level effect handlers in C": each step returns what the
/// computation has performed, and the next gives the answer. Dropping it unwinds it, so its
/// destructors run. The body is `'static`, since a computation may be leaked; for one that borrows
/// there is [`handle_general`](crate::handle_general).
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

/// Checked for `Computation` only: a deep handler never outlives its thread.
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
    /// Makes a computation; nothing runs until [`start`](Self::start).
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

    /// Starts the computation.
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

    /// Starts, or answers; `None` if the body has ended.
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

/// Ends a computation that is dropped before its end. (It takes the fields: if it took their
/// address, a computation in a local variable would not stay in registers.)
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

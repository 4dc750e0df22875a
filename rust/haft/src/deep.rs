// SPDX-License-Identifier: MIT
//! Deep handling: a clause gets the computation, and further effects of the computation come to the
//! clause again.

use crate::effects::{Answer, Discontinued, Effect, Payload};
use crate::fiber::{Fiber, Step};
use crate::wait::{drop_quietly, must_unwind};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    /// Answers the effect. Returns the result of the computation, or of the clause for its next
    /// effect.
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
            // The payload that ends the body, or a clause, is dropped; the panic hook has reported
            // a panic.
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
/// where the clause only answers, [`handle`](crate::handle) does so in constant space and faster.
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

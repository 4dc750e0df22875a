// SPDX-License-Identifier: MIT
//! Computations that go on more than once, by running their body again.
//!
//! A computation waits where its answers so far have brought it: a path. The fiber that came there
//! goes on with the first answer; for each further one the body runs again on a new fiber, along
//! the path. A fiber is owned by the call of `run_along` that made it, whose frame is around all
//! that it does.
//!
//! ```text
//!   replay --> run_along(no answers) --> clause: k.resume(a)  the fiber goes on: path a
//!                                               k.resume(b)  run_along(b): a new fiber
//! ```

use crate::effects::Effect;
use crate::fiber::{Fiber, Step};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

/// A computation that waits in a perform, as the clause of [`replay`] gets it. It may be resumed
/// any number of times; a fiber that waits when it is dropped is unwound.
pub struct Replay<'k, E: Effect, R> {
    node: &'k Node<'k, E, R>,
    not_send: PhantomData<*mut ()>,
}

struct Handling<'a, E: Effect, R> {
    clause: &'a dyn Fn(E, Replay<'_, E, R>) -> R,
    body: &'a dyn Fn() -> R,
}

/// The answers so far, the last one first.
type Path<E> = Option<Rc<Answered<E>>>;
struct Answered<E: Effect> {
    answer: E::Output,
    before: Path<E>,
}

/// A place where a computation waits.
struct Node<'a, E: Effect, R> {
    handling: &'a Handling<'a, E, R>,
    fiber: &'a Fiber<E, R>,
    /// Whether the fiber still waits here.
    waits: Cell<bool>,
    path: Path<E>,
}

impl<E: Effect, R> Drop for Node<'_, E, R> {
    fn drop(&mut self) {
        if self.waits.get() {
            self.fiber.end();
        }
    }
}

impl<E: Effect<Output: Clone>, R> Handling<'_, E, R> {
    /// Returns what the computation returns, or what the clause does for its next effect.
    fn follow(&self, fiber: &Fiber<E, R>, step: Step<E, R>, path: Path<E>) -> R {
        match step {
            Step::Returned(result) => result,
            Step::Performed(effect) => {
                let node = Node {
                    handling: self,
                    fiber,
                    waits: Cell::new(true),
                    path,
                };
                let k = Replay {
                    node: &node,
                    not_send: PhantomData,
                };
                (self.clause)(effect, k)
            }
        }
    }

    fn run_along(&self, path: Path<E>) -> R {
        let mut answers = Vec::new();
        let mut at = &path;
        while let Some(answered) = at {
            answers.push(answered.answer.clone());
            at = &answered.before;
        }
        // SAFETY: the fiber is dropped at the end of this call, also when it is left by a panic: it
        // is a local variable that is lent to nobody for longer.
        let fiber = unsafe { Fiber::new(self.body, || ()) };
        let mut step = fiber.start(|| ());
        while let (Step::Performed(_), Some(answer)) = (&step, answers.pop()) {
            step = fiber.resume(answer, || ());
        }
        self.follow(&fiber, step, path)
    }
}

impl<E: Effect<Output: Clone>, R> Replay<'_, E, R> {
    /// Answers the effect. Returns the result of the computation, or of the clause for its next
    /// effect. The first time the computation goes on where it waits; every further time its body
    /// is run again up to here.
    ///
    /// ```
    /// haft::effect! { struct Flip -> bool }
    ///
    /// let all: Vec<String> = haft::replay(
    ///     |Flip, k| [k.resume(true), k.resume(false)].concat(),
    ///     || {
    ///         let mut said = String::new(); // own for each time
    ///         for _ in 0..2 {
    ///             said.push(if haft::perform(Flip) { 'a' } else { 'b' });
    ///         }
    ///         vec![said]
    ///     },
    /// );
    /// assert_eq!(all, ["aa", "ab", "ba", "bb"]);
    /// ```
    pub fn resume(&self, answer: E::Output) -> R {
        let node = self.node;
        let path = Some(Rc::new(Answered {
            answer: answer.clone(),
            before: node.path.clone(),
        }));
        if node.waits.replace(false) {
            let step = node.fiber.resume(answer, || ());
            node.handling.follow(node.fiber, step, path)
        } else {
            node.handling.run_along(path)
        }
    }
}

impl<E: Effect, R> fmt::Debug for Replay<'_, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

/// Like [`handle_general`](crate::handle_general), but the clause may resume the computation more
/// than once, each time with another answer: for search, backtracking, tests that choose their
/// inputs. The second time and every further time the body is run again from its start, and is given
/// the answers that it was given before; so it may have anything in its frames, and is called once
/// for each of its ends. [`handle_multi_shot`](crate::handle_multi_shot) copies frames instead.
///
/// The body is to do the same each time, given the same answers. One that does not gets answers that
/// were meant for other performs; nothing worse. All else that it does is
/// done again, too: effects that other handlers handle, for example.
///
/// A resume costs as many switches as the computation has had answers before, some ten nanoseconds
/// each, and what the body does meanwhile. A computation that the clause drops without a resume is
/// unwound by a panic, which takes microseconds.
///
/// ```
/// haft::effect! { struct Choose(usize) -> usize }
///
/// fn split<'t>(text: &'t str, words: &[&str]) -> Vec<&'t str> {
///     let mut parts = Vec::new();
///     let mut rest = text;
///     while !rest.is_empty() {
///         let fits: Vec<_> = words.iter().filter(|word| rest.starts_with(**word)).collect();
///         let (part, after) = rest.split_at(fits[haft::perform(Choose(fits.len()))].len());
///         parts.push(part);
///         rest = after;
///     }
///     parts
/// }
///
/// let words = ["some", "someone", "one", "times"];
/// let all: Vec<String> = haft::replay(
///     |Choose(count), k| (0..count).flat_map(|i| k.resume(i)).collect(),
///     || vec![split("someonesometimes", &words).join(" ")],
/// );
/// assert_eq!(all, ["some one some times", "someone some times"]);
/// ```
///
/// # Panics
/// If the body or the clause does, or there is no memory for a stack.
pub fn replay<E: Effect<Output: Clone>, R>(
    clause: impl Fn(E, Replay<'_, E, R>) -> R,
    body: impl Fn() -> R,
) -> R {
    let handling = Handling {
        clause: &clause,
        body: &body,
    };
    handling.run_along(None)
}

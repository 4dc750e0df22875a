// SPDX-License-Identifier: MIT
//! Generators: iterators that are written as functions.

use crate::computation::Computation;
use crate::effects::{Effect, perform};
use crate::fiber::Step;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// The effect by which a generator hands out an element; its answer is empty.
struct Give<T>(T);
impl<T: 'static> Effect for Give<T> {
    type Output = ();
}

/// The means by which the function of a [`Generator`] hands out its elements, also from functions
/// that it calls.
///
/// ```
/// fn count_down(from: u32, out: haft::Yielder<u32>) {
///     (0..from).rev().for_each(|n| out.give(n));
/// }
/// let numbers = haft::Generator::new(|out| count_down(3, out));
/// assert_eq!(numbers.collect::<Vec<_>>(), [2, 1, 0]);
/// ```
///
/// It stays in its generator's function, so it cannot hand an element to another generator.
pub struct Yielder<'function, T> {
    elements: PhantomData<fn(T)>,
    /// A computation stays on its thread.
    function: PhantomData<(&'function (), *mut ())>,
}

impl<T: 'static> Yielder<'_, T> {
    /// Hands an element to the iterator's caller, and goes on when the next is wanted. It may be
    /// called in functions that the generator calls, however deep: a recursive generator needs no
    /// nested iterators.
    ///
    /// # Panics
    /// Where the generator is dropped; and in a [`run`](crate::run) or
    /// [`block_thread`](crate::block_thread) that the generator's function calls.
    ///
    /// ```
    /// let mut words = haft::Generator::new(|out| {
    ///     out.give("one");
    ///     out.give("two");
    /// });
    /// assert_eq!(words.next(), Some("one"));
    /// ```
    #[inline(always)]
    pub fn give(self, element: T) {
        perform(Give(element));
    }
}
impl<T> Clone for Yielder<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Yielder<'_, T> {}
impl<T> fmt::Debug for Yielder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yielder")
    }
}

/// An iterator over what a function [gives](Yielder::give). Dropped before its end it unwinds the
/// function.
///
/// ```
/// use haft::{Generator, Yielder};
///
/// enum Tree {
///     Leaf,
///     Node(Box<Tree>, u32, Box<Tree>),
/// }
/// fn walk(tree: &Tree, out: Yielder<u32>) {
///     if let Tree::Node(left, value, right) = tree {
///         walk(left, out);
///         out.give(*value);
///         walk(right, out);
///     }
/// }
///
/// let leaf = || Box::new(Tree::Leaf);
/// let small = Box::new(Tree::Node(leaf(), 1, leaf()));
/// let tree = Tree::Node(small, 2, leaf());
/// let values: Vec<u32> = Generator::new(move |out| walk(&tree, out)).collect();
/// assert_eq!(values, [1, 2]);
/// ```
#[must_use = "generators are lazy"]
pub struct Generator<T: 'static> {
    computation: Computation<Give<T>, ()>,
}

impl<T: 'static> Generator<T> {
    /// Makes a generator; nothing runs until the first element is wanted.
    ///
    /// # Panics
    /// If there is no memory for a stack.
    ///
    /// ```
    /// let squares = haft::Generator::new(|out| (1_u64..).for_each(|n| out.give(n * n)));
    /// assert_eq!(squares.take(3).collect::<Vec<_>>(), [1, 4, 9]);
    /// ```
    pub fn new(body: impl FnOnce(Yielder<'_, T>) + 'static) -> Self {
        Generator {
            computation: Computation::new(|| {
                body(Yielder {
                    elements: PhantomData,
                    function: PhantomData,
                });
            }),
        }
    }
}

impl<T: 'static> Iterator for Generator<T> {
    type Item = T;
    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        match self.computation.step(())? {
            Step::Performed(Give(element)) => Some(element),
            Step::Returned(()) => None,
        }
    }
}
impl<T: 'static> FusedIterator for Generator<T> {}

impl<T: 'static> fmt::Debug for Generator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

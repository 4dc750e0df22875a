// SPDX-License-Identifier: MIT
//! Fibers, effects and generators of Haft and of other crates, which `main.rs` measures in turns
//! and `benches/effects.rs` by criterion.

use corosensei::Yielder as CoroYielder;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use genawaiter::rc::{Co, Gen};
use haft::{Computation, Effect, Generator, Step, Yielder, handle, perform};
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;

struct Yield(usize);
impl Effect for Yield {
    type Output = usize;
}

fn switch_haft(count: usize) {
    let mut fiber = Computation::<Yield, usize>::new(move || {
        (0..count).fold(0, |sum, i| sum + perform(Yield(i)))
    });
    let mut step = fiber.start();
    while let Step::Performed(Yield(value)) = step {
        step = fiber.resume(value);
    }
}

fn switch_corosensei(count: usize) {
    let mut fiber =
        Coroutine::new(move |yielder, _| (0..count).fold(0, |sum, i| sum + yielder.suspend(i)));
    let mut step = fiber.resume(0);
    while let CoroutineResult::Yield(value) = step {
        step = fiber.resume(value);
    }
    black_box(step.as_return());
}

fn create_haft(count: usize) {
    for i in 0..count {
        let mut fiber = Computation::<Yield, usize>::new(move || black_box(i));
        black_box(matches!(fiber.start(), Step::Returned(_)));
    }
}

fn create_corosensei(count: usize) {
    let mut stack = DefaultStack::new(64 * 1024).unwrap();
    for i in 0..count {
        let mut fiber: Coroutine<(), (), usize> =
            Coroutine::with_stack(stack, move |_, ()| black_box(i));
        black_box(fiber.resume(()).as_return());
        stack = fiber.into_stack();
    }
}

fn perform_in_place(count: usize) {
    let clause = |Yield(value)| value + 1;
    black_box(handle(clause, || {
        (0..count).fold(0, |sum, i| sum + perform(Yield(i)))
    }));
}

fn perform_in_c(count: usize) {
    unsafe extern "C" {
        fn bench_perform(count: usize) -> usize;
    }
    // SAFETY: an ordinary call.
    black_box(unsafe { bench_perform(count) });
}

// ---- Generators over a tree ----

enum Tree {
    Leaf,
    Node(Rc<Tree>, usize, Rc<Tree>),
}

/// A tree with at least so many values.
fn tree(count: usize) -> Rc<Tree> {
    let mut tree = Rc::new(Tree::Leaf);
    for depth in 0..usize::BITS - count.leading_zeros() {
        tree = Rc::new(Tree::Node(Rc::clone(&tree), depth as usize, tree));
    }
    tree
}

fn tree_haft(count: usize) {
    fn walk(tree: &Tree, out: Yielder<usize>) {
        if let Tree::Node(left, value, right) = tree {
            walk(left, out);
            out.give(*value);
            walk(right, out);
        }
    }
    let tree = tree(count);
    black_box(Generator::new(move |out| walk(&tree, out)).sum::<usize>());
}

fn tree_corosensei(count: usize) {
    fn walk(tree: &Tree, out: &CoroYielder<(), usize>) {
        if let Tree::Node(left, value, right) = tree {
            walk(left, out);
            out.suspend(*value);
            walk(right, out);
        }
    }
    let tree = tree(count);
    let mut fiber = Coroutine::new(move |out, ()| walk(&tree, out));
    let mut sum = 0;
    while let CoroutineResult::Yield(value) = fiber.resume(()) {
        sum += value;
    }
    black_box(sum);
}

fn tree_genawaiter(count: usize) {
    type Walk<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
    fn walk<'a>(tree: &'a Tree, out: &'a Co<usize>) -> Walk<'a> {
        Box::pin(async move {
            if let Tree::Node(left, value, right) = tree {
                walk(left, out).await;
                out.yield_(*value).await;
                walk(right, out).await;
            }
        })
    }
    let tree = tree(count);
    let generator = Gen::new(|out| async move { walk(&tree, &out).await });
    black_box(generator.into_iter().sum::<usize>());
}

fn tree_by_hand(count: usize) {
    struct Walk<'a>(Vec<&'a Tree>);
    impl<'a> Walk<'a> {
        fn descend(&mut self, mut tree: &'a Tree) {
            while let Tree::Node(left, ..) = tree {
                self.0.push(tree);
                tree = left;
            }
        }
    }
    impl Iterator for Walk<'_> {
        type Item = usize;
        fn next(&mut self) -> Option<usize> {
            let Tree::Node(_, value, right) = self.0.pop()? else {
                return None;
            };
            self.descend(right);
            Some(*value)
        }
    }
    let tree = tree(count);
    let mut walk = Walk(Vec::new());
    walk.descend(&tree);
    black_box(walk.sum::<usize>());
}

/// An operation, and each library that is measured, with a loop of so many operations.
pub type Row = (&'static str, &'static [(&'static str, fn(usize))]);

pub const ROWS: [Row; 4] = [
    (
        "switch",
        &[("Haft", switch_haft), ("corosensei", switch_corosensei)],
    ),
    (
        "create",
        &[("Haft", create_haft), ("corosensei", create_corosensei)],
    ),
    (
        "perform",
        &[("Haft", perform_in_place), ("Haft in C", perform_in_c)],
    ),
    (
        "tree",
        &[
            ("Haft", tree_haft),
            ("corosensei", tree_corosensei),
            ("genawaiter", tree_genawaiter),
            ("by hand", tree_by_hand),
        ],
    ),
];

/// The exact number of elements of the trees.
pub const COUNT: usize = (1 << 17) - 1;

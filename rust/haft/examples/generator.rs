// SPDX-License-Identifier: MIT
//! The values of a tree in order, by a recursive generator: no stack of iterators, no state
//! machine.

use haft::{Generator, Yielder};

struct Tree {
    left: Option<Box<Tree>>,
    value: u32,
    right: Option<Box<Tree>>,
}

fn insert(tree: Option<Box<Tree>>, value: u32) -> Option<Box<Tree>> {
    let mut node = tree.unwrap_or_else(|| {
        Box::new(Tree {
            left: None,
            value,
            right: None,
        })
    });
    if value < node.value {
        node.left = insert(node.left.take(), value);
    } else if value > node.value {
        node.right = insert(node.right.take(), value);
    }
    Some(node)
}

fn walk(tree: &Option<Box<Tree>>, out: Yielder<u32>) {
    if let Some(node) = tree {
        walk(&node.left, out);
        out.give(node.value);
        walk(&node.right, out);
    }
}

fn main() {
    let tree = [5, 3, 8, 1, 4, 9].into_iter().fold(None, insert);
    let values = Generator::new(move |out| walk(&tree, out));
    for value in values.filter(|value| value % 2 == 1) {
        println!("{value}");
    }
}

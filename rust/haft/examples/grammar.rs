// SPDX-License-Identifier: MIT
//! A parser that backtracks: where the grammar leaves a choice it performs `Choose`, and where the
//! text does not fit it fails. The handler decides the result: the first parse, or all.

use haft::{perform, replay};
use std::rc::Rc;

haft::effect! {
    /// Any of these many alternatives; of none, the parse fails.
    struct Choose(usize) -> usize;
}

fn fail() -> ! {
    perform(Choose(0));
    unreachable!("nobody chooses from none")
}

struct Text<'t> {
    rest: &'t str,
}

impl Text<'_> {
    fn take(&mut self, wanted: char) {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => self.rest = rest,
            None => fail(),
        }
    }
    fn number(&mut self) -> Rc<str> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if digits.is_empty() {
            fail();
        }
        self.rest = rest;
        digits.into()
    }
    /// sum = number | sum "-" sum, which has several readings: the number of operators on the left
    /// is chosen.
    fn sum(&mut self, operators: usize) -> String {
        if operators == 0 {
            return self.number().to_string();
        }
        let left = perform(Choose(operators));
        let left_side = self.sum(left);
        self.take('-');
        format!("({left_side} - {})", self.sum(operators - 1 - left))
    }
}

fn parse(text: &str) -> String {
    let mut input = Text { rest: text };
    let operators = perform(Choose(text.len()));
    let tree = input.sum(operators);
    if !input.rest.is_empty() {
        fail();
    }
    tree
}

fn main() {
    let text = "7-3-2-1";
    let first = replay(
        |Choose(count), k| (0..count).find_map(|i| k.resume(i)),
        || Some(parse(text)),
    );
    println!("first: {}", first.expect("a parse"));
    let all: Vec<String> = replay(
        |Choose(count), k| (0..count).flat_map(|i| k.resume(i)).collect(),
        || vec![parse(text)],
    );
    println!("all {}:\n{}", all.len(), all.join("\n"));
}

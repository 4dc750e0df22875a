// SPDX-License-Identifier: MIT
//! Fibers of Haft and of corosensei in turns: the processor time of an operation, medians of many
//! rounds.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use haft::{Computation, Effect, Step, handle, perform};
use std::hint::black_box;

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

fn seconds() -> f64 {
    // SAFETY: the record is the call's until it returns.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    const ROUNDS: usize = 101;
    const COUNT: usize = 100_000;
    type Row = (&'static str, fn(usize));
    let rows: [Row; 5] = [
        ("suspend and resume, haft", switch_haft),
        ("suspend and resume, corosensei", switch_corosensei),
        ("create, run, drop, haft", create_haft),
        (
            "create, run, drop, corosensei, one stack",
            create_corosensei,
        ),
        ("perform, handled in place, haft", perform_in_place),
    ];
    let mut times = rows.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, function), times) in rows.iter().zip(&mut times) {
            let before = seconds();
            function(COUNT);
            times.push((seconds() - before) * 1e9 / COUNT as f64);
        }
    }
    for ((name, _), times) in rows.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{:8.2} ns  {name}", times[ROUNDS / 2]);
    }
}

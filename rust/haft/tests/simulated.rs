// SPDX-License-Identifier: MIT
//! Tests by the attribute: in virtual time, with several seeds, of which one that fails is named.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static RUNS: AtomicUsize = AtomicUsize::new(0);

#[haft::test(seeds = 3)]
fn hours_pass_at_once() {
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(3600));
    assert!(started.elapsed() < Duration::from_secs(3600));
    RUNS.fetch_add(1, Ordering::Relaxed);
}

#[haft::test]
#[should_panic(expected = "a seed in which the second comes first")]
fn some_seed_lets_the_second_task_run_first() {
    let (sender, receiver) = haft::channel(2);
    for number in 1..=2 {
        let sender = sender.clone();
        drop(haft::spawn(move || sender.send(number)));
    }
    let first = receiver.recv().unwrap();
    assert_eq!(first, 1, "a seed in which the second comes first");
}

#[haft::test]
fn a_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    haft::spawn(|| "42".parse::<i32>())
        .join()
        .unwrap()
        .map(drop)
}

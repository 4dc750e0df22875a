// SPDX-License-Identifier: MIT
//! Locks of std that wait by futexes, between tasks of one thread: none blocks that thread. And
//! state that std keeps for a thread, or under a lock, while it calls the system.
#![cfg(feature = "posix")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(1);
const TASKS: usize = 100;

#[test]
fn a_mutex_that_a_task_holds_over_a_sleep_is_waited_for_by_tasks_and_threads() {
    let count = Mutex::new(0);
    haft::run(|| {
        thread::scope(|threads| {
            haft::scope(|s| {
                let held = count.lock().unwrap();
                for _ in 0..TASKS {
                    s.spawn(|| {
                        let mut count = count.lock().unwrap();
                        *count += 1;
                        if *count % 25 == 0 {
                            thread::sleep(SHORT);
                        }
                    });
                }
                threads.spawn(|| *count.lock().unwrap() += 1);
                thread::sleep(SHORT);
                assert_eq!(*held, 0);
                drop(held);
            });
        });
    });
    assert_eq!(count.into_inner().unwrap(), TASKS + 1);
}

#[test]
fn a_condvar_wakes_tasks_and_has_limits() {
    let queue = Mutex::new(VecDeque::new());
    let changed = Condvar::new();
    haft::run(|| {
        haft::scope(|s| {
            let takers: Vec<_> = (0..TASKS)
                .map(|_| {
                    s.spawn(|| {
                        let queue = queue.lock().unwrap();
                        let wait = changed.wait_while(queue, |queue| queue.is_empty());
                        wait.unwrap().pop_front().unwrap()
                    })
                })
                .collect();
            haft::yield_now();
            for number in 0..TASKS {
                queue.lock().unwrap().push_back(number);
                changed.notify_one();
            }
            let taken = takers.into_iter().map(|taker| taker.join().unwrap());
            assert_eq!(taken.sum::<usize>(), TASKS * (TASKS - 1) / 2);
        });
        let queue = queue.lock().unwrap();
        assert!(changed.wait_timeout(queue, SHORT).unwrap().1.timed_out());
    });
}

#[test]
fn a_rwlock_has_readers_together_and_writers_alone() {
    let lock = RwLock::new(0);
    let (readers, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    haft::run(|| {
        haft::scope(|s| {
            for number in 0..TASKS {
                s.spawn(|| {
                    let value = lock.read().unwrap();
                    let others = readers.fetch_add(1, Ordering::Relaxed);
                    most.fetch_max(others + 1, Ordering::Relaxed);
                    let before = *value;
                    thread::sleep(SHORT);
                    assert_eq!(before, *value);
                    readers.fetch_sub(1, Ordering::Relaxed);
                });
                if number % 10 == 0 {
                    s.spawn(|| {
                        let mut value = lock.write().unwrap();
                        assert_eq!(readers.load(Ordering::Relaxed), 0);
                        haft::yield_now();
                        *value += 1;
                    });
                }
            }
        });
    });
    assert_eq!(lock.into_inner().unwrap(), TASKS / 10);
    assert!(most.into_inner() > 1);
}

#[test]
fn a_barrier_lets_tasks_through_together() {
    let barrier = Barrier::new(TASKS);
    let leaders = AtomicUsize::new(0);
    haft::run(|| {
        haft::scope(|s| {
            for _ in 0..TASKS {
                s.spawn(|| {
                    for _ in 0..3 {
                        let is_leader = barrier.wait().is_leader();
                        leaders.fetch_add(usize::from(is_leader), Ordering::Relaxed);
                    }
                });
            }
        });
    });
    assert_eq!(leaders.into_inner(), 3);
}

#[test]
fn what_is_done_once_is_waited_for_by_other_tasks() {
    static ONCE: Once = Once::new();
    static CELL: OnceLock<usize> = OnceLock::new();
    static LAZY: LazyLock<usize> = LazyLock::new(|| {
        thread::sleep(SHORT);
        7
    });
    let calls = AtomicUsize::new(0);
    let call = || {
        thread::sleep(SHORT);
        calls.fetch_add(1, Ordering::Relaxed)
    };
    haft::run(|| {
        haft::scope(|s| {
            for _ in 0..TASKS {
                s.spawn(|| {
                    ONCE.call_once(|| assert_eq!(call(), 0));
                    CELL.get_or_init(call);
                    assert_eq!(*LAZY, 7);
                });
            }
        });
    });
    assert_eq!(calls.into_inner(), 2);
}

#[test]
fn a_task_parks_until_another_of_its_thread_unparks_it() {
    haft::run(|| {
        let this = thread::current();
        let other = haft::spawn(move || {
            thread::sleep(SHORT);
            this.unpark();
        });
        thread::park();
        other.join().unwrap();
        thread::park_timeout(SHORT);
    });
}

#[test]
fn channels_of_std_are_between_tasks_and_other_threads() {
    haft::run(|| {
        let (numbers, receiver) = mpsc::sync_channel(1);
        let (sender, answers) = mpsc::channel();
        let doubles = thread::spawn(move || {
            for number in receiver {
                sender.send(2 * number).unwrap();
            }
        });
        let turns = haft::spawn(|| (0..3).for_each(|_| haft::yield_now()));
        for number in 0..10 {
            numbers.send(number).unwrap();
            assert_eq!(answers.recv(), Ok(2 * number));
        }
        drop(numbers);
        doubles.join().unwrap();
        turns.join().unwrap();
        assert_eq!(answers.recv(), Err(mpsc::RecvError));
    });
}

#[test]
fn channels_of_std_between_tasks_of_one_thread_pass_what_is_there() {
    haft::run(|| {
        let (sender, receiver) = mpsc::channel();
        let other = haft::spawn(move || {
            for number in 0..10 {
                sender.send(number).unwrap();
                haft::yield_now();
            }
        });
        // The sender wakes no receiver of its own thread; its end does.
        assert_eq!(receiver.iter().sum::<i32>(), 45);
        other.join().unwrap();
    });
}

#[test]
fn a_sleep_of_std_that_is_cancelled_ends_and_then_the_task_is_unwound() {
    let slept = Cell::new(false);
    let outcome = haft::run(|| {
        haft::timeout(SHORT, || {
            thread::sleep(Duration::from_secs(3600));
            slept.set(true);
            haft::yield_now();
            unreachable!("the wait unwinds");
        })
    });
    assert_eq!(outcome, Err(haft::TimedOut));
    assert!(slept.get());
}

// ---- What needs a process of its own ----

/// Runs an ignored test of this file in another process.
fn in_child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        test,
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
}

#[test]
#[ignore = "is run by tasks_panic_at_once_with_backtraces"]
fn child_that_panics() {
    let panic_at_once = || {
        let tasks: Vec<_> = (0..8)
            .map(|number| haft::spawn(move || panic!("task {number}")))
            .collect();
        assert!(tasks.into_iter().all(|task| task.join().is_err()));
    };
    haft::run(panic_at_once);
    haft::run_with(haft::Options::new().threads(4), panic_at_once).unwrap();
}

#[test]
fn tasks_panic_at_once_with_backtraces() {
    let output = in_child("child_that_panics")
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    for number in 0..8 {
        let message = format!("task {number}\n");
        assert_eq!(said.matches(&message).count(), 2, "{said}");
    }
    assert_eq!(said.matches("stack backtrace:").count(), 16, "{said}");
}

#[test]
#[ignore = "is run by two_tasks_of_a_thread_that_park_are_reported"]
fn child_that_parks() {
    haft::run(|| {
        let (this, is_over) = (thread::current(), Arc::new(AtomicBool::new(false)));
        let unparks = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(SHORT);
                    this.unpark();
                }
            }
        });
        haft::scope(|s| {
            for name in [c"ada", c"grace"] {
                s.spawn_named(name, || (0..3).for_each(|_| thread::park()));
            }
        });
        is_over.store(true, Ordering::Relaxed);
        unparks.join().unwrap();
    });
}

#[test]
fn two_tasks_of_a_thread_that_park_are_reported() {
    let output = in_child("child_that_parks").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    for words in ["task, 'ada':", "task, 'grace':", "haft::channel"] {
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
}

fn receive_one() -> u32 {
    let (sender, receiver) = haft::channel(1);
    drop(haft::spawn(move || sender.send(7).unwrap()));
    receiver.recv().unwrap()
}

#[test]
#[ignore = "is run by an_initialiser_of_a_thread_local_that_waits_is_reported"]
fn child_that_initialises() {
    thread_local! {
        static SLOW: String = {
            thread::sleep(SHORT);
            "slow".to_owned()
        };
        static BLOCKS: String = haft::block_thread(|| {
            thread::sleep(SHORT);
            "blocks".to_owned()
        });
        static YIELDS: Vec<u8> = {
            haft::yield_now();
            vec![1]
        };
        static RECEIVES: Vec<u32> = vec![receive_one()];
    }
    // A task that has waited before.
    let use_all = || {
        haft::set_task_name(c"ada");
        (0..3).for_each(|_| assert_eq!(receive_one(), 7));
        haft::spawn(|| BLOCKS.with(|text| assert_eq!(text, "blocks")))
            .join()
            .unwrap();
        eprintln!("blocked");
        haft::scope(|_| SLOW.with(|text| assert_eq!(text, "slow")));
        YIELDS.with(|bytes| assert_eq!(bytes, &[1]));
        RECEIVES.with(|numbers| assert_eq!(numbers, &[7]));
        (0..2).for_each(|_| thread::sleep(SHORT));
    };
    haft::run(use_all);
    thread::spawn(move || haft::simulate(1, use_all))
        .join()
        .unwrap();
}

#[test]
fn an_initialiser_of_a_thread_local_that_waits_is_reported() {
    let output = in_child("child_that_initialises").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    let report = "the task 'ada' waits in an initialiser of a thread-local variable";
    assert_eq!(said.matches(report).count(), 3, "{said}");
    assert!(said.find("blocked") < said.find(report), "{said}");
}

#[test]
#[ignore = "is run by tasks_print_to_a_pipe_that_is_full"]
fn child_that_prints() {
    haft::run(|| {
        haft::all((0..4).map(|_| {
            || {
                for _ in 0..100 {
                    println!("{}", "x".repeat(4000));
                    haft::yield_now();
                }
            }
        }))
    });
}

#[test]
fn tasks_print_to_a_pipe_that_is_full() {
    let mut child = in_child("child_that_prints")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(50)); // it is full by then
    let mut text = String::new();
    let mut out = child.stdout.take().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let whole = "x".repeat(4000);
    let lines = text.lines().filter(|line| line.ends_with(&whole));
    assert_eq!(lines.count(), 400);
}

#[test]
fn a_task_that_blocks_the_thread_keeps_its_name_and_its_values() {
    haft::task_local! { static USER: u32; }
    haft::run(|| {
        haft::set_task_name(c"server");
        USER.set(7, || {
            let other = haft::spawn(|| ());
            haft::block_thread(|| {
                thread::sleep(SHORT);
                haft::sleep(SHORT);
                haft::yield_now();
                assert!(!other.is_finished());
                assert_eq!(haft::task_name().unwrap(), "server");
                assert_eq!(USER.get().map(|user| *user), Some(7));
            });
            other.join().unwrap();
        });
    });
    assert_eq!(haft::block_thread(|| 42), 42); // outside of a run, too
}

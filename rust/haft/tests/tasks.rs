// SPDX-License-Identifier: MIT
//! Tasks, scopes and cancels.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(1);

/// Counts drops.
struct Dropped(Arc<AtomicUsize>);
impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn message(payload: Box<dyn std::any::Any + Send>) -> &'static str {
    *payload.downcast::<&'static str>().expect("the payload")
}

#[test]
fn main_may_borrow_and_hold_what_is_not_send() {
    let log = RefCell::new(Vec::new());
    let shared = Rc::new(5);
    let sum = haft::run(|| {
        log.borrow_mut().push("ran");
        *shared + 1
    });
    assert_eq!(sum, 6);
    assert_eq!(*log.borrow(), ["ran"]);
}

#[test]
fn errors_pass_out_of_every_body() {
    fn parse(text: &str) -> Result<i32, std::num::ParseIntError> {
        haft::run(|| {
            let task = haft::spawn({
                let text = text.to_owned();
                move || text.parse::<i32>()
            });
            let number = task.join().unwrap()?;
            haft::scope(|_| Ok(number + "1".parse::<i32>()?))
        })
    }
    assert_eq!(parse("41"), Ok(42));
    assert!(parse("x").is_err());
}

#[test]
fn tasks_take_turns_on_one_thread() {
    let log = RefCell::new(Vec::new());
    let sent = haft::run(|| {
        let (sender, receiver) = haft::channel(0);
        let other = haft::spawn(move || (0..3).for_each(|i| sender.send(i).unwrap()));
        for value in receiver.iter() {
            log.borrow_mut().push(value);
        }
        other.join().is_ok()
    });
    assert!(sent);
    assert_eq!(*log.borrow(), [0, 1, 2]);
}

#[test]
fn a_panic_reaches_the_joiner_and_main_goes_on() {
    let result = haft::run(|| {
        let task = haft::spawn(|| -> i32 { resume_unwind(Box::new("spoilt")) });
        message(task.join().unwrap_err())
    });
    assert_eq!(result, "spoilt");
}

/// Never ends by itself.
fn looks_after_something() {
    loop {
        haft::sleep(SHORT);
    }
}

#[test]
fn a_panic_of_a_body_cancels_the_tasks_of_its_scope() {
    type Body = fn();
    fn fails() {
        drop(haft::spawn(looks_after_something));
        haft::yield_now();
        resume_unwind(Box::new("body"));
    }
    let bodies: [Body; 6] = [
        fails,
        || haft::scope(|_| fails()),
        || {
            haft::scope(|s| {
                s.spawn(looks_after_something);
                haft::yield_now();
                resume_unwind(Box::new("body"));
            })
        },
        || haft::timeout(LONG, fails).unwrap(),
        || haft::shield(fails),
        || haft::cancellable(|_| fails()).unwrap(),
    ];
    for body in bodies {
        let payload = catch_unwind(|| haft::run(body)).unwrap_err();
        assert_eq!(message(payload), "body");
        let payload = catch_unwind(|| haft::simulate(1, body)).unwrap_err();
        assert_eq!(message(payload), "body");
    }
}

#[test]
fn a_body_that_returns_early_cancels_its_tasks_in_a_try_scope_only() {
    let ended = AtomicUsize::new(0);
    let count = || {
        haft::sleep(SHORT);
        ended.fetch_add(1, Ordering::Relaxed);
    };
    haft::run(|| {
        let outcome = haft::try_scope(|s| {
            s.spawn(looks_after_something);
            haft::yield_now();
            Err::<(), _>("early")?;
            s.spawn(count);
            Ok(())
        });
        assert_eq!(outcome, Err("early"));
        let outcome = haft::try_scope(|s| {
            s.spawn(count);
            Ok::<_, ()>(7)
        });
        assert_eq!((outcome, ended.load(Ordering::Relaxed)), (Ok(7), 1));
        let outcome = haft::scope(|s| {
            s.spawn(count);
            Err::<(), _>("early")?;
            Ok(())
        });
        assert_eq!((outcome, ended.load(Ordering::Relaxed)), (Err("early"), 2));
    });
}

#[test]
fn a_panic_of_main_leaves_the_run_when_its_tasks_have_ended() {
    let done = AtomicUsize::new(0);
    let done = &done;
    let payload = catch_unwind(|| {
        haft::run(|| {
            haft::scope(|s| {
                s.spawn(|| {
                    haft::shield(|| haft::sleep(SHORT));
                    done.fetch_add(1, Ordering::Relaxed);
                });
                haft::yield_now();
                resume_unwind(Box::new("main"));
            })
        })
    });
    assert_eq!(message(payload.unwrap_err()), "main");
    assert_eq!(done.load(Ordering::Relaxed), 1);
}

#[test]
fn a_second_run_on_the_thread_is_an_error() {
    let error = haft::run(|| haft::run_with(haft::Options::new(), || ()).unwrap_err());
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
}

#[test]
fn scopes_are_refused_where_there_is_no_task() {
    let refused = || {
        let payload = std::panic::catch_unwind(|| haft::scope(|_| ())).unwrap_err();
        assert_eq!(message(payload), "a scope is opened outside of haft::run");
    };
    refused();
    haft::run(|| haft::block_thread(refused));
}

#[test]
fn a_tree_of_tasks_that_join_theirs_begins_a_branch_at_a_time() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0); // tasks that have not ended
    static MOST: AtomicUsize = AtomicUsize::new(0);
    fn leaves(depth: usize) -> usize {
        MOST.fetch_max(BEGUN.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let children = if depth == 0 { 0 } else { 10 };
        let tasks: Vec<_> = (0..children)
            .map(|_| haft::spawn(move || leaves(depth - 1)))
            .collect();
        let sum: usize = tasks.into_iter().map(|task| task.join().unwrap()).sum();
        BEGUN.fetch_sub(1, Ordering::Relaxed);
        sum.max(1)
    }
    // Level by level, some 10,000 have begun before the first ends.
    for (threads, most) in [(1, 40), (2, 400)] {
        MOST.store(0, Ordering::Relaxed);
        let options = haft::Options::new().threads(threads).stack_size(64 * 1024);
        assert_eq!(haft::run_with(options, || leaves(4)).unwrap(), 10_000);
        let begun = MOST.load(Ordering::Relaxed);
        assert!(
            begun <= most,
            "{begun} tasks had begun on {threads} threads"
        );
    }
}

#[test]
fn a_task_of_the_run_outlives_the_scopes_around_its_spawn() {
    let (sender, receiver) = haft::channel(1);
    haft::run(|| {
        let keep = move || {
            haft::sleep(SHORT);
            receiver.recv().unwrap()
        };
        let kept = haft::scope(|s| {
            let spawner = s.spawn(|| haft::timeout(LONG, || haft::spawn_in_run(keep)));
            let kept = spawner.join().unwrap().unwrap();
            s.cancel(); // does not reach it
            kept
        });
        sender.send(42).unwrap();
        assert_eq!(kept.join().unwrap(), 42);
    });
    // A panic of main does.
    let payload = catch_unwind(|| {
        haft::run(|| {
            drop(haft::spawn_in_run(looks_after_something));
            resume_unwind(Box::new("main"));
        })
    });
    assert_eq!(message(payload.unwrap_err()), "main");
}

#[test]
fn a_scope_waits_for_tasks_that_borrow() {
    for threads in [1, 3] {
        let options = haft::Options::new().threads(threads);
        let total = haft::run_with(options, || {
            let mut parts = [0; 20];
            haft::scope(|s| {
                for (i, part) in parts.iter_mut().enumerate() {
                    s.spawn(move || {
                        haft::sleep(SHORT);
                        *part = i;
                    });
                }
            });
            parts.iter().sum::<usize>()
        });
        assert_eq!(total.unwrap(), 190);
    }
}

#[test]
fn a_scope_that_is_cancelled_waits_for_tasks_that_borrow() {
    let ended = haft::run(|| {
        let ended = AtomicUsize::new(0);
        let timed_out = haft::timeout(SHORT, || {
            haft::scope(|s| {
                for _ in 0..5 {
                    s.spawn(|| {
                        struct OnDrop<'a>(&'a AtomicUsize);
                        impl Drop for OnDrop<'_> {
                            fn drop(&mut self) {
                                haft::shield(|| haft::sleep(SHORT));
                                self.0.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        let _on_drop = OnDrop(&ended);
                        haft::sleep(LONG);
                    });
                }
                haft::sleep(LONG);
            })
        });
        assert_eq!(timed_out, Err(haft::TimedOut));
        ended.load(Ordering::Relaxed)
    });
    assert_eq!(ended, 5);
}

#[test]
fn a_panic_of_a_task_cancels_its_scope_and_goes_on_there() {
    let drops = Arc::new(AtomicUsize::new(0));
    let outcome = haft::run(|| {
        catch_unwind(AssertUnwindSafe(|| {
            haft::scope(|s| {
                let dropped = Dropped(Arc::clone(&drops));
                s.spawn(move || {
                    let _dropped = dropped;
                    haft::sleep(LONG);
                });
                s.spawn(|| resume_unwind(Box::new("a task")));
                haft::sleep(LONG);
            })
        }))
    });
    assert_eq!(message(outcome.unwrap_err()), "a task");
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_that_is_joined_does_not_end_its_scope() {
    let survived = haft::run(|| {
        haft::scope(|s| {
            let task = s.spawn(|| resume_unwind(Box::new("joined")));
            let payload = task.join().map(drop).unwrap_err();
            haft::sleep(SHORT); // nobody has cancelled this
            message(payload)
        })
    });
    assert_eq!(survived, "joined");
}

#[test]
fn a_cancel_runs_destructors_and_is_the_error_of_a_join() {
    let drops = Arc::new(AtomicUsize::new(0));
    haft::run(|| {
        haft::scope(|s| {
            let dropped = Dropped(Arc::clone(&drops));
            let task = s.spawn(move || {
                let _dropped = dropped;
                haft::sleep(LONG);
            });
            haft::yield_now();
            s.cancel();
            let joined = haft::shield(|| task.join());
            assert!(joined.unwrap_err().is::<haft::Cancelled>());
        });
    });
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_cancel_that_is_caught_is_raised_by_the_next_wait() {
    let caught = haft::run(|| {
        let mut caught = 0;
        let outcome = haft::cancellable(|handle| {
            handle.cancel();
            for _ in 0..3 {
                caught += usize::from(catch_unwind(|| haft::sleep(LONG)).is_err());
            }
            haft::yield_now();
        });
        assert!(outcome.is_err());
        caught
    });
    assert_eq!(caught, 3);
}

#[test]
fn a_wait_in_a_destructor_that_a_cancel_runs_returns_early() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            haft::sleep(LONG);
            haft::sleep(LONG);
        }
    }
    haft::run(|| {
        let outcome = haft::timeout(SHORT, || {
            let _waits = Waits;
            haft::sleep(LONG);
        });
        assert_eq!(outcome, Err(haft::TimedOut));
    });
}

#[test]
fn a_task_that_waits_while_it_panics_is_not_kept_from_going_on() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            haft::shield(|| haft::sleep(SHORT));
        }
    }
    haft::run(|| {
        let panics = haft::spawn(|| {
            let _waits = Waits;
            resume_unwind(Box::new("slow end"));
        });
        // While the other is unwound, these waits cannot be unwound and return; then one is.
        let outcome = haft::cancellable(|handle| {
            haft::yield_now();
            handle.cancel();
            loop {
                haft::sleep(LONG);
            }
        });
        let _: Result<(), _> = outcome;
        assert_eq!(message(panics.join().map(drop).unwrap_err()), "slow end");
    });
}

#[test]
fn a_handle_outlives_what_it_cancels() {
    haft::run(|| {
        let handle = haft::cancellable(|handle| handle.clone()).unwrap();
        handle.cancel();
        haft::sleep(SHORT);
    });
}

/// Stacks of a quarter of all addresses: those of the run, of the two scopes of `cancellable`, and
/// none for the task. (In Valgrind even the first is too large: an error of the run.)
#[test]
fn nothing_of_a_task_that_finds_no_memory_is_used_when_it_has_ended() {
    let captured = Arc::new(());
    let options = haft::Options::new().stack_size(1 << 45);
    let _ = haft::run_with(options, || {
        let mut kept = None;
        let body = |handle: &haft::CancelHandle| {
            let captured = Arc::clone(&captured);
            kept = Some((handle.clone(), haft::spawn(|| drop(captured))));
            haft::yield_now();
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| haft::cancellable(body)));
        let Some((handle, task)) = kept else {
            return;
        };
        handle.cancel();
        haft::yield_now();
        assert_eq!(task.join().is_err(), outcome.is_err());
    });
    assert_eq!(Arc::strong_count(&captured), 1);
}

#[test]
fn a_handle_is_refused_outside_of_its_run() {
    let handle = haft::run(|| haft::cancellable(|handle| handle.clone()).unwrap());
    assert!(catch_unwind(AssertUnwindSafe(|| handle.cancel())).is_err());
}

#[test]
fn a_thread_that_is_no_task_of_the_run_cannot_use_a_scope() {
    haft::run(|| {
        haft::scope(|s| {
            std::thread::scope(|threads| {
                let outcome = threads.spawn(|| s.cancel()).join();
                assert!(outcome.is_err());
            });
        });
    });
}

#[test]
fn a_thread_joins_a_task_of_a_run() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let task: haft::JoinHandle<i32> = receiver.recv().unwrap();
        task.join().unwrap()
    });
    haft::run(|| {
        sender
            .send(haft::spawn(|| {
                haft::sleep(SHORT);
                7
            }))
            .unwrap();
    });
    assert_eq!(thread.join().unwrap(), 7);
}

#[test]
fn the_first_of_several_cancels_the_others() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (index, value) = haft::run(|| {
        haft::first((0..4).map(|i| {
            let dropped = Dropped(Arc::clone(&drops));
            move || {
                let _dropped = dropped;
                haft::sleep(if i == 2 { SHORT } else { LONG });
                i * 10
            }
        }))
    });
    assert_eq!((index, value), (2, 20));
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

#[test]
fn a_panic_of_one_of_several_goes_on_in_the_caller() {
    let outcome = catch_unwind(|| {
        haft::run(|| {
            haft::all((0..3).map(|i| {
                move || {
                    if i == 1 {
                        resume_unwind(Box::new("one of all"));
                    }
                    haft::sleep(LONG);
                }
            }))
        })
    });
    assert_eq!(message(outcome.map(drop).unwrap_err()), "one of all");
}

#[test]
fn values_left_in_a_channel_are_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    haft::run(|| {
        let (sender, receiver) = haft::channel(4);
        sender.send(Dropped(Arc::clone(&drops))).ok();
        sender.send(Dropped(Arc::clone(&drops))).ok();
        drop(receiver);
        assert!(sender.send(Dropped(Arc::clone(&drops))).is_err());
    });
    assert_eq!(drops.load(Ordering::Relaxed), 3);
}

#[test]
fn a_send_that_is_cancelled_drops_its_value() {
    let drops = Arc::new(AtomicUsize::new(0));
    haft::run(|| {
        let (sender, receiver) = haft::channel(0);
        let value = Dropped(Arc::clone(&drops));
        let outcome = haft::timeout(SHORT, || sender.send(value));
        assert!(outcome.is_err());
        assert!(receiver.try_recv().is_none());
    });
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_value_that_cannot_be_sent_at_once_comes_back() {
    let drops = Arc::new(AtomicUsize::new(0));
    haft::run(|| {
        let (sender, receiver) = haft::channel(1);
        let value = || Dropped(Arc::clone(&drops));
        assert!(sender.try_send(value()).is_ok());
        let returned = sender.try_send(value()).unwrap_err();
        assert!(matches!(returned, haft::TrySendError::Full(_)));
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(returned.into_inner());
        assert!(receiver.recv().is_ok());
        assert!(sender.try_send(value()).is_ok());
        drop(receiver);
        assert_eq!(drops.load(Ordering::Relaxed), 3);
        let returned = sender.try_send(value()).unwrap_err();
        assert!(matches!(returned, haft::TrySendError::Disconnected(_)));
    });
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

#[test]
fn a_simulation_goes_the_same_way_for_the_same_seed() {
    fn order(seed: u64) -> Vec<usize> {
        let log = std::sync::Mutex::new(Vec::new());
        haft::simulate(seed, || {
            haft::scope(|s| {
                for i in 0..6 {
                    let log = &log;
                    s.spawn(move || {
                        haft::sleep(LONG);
                        log.lock().unwrap().push(i);
                    });
                }
            });
        });
        log.into_inner().unwrap()
    }
    assert_eq!(order(3), order(3));
    assert!((1..20).any(|seed| order(seed) != order(3)));
}

#[test]
fn a_future_is_woken_by_another_thread_while_tasks_go_on() {
    use std::future::poll_fn;
    use std::sync::Mutex;
    use std::task::{Poll, Waker};
    let waker: Mutex<Option<Waker>> = Mutex::new(None);
    let turns = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            loop {
                // It wakes only after the other task has had its turn.
                let has_turned = turns.load(Ordering::Relaxed) > 0;
                match waker.lock().unwrap().take_if(|_| has_turned) {
                    Some(waker) => break waker.wake(),
                    None => std::thread::yield_now(),
                }
            }
        });
        haft::run(|| {
            haft::scope(|s| {
                s.spawn(|| turns.fetch_add(1, Ordering::Relaxed));
                let mut polls = 0;
                haft::block_on(poll_fn(|context| {
                    polls += 1;
                    if polls > 1 {
                        return Poll::Ready(());
                    }
                    *waker.lock().unwrap() = Some(context.waker().clone());
                    Poll::Pending
                }));
            });
        });
    });
    assert_eq!(turns.load(Ordering::Relaxed), 1);
}

#[test]
fn a_cancel_drops_the_future() {
    let drops = Arc::new(AtomicUsize::new(0));
    haft::run(|| {
        let dropped = Dropped(Arc::clone(&drops));
        let outcome = haft::timeout(SHORT, || {
            haft::block_on(async move {
                let _dropped = dropped;
                std::future::pending::<()>().await;
            })
        });
        assert_eq!(outcome, Err(haft::TimedOut));
    });
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn a_cancel_unwinds_a_task_that_waits_for_a_connection_or_for_bytes() {
    use haft::net::{TcpListener, TcpStream};
    use std::io::{Read, Write};
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let accepted = haft::timeout(SHORT, || listener.accept());
        assert!(accepted.is_err());
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let read = haft::timeout(SHORT, || client.read(&mut [0; 8]));
        assert!(read.is_err());
        server.write_all(b"late").unwrap();
        drop(server);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "late");
    });
}

haft::task_local! {
    static USER: String;
    static DEPTH: u32;
}

#[test]
fn a_task_local_value_is_that_of_the_task_and_of_those_that_it_spawns() {
    let user = || USER.get().map(|user| user.to_string());
    haft::run(|| {
        assert_eq!(user(), None);
        let late = USER.set("ada".to_owned(), || {
            let other = haft::spawn(move || {
                haft::yield_now();
                DEPTH.set(1, || (user(), DEPTH.with(|depth| *depth)))
            });
            USER.set("grace".to_owned(), || {
                haft::yield_now();
                assert_eq!(user().unwrap(), "grace");
            });
            assert_eq!(user().unwrap(), "ada");
            assert!(DEPTH.get().is_none());
            assert_eq!(other.join().unwrap(), (Some("ada".to_owned()), 1));
            haft::spawn(user) // it outlives the call of `set`
        });
        assert_eq!(user(), None);
        assert_eq!(late.join().unwrap().unwrap(), "ada");
    });
    assert_eq!(user(), None);
}

#[test]
fn a_task_local_value_is_dropped_when_no_task_has_it_and_by_a_panic() {
    haft::task_local! { static COUNTED: Dropped; }
    let drops = Arc::new(AtomicUsize::new(0));
    let count = || drops.load(Ordering::Relaxed);
    haft::run(|| {
        let task = COUNTED.set(Dropped(Arc::clone(&drops)), || {
            haft::spawn(|| haft::sleep(SHORT))
        });
        assert_eq!(count(), 0);
        task.join().unwrap();
        haft::yield_now();
        assert_eq!(count(), 1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            COUNTED.set(Dropped(Arc::clone(&drops)), || {
                resume_unwind(Box::new("no luck"))
            })
        }));
        assert_eq!(message(panicked.unwrap_err()), "no luck");
        assert_eq!(count(), 2);
        assert!(COUNTED.get().is_none());
    });
}

#[test]
fn a_task_local_value_may_be_left_by_another_task_or_by_none() {
    #[derive(Debug, PartialEq)]
    struct Ask;
    impl haft::Effect for Ask {
        type Output = ();
    }
    type Inside = haft::Computation<Ask, bool>;
    thread_local! { static MADE: RefCell<Option<Inside>> = const { RefCell::new(None) }; }
    let suspended = || {
        let mut inside = Inside::new(|| {
            DEPTH.set(1, || haft::block_on(async { haft::perform(Ask) }));
            DEPTH.get().is_none()
        });
        assert_eq!(inside.start(), haft::Step::Performed(Ask));
        inside
    };
    let ends_at = |mut inside: Inside| assert_eq!(inside.resume(()), haft::Step::Returned(true));
    ends_at(haft::run(suspended));
    drop(haft::run(suspended));
    haft::run(|| {
        USER.set("ada".to_owned(), || {
            let inside = suspended();
            haft::block_thread(|| drop(inside));
            assert!(DEPTH.get().is_none());
        });
        let other = move || MADE.set(Some(suspended()));
        haft::spawn(other).join().unwrap();
        USER.set("grace".to_owned(), || {
            ends_at(MADE.take().unwrap());
            USER.with(|user| assert_eq!(user, "grace"));
        });
    });
}

#[test]
fn a_dump_names_tasks_and_what_they_wait_for() {
    let path = std::env::temp_dir().join(format!("haft-dump-{}", std::process::id()));
    haft::run(|| {
        let task = haft::spawn_named(c"cleaner", || haft::sleep(SHORT));
        haft::yield_now();
        haft::dump(std::fs::File::create(&path).unwrap()).unwrap();
        task.join().unwrap();
    });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains("task 'cleaner' waits for"), "{text}");
    assert!(haft::dump(std::io::stderr()).is_err()); // outside of a run
}

#[test]
fn a_task_of_another_thread_is_a_future() {
    let runtime = haft::Runtime::new(haft::Options::new()).unwrap();
    let event = Arc::new(haft::sync::Event::new());
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let event = Arc::clone(&event);
            runtime.spawn(move || {
                event.wait();
                number
            })
        })
        .collect();
    let panics = runtime.spawn(|| -> u32 { resume_unwind(Box::new("no luck")) });
    let sum = haft::run(|| {
        let event = haft::spawn(move || {
            haft::sleep(SHORT);
            event.set();
        });
        let sum = haft::block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        event.join().unwrap();
        sum
    });
    assert_eq!(sum, 4950);
    assert_eq!(message(haft::block_on(panics).unwrap_err()), "no luck");
}

#[test]
fn a_runtime_waits_for_its_tasks_and_says_why_it_does_not_begin() {
    let done = Arc::new(AtomicUsize::new(0));
    let runtime = haft::Runtime::new(haft::Options::new().threads(2)).unwrap();
    for _ in 0..10 {
        let done = Arc::clone(&done);
        drop(runtime.spawn(move || {
            haft::sleep(SHORT);
            done.fetch_add(1, Ordering::Relaxed);
        }));
    }
    drop(runtime);
    assert_eq!(done.load(Ordering::Relaxed), 10);
    let refused = haft::Runtime::new(haft::Options::new().backend(c"none"));
    assert!(refused.is_err());
}

#[test]
fn a_runtime_that_its_own_task_drops_ends_with_its_tasks() {
    let runtime = Arc::new(haft::Runtime::new(haft::Options::new().threads(2)).unwrap());
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let own = Arc::clone(&runtime);
            runtime.spawn(move || {
                haft::sleep(SHORT);
                drop(own);
                haft::yield_now();
                number
            })
        })
        .collect();
    drop(runtime);
    let numbers: Vec<usize> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
}

#[test]
fn tasks_get_names_unless_their_spawner_has() {
    haft::run(|| {
        let named_here = || haft::task_name().unwrap();
        assert_eq!(named_here(), "");
        let first = haft::spawn(named_here).join().unwrap();
        let of_scope = haft::scope(|s| s.spawn(named_here).join().unwrap());
        let inner = haft::spawn(move || haft::spawn(named_here).join().unwrap());
        let inner = inner.join().unwrap();
        let named = haft::spawn_named(c"named", move || haft::spawn(named_here).join());
        for name in [&first, &of_scope, &inner] {
            assert!(
                name.ends_with(')') && name.contains(" (tasks.rs:"),
                "{name}"
            );
        }
        assert!(first != of_scope && first != inner);
        assert_eq!(named.join().unwrap().unwrap(), "named");
    });
}

// SPDX-License-Identifier: MIT
//! Waits of a task: for one of several things, mutexes and semaphores of the crate.

use haft::sync::{Event, Mutex, Semaphore};
use haft::{Generator, RecvError, SendError};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(1);

#[test]
fn a_select_receives_from_whichever_channel_has_a_value() {
    haft::run(|| {
        let (words, words_of) = haft::channel(0);
        let (numbers, numbers_of) = haft::channel(0);
        haft::scope(|s| {
            s.spawn(move || (0..10).for_each(|i| numbers.send(i).unwrap()));
            s.spawn(move || (0..10).for_each(|i: i32| words.send(i.to_string()).unwrap()));
            let (mut sum, mut text) = (0, String::new());
            let (mut numbers_end, mut words_end) = (false, false);
            while !numbers_end || !words_end {
                haft::select! {
                    recv(numbers_of) -> number => match number {
                        Ok(number) => sum += number,
                        Err(RecvError) => numbers_end = true,
                    },
                    recv(words_of) -> word => match word {
                        Ok(word) => text.push_str(&word),
                        Err(RecvError) => words_end = true,
                    },
                }
            }
            assert_eq!((sum, text.as_str()), (45, "0123456789"));
        });
    });
}

#[test]
fn a_value_that_a_select_does_not_send_is_dropped_or_returned() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let value = || Dropped(Arc::clone(&drops));
    let count = || drops.load(Ordering::Relaxed);
    haft::run(|| {
        let (sender, receiver) = haft::channel(1);
        let mut sent = 0;
        for _ in 0..2 {
            haft::select! {
                send(sender, value()) -> result => {
                    result.unwrap();
                    sent += 1;
                },
                default(Duration::ZERO) => assert_eq!(count(), 0),
            }
        }
        assert_eq!((sent, count()), (1, 1));
        drop(receiver); // and what is in the channel
        assert_eq!(count(), 2);
        let outcome = haft::select! { send(sender, value()) -> result => result };
        let SendError(unsent) = outcome.unwrap_err();
        assert_eq!(count(), 2);
        drop(unsent);
        assert_eq!(count(), 3);
        // A cancel sends nothing either.
        let (sender, _receiver) = haft::channel::<Dropped>(0);
        let outcome = haft::timeout(SHORT, || {
            haft::select! { send(sender, value()) -> result => result.unwrap() }
        });
        assert_eq!(outcome, Err(haft::TimedOut));
        assert_eq!(count(), 4);
    });
}

#[test]
fn a_select_waits_for_tasks_events_and_time() -> Result<(), std::num::ParseIntError> {
    haft::run(|| {
        let event = Event::new();
        let task = haft::spawn(|| haft::sleep(SHORT));
        haft::select! {
            set(event) => unreachable!("it is not set"),
            ended(task) => task.join().unwrap(),
        }
        event.set();
        let number: i32 = haft::select! {
            set(event) => "42".parse()?, // leaves the function
            default(LONG) => 0,
        };
        assert_eq!(number, 42);
        event.clear();
        let mut turns = 0;
        loop {
            turns += 1;
            haft::select! {
                set(event) => break,
                default(SHORT) => event.set(),
            }
        }
        assert_eq!(turns, 2);
        Ok(())
    })
}

#[test]
fn a_mutex_is_for_one_task_at_a_time_on_any_thread() {
    let count = Mutex::new(0);
    let options = haft::Options::new().threads(2);
    haft::run_with(options, || {
        haft::scope(|s| {
            for _ in 0..20 {
                s.spawn(|| {
                    for _ in 0..20 {
                        let mut count = count.lock();
                        let before = *count;
                        haft::yield_now();
                        *count = before + 1;
                    }
                });
            }
        });
    })
    .unwrap();
    assert_eq!(count.into_inner(), 400);
}

#[test]
fn a_cancelled_wait_for_a_mutex_or_a_permit_has_taken_nothing() {
    haft::run(|| {
        let (mutex, semaphore) = (Mutex::new(()), Semaphore::new(1));
        let (held, permit) = (mutex.lock(), semaphore.acquire());
        assert!(haft::timeout(SHORT, || drop(mutex.lock())).is_err());
        assert!(haft::timeout(SHORT, || drop(semaphore.acquire())).is_err());
        drop((held, permit));
        assert!(mutex.try_lock().is_some());
        assert!(semaphore.try_acquire().is_some());
    });
}

#[test]
fn a_destructor_of_a_cancelled_task_gets_the_mutex() {
    struct Logs<'a>(&'a Mutex<Vec<&'static str>>);
    impl Drop for Logs<'_> {
        fn drop(&mut self) {
            self.0.lock().push("dropped");
        }
    }
    let log = Mutex::new(Vec::new());
    haft::run(|| {
        haft::scope(|s| {
            let held = log.lock();
            s.spawn(|| {
                let _logs = Logs(&log);
                haft::sleep(LONG);
            });
            haft::yield_now();
            s.cancel();
            haft::shield(|| haft::sleep(SHORT)); // it waits in its destructor
            drop(held);
        });
    });
    assert_eq!(log.into_inner(), ["dropped"]);
}

// ---- A program that is interrupted at each of its waits ----

/// Is called before each wait, anywhere in the program.
type At<'a> = &'a (dyn Fn() + Sync);
/// Counts those that are alive.
type Alive = Arc<()>;

struct Fetch(Alive);
impl haft::Effect for Fetch {
    type Output = Alive;
}

fn produce(sender: &haft::Sender<Alive>, turns: &Mutex<Vec<Alive>>, alive: &Alive, at: At) {
    for _ in 0..3 {
        let value = Alive::clone(alive);
        at();
        haft::sleep(SHORT);
        at();
        turns.lock().push(Alive::clone(&value));
        at();
        let _ = sender.send(value);
    }
}

fn consume(receiver: &haft::Receiver<Alive>, event: &Event, at: At) -> Vec<Alive> {
    let mut taken = Vec::new();
    while taken.len() < 3 {
        at();
        haft::select! {
            recv(receiver) -> value => match value {
                Ok(value) => taken.push(value),
                Err(RecvError) => break,
            },
            default(10 * SHORT) => break,
        }
    }
    at();
    haft::yield_now();
    event.set();
    taken
}

/// Tasks, locks, channels, a deadline, a future, effects and generators, all with values.
fn sample(alive: &Alive, at: At<'static>) -> usize {
    let (sender, receiver) = haft::channel(1);
    let (turns, event, permits) = (Mutex::new(Vec::new()), Event::new(), Semaphore::new(1));
    let fetch = |Fetch(value): Fetch| {
        at();
        haft::sleep(SHORT);
        value
    };
    haft::scope(|s| {
        let producer = s.spawn(|| produce(&sender, &turns, alive, at));
        let consumer = s.spawn(move || consume(&receiver, &event, at));
        let kept = Alive::clone(alive);
        let mut values = Generator::new(move |out| {
            for _ in 0..2 {
                at();
                haft::sleep(SHORT);
                out.give(Alive::clone(&kept));
            }
        });
        let general =
            |Fetch(value), k: haft::Resumption<_, usize>| k.resume(haft::perform(Fetch(value)));
        let body = || {
            haft::handle_general(general, || {
                let _permit = permits.acquire();
                let fetched = haft::perform(Fetch(Alive::clone(alive)));
                at();
                let ended = haft::timeout(LONG, || producer.join()).is_ok_and(|end| end.is_ok());
                let taken = consumer.join().map_or(0, |taken| taken.len());
                at();
                haft::block_on(async { drop(fetched) });
                taken + usize::from(ended) + values.by_ref().count()
            })
        };
        haft::handle(fetch, body)
    })
}

/// Unwinds the program where it is performed, if its task is that of the handler.
struct Stop;
impl haft::Effect for Stop {
    type Output = ();
    fn unhandled(self) {}
}

#[test]
fn a_panic_a_cancel_or_a_drop_at_any_wait_loses_nothing() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    static HANDLE: std::sync::Mutex<Option<haft::CancelHandle>> = std::sync::Mutex::new(None);
    fn is_now() -> bool {
        LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        }) == Ok(1)
    }
    fn panics() {
        if is_now() {
            resume_unwind(Box::new("interrupted"));
        }
    }
    fn cancels() {
        if is_now() {
            HANDLE.lock().unwrap().as_ref().unwrap().cancel();
        }
    }
    fn stops() {
        if is_now() {
            haft::perform(Stop);
        }
    }
    let alive = Alive::new(());
    // The outcome of the program, if it is not interrupted; and in how many places it was.
    let interrupt = |at: At<'static>| {
        let program = || {
            let sample = || Some(sample(&alive, at));
            let outcome = haft::cancellable(|handle| {
                *HANDLE.lock().unwrap() = Some(handle.clone());
                haft::handle_general(|Stop, _k| None, sample)
            });
            outcome.ok().flatten()
        };
        for place in 1.. {
            LEFT.store(place, Ordering::Relaxed);
            let outcome = catch_unwind(AssertUnwindSafe(|| haft::simulate(place as u64, program)));
            assert_eq!(Alive::strong_count(&alive), 1, "interrupted at {place}");
            if LEFT.load(Ordering::Relaxed) != 0 {
                return (outcome.unwrap(), place - 1);
            }
        }
        unreachable!();
    };
    for at in [&panics as At, &cancels, &stops] {
        let (outcome, places) = interrupt(at);
        assert_eq!(outcome, Some(6));
        assert!(places >= 18, "{places}");
    }
    // And a deadline at any time.
    let outcome = |time| {
        haft::simulate(1, || {
            haft::timeout(time * SHORT / 2, || sample(&alive, &|| ()))
        })
    };
    let times = (1..).take_while(|time| {
        let outcome = outcome(*time);
        assert_eq!(Alive::strong_count(&alive), 1, "after {time} ms");
        outcome.is_err()
    });
    assert!(times.count() >= 8);
}

/// Calls the function when it is dropped.
struct OnDrop<F: FnMut()>(F);
impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Has the function called by a destructor in a task that has been cancelled, while another task
/// may go on for a moment.
fn in_a_destructor_under_a_cancel(function: impl FnMut() + Send, meanwhile: impl FnOnce() + Send) {
    haft::run(|| {
        haft::scope(|s| {
            let cancelled = s.spawn(|| {
                let _on_drop = OnDrop(function);
                haft::sleep(Duration::from_secs(3600));
            });
            haft::yield_now();
            s.cancel();
            haft::shield(|| {
                s.spawn(|| {
                    haft::shield(|| {
                        haft::sleep(Duration::from_millis(1));
                        meanwhile();
                    });
                });
                assert!(cancelled.join().is_err());
            });
        });
    });
}

#[test]
fn a_select_in_a_destructor_under_a_cancel_runs_no_arm_before_something_has_happened() {
    let (event, mut runs) = (Event::new(), 0);
    let never = Event::new();
    in_a_destructor_under_a_cancel(
        || {
            haft::select! {
                set(never) => panic!("it is not set"),
                set(event) => {
                    assert!(event.is_set());
                    runs += 1;
                }
            }
            haft::select! {
                set(never) => panic!("it is not set"),
                default(Duration::from_millis(1)) => runs += 1,
            }
        },
        || event.set(),
    );
    assert_eq!(runs, 2);
}

#[test]
fn a_future_in_a_destructor_under_a_cancel_is_asked_when_it_is_woken() {
    let woken = std::sync::Mutex::new(None::<std::task::Waker>);
    let mut polls = 0;
    in_a_destructor_under_a_cancel(
        || {
            haft::block_on(std::future::poll_fn(|context| {
                polls += 1;
                if polls == 2 {
                    return std::task::Poll::Ready(());
                }
                *woken.lock().unwrap() = Some(context.waker().clone());
                std::task::Poll::Pending
            }));
        },
        || woken.lock().unwrap().take().unwrap().wake(),
    );
    assert_eq!(polls, 2);
}

#[test]
fn a_channel_without_receivers_drops_what_it_holds() {
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    // The requester's sender lives on; it waits for an answer that nobody will give.
    haft::run(|| {
        let (requests, server) = haft::channel(1);
        let other = server.clone();
        let (reply, answer) = haft::channel::<u32>(1);
        requests
            .send((reply, Counted(Arc::clone(&dropped))))
            .map_err(drop)
            .unwrap();
        haft::spawn(move || drop(server)).join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        drop(other);
        assert_eq!(answer.recv(), Err(RecvError));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        // A sender that is still waiting gets its value back.
        let (sender, receiver) = haft::channel(0);
        let sends = haft::spawn(move || sender.send(7));
        haft::yield_now();
        drop(receiver);
        assert!(sends.join().unwrap() == Err(SendError(7)));
    });
}

#[test]
fn channels_events_and_handles_may_be_used_after_a_panic() {
    fn is_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_safe::<haft::Sender<std::cell::Cell<u32>>>();
    is_safe::<haft::Receiver<std::cell::Cell<u32>>>();
    is_safe::<haft::JoinHandle<std::cell::Cell<u32>>>();
    is_safe::<Event>();
    is_safe::<Semaphore>();
    is_safe::<haft::CancelHandle>();
}

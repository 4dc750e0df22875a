// SPDX-License-Identifier: MIT
//! What a task waits for: one of several things, mutexes and semaphores of the crate.

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
        drop(receiver);
        let outcome = haft::select! { send(sender, value()) -> result => result };
        let SendError(unsent) = outcome.unwrap_err();
        assert_eq!(count(), 1);
        drop(unsent);
        assert_eq!(count(), 2);
        drop(sender); // and what is in the channel
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
    // What the program comes to, if it is not interrupted; and in how many places it was.
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

// SPDX-License-Identifier: MIT
//! Tasks with thread-local variables of their own: what std and its users do with threads they do
//! with a hundred tasks of one thread. Where the option is refused, the tests pass.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

const TASKS: usize = 100;

/// Runs the function on as many tasks at once, with their numbers; false: it is refused here.
fn on_tasks<T: Send>(function: impl Fn(usize) -> T + Sync) -> Option<Vec<T>> {
    let options = haft::Options::new().own_thread_locals();
    let function = &function;
    match haft::run_with(options, || {
        haft::all((0..TASKS).map(|i| move || function(i)))
    }) {
        Ok(results) => Some(results),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let reason = haft::own_thread_locals_refused().unwrap();
            println!("left out: {reason}");
            None
        }
    }
}

fn pause() {
    thread::sleep(Duration::from_micros(100));
}

#[test]
fn the_current_thread_is_the_task() {
    let Some(ids) = on_tasks(|_| {
        let id = thread::current().id();
        pause();
        assert_eq!(thread::current().id(), id);
        id
    }) else {
        return;
    };
    assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), TASKS);
}

#[test]
fn one_task_has_variables_of_its_own_among_others_that_share() {
    thread_local! { static VARIABLE: Cell<usize> = const { Cell::new(0) }; }
    VARIABLE.set(1);
    haft::run(|| {
        let own = haft::spawn_with_own_thread_locals(|| {
            let before = VARIABLE.replace(2);
            pause();
            (before, VARIABLE.get())
        });
        let shared = haft::spawn(|| VARIABLE.replace(3));
        match own {
            Ok(own) => assert_eq!(own.join().unwrap(), (0, 2)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
        }
        assert_eq!(shared.join().unwrap(), 1);
    });
    assert_eq!(VARIABLE.get(), 3);
}

/// Drops itself at the end of its task.
struct Ends(Arc<AtomicUsize>);
impl Drop for Ends {
    fn drop(&mut self) {
        pause();
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
thread_local! { static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) }; }

#[test]
fn destructors_run_at_the_end_of_the_task_and_may_wait() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let is_refused = on_tasks(move |_| {
        ENDS.with(|ends| *ends.borrow_mut() = Some(Ends(count.clone())));
        pause();
    })
    .is_none();
    assert_eq!(
        ended.load(Ordering::Relaxed),
        if is_refused { 0 } else { TASKS }
    );
}

#[test]
fn destructors_run_in_a_task_that_panics_or_is_cancelled() {
    if haft::own_thread_locals_refused().is_some() {
        return;
    }
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let outcome = haft::run_with(haft::Options::new().own_thread_locals(), move || {
        let of_panic = count.clone();
        let panics = haft::spawn(move || {
            ENDS.with(|ends| *ends.borrow_mut() = Some(Ends(of_panic)));
            std::panic::resume_unwind(Box::new("no luck"));
        });
        assert!(panics.join().is_err());
        haft::timeout(Duration::from_millis(1), || {
            haft::spawn(move || {
                ENDS.with(|ends| *ends.borrow_mut() = Some(Ends(count)));
                haft::sleep(Duration::from_secs(1000));
            })
            .join()
            .unwrap();
        })
    });
    assert!(outcome.unwrap().is_err());
    assert_eq!(ended.load(Ordering::Relaxed), 2);
}

#[test]
fn an_initialiser_may_wait() {
    thread_local! {
        static OPENED: String = {
            pause();
            format!("{:?}", thread::current().id())
        };
    }
    on_tasks(|_| {
        let own = format!("{:?}", thread::current().id());
        OPENED.with(|opened| assert_eq!(*opened, own));
        pause();
        OPENED.with(|opened| assert_eq!(*opened, own));
    });
}

#[test]
fn a_value_may_stay_borrowed_over_a_wait() {
    thread_local! { static LIST: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) }; }
    on_tasks(|i| {
        LIST.with(|list| {
            let mut list = list.borrow_mut();
            list.push(i);
            pause();
            assert_eq!(*list, [i]);
        });
    });
}

#[test]
fn tasks_park_and_are_unparked_each_for_itself() {
    let places: Vec<_> = (0..TASKS).map(|_| OnceLock::new()).collect();
    let (places, woken) = (&places, AtomicUsize::new(0));
    on_tasks(|i| {
        places[i].set(thread::current()).unwrap();
        let next = places[(i + 1) % TASKS].wait_for();
        if i % 2 == 0 {
            pause();
        }
        next.unpark();
        thread::park();
        woken.fetch_add(1, Ordering::Relaxed);
    });
}

/// (`OnceLock::wait` is newer than the oldest compiler.)
trait WaitFor {
    fn wait_for(&self) -> thread::Thread;
}
impl WaitFor for OnceLock<thread::Thread> {
    fn wait_for(&self) -> thread::Thread {
        loop {
            if let Some(thread) = self.get() {
                return thread.clone();
            }
            thread::yield_now();
        }
    }
}

#[test]
fn mpsc_is_between_tasks_of_a_thread() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..TASKS)
        .map(|i| {
            if i % 2 == 0 {
                let (sender, receiver) = mpsc::sync_channel(1);
                (Sends::Bounded(sender), receiver)
            } else {
                let (sender, receiver) = mpsc::channel();
                (Sends::Unbounded(sender), receiver)
            }
        })
        .unzip();
    let senders: Vec<_> = senders.into_iter().map(|s| Mutex::new(Some(s))).collect();
    let receivers: Vec<_> = receivers.into_iter().map(Mutex::new).collect();
    on_tasks(|i| {
        if i % 3 == 0 {
            pause();
        }
        let sender = senders[(i + 1) % TASKS].lock().unwrap().take().unwrap();
        let number = thread::scope(|threads| {
            let sending = threads.spawn(move || (0..5).for_each(|n| sender.send(n)));
            let sum: usize = receivers[i].lock().unwrap().iter().sum();
            sending.join().unwrap();
            sum
        });
        assert_eq!(number, 10);
    });
    let (sender, receiver) = mpsc::sync_channel(0);
    let receiver = Mutex::new(receiver);
    let sums = on_tasks(|i| {
        if i == 0 {
            receiver.lock().unwrap().iter().take(TASKS - 1).sum()
        } else {
            sender.send(i).unwrap();
            0
        }
    });
    if let Some(sums) = sums {
        assert_eq!(sums[0], TASKS * (TASKS - 1) / 2);
    }
}
enum Sends {
    Bounded(mpsc::SyncSender<usize>),
    Unbounded(mpsc::Sender<usize>),
}
impl Sends {
    fn send(&self, number: usize) {
        match self {
            Sends::Bounded(sender) => sender.send(number).unwrap(),
            Sends::Unbounded(sender) => sender.send(number).unwrap(),
        }
    }
}

#[test]
fn scopes_of_threads_end_for_each_task() {
    on_tasks(|i| {
        let mut number = 0;
        thread::scope(|threads| {
            threads.spawn(|| {
                pause();
                number = i;
            });
        });
        assert_eq!(number, i);
    });
}

#[test]
fn initialisers_of_statics_wait_and_are_waited_for() {
    static LAZY: LazyLock<usize> = LazyLock::new(|| {
        pause();
        42
    });
    static ONCE: OnceLock<usize> = OnceLock::new();
    on_tasks(|_| {
        assert_eq!(*LAZY, 42);
        assert_eq!(*ONCE.get_or_init(|| *LAZY + 1), 43);
    });
}

#[test]
fn a_lock_of_stdout_is_held_over_a_wait() {
    let inside = AtomicUsize::new(0);
    on_tasks(|_| {
        let mut out = std::io::stdout().lock();
        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
        haft::yield_now();
        write!(out, "").unwrap();
        assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
    });
}

#[test]
fn panics_of_tasks_unwind_beside_each_other() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            assert!(thread::panicking());
            pause();
            assert!(thread::panicking());
        }
    }
    on_tasks(|i| {
        let outcome = std::panic::catch_unwind(|| {
            let _waits = Waits;
            std::panic::resume_unwind(Box::new(i));
        });
        assert!(!thread::panicking());
        assert_eq!(*outcome.unwrap_err().downcast::<usize>().unwrap(), i);
    });
}

#[test]
fn a_runtime_has_such_tasks_on_several_threads() {
    let options = haft::Options::new().threads(2).own_thread_locals();
    let Ok(runtime) = haft::Runtime::new(options) else {
        assert!(haft::own_thread_locals_refused().is_some());
        return;
    };
    let ids = (0..TASKS).map(|_| {
        runtime.spawn(|| {
            let id = thread::current().id();
            pause();
            assert_eq!(thread::current().id(), id);
            id
        })
    });
    let ids: Vec<_> = ids.collect();
    let ids: HashSet<_> = ids.into_iter().map(|id| id.join().unwrap()).collect();
    assert_eq!(ids.len(), TASKS);
}

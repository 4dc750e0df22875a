// SPDX-License-Identifier: MIT
//! Effects, handlers, computations and generators.

use haft::{Computation, Effect, Generator, Step, Yielder, handle, handle_general, perform};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

struct Ask(u32);
impl Effect for Ask {
    type Output = u32;
}
struct Tell(String);
impl Effect for Tell {
    type Output = ();
}
struct Choose;
impl Effect for Choose {
    type Output = bool;
}
struct Of<T>(T);
impl<T: 'static> Effect for Of<T> {
    type Output = T;
}

struct OnDrop<F: FnMut()>(F);
impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    match payload.downcast_ref::<String>() {
        Some(text) => text,
        None => payload.downcast_ref::<&str>().expect("a text"),
    }
}

#[test]
fn the_innermost_handler_answers() {
    let sum = handle(
        |Ask(n)| n + 1,
        || perform(Ask(1)) + handle(|Ask(n)| n * 10, || perform(Ask(5))) + perform(Ask(2)),
    );
    assert_eq!(sum, 2 + 50 + 3);
}

#[test]
fn a_clause_is_outside_of_its_own_handler() {
    let answer = handle(
        |Ask(n)| n + 100,
        || handle(|Ask(n)| perform(Ask(n * 2)) + 1, || perform(Ask(4))),
    );
    assert_eq!(answer, 109);
}

#[test]
fn effects_differ_by_type_also_generic_ones() {
    let text = handle(
        |Of(n): Of<u8>| n + 1,
        || {
            handle(
                |Of(s): Of<String>| s + "!",
                || format!("{}{}", perform(Of("hi".to_owned())), perform(Of(4u8))),
            )
        },
    );
    assert_eq!(text, "hi!5");
}

#[test]
fn effects_differ_by_type_also_those_of_one_name_and_the_same_code() {
    let asks_elsewhere: fn() -> usize = {
        struct Same(#[allow(dead_code)] u8);
        impl Effect for Same {
            type Output = usize;
            fn unhandled(self) -> usize {
                7
            }
        }
        || perform(Same(1))
    };
    {
        struct Same(i8);
        impl Effect for Same {
            type Output = usize;
            fn unhandled(self) -> usize {
                7
            }
        }
        let body = || (perform(Same(2)), asks_elsewhere());
        assert_eq!(handle(|Same(n)| n as usize, body), (2, 7));
    }
}

#[test]
fn an_effect_that_nobody_handles_is_a_panic_that_names_it() {
    let payload = catch_unwind(|| perform(Choose)).unwrap_err();
    assert!(text_of(&*payload).contains("Choose"));
}

#[test]
fn a_default_handler_answers_where_no_other_does_and_is_outside_of_all() {
    struct Twice(u32);
    impl Effect for Twice {
        type Output = u32;
        fn unhandled(self) -> u32 {
            if self.0 == 0 {
                resume_unwind(Box::new("default"));
            }
            // No handler of the performer is in reach.
            let asked = catch_unwind(|| perform(Ask(1)));
            self.0 * 2 + u32::from(asked.is_err())
        }
    }
    for _ in 0..2 {
        assert_eq!(handle(|Ask(n)| n, || perform(Twice(20))), 41);
        assert_eq!(handle(|Twice(n)| n, || perform(Twice(20))), 20);
        let payload = catch_unwind(|| perform(Twice(0))).unwrap_err();
        assert_eq!(text_of(&*payload), "default");
    }
}

#[test]
fn a_default_handler_waits_as_its_task_does() {
    static HELD: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
    struct Wait;
    impl Effect for Wait {
        type Output = u32;
        fn unhandled(self) -> u32 {
            assert!(catch_unwind(|| perform(Ask(1))).is_err()); // the performer's are out of reach
            let (sender, receiver) = haft::channel(0);
            haft::scope(|s| {
                s.spawn(move || sender.send(20).unwrap());
                receiver.recv().unwrap() + haft::spawn(|| 1).join().unwrap() + *HELD.lock().unwrap()
            })
        }
    }
    haft::run(|| {
        let holder = haft::spawn(|| {
            let mut held = HELD.lock().unwrap();
            haft::sleep(std::time::Duration::from_millis(1));
            *held += 1;
        });
        haft::yield_now();
        assert_eq!(handle(|Ask(n)| n, || perform(Wait)), 22);
        holder.join().unwrap();
        let mut computation = Computation::<Ask, u32>::new(|| perform(Wait) + perform(Ask(1)));
        assert!(matches!(computation.start(), Step::Performed(Ask(1))));
        assert!(matches!(computation.resume(20), Step::Returned(42)));
    });
}

#[test]
fn a_panic_of_a_clause_goes_on_where_the_effect_was_performed() {
    let caught = handle(
        |Ask(_)| resume_unwind(Box::new("clause")),
        || catch_unwind(|| perform(Ask(1))).map(drop).unwrap_err(),
    );
    assert_eq!(text_of(&*caught), "clause");
}

#[test]
fn a_panic_of_the_body_leaves_the_handler() {
    let outcome = catch_unwind(|| handle(|Ask(n)| n, || resume_unwind(Box::new("body"))));
    let _: &Result<(), _> = &outcome;
    assert_eq!(text_of(&*outcome.unwrap_err()), "body");
    let outcome = catch_unwind(|| {
        handle_general(
            |Ask(n), k| k.resume(n),
            || -> u32 {
                perform(Ask(1));
                resume_unwind(Box::new("fiber"))
            },
        )
    });
    assert_eq!(text_of(&*outcome.unwrap_err()), "fiber");
}

#[test]
fn a_general_clause_works_on_the_answer() {
    let log = handle_general(
        |Tell(text), k| {
            let mut rest: Vec<String> = k.resume(());
            rest.insert(0, text);
            rest
        },
        || {
            perform(Tell("one".into()));
            perform(Tell("two".into()));
            vec!["end".to_owned()]
        },
    );
    assert_eq!(log, ["one", "two", "end"]);
}

#[test]
fn a_resumption_that_is_dropped_or_forgotten_unwinds_the_computation() {
    for forget in [false, true] {
        let dropped = Cell::new(0);
        let at_return = Cell::new(0);
        let outcome = handle_general(
            |Ask(_), k| {
                if forget {
                    std::mem::forget(k);
                } else {
                    drop(k);
                }
                at_return.set(dropped.get());
                "abandoned"
            },
            || {
                let _guard = OnDrop(|| dropped.set(dropped.get() + 1));
                perform(Ask(0));
                "finished"
            },
        );
        assert_eq!(outcome, "abandoned");
        assert_eq!(dropped.get(), 1);
        assert_eq!(at_return.get(), u32::from(!forget));
    }
}

#[test]
fn a_computation_that_refuses_to_be_unwound_is_ended_all_the_same() {
    let refused = Cell::new(0);
    let outcome = handle_general(
        |Ask(_), _k| 1,
        || {
            while refused.get() < 3 {
                if catch_unwind(|| perform(Ask(0))).is_err() {
                    refused.set(refused.get() + 1);
                }
            }
            2
        },
    );
    assert_eq!((outcome, refused.get()), (1, 3));
}

#[test]
fn payloads_that_panic_when_they_are_dropped_end_no_handler_before_its_computation() {
    struct Spite;
    impl Drop for Spite {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    struct Refuse;
    impl Effect for Refuse {
        type Output = ();
    }
    impl Drop for Refuse {
        fn drop(&mut self) {
            std::panic::panic_any(Spite);
        }
    }
    let ended = Cell::new(false);
    let body = || {
        let _end = OnDrop(|| ended.set(true));
        for _ in 0..3 {
            let _ = catch_unwind(|| perform(Refuse));
        }
    };
    handle_general(|refuse: Refuse, _k| std::mem::forget(refuse), body);
    assert!(ended.get()); // what the body has borrowed is still there
}

#[test]
fn a_discontinued_computation_may_catch_the_panic() {
    let outcome = handle_general(
        |Ask(_), k| k.discontinue(Box::new("stop")),
        || match catch_unwind(|| perform(Ask(0))) {
            Ok(_) => "resumed".to_owned(),
            Err(payload) => text_of(&*payload).to_owned(),
        },
    );
    assert_eq!(outcome, "stop");
}

#[test]
fn a_panic_of_a_general_clause_unwinds_the_computation() {
    let dropped = Cell::new(false);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        handle_general(
            |Ask(_), _k| -> u32 { resume_unwind(Box::new("clause")) },
            || {
                let _guard = OnDrop(|| dropped.set(true));
                perform(Ask(0))
            },
        )
    }));
    assert_eq!(text_of(&*outcome.unwrap_err()), "clause");
    assert!(dropped.get());
}

#[test]
fn an_effect_passes_handlers_of_others() {
    let sum = handle_general(
        |Ask(n), k| k.resume(n + 1) * 2,
        || {
            handle_general(
                |Choose, k| k.resume(true),
                || u32::from(perform(Choose)) + perform(Ask(10)),
            )
        },
    );
    assert_eq!(sum, 24);
}

#[test]
fn dropping_a_computation_unwinds_what_it_handles_itself() {
    let log = RefCell::new(Vec::new());
    handle_general(
        |Ask(_), _k| (),
        || {
            let _outer = OnDrop(|| log.borrow_mut().push("outer"));
            handle_general(
                |Choose, k| k.resume(false),
                || {
                    let _inner = OnDrop(|| log.borrow_mut().push("inner"));
                    perform(Ask(0));
                },
            );
        },
    );
    assert_eq!(*log.borrow(), ["inner", "outer"]);
}

#[test]
fn a_computation_is_stepped_by_requests() {
    let mut sum: Computation<Ask, u32> = Computation::new(|| perform(Ask(1)) + perform(Ask(2)));
    assert!(matches!(sum.start(), Step::Performed(Ask(1))));
    assert!(matches!(sum.resume(10), Step::Performed(Ask(2))));
    assert!(!sum.is_finished());
    assert!(matches!(sum.resume(20), Step::Returned(30)));
    assert!(sum.is_finished());
    assert!(catch_unwind(AssertUnwindSafe(|| sum.resume(1))).is_err());
}

#[test]
fn a_computation_that_never_began_drops_its_body() {
    let shared = Rc::new(());
    let mine = Rc::clone(&shared);
    let body = move || drop(mine);
    drop(Computation::<Ask, ()>::new(body));
    assert_eq!(Rc::strong_count(&shared), 1);
}

#[test]
fn a_computation_is_handled_where_it_runs_not_where_it_began() {
    let mut generator = handle(
        |Ask(n)| n,
        || {
            let mut generator = Generator::new(|out| {
                for i in 0.. {
                    out.give(perform(Ask(i)));
                }
            });
            assert_eq!(generator.next(), Some(0));
            generator
        },
    );
    assert_eq!(handle(|Ask(n)| n * 100, || generator.next()), Some(100));
    assert_eq!(handle(|Ask(n)| n * 7, || generator.next()), Some(14));
    // The handlers have ended.
    let outcome = catch_unwind(AssertUnwindSafe(|| generator.next()));
    assert!(text_of(&*outcome.unwrap_err()).contains("Ask"));
    assert_eq!(generator.next(), None);
}

#[test]
fn a_recursive_generator_is_flat() {
    fn walk(depth: u32, out: Yielder<u32>) {
        if depth > 0 {
            walk(depth - 1, out);
            out.give(depth);
            walk(depth - 1, out);
        }
    }
    let sum: u64 = Generator::new(|out| walk(12, out)).map(u64::from).sum();
    assert_eq!(sum, (1..=12).map(|d| d << (12 - d)).sum::<u64>());
}

#[test]
fn a_generator_that_is_dropped_runs_destructors() {
    let dropped = Rc::new(Cell::new(false));
    let mine = Rc::clone(&dropped);
    let mut numbers = Generator::new(move |out| {
        let _guard = OnDrop(|| mine.set(true));
        for i in 0.. {
            out.give(i);
        }
    });
    assert_eq!(numbers.by_ref().take(3).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(!dropped.get());
    drop(numbers);
    assert!(dropped.get());
}

#[test]
fn generators_nest_and_pass_through_each_other() {
    let squares = Generator::new(|out| {
        let evens = Generator::new(|out| (0..5).for_each(|i| out.give(i * 2)));
        evens.for_each(|even| out.give(even * even));
    });
    assert_eq!(squares.collect::<Vec<_>>(), [0, 4, 16, 36, 64]);
}

#[test]
fn an_effect_with_a_destructor_is_dropped_once() {
    let shared = Rc::new(());
    let value = Of(Rc::clone(&shared));
    let back = handle(|Of(value): Of<Rc<()>>| value, || perform(value));
    assert_eq!(Rc::strong_count(&shared), 2);
    drop(back);
    let unhandled = Of(Rc::clone(&shared));
    assert!(catch_unwind(AssertUnwindSafe(|| perform(unhandled))).is_err());
    assert_eq!(Rc::strong_count(&shared), 1);
}

#[test]
fn tasks_wait_inside_of_handlers_and_generators() {
    let values = haft::run(|| {
        let (sender, receiver) = haft::channel(1);
        haft::scope(|s| {
            s.spawn(move || (1..=3).for_each(|i| sender.send(i).unwrap()));
            handle(
                |Ask(n)| {
                    haft::sleep(std::time::Duration::from_millis(1));
                    n * 2
                },
                move || {
                    Generator::new(move |out| {
                        receiver.iter().for_each(|i| out.give(perform(Ask(i))))
                    })
                    .collect::<Vec<_>>()
                },
            )
        })
    });
    assert_eq!(values, [2, 4, 6]);
}

#[test]
fn a_run_is_outside_of_the_handlers_around_it() {
    let is_unhandled = || catch_unwind(|| perform(Ask(1))).is_err();
    let clause = |Ask(_)| unreachable!("two tasks could call it at once");
    handle(clause, || {
        haft::run(|| {
            assert!(is_unhandled() && haft::spawn(is_unhandled).join().unwrap());
            let inside = handle(|Ask(n)| n, || perform(Ask(1)));
            assert_eq!(inside, 1);
        });
        assert!(haft::simulate(1, is_unhandled));
    });
    handle(clause, || {
        assert!(haft::block_thread(is_unhandled));
        haft::run(|| assert!(handle(clause, || haft::block_thread(is_unhandled))));
    });
    // Or the run would be suspended while its thread goes on.
    let mut numbers = Generator::new(|out| {
        let refused = haft::run(|| catch_unwind(|| out.give(0)));
        assert!(text_of(&*refused.unwrap_err()).contains("nobody handles"));
        out.give(1);
    });
    assert_eq!(numbers.next(), Some(1));
    assert_eq!(haft::run(|| haft::spawn(|| 2).join().unwrap()), 2);
    assert_eq!(numbers.next(), None);
}

#[test]
fn a_scope_in_a_computation_that_is_dropped_waits_for_its_tasks() {
    let ended = haft::run(|| {
        let ended = std::sync::atomic::AtomicU32::new(0);
        let ended = &ended;
        handle_general(
            |Ask(_), _k| (),
            || {
                haft::scope(|s| {
                    s.spawn(|| {
                        haft::shield(|| haft::sleep(std::time::Duration::from_millis(1)));
                        ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    });
                    perform(Ask(0));
                });
            },
        );
        ended.load(std::sync::atomic::Ordering::Relaxed)
    });
    assert_eq!(ended, 1);
}

#[test]
fn a_cancel_unwinds_through_fibers() {
    let log = std::sync::Mutex::new(Vec::new());
    haft::run(|| {
        let outcome = haft::timeout(std::time::Duration::from_millis(1), || {
            let _outer = OnDrop(|| log.lock().unwrap().push("task"));
            handle_general(
                |Ask(n), k| k.resume(n),
                || {
                    let _inner = OnDrop(|| log.lock().unwrap().push("fiber"));
                    perform(Ask(1));
                    haft::sleep(std::time::Duration::from_secs(3600));
                },
            );
        });
        assert!(outcome.is_err());
    });
    assert_eq!(*log.lock().unwrap(), ["fiber", "task"]);
}

#[test]
fn a_computation_goes_on_no_more_when_the_threads_variables_are_destroyed() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    static UNWOUND: AtomicU32 = AtomicU32::new(0);
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DESTROYED.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local! {
        static KEPT: RefCell<Option<Generator<u32>>> = const { RefCell::new(None) };
        static BORROWED: Counts = const { Counts };
    }
    for order in 0..3 {
        let thread = std::thread::spawn(move || {
            if order == 0 {
                KEPT.with(|_| ());
            }
            let mut generator = Generator::new(|out| {
                BORROWED.with(|_borrowed| {
                    let _guard = OnDrop(|| {
                        UNWOUND.fetch_add(1, Ordering::Relaxed);
                    });
                    out.give(1);
                });
            });
            if order == 1 {
                KEPT.with(|_| ());
            }
            assert_eq!(generator.next(), Some(1));
            KEPT.with(|kept| kept.replace(Some(generator)));
        });
        thread.join().unwrap();
    }
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 3);
    assert_eq!(UNWOUND.load(Ordering::Relaxed), 0);
}

#[test]
fn the_stack_of_a_leaked_computation_stays_when_its_thread_has_ended() {
    use std::sync::mpsc::channel;
    use std::thread;
    let (go, begins) = channel();
    let (tell, told) = channel();
    let lends = move || {
        let lent = &[7u8; 3000];
        thread::scope(|s| {
            s.spawn(move || {
                begins.recv().unwrap();
                tell.send(lent.iter().filter(|byte| **byte == 7).count())
            });
            perform(Ask(0))
        })
    };
    let leaks = || {
        let mut computation = Computation::<Ask, u32>::new(lends);
        assert!(matches!(computation.start(), Step::Performed(Ask(0))));
        std::mem::forget(computation);
    };
    thread::spawn(leaks).join().unwrap();
    for _ in 0..20 {
        let uses = || Generator::new(|out| [1u8; 3000].into_iter().for_each(|n| out.give(n)));
        thread::spawn(move || uses().count()).join().unwrap();
    }
    go.send(()).unwrap();
    assert_eq!(told.recv(), Ok(3000));
}

#[test]
fn a_fiber_runs_what_comes_next_whatever_ran_on_it_before() {
    #[repr(align(64))]
    struct Aligned(u8);
    let ended = |outcome: Step<Ask, u64>| match outcome {
        Step::Returned(value) => value,
        Step::Performed(_) => unreachable!(),
    };
    for round in 0..3u64 {
        let large = [round; 100];
        let mut first = Computation::<Ask, u64>::new(move || large.iter().sum());
        let aligned = Aligned(round as u8);
        let mut second = Computation::<Ask, u64>::new(move || {
            assert_eq!(std::ptr::from_ref(&aligned).addr() % 64, 0);
            u64::from(aligned.0)
        });
        assert_eq!(ended(first.start()), round * 100);
        assert_eq!(ended(second.start()), round);
        // Another effect, a panic, one that is dropped where it waits, one that is never begun.
        let mut tells = Computation::<Tell, String>::new(|| {
            perform(Tell("one".into()));
            perform(Of("two".to_owned()))
        });
        assert!(matches!(tells.start(), Step::Performed(Tell(text)) if text == "one"));
        handle(
            |Of(text): Of<String>| text + "!",
            || assert_eq!(tells.resume(()), Step::Returned("two!".to_owned())),
        );
        let mut panics = Computation::<Ask, ()>::new(|| resume_unwind(Box::new("body")));
        assert!(catch_unwind(AssertUnwindSafe(|| panics.start())).is_err());
        let mut waits = Computation::<Ask, u32>::new(|| perform(Ask(1)));
        assert!(matches!(waits.start(), Step::Performed(Ask(1))));
        let never: Vec<_> = (0..40)
            .map(|i| Computation::<Ask, u64>::new(move || i))
            .collect();
        drop((waits, never));
    }
}

impl PartialEq for Tell {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl std::fmt::Debug for Tell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[test]
fn a_clause_in_place_suspends_what_is_around_its_performer() {
    // The clause runs on the stack of the inner computation, and what it performs suspends the
    // outer one.
    let mut outer: Computation<Ask, u32> = Computation::new(|| {
        handle(
            |Of(n): Of<u32>| perform(Ask(n)) + 1,
            || {
                let mut inner: Computation<Choose, u32> =
                    Computation::new(|| perform(Of(10)) + perform(Of(20)));
                match inner.start() {
                    Step::Returned(sum) => sum,
                    Step::Performed(Choose) => unreachable!(),
                }
            },
        )
    });
    assert!(matches!(outer.start(), Step::Performed(Ask(10))));
    assert!(matches!(outer.resume(100), Step::Performed(Ask(20))));
    assert!(matches!(outer.resume(200), Step::Returned(302)));
}

#[test]
fn a_generator_gives_elements_while_it_iterates_over_another_of_its_type() {
    let numbers = Generator::new(|out| {
        out.give(1);
        let inner = Generator::new(|own| (2..4).for_each(|n| own.give(n)));
        inner.for_each(|n| out.give(n * 10));
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 20, 30]);
}

#[test]
fn a_clause_in_place_gives_what_its_performer_on_a_further_fiber_has_asked_for() {
    // The clause runs on the stack of the inner computation, with the scope of the generator.
    let numbers = Generator::new(|out| {
        let asks = || {
            let mut inner =
                Computation::<Choose, u32>::new(|| (1..4).map(|n| perform(Ask(n))).sum());
            assert!(matches!(inner.start(), Step::Returned(60)));
        };
        out.give(0);
        let clause = |Ask(n)| {
            out.give(n);
            n * 10
        };
        handle(clause, asks);
        out.give(4);
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_computation_returns_what_is_of_any_size() {
    #[repr(align(64))]
    struct Aligned(u8);
    for round in 0..3 {
        let mut large = Computation::<Ask, [u32; 100]>::new(move || [perform(Ask(round)); 100]);
        assert!(matches!(large.start(), Step::Performed(Ask(n)) if n == round));
        assert!(matches!(large.resume(round + 1), Step::Returned(all) if all == [round + 1; 100]));
        let mut aligned = Computation::<Ask, Aligned>::new(move || Aligned(round as u8));
        assert!(matches!(aligned.start(), Step::Returned(Aligned(n)) if u32::from(n) == round));
        let mut nothing = Computation::<Ask, ()>::new(|| ());
        assert!(matches!(nothing.start(), Step::Returned(())));
    }
}

#[test]
fn effects_answers_and_results_have_any_shape() {
    fn there_and_back<T: Clone + PartialEq + std::fmt::Debug + 'static>(value: T) {
        for rounds in 0..4 {
            let given = value.clone();
            let mut computation = Computation::<Of<T>, (T, usize)>::new(move || {
                let last = (0..rounds).fold(given, |last, _| perform(Of(last)));
                (last, rounds)
            });
            let mut step = computation.start();
            while let Step::Performed(Of(asked)) = step {
                assert_eq!(asked, value);
                step = computation.resume(asked);
            }
            assert_eq!(step, Step::Returned((value.clone(), rounds)));
            let given = value.clone();
            let mut returns = Computation::<Of<T>, T>::new(move || given);
            assert_eq!(returns.start(), Step::Returned(value.clone()));
            let given = value.clone();
            let answer = handle_general(
                |Of(asked): Of<T>, k| if rounds == 0 { asked } else { k.resume(asked) },
                || perform(Of(given)),
            );
            assert_eq!(answer, value);
            let given = value.clone();
            let all = Generator::new(move |out| (0..rounds).for_each(|_| out.give(given.clone())));
            assert_eq!(all.collect::<Vec<_>>(), vec![value.clone(); rounds]);
        }
    }
    there_and_back(());
    there_and_back(true);
    there_and_back((1u8, 2u16));
    there_and_back((1u8, 2u32));
    there_and_back([3u8; 7]);
    there_and_back(0.5f64);
    there_and_back(Some(Box::new(4)));
    there_and_back(Rc::new(5));
    there_and_back("text");
    there_and_back(String::from("text"));
    there_and_back(u128::MAX);
    there_and_back([6u64; 40]);
}

impl<T: PartialEq> PartialEq for Of<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T: std::fmt::Debug> std::fmt::Debug for Of<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[test]
fn nothing_is_dropped_twice_or_forgotten_wherever_a_computation_is_left() {
    let counted = Rc::new(());
    for place in 0..5 {
        let (first, second) = (Rc::clone(&counted), Rc::clone(&counted));
        let mut computation = Computation::<Of<Rc<()>>, Rc<()>>::new(move || {
            let kept = perform(Of(first));
            drop(perform(Of(second)));
            kept
        });
        for step in 0..place {
            let refused = catch_unwind(AssertUnwindSafe(|| match step {
                0 => drop(computation.start()),
                1 | 2 => drop(computation.resume(Rc::clone(&counted))),
                _ => drop(computation.resume(Rc::clone(&counted))),
            }));
            assert_eq!(refused.is_err(), step == 3);
        }
        assert_eq!(computation.is_finished(), place >= 3);
        drop(computation);
        assert_eq!(Rc::strong_count(&counted), 1, "left at {place}");
    }
}

#[test]
fn a_computation_finds_the_handlers_around_whoever_resumes_it() {
    let computation = Rc::new(RefCell::new(Computation::<Ask, u32>::new(|| {
        (0..8).map(|_| perform(Of(1u32)) + perform(Ask(0))).sum()
    })));
    let start = || computation.borrow_mut().start();
    let mut step = handle(|Of(n): Of<u32>| n, start);
    let mut expected = 1;
    for round in 0..8 {
        assert!(matches!(step, Step::Performed(Ask(0))));
        expected += round;
        step = if round % 2 == 0 {
            expected += if round == 7 { 0 } else { 10 };
            let computation = Rc::clone(&computation);
            let mut around = Computation::<Tell, Step<Ask, u32>>::new(move || {
                handle(
                    |Of(n): Of<u32>| n * 10,
                    || computation.borrow_mut().resume(round),
                )
            });
            match around.start() {
                Step::Returned(step) => step,
                Step::Performed(_) => unreachable!(),
            }
        } else {
            expected += if round == 7 { 0 } else { 100 };
            let resume = || computation.borrow_mut().resume(round);
            let refuses = || handle(|Ask(_)| unreachable!(), resume);
            handle(|Of(n): Of<u32>| n * 100, refuses)
        };
    }
    assert!(matches!(step, Step::Returned(sum) if sum == expected));
}

#[test]
fn deep_handlers_work_when_the_threads_variables_are_destroyed() {
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            for _ in 0..2 {
                let sum = handle_general(
                    |Ask(n), k| k.resume(n + 1),
                    || perform(Ask(1)) + perform(Ask(2)),
                );
                assert_eq!(sum, 5);
            }
            assert!(catch_unwind(|| Generator::new(|out| out.give(1))).is_err());
        }
    }
    thread_local! {
        static FIRST: AtEnd = const { AtEnd };
        static LAST: AtEnd = const { AtEnd };
    }
    let thread = std::thread::spawn(|| {
        FIRST.with(|_| ());
        let mut generator = Generator::new(|out| (0..9).for_each(|n| out.give(n)));
        assert_eq!(generator.next(), Some(0));
        LAST.with(|_| ());
        // More are idle than a thread keeps.
        let many: Vec<_> = (0..40)
            .map(|n| Generator::new(move |out| out.give(n)))
            .collect();
        assert_eq!(many.into_iter().flatten().sum::<u32>(), 40 * 39 / 2);
        assert_eq!(generator.next(), Some(1));
    });
    thread.join().unwrap();
}

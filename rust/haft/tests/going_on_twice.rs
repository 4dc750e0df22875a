// SPDX-License-Identifier: MIT
//! Computations that go on more than once: `replay`, and `handle_multi_shot`.

use haft::{Effect, MultiShot, handle, handle_general, handle_multi_shot, perform, replay};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

haft::effect! {
    struct Choose(u32) -> u32;
    struct Name(u32) -> &'static str;
    struct Wide -> [u64; 5];
    struct Said(String) -> u32;
    struct Nothing -> ();
}

struct OnDrop<'a>(&'a Cell<u32>);
impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Three choices of three, of which those with equal neighbours fail.
fn three() -> u32 {
    let mut number = 0;
    let mut last = 3;
    for _ in 0..3 {
        let digit = perform(Choose(3));
        if digit == last {
            perform(Choose(0));
        }
        number = number * 10 + digit;
        last = digit;
    }
    number
}

const THREE: [u32; 12] = [10, 12, 20, 21, 101, 102, 120, 121, 201, 202, 210, 212];

#[test]
fn each_choice_goes_on() {
    let all: Vec<u32> = replay(
        |Choose(count), k| (0..count).flat_map(|n| k.resume(n)).collect(),
        || vec![three()],
    );
    assert_eq!(all, THREE);
    // SAFETY: numbers lie in the frames of `three`.
    let all: Vec<u32> = unsafe {
        handle_multi_shot(
            |Choose(count), k| (0..count).flat_map(|n| k.resume(n)).collect(),
            || {
                let number = three();
                vec![number]
            },
        )
    };
    assert_eq!(all, THREE);
}

#[test]
fn the_last_resume_makes_no_copy_and_copies_have_copies() {
    // SAFETY: numbers lie in the frames of `three`.
    let sum: u32 = unsafe {
        handle_multi_shot(
            |Choose(count), k: MultiShot<'_, Choose, u32>| {
                if count == 0 {
                    return 0;
                }
                let further: u32 = (0..count - 1)
                    .map(|n| k.clone().clone().resume_last(n))
                    .sum();
                further + k.resume_last(count - 1)
            },
            three,
        )
    };
    assert_eq!(sum, THREE.iter().sum());
}

#[test]
fn a_copy_goes_on_after_the_original() {
    // SAFETY: numbers lie in the frames of the body.
    let all = unsafe {
        handle_multi_shot(
            |Choose(_), k| {
                let another = k.clone();
                let first = k.resume_last(1);
                [first, another.resume(2), another.resume(3)].concat()
            },
            || {
                let number = perform(Choose(0)) * 10;
                vec![number]
            },
        )
    };
    assert_eq!(all, [10, 20, 30]);
}

#[test]
fn answers_are_of_any_size_and_effects_own() {
    // SAFETY: numbers and names lie in the frames of the bodies.
    unsafe {
        let text = handle_multi_shot(
            |Name(_), k| -> String { [k.resume("one"), k.resume("two")].concat() },
            || perform(Name(0)).to_owned(),
        );
        assert_eq!(text, "onetwo");
        let sum = handle_multi_shot(
            |Wide, k| k.resume([1; 5]) + k.resume([1, 2, 3, 4, 5]),
            || perform(Wide).iter().sum::<u64>(),
        );
        assert_eq!(sum, 20);
        let said = RefCell::new(Vec::new());
        let sum = handle_multi_shot(
            |Said(text), k| {
                let length = text.len() as u32;
                said.borrow_mut().push(text);
                k.resume(length) + k.resume(100)
            },
            || perform(Said("abc".to_owned())),
        );
        assert_eq!((sum, said.into_inner()), (103, vec!["abc".to_owned()]));
        let count = handle_multi_shot(
            |Nothing, k| k.resume(()) + k.resume(()),
            || {
                perform(Nothing);
                perform(Nothing);
                1
            },
        );
        assert_eq!(count, 4);
    }
}

#[test]
fn panics_of_body_and_clause_go_on_in_the_resumer() {
    let body = || {
        let digit = perform(Choose(2));
        assert!(digit != 0, "zero");
        digit
    };
    let clause = |caught: &Cell<u32>, resume: &dyn Fn(u32) -> u32| {
        let zero = catch_unwind(AssertUnwindSafe(|| resume(0)));
        caught.set(caught.get() + u32::from(zero.is_err()));
        assert!(resume(5) == 5);
        panic!("the clause")
    };
    for by_copies in [false, true] {
        let caught = Cell::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if by_copies {
                // SAFETY: numbers lie in the frames of the body.
                unsafe { handle_multi_shot(|Choose(_), k| clause(&caught, &|n| k.resume(n)), body) }
            } else {
                replay(|Choose(_), k| clause(&caught, &|n| k.resume(n)), body)
            }
        }));
        let said = outcome.expect_err("the clause panics");
        assert_eq!(said.downcast_ref::<&str>(), Some(&"the clause"));
        assert_eq!(caught.get(), 1);
    }
}

#[test]
fn handlers_inside_are_copied_and_those_outside_are_shared() {
    let asked = Cell::new(0);
    let body = || {
        let mut inside = 0;
        handle(
            |Name(n)| {
                inside += n;
                if inside == 1 { "one" } else { "more" }
            },
            || {
                perform(Said(String::new()));
                let digit = perform(Choose(2));
                perform(Name(1)).len() as u32 * 10 + digit
            },
        )
    };
    let outer = |Said(_)| {
        asked.set(asked.get() + 1);
        0
    };
    // SAFETY: in the frames of the body there are numbers, and the handler in place, which borrows
    // one of them.
    let copied: u32 = handle(outer, || unsafe {
        handle_multi_shot(|Choose(n), k| (0..n).map(|i| k.resume(i)).sum(), body)
    });
    assert_eq!((copied, asked.get()), (61, 1)); // each copy has counted one
    let replayed: u32 = handle(outer, || {
        replay(|Choose(n), k| (0..n).map(|i| k.resume(i)).sum(), body)
    });
    assert_eq!((replayed, asked.get()), (61, 3)); // the body has begun twice
}

#[test]
fn an_outer_general_handler_suspends_what_goes_on_twice() {
    let outer = |body: &dyn Fn() -> u32| {
        let mut steps = 0;
        let mut computation = Vec::new();
        let answer = handle_general(
            |Said(text), k| {
                let answer = k.resume(text.len() as u32);
                answer + 1000
            },
            body,
        );
        steps += 1;
        computation.push(answer);
        assert_eq!(steps, 1);
        computation[0]
    };
    let body = || perform(Choose(2)) + perform(Said("four".to_owned()));
    // SAFETY: a number lies in the frame of the body where it chooses.
    let copied = outer(&|| unsafe {
        handle_multi_shot(|Choose(n), k| (0..n).map(|i| k.resume(i)).sum(), body)
    });
    let replayed = outer(&|| replay(|Choose(n), k| (0..n).map(|i| k.resume(i)).sum(), body));
    assert_eq!((copied, replayed), (2009, 2009));
}

#[test]
fn two_handlers_of_the_kind_nest() {
    // The inner one is begun anew in each copy; its clauses are outside of it, and so inside of the
    // outer one.
    // SAFETY: numbers lie in the frames of the bodies.
    let sum: u32 = unsafe {
        handle_multi_shot(
            |Choose(n), k| (0..n).map(|i| k.resume(i)).sum(),
            || {
                let tens = perform(Choose(3));
                handle_multi_shot(
                    |Nothing, k| k.resume(()) + k.resume(()),
                    || {
                        perform(Nothing);
                        tens * 10
                    },
                )
            },
        )
    };
    assert_eq!(sum, 2 * 30);
    let all: Vec<u32> = replay(
        |Choose(n), k| (0..n).flat_map(|i| k.resume(i)).collect(),
        || {
            replay(
                |Nothing, k| [k.resume(()), k.resume(())].concat(),
                || {
                    perform(Nothing);
                    vec![perform(Choose(2))]
                },
            )
        },
    );
    assert_eq!(all, [0, 0, 0, 1, 1, 0, 1, 1]); // what the inner clause does is run again, too
}

#[test]
fn replay_drops_what_each_run_owns_once() {
    let (begun, dropped) = (Cell::new(0), Cell::new(0));
    let body = || {
        begun.set(begun.get() + 1);
        let _owned = OnDrop(&dropped);
        let text = format!("{}{}", perform(Choose(2)), perform(Choose(2)));
        if text == "01" {
            perform(Choose(0));
        }
        vec![text]
    };
    let all: Vec<String> = replay(
        |Choose(count), k| (0..count).flat_map(|n| k.resume(n)).collect(),
        body,
    );
    assert_eq!(all, ["00", "10", "11"]);
    assert_eq!((begun.get(), dropped.get()), (4, 4));
}

#[test]
fn a_body_that_does_otherwise_when_it_is_run_again_ends_sooner() {
    let runs = Cell::new(0);
    let answers = replay(
        |Choose(_), k| [k.resume(1), k.resume(2)].concat(),
        || {
            runs.set(runs.get() + 1);
            if runs.get() > 1 {
                return vec![100];
            }
            vec![perform(Choose(0))]
        },
    );
    assert_eq!(answers, [1, 100]);
}

#[test]
fn a_forgotten_resumption_keeps_its_memory_alone() {
    // SAFETY: a number lies in the frame of the body.
    let answer = unsafe {
        handle_multi_shot(
            |Choose(_), k| {
                std::mem::forget(k.clone());
                k.resume(7)
            },
            || perform(Choose(0)),
        )
    };
    assert_eq!(answer, 7);
}

/// The best load of a knapsack, with arrays, slices, iterators and references in the frames.
#[test]
fn frames_of_values_are_copied() {
    let weights = vec![3_u32, 4, 5, 9, 14];
    let names = ["a", "b", "c", "d", "e"];
    let best_of = |limit: u32| -> Option<(u32, String)> {
        let body = || {
            let mut taken = [false; 5];
            let mut left = limit;
            for ((weight, taken), name) in weights.iter().zip(&mut taken).zip(&names) {
                if *weight <= left && perform(Choose(2)) == 1 && !name.is_empty() {
                    left -= weight;
                    *taken = true;
                }
            }
            let taken = names
                .iter()
                .zip(taken)
                .filter_map(|(name, is)| is.then_some(*name));
            Some((limit - left, taken.collect::<String>()))
        };
        // SAFETY: while the body chooses, its frames have numbers, and references to what it
        // captures and to its own array.
        unsafe {
            handle_multi_shot(
                |Choose(n), k| (0..n).filter_map(|i| k.resume(i)).max(),
                body,
            )
        }
    };
    assert_eq!(best_of(2), Some((0, String::new())));
    assert_eq!(best_of(10), Some((9, "d".to_owned())));
    assert_eq!(best_of(26), Some((26, "ade".to_owned())));
}

#[test]
fn resumptions_are_kept_and_used_in_any_order() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        // SAFETY: numbers lie in the frames of the body.
        let all: Vec<u32> = unsafe {
            handle_multi_shot(
                |Choose(_), k| {
                    let copies = [k.clone(), k.clone(), k.clone().clone(), k];
                    let mut copies = copies.map(Some);
                    let go_on = |at: usize| copies[at].take().map(|k| k.resume_last(at as u32));
                    order.into_iter().filter_map(go_on).flatten().collect()
                },
                || {
                    let number = perform(Choose(4)) * 10 + perform(Choose(4));
                    vec![number]
                },
            )
        };
        let expected: Vec<u32> = order
            .iter()
            .flat_map(|first| order.map(|second| (first * 10 + second) as u32))
            .collect();
        assert_eq!(all, expected);
    }
}

#[test]
fn ten_thousand_copies_wait_at_once() {
    // SAFETY: numbers lie in the frame of the body.
    let sum: u32 = unsafe {
        handle_multi_shot(
            |Choose(count), k| {
                let all: Vec<_> = (0..count).map(|_| k.clone()).collect();
                (0..).zip(all).map(|(n, copy)| copy.resume_last(n)).sum()
            },
            || perform(Choose(10_000)) % 2,
        )
    };
    assert_eq!(sum, 5_000);
}

#[test]
fn tasks_wait_inside_of_computations_that_go_on_twice() {
    let body = || {
        let digit = perform(Choose(3));
        haft::yield_now();
        digit
    };
    let count = |Choose(n): Choose, resume: &dyn Fn(u32) -> u32| (0..n).map(resume).sum::<u32>();
    let sums = haft::run(|| {
        // SAFETY: a number lies in the frame of the body where it chooses.
        let copied = haft::spawn(move || unsafe {
            handle_multi_shot(|choose, k| count(choose, &|n| k.resume(n)), body)
        });
        let replayed =
            haft::spawn(move || replay(|choose, k| count(choose, &|n| k.resume(n)), body));
        (copied.join().unwrap(), replayed.join().unwrap())
    });
    assert_eq!(sums, (3, 3));
}

/// The same program, with random choices, by both handlers.
#[test]
fn copies_and_replays_answer_the_same() {
    fn explore(depth: u32, seed: u32) -> u32 {
        let mut state = seed;
        for level in 0..depth {
            let choice = perform(Choose(state % 4));
            state = state.wrapping_mul(747_796_405).wrapping_add(choice + level);
            state ^= state >> 7;
        }
        state
    }
    fn fold(count: u32, resume: &dyn Fn(u32) -> u32) -> u32 {
        (0..count).fold(count, |all, n| all.wrapping_mul(31).wrapping_add(resume(n)))
    }
    struct Other;
    impl Effect for Other {
        type Output = ();
    }
    for seed in 0..300 {
        let body = || handle(|Other| (), || explore(1 + seed % 6, seed));
        let replayed = replay(|Choose(count), k| fold(count, &|n| k.resume(n)), body);
        // SAFETY: numbers lie in the frames of `explore`, and a handler without state around it.
        let copied =
            unsafe { handle_multi_shot(|Choose(count), k| fold(count, &|n| k.resume(n)), body) };
        assert_eq!(replayed, copied, "seed {seed}");
    }
}

/// Runs the test of this name in another process, which a message ends.
fn reported(test: &str, expected: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("HAFT_TEST_COPIES", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(expected), "{said}");
}
fn in_child() -> bool {
    std::env::var_os("HAFT_TEST_COPIES").is_some()
}

#[test]
fn a_fiber_inside_of_what_is_copied_is_reported() {
    if !in_child() {
        return reported(
            "a_fiber_inside_of_what_is_copied_is_reported",
            "cannot be copied",
        );
    }
    // SAFETY: C looks at the frames of the fiber inside before it copies any.
    unsafe {
        handle_multi_shot(
            |Choose(_), k| k.resume(1) + k.resume(2),
            || handle_general(|Nothing, k| k.resume(()), || perform(Choose(2))),
        )
    };
}

#[test]
#[cfg(not(debug_assertions))]
fn a_destructor_in_a_frame_that_is_copied_is_reported() {
    if !in_child() {
        return reported(
            "a_destructor_in_a_frame_that_is_copied_is_reported",
            "waits in a frame with cleanups or destructors",
        );
    }
    // SAFETY: C looks at the frames before it copies any.
    unsafe {
        handle_multi_shot(
            |Choose(_), k| k.resume(1) + k.resume(2),
            || {
                let owned = std::hint::black_box(vec![1, 2, 3]);
                let chosen = perform(Choose(2));
                chosen + owned.len() as u32
            },
        )
    };
}

/// Chooses while the value is there, and uses it afterwards.
#[cfg(not(debug_assertions))]
fn choose_beside<T>(make: impl Fn() -> T) {
    // SAFETY: C looks at the frames before it copies any.
    unsafe {
        handle_multi_shot(
            |Choose(_), k| k.resume(1) + k.resume(2),
            || {
                let value = std::hint::black_box(make());
                let chosen = perform(Choose(2));
                std::hint::black_box(&value);
                chosen
            },
        )
    };
}

#[test]
#[cfg(not(debug_assertions))]
fn a_lock_that_is_held_in_a_frame_that_is_copied_is_reported() {
    if !in_child() {
        return reported(
            "a_lock_that_is_held_in_a_frame_that_is_copied_is_reported",
            "waits in a frame with cleanups or destructors",
        );
    }
    let lock = std::sync::Mutex::new(1);
    choose_beside(|| lock.lock());
}

#[test]
#[cfg(not(debug_assertions))]
fn a_borrow_in_a_frame_that_is_copied_is_reported() {
    if !in_child() {
        return reported(
            "a_borrow_in_a_frame_that_is_copied_is_reported",
            "waits in a frame with cleanups or destructors",
        );
    }
    let cell = RefCell::new(1);
    choose_beside(|| cell.borrow_mut());
}

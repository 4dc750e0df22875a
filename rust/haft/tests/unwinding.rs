//! A computation is unwound under its own handler, whatever ends it: what a destructor performs
//! comes to the handler's clause. Every way to end a computation.
//!
//! `core/tests/test_unwinding.c` and `cpp/tests/test_unwinding.cpp` have the same for C and C++.

use haft::{Effect, handle, handle_general, perform};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Mutex;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Ask {
    /// Answered at once.
    Clean,
    /// Ends in this way.
    End,
}
impl Effect for Ask {
    type Output = u32;
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Returns,
    Panics,
    IsDropped,
    IsDiscontinued,
    ItsClausePanics,
}
const WAYS: [Way; 5] = [
    Way::Returns,
    Way::Panics,
    Way::IsDropped,
    Way::IsDiscontinued,
    Way::ItsClausePanics,
];

struct Cleaner<'a>(&'a Mutex<Vec<u32>>);
impl Drop for Cleaner<'_> {
    fn drop(&mut self) {
        let answer = perform(Ask::Clean);
        self.0.lock().unwrap().push(answer);
    }
}

fn body(way: Way, got: &Mutex<Vec<u32>>) -> u32 {
    let _outer = Cleaner(got);
    let _inner = Cleaner(got);
    match way {
        Way::Returns => 5,
        Way::Panics => panic_any("body"),
        _ => perform(Ask::End),
    }
}

/// The outcome of `inner`, which runs between the two handlers of the effect.
fn outcome(inner: impl FnOnce(&Mutex<Vec<u32>>) -> u32) -> (Vec<u32>, Result<u32, &'static str>) {
    let got = Mutex::new(Vec::new());
    let result = handle(
        |_further_out: Ask| 100,
        || {
            catch_unwind(AssertUnwindSafe(|| inner(&got)))
                .map_err(|payload| *payload.downcast::<&'static str>().unwrap())
        },
    );
    (got.into_inner().unwrap(), result)
}

#[test]
fn what_a_destructor_performs_comes_to_its_own_clause_however_the_computation_ends() {
    for way in WAYS {
        let (got, result) = outcome(|got| {
            handle_general(
                |ask, k| match (ask, way) {
                    (Ask::Clean, _) => k.resume(1),
                    (_, Way::IsDropped) => 7,
                    (_, Way::IsDiscontinued) => k.discontinue(Box::new("discontinued")),
                    _ => panic_any("clause"),
                },
                || body(way, got),
            )
        });
        assert_eq!(got, [1, 1], "{way:?}");
        let expected = match way {
            Way::Returns => Ok(5),
            Way::Panics => Err("body"),
            Way::IsDropped => Ok(7),
            Way::IsDiscontinued => Err("discontinued"),
            Way::ItsClausePanics => Err("clause"),
        };
        assert_eq!(result, expected, "{way:?}");
    }
}

#[test]
fn what_a_destructor_performs_comes_to_its_own_clause_in_place() {
    for way in [Way::Returns, Way::Panics, Way::ItsClausePanics] {
        let (got, result) = outcome(|got| {
            handle(
                |ask| match ask {
                    Ask::Clean => 1,
                    Ask::End => panic_any("clause"),
                },
                || body(way, got),
            )
        });
        assert_eq!(got, [1, 1], "{way:?}");
        let expected = match way {
            Way::Returns => Ok(5),
            Way::Panics => Err("body"),
            _ => Err("clause"),
        };
        assert_eq!(result, expected, "{way:?}");
    }
}

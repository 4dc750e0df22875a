// SPDX-License-Identifier: MIT
//! Effects that C declares (`c/shared.c`), performed in one language and handled in the other.

use haft::{handle_shared, perform_shared, shared_effect};
use haft_tests as _; // with what is compiled of C
use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

shared_effect! {
    unsafe struct Ask { base: c_int, times: c_int } = haft_id_demo_ask -> c_int;
    unsafe struct ToPoint { scale: f64 } = haft_id_demo_point -> Point;
    unsafe struct Tell { number: c_int } = haft_id_demo_tell -> ();
    unsafe struct TooLarge { base: [c_int; 3] } = haft_id_demo_ask -> c_int;
}

unsafe extern "C" {
    safe fn demo_sum(count: c_int) -> c_int;
    fn demo_handle(body: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void)
    -> c_int;
}

#[test]
fn what_c_performs_rust_handles() {
    let (mut told, mut asked) = (0, 0);
    let sum = handle_shared(
        |Ask { base, times }| {
            asked += 1;
            base * times
        },
        || {
            handle_shared(
                |Tell { number }| told = number,
                || {
                    let to_point = |ToPoint { scale }| Point { x: scale, y: 1.5 };
                    handle_shared(to_point, || demo_sum(5))
                },
            )
        },
    );
    assert_eq!((sum, told, asked), (22, 20, 5));
}

#[test]
fn what_rust_performs_c_handles() {
    extern "C" fn body(argument: *mut c_void) -> *mut c_void {
        let asked = perform_shared(Ask { base: 20, times: 2 });
        perform_shared(Tell { number: 100 }); // suspends this, and resumes it
        let Point { x, y } = perform_shared(ToPoint { scale: 0.5 });
        let inner = handle_shared(
            |Ask { base, .. }| base,
            || perform_shared(Ask { base: 1, times: 9 }),
        );
        // SAFETY: the argument is the caller's, and the caller waits.
        unsafe { *argument.cast::<c_int>() = asked + (2.0 * (x + y)) as c_int + inner };
        argument
    }
    let mut result: c_int = 0;
    // SAFETY: the result lives until the call returns.
    let count = unsafe { demo_handle(body, (&raw mut result).cast()) };
    assert_eq!((result, count), (44, 102));
}

#[test]
fn a_panic_of_the_body_goes_on_in_rust() {
    let outcome = catch_unwind(|| {
        handle_shared(
            |Tell { .. }| (),
            || std::panic::resume_unwind(Box::new("no luck")),
        )
    });
    assert_eq!(*outcome.unwrap_err().downcast::<&str>().unwrap(), "no luck");
}

#[test]
fn an_effect_of_another_size_than_in_c_is_refused() {
    let outcome = catch_unwind(|| perform_shared(TooLarge { base: [0; 3] }));
    let text = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("not of these sizes in C"), "{text}");
}

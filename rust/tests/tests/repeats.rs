// SPDX-License-Identifier: MIT
//! A simulation with a seed does the same again, in this process and in another one: also what std
//! and crates draw, or ask the clocks.

mod seeds;

#[test]
#[ignore = "is run by seeds_repeat_in_this_process_and_in_another"]
fn child_that_prints_logs() {
    seeds::print(seeds::ask_a_service);
}

#[test]
fn seeds_repeat_in_this_process_and_in_another() {
    seeds::repeat(seeds::ask_a_service);
}

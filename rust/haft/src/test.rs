// SPDX-License-Identifier: MIT
//! Functions that a function with the attribute [`test`](crate::test) calls.

use crate::simulation::Simulation;
use std::fmt::Debug;
use std::panic::resume_unwind;
use std::{mem, thread};

/// The number of seeds of a test whose attribute names none.
pub const SEEDS: u64 = 10;

/// Result that a test may return.
pub trait Outcome {
    /// The text of its failure, if it has failed.
    fn failure(self) -> Option<String>;
}
impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}
impl<E: Debug> Outcome for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("Error: {error:?}"))
    }
}

fn given_seed() -> Option<u64> {
    std::env::var("HAFT_IO_SEED").ok()?.parse().ok()
}

/// Runs the test on a thread of its own: std keeps the keys of `HashMap`s for each thread, and
/// crates keep their random numbers so. On a thread that has had a simulation they would not begin
/// with the seed.
fn run_once<T: Outcome>(name: &str, simulation: &Simulation, test: fn() -> T) {
    let name_of_thread = name.rsplit("::").next().unwrap_or(name).to_owned();
    let outcome = thread::scope(|s| {
        let thread = thread::Builder::new().name(name_of_thread);
        let thread = thread.spawn_scoped(s, || {
            if let Some(failure) = simulation.run(test).failure() {
                eprintln!("{failure}");
                resume_unwind(Box::new("the test returns an error"));
            }
        });
        thread.expect("the system has a thread").join()
    });
    outcome.unwrap_or_else(|payload| resume_unwind(payload));
}

/// Runs the test in simulations, with the seeds from 1 on, up to the first in which it fails; or
/// with that of the environment alone.
pub fn run<T: Outcome>(name: &str, seeds: u64, simulation: &Simulation, test: fn() -> T) {
    struct Tells<'a>(&'a str, u64);
    impl Drop for Tells<'_> {
        fn drop(&mut self) {
            let Tells(name, seed) = self;
            eprintln!("{name} fails with the seed {seed}: HAFT_IO_SEED={seed} repeats it");
        }
    }
    let seeds = given_seed().map_or(1..=seeds.max(1), |seed| seed..=seed);
    for seed in seeds {
        let tells = Tells(name, seed);
        run_once(name, &simulation.clone().seed(seed), test);
        mem::forget(tells);
    }
}

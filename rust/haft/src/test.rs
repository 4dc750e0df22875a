// SPDX-License-Identifier: MIT
//! What the attribute [`test`](crate::test) makes a function call.

use crate::simulation::Simulation;
use std::fmt::Debug;
use std::panic::{catch_unwind, resume_unwind};

/// With how many seeds a test is run that does not say.
pub const SEEDS: u64 = 10;

/// What a test returns.
pub trait Outcome {
    fn has_failed(&self) -> bool;
}
impl Outcome for () {
    fn has_failed(&self) -> bool {
        false
    }
}
impl<E: Debug> Outcome for Result<(), E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

fn given_seed() -> Option<u64> {
    std::env::var("HAFT_IO_SEED").ok()?.parse().ok()
}

/// Runs the test in simulations, with the seeds from 1 on, up to the first in which it fails; or
/// with that of the environment alone.
pub fn run<T: Outcome>(name: &str, seeds: u64, simulation: &Simulation, test: fn() -> T) -> T {
    let seeds = given_seed().map_or(1..=seeds.max(1), |seed| seed..=seed);
    let mut outcome = None;
    for seed in seeds {
        let tell =
            || eprintln!("{name} fails with the seed {seed}: HAFT_IO_SEED={seed} repeats it");
        let simulation = simulation.clone().seed(seed);
        let this = catch_unwind(|| simulation.run(test)).unwrap_or_else(|payload| {
            tell();
            resume_unwind(payload)
        });
        let has_failed = this.has_failed();
        outcome = Some(this);
        if has_failed {
            tell();
            break;
        }
    }
    outcome.expect("there is a seed")
}

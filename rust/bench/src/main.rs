// SPDX-License-Identifier: MIT
//! `haft-bench [ROUNDS]`: each loop in turns with the others, so that other work of the machine
//! affects all of them alike. Prints the median of the rounds: the processor time of an operation,
//! in nanoseconds.

use haft_bench::{COUNT, ROWS};

fn seconds() -> f64 {
    // SAFETY: the record is the call's until it returns.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(101, |text| text.parse().expect("a number"));
    let loops = || {
        ROWS.iter()
            .flat_map(|(row, loops)| loops.iter().map(move |(who, run)| (row, who, run)))
    };
    let mut times: Vec<Vec<f64>> = loops().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for ((_, _, run), times) in loops().zip(&mut times) {
            let before = seconds();
            run(COUNT);
            times.push((seconds() - before) * 1e9 / COUNT as f64);
        }
    }
    for ((row, who, _), times) in loops().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{row}\t{who}\t{:.2}", times[times.len() / 2]);
    }
}

// SPDX-License-Identifier: MIT
//! Runs a program in a simulation of each of many seeds, and compares what it sees: in this process
//! twice, and in another one. Two packages use this, with programs of different crates.

use haft::Simulation;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

const SEEDS: u64 = 200;

/// Answers each request by its own path, after a while.
fn serve(listener: TcpListener) {
    loop {
        let Ok((mut connection, _)) = listener.accept() else {
            haft::yield_now(); // where a cancel unwinds it
            continue;
        };
        drop(haft::spawn(move || {
            let mut head = [0; 1024];
            let Ok(size) = connection.read(&mut head) else {
                return;
            };
            thread::sleep(Duration::from_millis(rand::random::<u64>() % 20));
            let head = String::from_utf8_lossy(&head[..size]);
            let path = head.split(' ').nth(1).unwrap_or("");
            let _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{path}",
                path.len()
            );
        }));
    }
}

/// Returns what a program of std, ureq and rand sees of its world.
pub fn ask_a_service() -> String {
    let mut log = String::new();
    let (started, date) = (Instant::now(), SystemTime::now());
    let listener = TcpListener::bind("0.0.0.0:80").unwrap();
    haft::scope(|s| {
        s.spawn(|| serve(listener));
        let answers = haft::all((0..8).map(|number| {
            move || {
                let path = format!("http://service.example/{number}");
                let body = ureq::get(&path)
                    .call()
                    .and_then(|mut answer| answer.body_mut().read_to_string());
                let answer = body.map_err(|error| error.to_string());
                (number, answer, started.elapsed())
            }
        }));
        let map: HashMap<_, _> = answers
            .into_iter()
            .map(|(n, answer, time)| (n, (answer, time)))
            .collect();
        for (number, answer) in &map {
            writeln!(log, "{number}: {answer:?}").unwrap();
        }
        s.cancel();
    });
    fs::write("/file", log.as_bytes()).unwrap();
    let status = fs::metadata("/file").unwrap();
    writeln!(log, "{:?} {:?}", date, status.modified().unwrap()).unwrap();
    writeln!(log, "{}", rand::random::<u64>()).unwrap();
    log
}

fn log_of(seed: u64, program: fn() -> String) -> String {
    let simulation = Simulation::new()
        .seed(seed)
        .faults_one_in(50)
        .switches_one_in(3)
        .short_counts(true);
    let run = || simulation.run(program);
    thread::scope(|s| s.spawn(run).join()).unwrap_or_else(|_| "it panics".to_owned())
}

fn hash_of(log: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    log.hash(&mut hasher);
    hasher.finish()
}

/// Prints what `repeat` compares in the other process, where an ignored test of the name
/// `child_that_prints_logs` calls this.
pub fn print(program: fn() -> String) {
    for seed in (1..=SEEDS).rev() {
        println!("seed {seed}: {:016x}", hash_of(&log_of(seed, program)));
    }
}

/// Runs it twice with each seed, and again in another process. Returns the logs.
pub fn repeat(program: fn() -> String) -> Vec<String> {
    let first: Vec<String> = (1..=SEEDS).map(|seed| log_of(seed, program)).collect();
    for (seed, log) in (1..).zip(&first) {
        assert_eq!(*log, log_of(seed, program), "seed {seed}");
    }
    let other = Command::new(std::env::current_exe().unwrap())
        .args([
            "child_that_prints_logs",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout);
    for (seed, log) in (1..).zip(&first) {
        let line = format!("seed {seed}: {:016x}", hash_of(log));
        assert!(said.contains(&line), "seed {seed}: {log}");
    }
    // They are no copies of each other.
    let mut hashes: Vec<u64> = first.iter().map(|log| hash_of(log)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert!(hashes.len() > 150);
    first
}

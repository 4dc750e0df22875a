// SPDX-License-Identifier: MIT
//! The work of ../../../src/bin/work.rs by may, but for echo.

use may::coroutine::{JoinHandle, yield_now};
use may::go;
use may::sync::mpsc;
use std::time::Instant;

fn spawn_and_join(count: u64) {
    const BATCH: usize = 100;
    let mut tasks = Vec::with_capacity(BATCH);
    for _ in 0..count / BATCH as u64 {
        tasks.extend((0..BATCH).map(|_| go!(|| {})));
        tasks.drain(..).for_each(|task| task.join().unwrap());
    }
}

fn yield_half(count: u64) {
    (0..count / 2).for_each(|_| yield_now());
}

fn yields(count: u64) {
    let other = go!(move || yield_half(count));
    yield_half(count);
    other.join().unwrap();
}

fn channel(count: u64) {
    let (there, at_there) = mpsc::channel();
    let (back, at_back) = mpsc::channel();
    let other = go!(move || at_there
        .iter()
        .for_each(|ball: u64| back.send(ball).unwrap()));
    for ball in 0..count {
        there.send(ball).unwrap();
        at_back.recv().unwrap();
    }
    drop(there);
    other.join().unwrap();
}

fn sum(first: u64, size: u64) -> u64 {
    if size == 1 {
        return first;
    }
    let part = size / 10;
    let tasks: Vec<JoinHandle<u64>> = (0..10)
        .map(|i| go!(move || sum(first + i * part, part)))
        .collect();
    tasks.into_iter().map(|task| task.join().unwrap()).sum()
}

fn skynet(count: u64) {
    assert_eq!(sum(0, count), count * (count - 1) / 2);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: u64 = arguments[3].parse().unwrap();
    may::config()
        .set_workers(arguments[2].parse().unwrap())
        .set_pool_capacity(1000);
    let work: fn(u64) = match arguments[1].as_str() {
        "spawn" => spawn_and_join,
        "yield" => yields,
        "channel" => channel,
        "skynet" => skynet,
        _ => std::process::exit(2),
    };
    let main = go!(move || {
        let begin = Instant::now();
        work(count);
        begin.elapsed().as_nanos()
    });
    println!("{:.2}", main.join().unwrap() as f64 / count as f64);
}

// SPDX-License-Identifier: MIT
//! The work of ../../../../bench/io/work.c by Haft for Rust, with the same arguments: `echo` is by
//! `haft::net`, or with STD in the environment by the types of std. A further argument: each task has
//! thread-locals of its own.

use haft::{JoinHandle, spawn, yield_now};
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

fn spawn_and_join(count: u64) {
    const BATCH: usize = 100;
    let mut tasks = Vec::with_capacity(BATCH);
    for _ in 0..count / BATCH as u64 {
        tasks.extend((0..BATCH).map(|_| spawn(|| {})));
        tasks.drain(..).for_each(|task| task.join().unwrap());
    }
}

fn yield_half(count: u64) {
    (0..count / 2).for_each(|_| yield_now());
}

fn yields(count: u64) {
    let other = spawn(move || yield_half(count));
    yield_half(count);
    other.join().unwrap();
}

fn channel(count: u64) {
    let (there, at_there) = haft::channel(1);
    let (back, at_back) = haft::channel(1);
    let other = spawn(move || {
        at_there
            .iter()
            .for_each(|ball: u64| back.send(ball).unwrap())
    });
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
        .map(|i| spawn(move || sum(first + i * part, part)))
        .collect();
    tasks.into_iter().map(|task| task.join().unwrap()).sum()
}

fn skynet(count: u64) {
    assert_eq!(sum(0, count), count * (count - 1) / 2);
}

fn listener(descriptor: u64) -> OwnedFd {
    // SAFETY: the program is started with the descriptor.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}

fn echo(descriptor: u64) {
    let listener = haft::net::TcpListener::from(listener(descriptor));
    loop {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = spawn(move || {
            while let Ok(bytes) = connection.read_lent() {
                if bytes.is_empty() || connection.write_all(&bytes).is_err() {
                    break;
                }
            }
        });
    }
}

fn echo_std(descriptor: u64) {
    let size = std::env::var("BUFFER").map_or(16384, |text| text.parse().unwrap());
    let listener = std::net::TcpListener::from(listener(descriptor));
    listener.set_nonblocking(false).unwrap(); // the descriptor is made for programs that poll
    loop {
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_nodelay(true).unwrap();
        let _ = spawn(move || {
            let mut buffer = vec![0; size];
            while let Ok(got) = connection.read(&mut buffer) {
                if got == 0 || connection.write_all(&buffer[..got]).is_err() {
                    break;
                }
            }
        });
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments[2].parse().unwrap();
    let count: u64 = arguments[3].parse().unwrap();
    let work: fn(u64) = match arguments[1].as_str() {
        "spawn" => spawn_and_join,
        "yield" => yields,
        "channel" => channel,
        "skynet" => skynet,
        "echo" if std::env::var_os("STD").is_some() => echo_std,
        "echo" => echo,
        _ => std::process::exit(2),
    };
    let mut options = haft::Options::new().threads(threads).stack_size(64 * 1024);
    if arguments.len() > 4 {
        options = options.own_thread_locals();
    }
    let took = haft::run_with(options, move || {
        let begin = Instant::now();
        work(count);
        begin.elapsed().as_nanos()
    });
    println!("{:.2}", took.unwrap() as f64 / count as f64);
}

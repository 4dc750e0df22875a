// SPDX-License-Identifier: MIT
//! The work of ../../../src/bin/work.rs by smol, but for echo: on one thread by a local executor,
//! on more by one that they share.

use smol::future::yield_now;
use smol::{Executor, LocalExecutor, Task, channel};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

static SHARED: Executor<'static> = Executor::new();
thread_local! {
    static LOCAL: Cell<Option<&'static LocalExecutor<'static>>> = const { Cell::new(None) };
}

fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> Task<T> {
    match LOCAL.get() {
        Some(executor) => executor.spawn(task),
        None => SHARED.spawn(task),
    }
}

async fn spawn_and_join(count: u64) {
    const BATCH: usize = 100;
    let mut tasks = Vec::with_capacity(BATCH);
    for _ in 0..count / BATCH as u64 {
        tasks.extend((0..BATCH).map(|_| spawn(async {})));
        for task in tasks.drain(..) {
            task.await;
        }
    }
}

async fn yield_half(count: u64) {
    for _ in 0..count / 2 {
        yield_now().await;
    }
}

async fn yields(count: u64) {
    let other = spawn(yield_half(count));
    yield_half(count).await;
    other.await;
}

async fn pass(count: u64) {
    let (there, at_there) = channel::bounded(1);
    let (back, at_back) = channel::bounded(1);
    let other = spawn(async move {
        while let Ok(ball) = at_there.recv().await {
            back.send(ball).await.unwrap();
        }
    });
    for ball in 0..count {
        there.send(ball).await.unwrap();
        at_back.recv().await.unwrap();
    }
    drop(there);
    other.await;
}

fn sum(first: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let part = size / 10;
        let tasks: Vec<_> = (0..10)
            .map(|i| spawn(sum(first + i * part, part)))
            .collect();
        let mut total = 0;
        for task in tasks {
            total += task.await;
        }
        total
    })
}

async fn skynet(count: u64) {
    assert_eq!(sum(0, count).await, count * (count - 1) / 2);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let threads: usize = arguments[2].parse().unwrap();
    let count: u64 = arguments[3].parse().unwrap();
    let work: Pin<Box<dyn Future<Output = ()> + Send>> = match arguments[1].as_str() {
        "spawn" => Box::pin(spawn_and_join(count)),
        "yield" => Box::pin(yields(count)),
        "channel" => Box::pin(pass(count)),
        "skynet" => Box::pin(skynet(count)),
        _ => std::process::exit(2),
    };
    for _ in 1..threads {
        std::thread::spawn(|| smol::block_on(SHARED.run(smol::future::pending::<()>())));
    }
    let local: &LocalExecutor<'_> = Box::leak(Box::new(LocalExecutor::new()));
    LOCAL.set((threads == 1).then_some(local));
    let begin = Instant::now();
    let main = spawn(work); // a task, as for the others
    if threads == 1 {
        smol::block_on(local.run(main));
    } else {
        smol::block_on(SHARED.run(main));
    }
    println!("{:.2}", begin.elapsed().as_nanos() as f64 / count as f64);
}

// SPDX-License-Identifier: MIT

//! The work of ../work.c with Tokio: on one thread its current-thread runtime, else the multi-thread one.

use std::future::Future;
use std::os::fd::FromRawFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, Mutex};
use tokio::task::{spawn, yield_now};

async fn spawn_and_join(count: u64) {
    const BATCH: usize = 100;
    let mut tasks = Vec::with_capacity(BATCH);
    for _ in 0..count / BATCH as u64 {
        for _ in 0..BATCH {
            tasks.push(spawn(async {}));
        }
        for task in tasks.drain(..) {
            task.await.unwrap();
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
    other.await.unwrap();
}

async fn channel(count: u64) {
    let (there, mut at_there) = mpsc::channel(1);
    let (back, mut at_back) = mpsc::channel(1);
    let other = spawn(async move {
        while let Some(ball) = at_there.recv().await {
            back.send(ball).await.unwrap();
        }
    });
    for ball in 0..count {
        there.send(ball).await.unwrap();
        at_back.recv().await.unwrap();
    }
    drop(there);
    other.await.unwrap();
}

/// The two are on runtimes of a thread each.
async fn apart(count: u64) {
    let (there, mut at_there) = mpsc::channel(1);
    let (back, mut at_back) = mpsc::channel(1);
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            back.send(0).await.unwrap();
            while let Some(ball) = at_there.recv().await {
                back.send(ball).await.unwrap();
            }
        });
    });
    let play = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            at_back.recv().await.unwrap();
            let begin = Instant::now();
            for ball in 0..count {
                there.send(ball).await.unwrap();
                at_back.recv().await.unwrap();
            }
            MEASURED_APART.store(begin.elapsed().as_nanos() as u64, Relaxed);
        });
    };
    std::thread::spawn(play).join().unwrap();
    other.join().unwrap();
}

fn sum(first: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let part = size / 10;
        let tasks: Vec<_> = (0..10).map(|i| spawn(sum(first + i * part, part))).collect();
        let mut total = 0;
        for task in tasks {
            total += task.await.unwrap();
        }
        total
    })
}

async fn skynet(count: u64) {
    assert_eq!(sum(0, count).await, count * (count - 1) / 2);
}

async fn contest(count: u64) {
    const CONTESTANTS: u64 = 1000;
    let mutex = Arc::new(Mutex::new(()));
    let tasks: Vec<_> = (0..CONTESTANTS)
        .map(|_| {
            let mutex = mutex.clone();
            spawn(async move {
                for i in 0..count / CONTESTANTS {
                    let _held = mutex.lock().await;
                    if i % 10 == 0 {
                        yield_now().await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn timers(count: u64) {
    let begin = tokio::time::Instant::now();
    let tasks: Vec<_> = (1..=count)
        .map(|i| spawn(tokio::time::sleep_until(begin + Duration::from_millis(i % 500))))
        .collect();
    yield_now().await;
    for task in tasks.iter().skip(1).step_by(2) {
        task.abort();
    }
    for task in tasks {
        let _ = task.await;
    }
}

async fn chameneos(count: u64) {
    let (asking, mut asked) = mpsc::channel::<(usize, u8)>(10);
    let mut partners = Vec::new();
    let mut creatures = Vec::new();
    for i in 0..10usize {
        let (partner, mut at_partner) = mpsc::channel::<u8>(1);
        partners.push(partner);
        let asking = asking.clone();
        creatures.push(spawn(async move {
            let mut colour = (i % 3) as u8;
            while asking.send((i, colour)).await.is_ok() {
                match at_partner.recv().await {
                    Some(other) if other != colour => colour = 3 - colour - other,
                    Some(_) => {}
                    None => break,
                }
            }
        }));
    }
    drop(asking);
    for _ in 0..count {
        let (one, other) = (asked.recv().await.unwrap(), asked.recv().await.unwrap());
        partners[one.0].send(other.1).await.unwrap();
        partners[other.0].send(one.1).await.unwrap();
    }
    drop(asked);
    drop(partners);
    for creature in creatures {
        creature.await.unwrap();
    }
}

static MEASURED_APART: AtomicU64 = AtomicU64::new(0);

async fn cancel(count: u64) {
    for _ in 0..count / 100 {
        let tasks: Vec<_> =
            (0..100).map(|_| spawn(tokio::time::sleep(Duration::from_secs(3_600_000)))).collect();
        for _ in 0..3 {
            yield_now().await;
        }
        let since = Instant::now();
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            let _ = task.await;
        }
        MEASURED_APART.fetch_add(since.elapsed().as_nanos() as u64, Relaxed);
    }
}

fn switches() -> u64 {
    let mut total = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary")).unwrap();
        total += line.split_whitespace().last().unwrap().parse::<u64>().unwrap();
    }
    total
}

async fn nothing(count: u64) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = switches();
    tokio::time::sleep(Duration::from_millis(count)).await;
    MEASURED_APART.store((switches() - before) * count, Relaxed);
}

async fn compute() {
    loop {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(1) {}
        yield_now().await;
    }
}

async fn echo(descriptor: u64) {
    let computing = std::env::var("COMPUTING").map_or(0, |text| text.parse().unwrap());
    for _ in 0..computing {
        spawn(compute());
    }
    let size = std::env::var("BUFFER").map_or(16384, |text| text.parse().unwrap());
    let listener = unsafe { std::net::TcpListener::from_raw_fd(descriptor as i32) };
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (mut connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        spawn(async move {
            let mut buffer = vec![0; size];
            while let Ok(got) = connection.read(&mut buffer).await {
                if got == 0 || connection.write_all(&buffer[..got]).await.is_err() {
                    break;
                }
            }
        });
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let threads: usize = arguments[2].parse().unwrap();
    let count: u64 = arguments[3].parse().unwrap();
    let runtime = if threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
    }
    .unwrap();
    let begin = Instant::now();
    runtime.block_on(async {
        // It runs as a task: the thread of block_on is not one of the runtime's.
        let work: Pin<Box<dyn Future<Output = ()> + Send>> = match arguments[1].as_str() {
            "spawn" => Box::pin(spawn_and_join(count)),
            "yield" => Box::pin(yields(count)),
            "channel" => Box::pin(channel(count)),
            "skynet" => Box::pin(skynet(count)),
            "mutex" => Box::pin(contest(count)),
            "timers" => Box::pin(timers(count)),
            "chameneos" => Box::pin(chameneos(count)),
            "cancel" => Box::pin(cancel(count)),
            "nothing" => Box::pin(nothing(count)),
            "apart" => Box::pin(apart(count)),
            "echo" => Box::pin(echo(count)),
            _ => panic!("no such work"),
        };
        spawn(work).await.unwrap();
    });
    let took = match MEASURED_APART.load(Relaxed) {
        0 => begin.elapsed().as_nanos() as u64,
        apart => apart,
    };
    println!("{:.2}", took as f64 / count as f64);
}

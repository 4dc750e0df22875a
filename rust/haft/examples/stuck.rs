// SPDX-License-Identifier: MIT
//! A bank that gets stuck, for a look with gdb (docs/debugging.md): two transfers wait for each
//! other, a reader for bytes, customers for an event.
use haft::sync::{Event, Mutex};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Account {
    cents: Mutex<i64>,
}

static CLOSING_TIME: Event = Event::new();
static ORDERS: AtomicUsize = AtomicUsize::new(0);
static SIGNED: AtomicUsize = AtomicUsize::new(0);

fn transfer(from: &Account, to: &Account, cents: i64) {
    let mut out = from.cents.lock();
    ORDERS.fetch_add(1, Ordering::Relaxed);
    while ORDERS.load(Ordering::Relaxed) < 2 {
        haft::yield_now(); // the manager signs two at a time
    }
    SIGNED.fetch_add(1, Ordering::Relaxed);
    let mut into = to.cents.lock();
    *out -= cents;
    *into += cents;
}

fn open_bank(how: &str) {
    let savings = Arc::new(Account {
        cents: Mutex::new(100_000),
    });
    let household = Arc::new(Account {
        cents: Mutex::new(5_000),
    });
    let (mut orders, _branch) = UnixStream::pair().unwrap();
    let (from, to) = (household.clone(), savings.clone());
    drop(haft::spawn_named(c"clerk", move || {
        transfer(&from, &to, 500)
    }));
    let (from, to) = (savings.clone(), household.clone());
    let spend = haft::spawn_named(c"clerk", move || transfer(&from, &to, 700));
    drop(haft::spawn_named(c"branch", move || {
        orders.read(&mut [0; 64]).unwrap()
    }));
    for _ in 0..50 {
        drop(haft::spawn_named(c"customer", || CLOSING_TIME.wait()));
    }
    if how != "live" {
        while SIGNED.load(Ordering::Relaxed) < 2 {
            haft::yield_now();
        }
        for _ in 0..10 {
            haft::yield_now(); // each of the others comes to its wait
        }
        std::process::abort();
    }
    spend.join().unwrap();
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or("dead".into());
    haft::run(move || open_bank(&how));
}

// SPDX-License-Identifier: MIT
//! Blocking calls of std in a task that has been cancelled, and goes on.
#![cfg(feature = "posix")]

use std::io::Read;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Calls it in a task whose time has run out, until another task has had three turns.
fn others_run_beside(call: impl Fn() + Send) {
    haft::run(|| {
        let turns = AtomicUsize::new(0);
        haft::scope(|s| {
            s.spawn(|| {
                for _ in 0..3 {
                    haft::yield_now();
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
            let late = haft::timeout(Duration::ZERO, || {
                while turns.load(Ordering::Relaxed) < 3 {
                    call();
                }
                haft::sleep(Duration::from_secs(3600));
            });
            assert_eq!(late, Err(haft::TimedOut));
        });
    });
}

#[test]
fn loops_of_stds_calls_let_others_run() {
    others_run_beside(|| thread::sleep(Duration::from_millis(100)));
    others_run_beside(|| drop(("localhost", 80).to_socket_addrs()));
    others_run_beside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listener.accept().is_err());
    });
    others_run_beside(|| {
        let (mut end, _other) = UnixStream::pair().unwrap();
        assert!(end.read(&mut [0]).is_err());
    });
}

#[test]
fn files_are_read_and_written_to_the_end() {
    let path = std::env::temp_dir().join(format!("haft-{}", std::process::id()));
    haft::run(|| {
        let late = haft::timeout(Duration::ZERO, || {
            thread::sleep(Duration::from_millis(1));
            std::fs::write(&path, "text").unwrap();
            let file = std::fs::File::open(&path).unwrap();
            file.sync_all().unwrap();
            assert_eq!(std::io::read_to_string(file).unwrap(), "text");
            haft::sleep(Duration::from_secs(3600));
        });
        assert_eq!(late, Err(haft::TimedOut));
    });
    std::fs::remove_file(&path).unwrap();
}

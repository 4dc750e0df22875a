// SPDX-License-Identifier: MIT
//! Tests by the attribute: in virtual time, with several seeds, of which one that fails is named.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static RUNS: AtomicUsize = AtomicUsize::new(0);

#[haft::test(seeds = 3)]
fn hours_pass_at_once() {
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(3600));
    assert!(started.elapsed() >= Duration::from_secs(3600) || cfg!(not(feature = "posix")));
    RUNS.fetch_add(1, Ordering::Relaxed);
}

#[haft::test]
#[should_panic(expected = "a seed in which the second comes first")]
fn some_seed_lets_the_second_task_run_first() {
    let (sender, receiver) = haft::channel(2);
    for number in 1..=2 {
        let sender = sender.clone();
        drop(haft::spawn(move || sender.send(number)));
    }
    let first = receiver.recv().unwrap();
    assert_eq!(first, 1, "a seed in which the second comes first");
}

#[haft::test]
fn a_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    haft::spawn(|| "42".parse::<i32>())
        .join()
        .unwrap()
        .map(drop)
}

#[haft::test(seeds = 5, short_counts, switches_one_in = 2)]
fn a_network_exists_in_the_simulation_only() -> std::io::Result<()> {
    use haft::net::{TcpListener, TcpStream};
    use std::io::{BufRead, Write};
    let listener = TcpListener::bind("0.0.0.0:80")?;
    assert_eq!(listener.local_addr()?.port(), 80);
    let server = haft::spawn(move || -> std::io::Result<()> {
        let (mut connection, _) = listener.accept()?;
        (0..100).try_for_each(|i| writeln!(connection, "line {i}"))
    });
    let connection = TcpStream::connect("192.0.2.1:80")?;
    for (i, line) in connection.reader().lines().enumerate() {
        assert_eq!(line?, format!("line {i}"));
    }
    server.join().unwrap()
}

#[haft::test(seeds = 20)]
fn a_rename_after_a_sync_leaves_one_of_the_two_contents() -> std::io::Result<()> {
    use haft::fs;
    use std::io::Write;
    let save = |content: &[u8]| -> std::io::Result<()> {
        let mut file = fs::File::create("/new")?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename("/new", "/kept")?;
        Ok(())
    };
    save(b"first")?;
    fs::File::open("/")?.sync_all()?;
    save(b"second")?;
    haft::simulate_crash();
    let kept = fs::read_to_string("/kept")?;
    assert!(["first", "second"].contains(&kept.as_str()), "{kept}");
    Ok(())
}

/// With a fault in each third operation some seed fails: the runs differ, and each again in the same
/// way.
#[test]
fn faults_come_as_the_seed_decides() {
    let outcome = |seed| {
        let simulation = haft::Simulation::new().seed(seed).faults_one_in(3);
        simulation.run(|| {
            haft::fs::write("/file", "text")?;
            haft::fs::read_to_string("/file")
        })
    };
    let outcomes = || (1..=20).map(|seed| outcome(seed).map_err(|error| error.kind()));
    let all: Vec<_> = outcomes().collect();
    assert!(all.iter().any(Result::is_ok) && all.iter().any(Result::is_err));
    assert_eq!(outcomes().collect::<Vec<_>>(), all);
}

#[test]
#[cfg(feature = "posix")]
fn what_knows_nothing_of_the_simulation_sees_its_time() {
    use std::sync::{Condvar, Mutex};
    use std::time::SystemTime;

    let hour = Duration::from_secs(3600);
    let begun = Instant::now();
    haft::simulate(7, || {
        let (begun, date) = (Instant::now(), SystemTime::now());
        std::thread::sleep(hour);
        assert!(begun.elapsed() >= hour && date.elapsed().unwrap() >= hour);
        let (never, condition) = (Mutex::new(()), Condvar::new());
        let guard = never.lock().unwrap();
        assert!(condition.wait_timeout(guard, hour).unwrap().1.timed_out());
        assert!(begun.elapsed() >= 2 * hour && begun.elapsed() < 3 * hour);
    });
    assert!(begun.elapsed() < hour);
}

/// As the hash maps of std and the crates for random numbers ask for it.
#[test]
#[cfg(feature = "posix")]
fn chance_is_the_seeds() {
    unsafe extern "C" {
        fn getrandom(bytes: *mut u8, size: usize, flags: u32) -> isize;
    }
    let draw = |seed| {
        haft::simulate(seed, || {
            let mut bytes = [0u8; 16];
            // SAFETY: there is room for as many bytes.
            assert_eq!(unsafe { getrandom(bytes.as_mut_ptr(), 16, 0) }, 16);
            bytes
        })
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

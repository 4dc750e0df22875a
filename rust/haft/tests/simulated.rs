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

/// With a fault in each third operation some seed fails: the runs differ, and each again in the
/// same way.
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

/// The hash maps of std and the crates for random numbers ask for chance so.
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

/// All of `std::fs`, as a program has it that knows nothing of a simulation.
#[cfg(feature = "posix")]
mod files_of_std {
    use super::*;
    use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
    use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    fn names(folder: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[haft::test(seeds = 5)]
    fn are_simulated() -> std::io::Result<()> {
        fs::create_dir_all("/a/b/c")?;
        assert!(!Path::new("/etc/passwd").exists() && Path::new("/dev/null").exists());
        fs::write("/a/b/file", "one\ntwo\n")?;
        let mut file = OpenOptions::new().append(true).open("/a/b/file")?;
        file.write_all(b"three\n")?;
        assert_eq!(fs::read_to_string("/a/b/file")?, "one\ntwo\nthree\n");
        let mut file = File::options().read(true).write(true).open("/a/b/file")?;
        assert_eq!(file.seek(SeekFrom::End(-6))?, 8);
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        assert_eq!(text, "three\n");
        file.set_len(3)?;
        assert_eq!(file.metadata()?.len(), 3);
        file.write_all_at(b"ONE", 0)?;
        let mut copy = file.try_clone()?;
        copy.rewind()?;
        text.clear();
        file.read_to_string(&mut text)?;
        assert_eq!(text, "ONE");
        file.sync_all()?;
        file.sync_data()?;
        assert_eq!(fs::copy("/a/b/file", "/a/copy")?, 3);
        assert_eq!(fs::read("/a/copy")?, b"ONE");
        fs::rename("/a/copy", "/a/b/c/moved")?;
        assert_eq!(names("/a/b"), ["c", "file"]);
        assert_eq!(names("/a/b/c"), ["moved"]);
        let entry = fs::read_dir("/a/b/c")?.next().unwrap()?;
        assert!(entry.file_type()?.is_file() && entry.metadata()?.len() == 3);
        assert_eq!(entry.ino(), fs::metadata("/a/b/c/moved")?.ino());
        assert_eq!(fs::canonicalize("/a/./b/../b/c")?, PathBuf::from("/a/b/c"));
        let refused = fs::remove_dir("/a").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DirectoryNotEmpty);
        assert_eq!(
            fs::hard_link("/a/b/file", "/l").unwrap_err().kind(),
            ErrorKind::PermissionDenied
        );
        assert_eq!(
            fs::read_link("/a").unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        fs::remove_file("/a/b/c/moved")?;
        fs::remove_dir_all("/a")?;
        assert_eq!(names("/"), [""; 0]);
        assert_eq!(file.metadata()?.nlink(), 0);
        Ok(())
    }

    #[haft::test]
    fn keep_times_and_permissions_and_locks() -> std::io::Result<()> {
        let file = File::create_new("/file")?;
        let modified = file.metadata()?.modified()?;
        assert!(modified.elapsed().unwrap() < Duration::from_secs(1));
        std::thread::sleep(Duration::from_secs(3600));
        assert!(fs::metadata("/file")?.modified()? == modified);
        let old = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_007);
        file.set_times(FileTimes::new().set_modified(old))?;
        assert_eq!(fs::metadata("/file")?.modified()?, old);
        fs::set_permissions("/file", Permissions::from_mode(0o400))?;
        assert!(fs::symlink_metadata("/file")?.permissions().readonly());

        lock(&file, EXCLUSIVE)?;
        let other = File::open("/file")?;
        let refused = lock(&other, EXCLUSIVE | AT_ONCE).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        let waits = haft::spawn(move || lock(&other, EXCLUSIVE));
        std::thread::sleep(Duration::from_secs(1));
        assert!(!waits.is_finished());
        drop(file);
        waits.join().unwrap()
    }

    const EXCLUSIVE: i32 = 2;
    const AT_ONCE: i32 = 4;

    /// Like `File::lock`, which std has since 1.89.
    fn lock(file: &File, operation: i32) -> std::io::Result<()> {
        unsafe extern "C" {
            fn flock(descriptor: i32, operation: i32) -> i32;
        }
        // SAFETY: it takes numbers.
        match unsafe { flock(file.as_raw_fd(), operation) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }

    #[haft::test(seeds = 20)]
    fn survive_a_crash_as_far_as_they_were_synced() -> std::io::Result<()> {
        fs::create_dir("/data")?;
        File::open("/")?.sync_all()?;
        for content in ["first", "second"] {
            let mut file = File::create("/data/new")?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            fs::rename("/data/new", "/data/kept")?;
            if content == "first" {
                File::open("/data")?.sync_all()?;
            }
        }
        haft::simulate_crash();
        let kept = fs::read_to_string("/data/kept")?;
        assert!(["first", "second"].contains(&kept.as_str()), "{kept}");
        Ok(())
    }

    #[test]
    fn fail_as_the_seed_decides() {
        let outcome = |seed| {
            let simulation = haft::Simulation::new().seed(seed).faults_one_in(12);
            simulation.run(|| -> std::io::Result<()> {
                fs::create_dir_all("/a/b")?;
                fs::write("/a/b/c", "text")?;
                fs::remove_dir_all("/a")
            })
        };
        let outcomes = || (1..=20).map(|seed| outcome(seed).map_err(|error| error.raw_os_error()));
        let all: Vec<_> = outcomes().collect();
        assert!(all.iter().any(Result::is_ok) && all.iter().any(Result::is_err));
        assert_eq!(outcomes().collect::<Vec<_>>(), all);
    }

    #[test]
    fn are_the_machines_outside_of_tasks() {
        haft::Simulation::new().run(|| {
            assert!(haft::block_thread(|| Path::new("/etc").exists()));
            assert!(!Path::new("/etc").exists());
            let elsewhere = std::thread::spawn(|| Path::new("/etc").exists());
            assert!(elsewhere.join().unwrap());
            let mut command = std::process::Command::new("pwd");
            command.current_dir("/usr");
            assert_eq!(command.output().unwrap().stdout, b"/usr\n");
            // SAFETY: the function, for which there is a child of fork, does nothing that it must
            // not.
            unsafe { command.pre_exec(|| File::open("/etc/passwd").map(drop)) };
            assert_eq!(command.output().unwrap().stdout, b"/usr\n");
        });
    }

    #[inline(never)]
    fn a_function_that_panics() {
        panic!("a message");
    }

    /// The panic hook reads the program's file, which is none of the simulation's.
    #[test]
    fn do_not_hide_the_program_from_a_backtrace() {
        if std::env::var_os("HAFT_TEST_PANICS").is_some() {
            haft::Simulation::new().seed(1).run(a_function_that_panics);
        }
        let name = "files_of_std::do_not_hide_the_program_from_a_backtrace";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env("HAFT_TEST_PANICS", "1")
            .env("RUST_BACKTRACE", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("a_function_that_panics"), "{said}");
    }
}

// SPDX-License-Identifier: MIT
//! Crates whose calls are ended by time limits at random places: what tasks share stays usable.

use redb::ReadableDatabase as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const TIMES: u64 = 1000;

/// Limits of 0 to 2 milliseconds, the same in each run.
struct Limits(u64);
impl Limits {
    fn next(&mut self) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        Duration::from_micros((self.0 >> 33) % 2000)
    }
}

/// Calls it under each of many time limits, in so many tasks of one thread.
fn call_often(tasks: u64, call: impl Fn(u64) + Sync) {
    let call = &call;
    haft::all((0..tasks).map(|task| {
        move || {
            let mut limits = Limits(task);
            for i in 0..TIMES / tasks {
                let _ = haft::timeout(limits.next(), || call(task * TIMES + i));
            }
        }
    }));
}

fn in_a_folder(body: impl FnOnce(&Path) + Send) {
    let folder = tempfile::tempdir().unwrap();
    haft::run(|| body(folder.path()));
}

const NUMBERS: redb::TableDefinition<u64, u64> = redb::TableDefinition::new("numbers");

#[test]
fn redb_goes_on_after_commits_that_came_too_late() {
    in_a_folder(|folder| {
        let database = redb::Database::create(folder.join("data")).unwrap();
        let insert = |i| {
            let transaction = database.begin_write().unwrap();
            transaction
                .open_table(NUMBERS)
                .unwrap()
                .insert(i, i)
                .unwrap();
            transaction.commit().unwrap();
        };
        call_often(4, insert);
        insert(u64::MAX);
        let table = database.begin_read().unwrap().open_table(NUMBERS).unwrap();
        assert_eq!(table.get(u64::MAX).unwrap().unwrap().value(), u64::MAX);
    });
}

/// (sled holds locks of parking_lot over its writes: one task of a thread can use it at a time.)
#[test]
fn sled_goes_on_after_flushes_that_came_too_late() {
    in_a_folder(|folder| {
        let tree = sled::Config::new()
            .path(folder.join("data"))
            .flush_every_ms(None)
            .open()
            .unwrap();
        let insert = |i: u64| {
            tree.insert(i.to_be_bytes(), b"value").unwrap();
            tree.flush().unwrap();
        };
        call_often(1, insert);
        insert(u64::MAX);
        assert!(tree.get(u64::MAX.to_be_bytes()).unwrap().is_some());
    });
}

#[test]
fn rusqlite_goes_on_after_transactions_that_came_too_late() {
    in_a_folder(|folder| {
        let path = folder.join("data");
        let open = || {
            let connection = rusqlite::Connection::open(&path).unwrap();
            connection.busy_timeout(Duration::from_secs(60)).unwrap();
            connection
        };
        open()
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number)")
            .unwrap();
        let connections: Vec<_> = (0..4).map(|_| haft::sync::Mutex::new(open())).collect();
        call_often(4, |i| {
            let connection = connections[(i / TIMES) as usize].lock();
            // (SQLite tells of a task that has slept too little for a lock.)
            match connection.execute("INSERT INTO numbers VALUES (?)", [i as i64]) {
                Ok(_) | Err(rusqlite::Error::SqliteFailure(..)) => {}
                Err(other) => panic!("{other}"),
            }
        });
        for connection in &connections {
            let connection = connection.lock();
            connection
                .execute("INSERT INTO numbers VALUES (-1)", [])
                .unwrap();
        }
        let count: i64 = open()
            .query_row(
                "SELECT count(*) FROM numbers WHERE number = -1",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(count, 4);
    });
}

#[test]
fn a_tokio_inside_of_a_task_goes_on_after_time_limits() {
    haft::run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut limits = Limits(0);
        for _ in 0..TIMES {
            let _ = haft::timeout(limits.next(), || {
                runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            });
        }
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::net::TcpStream::connect(address).await.unwrap();
            listener.accept().await.unwrap();
        });
    });
}

#[test]
fn programs_are_started_under_time_limits() {
    use std::os::unix::process::CommandExt;
    haft::run(|| {
        let mut limits = Limits(0);
        let started = Arc::new(std::sync::Mutex::new(Vec::new()));
        for i in 0..100 {
            let _ = haft::timeout(limits.next(), || {
                let mut command = Command::new(if i % 4 == 0 { "/nowhere" } else { "true" });
                // SAFETY: it does nothing. With it std starts the program by fork.
                unsafe { command.pre_exec(|| Ok(())) };
                match command.spawn() {
                    Ok(child) => started.lock().unwrap().push(child),
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
                }
            });
        }
        let mut started = started.lock().unwrap();
        assert_eq!(started.len(), 75);
        for child in started.iter_mut() {
            assert!(child.wait().unwrap().success());
        }
    });
}

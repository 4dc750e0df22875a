// SPDX-License-Identifier: MIT
//! A simulation with a seed repeats what SQLite does beside std, ureq and rand. SQLite has one
//! generator of random numbers for the process, so no other test of this file may use it.

#[path = "../../tests/tests/seeds/mod.rs"]
mod seeds;

use rusqlite::Connection;
use std::fmt::Write;
use std::time::Duration;

/// Makes SQLite draw a new seed for its random numbers, from the simulation's `/dev/urandom`.
fn reset_random_numbers() {
    // SAFETY: a size of 0 asks for no bytes.
    unsafe { rusqlite::ffi::sqlite3_randomness(0, std::ptr::null_mut()) };
}

fn open() -> rusqlite::Result<Connection> {
    let connection = Connection::open("/numbers")?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.execute_batch("create table if not exists numbers (writer, random, bytes)")?;
    Ok(connection)
}

fn write_numbers(writer: u64) -> rusqlite::Result<usize> {
    let connection = open()?;
    let insert = "insert into numbers values (?1, random(), randomblob(20))";
    let mut count = 0;
    for _ in 0..3 {
        count += connection.execute(insert, [writer as i64])?;
        std::thread::sleep(Duration::from_millis(rand::random::<u64>() % 20));
    }
    Ok(count)
}

fn read_numbers() -> rusqlite::Result<Vec<String>> {
    let connection = open()?;
    let question = "select writer || ' ' || random || ' ' || hex(bytes) || ' ' || \
                    strftime('%Y-%m-%d %H:%M:%f') from numbers order by rowid";
    let mut question = connection.prepare(question)?;
    question.query_map([], |row| row.get(0))?.collect()
}

/// Several write to one database while the rest of the program asks its service.
fn program() -> String {
    reset_random_numbers();
    haft::scope(|s| {
        let writers: Vec<_> = (0..3)
            .map(|writer| s.spawn(move || write_numbers(writer)))
            .collect();
        let mut log = seeds::ask_a_service();
        for writer in writers {
            writeln!(log, "wrote {:?}", writer.join().unwrap()).unwrap();
        }
        writeln!(log, "read {:?}", read_numbers()).unwrap();
        log
    })
}

#[test]
#[ignore = "is run by seeds_repeat_with_sqlite_in_this_process_and_in_another"]
fn child_that_prints_logs() {
    seeds::print(program);
}

#[test]
fn seeds_repeat_with_sqlite_in_this_process_and_in_another() {
    let logs = seeds::repeat(program);
    // In most of these worlds, in spite of their faults, SQLite works.
    let whole = logs.iter().filter(|log| log.contains("read Ok"));
    assert!(whole.count() > 20);
}

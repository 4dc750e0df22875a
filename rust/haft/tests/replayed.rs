// SPDX-License-Identifier: MIT
//! A service of std, which knows nothing of Haft, is recorded and replayed a hundred times: sockets,
//! files, times and the random keys of hash maps are the same again, and in the same order.
#![cfg(feature = "posix")]

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const CLIENTS: usize = 8;
type Trace = Arc<Mutex<Vec<String>>>;

/// The keys of a map, in its order, which std draws by chance for each thread.
fn drawn_order() -> Vec<usize> {
    let map: HashMap<usize, ()> = (0..10).map(|key| (key, ())).collect();
    map.into_keys().collect()
}

fn answer(mut connection: TcpStream, trace: &Trace) {
    let mut bytes = [0; 64];
    while let Ok(size @ 1..) = connection.read(&mut bytes) {
        let question = String::from_utf8_lossy(&bytes[..size]).into_owned();
        trace
            .lock()
            .unwrap()
            .push(format!("{question} at {:?}", SystemTime::now()));
        std::thread::sleep(Duration::from_millis(size as u64 % 3));
        connection.write_all(&bytes[..size]).unwrap();
    }
}

fn ask(number: usize, port: u16, trace: &Trace) {
    let begun = Instant::now();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let text = format!("{number} of {:?}", drawn_order());
    let mut answer = vec![0; text.len()];
    connection.write_all(text.as_bytes()).unwrap();
    connection.read_exact(&mut answer).unwrap();
    trace
        .lock()
        .unwrap()
        .push(format!("{number} after {:?}", begun.elapsed()));
}

fn serve(folder: PathBuf) -> Vec<String> {
    let trace = Trace::default();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("text"), format!("{:?}", drawn_order())).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    trace.lock().unwrap().push(format!("port {port}"));
    haft::scope(|scope| {
        for number in 0..CLIENTS {
            let trace = &trace;
            scope.spawn(move || ask(number, port, trace));
        }
        for _ in 0..CLIENTS {
            let (connection, _) = listener.accept().unwrap();
            let trace = &trace;
            scope.spawn(move || answer(connection, trace));
        }
    });
    let read = fs::read_to_string(folder.join("text")).unwrap();
    let names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    fs::remove_dir_all(&folder).unwrap();
    let mut trace = trace.lock().unwrap().clone();
    trace.push(format!("{read} {names:?}"));
    trace
}

/// In a process of its own, as a user has it: which tape there is, is in the environment.
fn run_apart(variable: &str, record: &Path, trace: &Path) -> String {
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "a_service_of_std_is_the_same_a_hundred_times",
            "--exact",
            "--quiet",
        ])
        .env(variable, record)
        .env("HAFT_TRACE_OF_SERVICE", trace)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{variable}: {status}");
    fs::read_to_string(trace).unwrap()
}

#[test]
fn a_service_of_std_is_the_same_a_hundred_times() {
    if let Some(trace) = std::env::var_os("HAFT_TRACE_OF_SERVICE") {
        let lines = haft::run(|| serve(Path::new(&trace).with_extension("folder")));
        return fs::write(trace, lines.join("\n")).unwrap();
    }
    let record = std::env::temp_dir().join(format!("haft-rust-replay.{}", std::process::id()));
    let trace = record.with_extension("trace");
    let recorded = run_apart("HAFT_IO_RECORD", &record, &trace);
    assert!(recorded.lines().count() > 2 * CLIENTS);
    for _ in 0..100 {
        assert_eq!(run_apart("HAFT_IO_REPLAY", &record, &trace), recorded);
    }
    fs::remove_file(record).unwrap();
    fs::remove_file(trace).unwrap();
}

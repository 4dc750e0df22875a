// SPDX-License-Identifier: MIT
//! Crates whose calls are ended by time limits at random places: what tasks share stays usable.

use notify::Watcher as _;
use redb::ReadableDatabase as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const TIMES: u64 = 1000;

/// Limits of 0 to 2 milliseconds, short ones more often, the same in each run.
struct Limits(u64);
impl Limits {
    fn next(&mut self) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        Duration::from_micros((self.0 >> 33) % (2000 >> (self.0 >> 61)))
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

/// A PostgreSQL of its own, which ends when this is dropped.
struct Postgres {
    server: Child,
    config: String,
}
impl Postgres {
    /// None: it is not installed, or cannot run here.
    fn start() -> Option<Postgres> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut server = Command::new("sh")
            .arg(folder.join("../../io/posix/tests/libraries/postgres.sh"))
            .arg(folder.join("tests/hold.sh"))
            .arg("epoll")
            .env("HAFT_LAUNCHER", "sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut config = String::new();
        let mut said = BufReader::new(server.stdout.take().unwrap());
        said.read_line(&mut config).unwrap();
        if config.starts_with("host=") {
            return Some(Postgres { server, config });
        }
        assert_eq!(server.wait().unwrap().code(), Some(77), "{config}");
        println!("left out: {config}");
        None
    }
}
impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.server.wait();
    }
}

/// (A Tokio of its own refuses to start where another runs: one task of a thread at a time.)
#[test]
fn postgres_goes_on_after_transactions_that_came_too_late() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    haft::run(|| {
        let connect = || postgres::Client::connect(&postgres.config, postgres::NoTls).unwrap();
        let client = haft::sync::Mutex::new(connect());
        let create = "CREATE TABLE numbers (number bigint PRIMARY KEY)";
        client.lock().batch_execute(create).unwrap();
        let committed = AtomicI64::new(0);
        let insert = |i: u64| {
            let mut client = client.lock();
            if i % 50 == 49 {
                *client = connect();
            }
            let mut transaction = client.transaction().unwrap();
            let insert = "INSERT INTO numbers VALUES ($1)";
            transaction.execute(insert, &[&(i as i64)]).unwrap();
            haft::yield_now(); // where a limit has it rolled back
            transaction.commit().unwrap();
            committed.fetch_add(1, Ordering::Relaxed);
        };
        call_often(4, insert);
        insert(4 * TIMES);
        let question = "SELECT count(*) FROM numbers";
        let count: i64 = client.lock().query_one(question, &[]).unwrap().get(0);
        assert_eq!(count, committed.into_inner());
    });
}

/// A broker of MQTT for one client, which gets back what it publishes (at most 127 bytes a packet).
fn serve_mqtt(listener: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _): (TcpStream, _) = listener.accept()?;
    let mut head = [0; 2];
    loop {
        stream.read_exact(&mut head)?;
        let mut body = vec![0; usize::from(head[1])];
        stream.read_exact(&mut body)?;
        match head[0] >> 4 {
            1 => stream.write_all(b"\x20\x02\0\0")?, // CONNECT, CONNACK
            3 => {
                let topic_size = 2 + usize::from(body[1]);
                let (topic, rest) = body.split_at(topic_size);
                let (number, text) = rest.split_at(2);
                let size = (topic.len() + text.len()) as u8;
                let echo = [&[0x30, size], topic, text].concat(); // PUBLISH
                stream.write_all(&[b"\x40\x02", number, &echo].concat())?; // PUBACK
            }
            12 => stream.write_all(b"\xd0\0")?, // PINGREQ, PINGRESP
            other => panic!("a packet of type {other}"),
        }
    }
}

#[test]
fn rumqttc_goes_on_after_messages_that_came_too_late() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let broker = std::thread::spawn(move || serve_mqtt(&listener));
    haft::run(|| {
        let options = rumqttc::MqttOptions::new("haft", "127.0.0.1", port);
        let (client, connection) = rumqttc::Client::new(options, 2 * TIMES as usize);
        let connection = haft::sync::Mutex::new(connection);
        let exchange = |i: u64| {
            let text = i.to_string();
            let mut connection = connection.lock();
            let at_least_once = rumqttc::QoS::AtLeastOnce;
            client
                .try_publish("numbers", at_least_once, false, text.as_bytes())
                .unwrap();
            loop {
                // (An error would be one of the connection.)
                match connection.recv().unwrap().unwrap() {
                    rumqttc::Event::Incoming(rumqttc::Packet::Publish(message))
                        if message.payload == text.as_bytes() =>
                    {
                        break;
                    }
                    _ => haft::yield_now(), // where a limit leaves the rest to others
                }
            }
        };
        call_often(4, exchange);
        exchange(u64::MAX);
    });
    let end = broker.join().unwrap().unwrap_err();
    assert_eq!(end.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// (It asks its own thread, and parks until that answers: one task of a thread at a time.)
#[test]
fn notify_goes_on_after_watches_that_came_too_late() {
    in_a_folder(|folder| {
        let (sender, receiver) = haft::channel::<PathBuf>(2 * TIMES as usize);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let event = event.unwrap();
            if event.kind.is_create() {
                let _ = sender.send(event.paths[0].clone());
            }
        });
        let watcher = haft::sync::Mutex::new(watcher.unwrap());
        let watch = |i: u64| {
            let mut watcher = watcher.lock();
            let only_here = notify::RecursiveMode::NonRecursive;
            watcher.watch(folder, only_here).unwrap();
            let path = folder.join(i.to_string());
            std::fs::write(&path, "text").unwrap();
            while receiver.recv().unwrap() != path {} // where a limit leaves the watch
            watcher.unwatch(folder).unwrap();
        };
        call_often(4, watch);
        watch(u64::MAX);
    });
}

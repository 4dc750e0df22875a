// SPDX-License-Identifier: MIT
//! Each crate 100 times at once on one thread, as its authors wrote it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

const TASKS: usize = 100;

/// (tiny_http has threads of its own, sometimes fewer than connections: so it answers each request
/// as it comes.)
#[test]
fn ureq_asks_a_tiny_http_whose_requests_a_task_takes() {
    let answers = haft::run(|| {
        let server = tiny_http::Server::http("127.0.0.1:0").unwrap();
        let port = server.server_addr().to_ip().unwrap().port();
        haft::scope(|s| {
            s.spawn(|| {
                for _ in 0..TASKS {
                    let request = server.recv().unwrap();
                    let text = request.url()[1..].to_owned();
                    let answer = tiny_http::Response::from_string(text);
                    request.respond(answer).unwrap();
                }
            });
            haft::all((0..TASKS).map(|i| {
                move || {
                    let url = format!("http://127.0.0.1:{port}/{i}");
                    ureq::get(url)
                        .call()
                        .unwrap()
                        .body_mut()
                        .read_to_string()
                        .unwrap()
                }
            }))
        })
    });
    let expected: Vec<String> = (0..TASKS).map(|i| i.to_string()).collect();
    assert_eq!(answers, expected);
}

/// Answers each request by its path, once there are as many as tasks.
fn serve_tls(stream: TcpStream, config: &Arc<rustls::ServerConfig>, all_are_here: &Barrier) {
    let connection = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream));
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_until(b'\n', &mut request).unwrap();
    }
    all_are_here.wait();
    let path = String::from_utf8(request).unwrap();
    let path = path.split(' ').nth(1).unwrap();
    let (mut stream, size) = (stream.into_inner(), path.len());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
    stream.write_all((head + path).as_bytes()).unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
}

fn ask_over_tls(provider: TlsProvider) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.der(), made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![certificate.clone()], key.try_into().unwrap());
    let config = Arc::new(config.unwrap());
    let roots = vec![Certificate::from_der(certificate).to_owned()];
    let tls = TlsConfig::builder()
        .provider(provider)
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    let all_are_here = Barrier::new(TASKS);
    let answers = haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (serve, ask) = (
            |stream| serve_tls(stream, &config, &all_are_here),
            |i| {
                let url = format!("https://localhost:{port}/{i}");
                let mut answer = agent.get(url).call().unwrap();
                answer.body_mut().read_to_string().unwrap()
            },
        );
        let (serve, ask) = (&serve, &ask);
        haft::scope(|s| {
            s.spawn(|| {
                for stream in listener.incoming().take(TASKS) {
                    let stream = stream.unwrap();
                    s.spawn(move || serve(stream));
                }
            });
            haft::all((0..TASKS).map(|i| move || ask(i)))
        })
    });
    let expected: Vec<String> = (0..TASKS).map(|i| format!("/{i}")).collect();
    assert_eq!(answers, expected);
}

#[test]
fn ureq_asks_over_rustls() {
    ask_over_tls(TlsProvider::Rustls);
}

#[test]
fn ureq_asks_over_native_tls() {
    ask_over_tls(TlsProvider::NativeTls);
}

/// The part of MySQL's protocol that a query needs which has no rows.
struct MySql(TcpStream);
impl MySql {
    fn send(&mut self, number: u8, packet: &[u8]) {
        let size = packet.len() as u8;
        let bytes = [&[size, 0, 0, number], packet].concat();
        self.0.write_all(&bytes).unwrap();
    }
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).ok()?;
        let mut packet = vec![0; usize::from(head[0]) + (usize::from(head[1]) << 8)];
        self.0.read_exact(&mut packet).unwrap();
        Some(packet)
    }
    /// The answer to a query is the number in it, as that of the rows which it has changed.
    fn serve(mut self, all_are_here: &Barrier) {
        const QUERY: u8 = 3;
        const QUIT: u8 = 1;
        let mut hello = b"\x0a8.0.0\0\x01\0\0\0abcdefgh\0".to_vec();
        hello.extend_from_slice(b"\x00\x82\x21\x02\0\x08\0\x15"); // protocol 4.1, secure, plugins
        hello.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0");
        self.send(0, &hello);
        self.receive().unwrap();
        self.send(2, &[0, 0, 0, 2, 0, 0, 0]);
        while let Some(packet) = self.receive().filter(|packet| packet[0] != QUIT) {
            let text = String::from_utf8_lossy(&packet[1..]).into_owned();
            let number = text.strip_prefix("UPDATE ").and_then(|n| n.parse().ok());
            if packet[0] == QUERY && number.is_some() {
                all_are_here.wait();
            }
            self.send(1, &[0, number.unwrap_or(0), 0, 2, 0, 0, 0]);
        }
    }
}

#[test]
fn mysql_has_a_hundred_connections_that_wait() {
    let all_are_here = Barrier::new(TASKS);
    let changed = haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all_are_here = &all_are_here;
        haft::scope(|s| {
            s.spawn(move || {
                for stream in listener.incoming().take(TASKS) {
                    let stream = stream.unwrap();
                    s.spawn(move || MySql(stream).serve(all_are_here));
                }
            });
            haft::all((0..TASKS).map(|i| {
                move || {
                    use mysql::prelude::Queryable;
                    let options = mysql::OptsBuilder::new()
                        .ip_or_hostname(Some("127.0.0.1"))
                        .tcp_port(port)
                        .prefer_socket(false)
                        .max_allowed_packet(Some(1 << 20));
                    let mut connection = mysql::Conn::new(options).unwrap();
                    connection.query_drop(format!("UPDATE {i}")).unwrap();
                    connection.affected_rows()
                }
            }))
        })
    });
    assert_eq!(changed, (0..TASKS as u64).collect::<Vec<_>>());
}

/// rayon has a latch for each thread that calls it, which two tasks of the thread would share: the
/// first to go on would leave a frame that others still use. So the thread waits.
#[test]
fn rayon_is_called_by_one_task_of_the_thread_at_a_time() {
    let texts = haft::run(|| {
        haft::all((0..TASKS).map(|i| {
            move || {
                let text = format!("text {i}");
                let slow = || {
                    std::thread::sleep(Duration::from_millis(1));
                    text.len()
                };
                let (size, text) = rayon::join(slow, || text.clone());
                assert_eq!(size, text.len());
                text
            }
        }))
    });
    let expected: Vec<String> = (0..TASKS).map(|i| format!("text {i}")).collect();
    assert_eq!(texts, expected);
}

/// parking_lot lists threads that wait, and one of which two tasks wait twice. So the thread waits;
/// a guard that a task holds over a wait nobody else of its thread can wait for.
#[test]
fn a_lock_of_parking_lot_is_between_tasks_and_threads() {
    let count = parking_lot::Mutex::new(0);
    let is_over = AtomicBool::new(false);
    let change = || {
        let mut count = count.lock();
        let before = *count;
        (0..1000).for_each(|_| std::hint::spin_loop());
        *count = before + 1;
    };
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    change();
                    std::thread::yield_now();
                }
            });
        }
        haft::run(|| {
            haft::all((0..TASKS).map(|_| {
                || {
                    for _ in 0..5 {
                        change();
                        haft::yield_now();
                    }
                }
            }))
        });
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(count.into_inner() >= 5 * TASKS);
}

#[test]
fn tungstenite_talks_over_a_hundred_sockets() {
    let all_are_here = Barrier::new(TASKS);
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = |stream: TcpStream| {
            let mut socket = tungstenite::accept(stream).unwrap();
            let message = socket.read().unwrap();
            all_are_here.wait();
            socket.send(message).unwrap();
            while socket.read().is_ok() {}
        };
        let serve = &serve;
        haft::scope(|s| {
            s.spawn(|| {
                for stream in listener.incoming().take(TASKS) {
                    let stream = stream.unwrap();
                    s.spawn(move || serve(stream));
                }
            });
            for i in 0..TASKS {
                s.spawn(move || {
                    let url = format!("ws://{address}/");
                    let (mut socket, _) = tungstenite::connect(url).unwrap();
                    socket
                        .send(tungstenite::Message::text(i.to_string()))
                        .unwrap();
                    assert_eq!(socket.read().unwrap().to_text().unwrap(), i.to_string());
                    socket.close(None).unwrap();
                    while socket.read().is_ok() {}
                });
            }
        });
    });
}

/// Ends when this is dropped.
struct Server(Child);
impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn redis_has_a_hundred_that_wait_for_a_list() {
    let folder = std::env::temp_dir().join(format!("haft-redis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("socket");
    let started = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no"])
        .arg("--unixsocket")
        .arg(&socket)
        .arg("--dir")
        .arg(&folder)
        .stdout(Stdio::null())
        .spawn();
    let Ok(started) = started else {
        println!("left out: Redis is not installed");
        return;
    };
    let server = Server(started);
    let url = format!("unix://{}", socket.display());
    let mut numbers = haft::run(|| {
        let connect = || {
            for _ in 0..1000 {
                match redis::Client::open(url.as_str()).unwrap().get_connection() {
                    Ok(connection) => return connection,
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
            panic!("the server does not begin");
        };
        let mut pushes = connect();
        haft::scope(|s| {
            let waits: Vec<_> = (0..TASKS)
                .map(|_| {
                    s.spawn(|| {
                        let mut connection = connect();
                        let mut command = redis::cmd("BLPOP");
                        let answer = command.arg("list").arg(0);
                        answer.query::<(String, usize)>(&mut connection).unwrap().1
                    })
                })
                .collect();
            for i in 0..TASKS {
                redis::cmd("RPUSH")
                    .arg("list")
                    .arg(i)
                    .exec(&mut pushes)
                    .unwrap();
            }
            waits
                .into_iter()
                .map(|wait| wait.join().unwrap())
                .collect::<Vec<_>>()
        })
    });
    drop(server);
    std::fs::remove_dir_all(&folder).unwrap();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..TASKS).collect::<Vec<_>>());
}

#[test]
fn rusqlite_has_a_hundred_writers_of_one_file() {
    let path = std::env::temp_dir().join(format!("haft-sqlite-{}", std::process::id()));
    let open = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
            .pragma_update(None, "synchronous", "off")
            .unwrap();
        connection
    };
    let first = open();
    first
        .execute_batch("create table counts (n integer); insert into counts values (0)")
        .unwrap();
    haft::run(|| {
        haft::all((0..TASKS).map(|_| {
            || {
                let mut connection = open();
                let behavior = rusqlite::TransactionBehavior::Immediate;
                let transaction = connection.transaction_with_behavior(behavior).unwrap();
                let get = "select n from counts";
                let n: i64 = transaction.query_row(get, [], |row| row.get(0)).unwrap();
                haft::yield_now();
                transaction
                    .execute("update counts set n = ?1", [n + 1])
                    .unwrap();
                transaction.commit().unwrap();
            }
        }));
    });
    let n: i64 = first
        .query_row("select n from counts", [], |row| row.get(0))
        .unwrap();
    drop(first);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(n, TASKS as i64);
}

/// Data that SQLite has reported as committed is there after a crash of a simulated machine, and
/// nothing is there by half.
#[test]
fn rusqlite_survives_simulated_crashes() -> rusqlite::Result<()> {
    const ACCOUNTS: i64 = 200;
    let open = || -> rusqlite::Result<rusqlite::Connection> {
        let connection = rusqlite::Connection::open("/bank/accounts")?;
        connection.pragma_update(None, "synchronous", "extra")?;
        connection.pragma_update(None, "cache_size", 4)?; // so it writes before it commits
        Ok(connection)
    };
    let transfer = |connection: &rusqlite::Connection, from: i64| -> rusqlite::Result<()> {
        let add =
            "update accounts set money = money + ?1, name = hex(randomblob(100)) where id = ?2";
        for (money, id) in [(-1, from), (1, (from * 7 + 1) % ACCOUNTS)] {
            connection.execute(add, [money, id])?;
        }
        Ok(())
    };
    let crash = |committed: i64| -> rusqlite::Result<()> {
        std::fs::create_dir("/bank").unwrap();
        std::fs::File::open("/").unwrap().sync_all().unwrap();
        let connection = open()?;
        connection.execute_batch(
            "create table accounts (id integer primary key, money integer, name text);
             create table done (n integer);
             insert into done values (0);
             begin",
        )?;
        for id in 0..ACCOUNTS {
            connection.execute("insert into accounts values (?1, 10, '')", [id])?;
        }
        connection.execute_batch("commit")?;
        for n in 1..=committed {
            connection.execute_batch("begin")?;
            transfer(&connection, n)?;
            connection.execute("update done set n = ?1", [n])?;
            connection.execute_batch("commit")?;
        }
        connection.execute_batch("begin")?;
        for from in 0..ACCOUNTS {
            transfer(&connection, from)?;
        }
        assert!(std::path::Path::new("/bank/accounts-journal").exists());
        haft::simulate_crash();
        drop(connection); // whose files are of the time before
        let connection = open()?;
        let integrity: String =
            connection.query_row("pragma integrity_check", [], |row| row.get(0))?;
        assert_eq!(integrity, "ok");
        let ask = |question| connection.query_row(question, [], |row| row.get::<_, i64>(0));
        assert_eq!(ask("select n from done")?, committed);
        assert_eq!(ask("select sum(money) from accounts")?, 10 * ACCOUNTS);
        Ok(())
    };
    (1..=30).try_for_each(|seed| {
        let simulation = haft::Simulation::new().seed(seed);
        simulation.run(|| crash(seed as i64 % 5))
    })
}

/// (But not where they make system calls by themselves: a NamedTempFile is not persisted.)
#[haft::test]
fn tempfile_and_walkdir_are_in_the_simulation() -> std::io::Result<()> {
    std::fs::create_dir("/tmp")?;
    let folder = tempfile::tempdir_in("/tmp")?;
    std::fs::create_dir_all(folder.path().join("a/b"))?;
    let mut file = tempfile::NamedTempFile::new_in(folder.path().join("a/b"))?;
    file.write_all(b"text")?;
    let walk = walkdir::WalkDir::new(folder.path());
    let sizes = walk.into_iter().map(|entry| {
        let metadata = entry?.metadata()?;
        Ok(metadata.is_file().then_some(metadata.len()))
    });
    assert_eq!(
        sizes.collect::<Result<Vec<_>, walkdir::Error>>()?,
        [None, None, None, Some(4)]
    );
    file.close()?;
    folder.close()?;
    assert_eq!(std::fs::read_dir("/tmp")?.count(), 0);
    Ok(())
}

/// Blocking code from async code: all sleep at once, on the one thread of the run.
#[test]
fn a_program_of_tokio_awaits_a_hundred_tasks() {
    let runtime = haft::Runtime::new(haft::Options::new()).unwrap();
    let all_are_here = std::sync::Arc::new(Barrier::new(TASKS));
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let sum = tokio.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|i| {
                let all_are_here = std::sync::Arc::clone(&all_are_here);
                runtime.spawn(move || {
                    std::thread::sleep(Duration::from_millis(1));
                    all_are_here.wait();
                    i
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
}

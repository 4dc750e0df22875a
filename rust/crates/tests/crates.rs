// SPDX-License-Identifier: MIT
//! Each crate 100 times at once on one thread, as its authors wrote it.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

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

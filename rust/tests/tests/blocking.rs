// SPDX-License-Identifier: MIT
//! Blocking crates, and std itself, on tasks of one thread.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const REQUESTS: usize = 100;

/// Answers one request when as many have come as there are.
fn serve(connection: TcpStream, waiting: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut path = String::new();
    reader.read_line(&mut path)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    waiting.fetch_add(1, Ordering::Relaxed);
    while waiting.load(Ordering::Relaxed) < REQUESTS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let number = path
        .split('/')
        .nth(1)
        .unwrap_or("")
        .split(' ')
        .next()
        .unwrap_or("");
    write!(
        &connection,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{number}",
        number.len()
    )
}

#[test]
fn a_hundred_requests_of_ureq_wait_at_once_on_one_thread() {
    let waiting = AtomicUsize::new(0);
    let answers = haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        haft::scope(|s| {
            s.spawn(|| {
                for connection in listener.incoming().take(REQUESTS) {
                    let connection = connection.unwrap();
                    s.spawn(|| serve(connection, &waiting).unwrap());
                }
            });
            haft::all((0..REQUESTS).map(|i| {
                move || {
                    let mut answer = ureq::get(format!("http://127.0.0.1:{port}/{i}"))
                        .call()
                        .unwrap();
                    answer.body_mut().read_to_string().unwrap()
                }
            }))
        })
    });
    let expected: Vec<String> = (0..REQUESTS).map(|i| i.to_string()).collect();
    assert_eq!(answers, expected);
}

#[test]
fn a_sleep_of_std_is_virtual_in_a_simulation() {
    let started = Instant::now();
    haft::simulate(1, || std::thread::sleep(Duration::from_secs(3600)));
    assert!(started.elapsed() < Duration::from_secs(3600));
}

/// Answers each request after a second; whatever goes wrong is the client's to mend.
fn serve_slowly(listener: &TcpListener) -> ! {
    loop {
        let Ok((connection, _)) = listener.accept() else {
            haft::sleep(Duration::from_millis(10)); // no descriptor is left, perhaps
            continue;
        };
        drop(haft::spawn(move || {
            let waiting = AtomicUsize::new(REQUESTS);
            std::thread::sleep(Duration::from_secs(1));
            serve(connection, &waiting)
        }));
    }
}

/// How often it asked, and for how long.
fn ask_until_answered() -> (usize, Duration) {
    let begun = Instant::now();
    for attempts in 1.. {
        let answer = ureq::get("http://service.example/7")
            .call()
            .and_then(|mut answer| answer.body_mut().read_to_string());
        match answer {
            Ok(text) => {
                assert_eq!(text, "7");
                return (attempts, begun.elapsed());
            }
            Err(_) => std::thread::sleep(Duration::from_secs(attempts as u64)),
        }
    }
    unreachable!()
}

#[test]
fn ureq_meets_the_faults_of_a_simulated_network() {
    let run = |seed| {
        haft::Simulation::new()
            .seed(seed)
            .short_counts(true)
            .faults_one_in(30)
            .run(|| {
                let listener = loop {
                    if let Ok(listener) = TcpListener::bind("0.0.0.0:80") {
                        break listener;
                    }
                };
                let server: Box<dyn FnOnce() -> _ + Send> =
                    Box::new(move || serve_slowly(&listener));
                haft::first([server, Box::new(ask_until_answered)]).1
            })
    };
    let begun = Instant::now();
    let outcomes: Vec<_> = (1..=50).map(run).collect();
    assert!(outcomes.iter().any(|(attempts, _)| *attempts == 1));
    assert!(outcomes.iter().any(|(attempts, _)| *attempts > 2));
    assert_eq!((1..=50).map(run).collect::<Vec<_>>(), outcomes);
    let simulated: Duration = outcomes.iter().map(|(_, time)| *time).sum();
    assert!(simulated > Duration::from_secs(100) && begun.elapsed() < simulated);
}

#[test]
fn a_child_is_waited_for_while_others_go_on() {
    let output = haft::run(|| {
        let turns = AtomicUsize::new(0);
        let turns = &turns;
        haft::scope(|s| {
            s.spawn(|| {
                // It ends only after the other task has taken turns.
                while turns.load(Ordering::Relaxed) < 3 {
                    turns.fetch_add(1, Ordering::Relaxed);
                    haft::yield_now();
                }
            });
            let child = std::process::Command::new("echo").arg("hello").output();
            child.unwrap()
        })
    });
    assert_eq!(output.stdout, b"hello\n");
}

#[test]
fn a_read_that_is_cancelled_is_an_error_and_then_the_task_is_unwound() {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let mut read = None;
        let outcome = haft::timeout(Duration::from_millis(1), || {
            read = Some(client.read(&mut [0; 8]));
            haft::yield_now();
        });
        assert_eq!(outcome, Err(haft::TimedOut));
        let error = read.unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(125)); // ECANCELED
    });
}

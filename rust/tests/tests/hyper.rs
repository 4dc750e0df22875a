// SPDX-License-Identifier: MIT
//! hyper's client and server on the tasks of one thread, and streams as iterators.

use bytes::Bytes;
use haft::hyper::{Executor, Io, Timer};
use haft::net::{TcpListener, TcpStream};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::Executor as _;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Waits, and gives back the body.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    use hyper::rt::Timer as _;
    Timer.sleep(Duration::from_millis(20)).await;
    let body = request.into_body().collect().await;
    Ok(Response::new(Full::new(body.unwrap().to_bytes())))
}

fn serve(listener: TcpListener, patience: Duration) {
    loop {
        let (stream, _) = listener.accept().unwrap();
        drop(haft::spawn(move || {
            let connection = server::conn::http1::Builder::new()
                .timer(Timer)
                .header_read_timeout(patience)
                .serve_connection(Io::new(stream), service_fn(echo));
            let _ = haft::block_on(connection);
        }));
    }
}

/// With a server, which the end of `clients` ends.
fn beside_a_server<T: Send>(patience: Duration, clients: impl FnOnce(SocketAddr) -> T) -> T {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        haft::scope(|s| {
            s.spawn(|| serve(listener, patience));
            let outcome = clients(address);
            s.cancel();
            outcome
        })
    })
}

async fn ask(address: SocketAddr, bodies: &[Bytes]) {
    let stream = TcpStream::connect(address).unwrap();
    let handshake = client::conn::http1::handshake(Io::new(stream)).await;
    let (mut sender, connection) = handshake.unwrap();
    Executor.execute(async { connection.await.unwrap() });
    for body in bodies {
        let request = Request::post("/")
            .header("host", "here")
            .body(Full::new(body.clone()))
            .unwrap();
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let answer = response.into_body().collect().await.unwrap();
        assert_eq!(answer.to_bytes(), body);
    }
}

#[test]
fn a_hundred_clients_and_their_server_share_a_thread() {
    beside_a_server(Duration::from_secs(3600), |address| {
        haft::scope(|s| {
            for i in 0..100u8 {
                s.spawn(move || {
                    let large = Bytes::from(vec![i; 100_000]);
                    haft::block_on(ask(address, &[Bytes::from(vec![i]), large, Bytes::new()]));
                });
            }
        });
    });
}

#[test]
fn a_client_that_sends_no_request_is_timed_out() {
    beside_a_server(Duration::from_millis(10), |address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        // (What hyper answers is its own business, but the connection ends.)
        let lines = stream.reader().lines();
        let ended = haft::timeout(Duration::from_secs(60), || lines.count());
        assert!(ended.is_ok());
    });
}

#[test]
fn a_stream_is_iterated_over_where_it_waits() {
    let numbers = futures::stream::unfold(0, |i| async move {
        use hyper::rt::Timer as _;
        Timer.sleep(Duration::from_millis(1)).await;
        (i < 5).then_some((i, i + 1))
    });
    let sum: i32 = haft::run(|| haft::iterate(numbers).sum());
    assert_eq!(sum, 10);
}

#[test]
fn what_is_polled_together_is_woken_each_for_itself() {
    use hyper::rt::Timer as _;
    let order = haft::simulate(1, || {
        let (sender, receiver) = haft::channel(10);
        haft::block_on(async {
            let sleeps = [30, 10, 20].map(|time| {
                let sender = sender.clone();
                async move {
                    Timer.sleep(Duration::from_secs(time)).await;
                    sender.send(time).unwrap();
                }
            });
            futures::future::join_all(sleeps).await;
        });
        drop(sender);
        receiver.iter().collect::<Vec<_>>()
    });
    assert_eq!(order, [10, 20, 30]);
}

#[test]
fn a_kept_connection_outlives_the_scopes_of_its_request() {
    beside_a_server(Duration::from_secs(10), |address| {
        let request = || {
            haft::block_on(async {
                let stream = TcpStream::connect(address).unwrap();
                let handshake = client::conn::http1::handshake(Io::new(stream)).await;
                let (mut sender, connection) = handshake.unwrap();
                Executor.execute(async { connection.await.unwrap() });
                let request = Request::get("/").header("host", "here");
                let request = request.body(Full::new(Bytes::from("hello"))).unwrap();
                let response = sender.send_request(request).await.unwrap();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                (sender, body)
            })
        };
        let answers = haft::timeout(Duration::from_secs(10), || haft::all([request]));
        let [(sender, body)] = answers.unwrap().try_into().unwrap();
        assert_eq!(body, "hello");
        assert!(!sender.is_closed());
    });
}

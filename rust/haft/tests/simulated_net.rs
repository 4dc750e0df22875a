// SPDX-License-Identifier: MIT
//! `std::net`, and what is built on it, in a network that exists in the simulation only.
#![cfg(feature = "posix")]

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[haft::test(seeds = 10, short_counts, switches_one_in = 2)]
fn a_server_and_its_clients_are_one_program() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:80")?;
    assert_eq!(listener.local_addr()?, address("0.0.0.0:80"));
    let server = haft::spawn(move || -> io::Result<()> {
        for connection in listener.incoming().take(10) {
            let connection = connection?;
            drop(haft::spawn(move || -> io::Result<()> {
                let mut line = String::new();
                BufReader::new(&connection).read_line(&mut line)?;
                std::thread::sleep(Duration::from_secs(1));
                write!(&connection, "you said {line}")
            }));
        }
        Ok(())
    });
    let begun = Instant::now();
    let clients: Vec<_> = (0..10)
        .map(|i| {
            haft::spawn(move || -> io::Result<String> {
                let mut connection = TcpStream::connect("service.example:80")?;
                assert_eq!(connection.peer_addr()?, address("127.0.0.1:80"));
                assert!(connection.local_addr()?.ip().is_loopback());
                writeln!(connection, "{i}")?;
                connection.shutdown(Shutdown::Write)?;
                let mut answer = String::new();
                connection.read_to_string(&mut answer)?;
                Ok(answer)
            })
        })
        .collect();
    for (i, client) in clients.into_iter().enumerate() {
        assert_eq!(client.join().unwrap()?, format!("you said {i}\n"));
    }
    server.join().unwrap()?;
    assert!(begun.elapsed() < Duration::from_secs(2));
    Ok(())
}

#[haft::test]
fn addresses_are_those_of_the_simulation() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    assert!(port != 0);
    assert_eq!(
        TcpListener::bind(("127.0.0.1", port)).unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    let connection = TcpStream::connect(("192.0.2.7", port))?;
    let (accepted, client) = listener.accept()?;
    assert_eq!(client, connection.local_addr()?);
    assert_eq!(accepted.peer_addr()?, client);
    assert_eq!(
        connection.peer_addr()?,
        address(&format!("192.0.2.7:{port}"))
    );
    assert_eq!(accepted.local_addr()?, connection.peer_addr()?);
    assert_eq!(
        TcpStream::connect("127.0.0.1:9").unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    let six = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 8080))?;
    let connection = TcpStream::connect((Ipv6Addr::LOCALHOST, 8080))?;
    assert_eq!(six.accept()?.1, connection.local_addr()?);
    assert_eq!(
        connection.peer_addr()?.ip(),
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    );
    Ok(())
}

#[haft::test]
fn options_are_kept_and_limits_of_time_are_virtual() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:80")?;
    let mut connection = TcpStream::connect("127.0.0.1:80")?;
    let (accepted, _) = listener.accept()?;
    let hour = Duration::from_secs(3600);
    connection.set_nodelay(true)?;
    connection.set_ttl(7)?;
    connection.set_read_timeout(Some(hour))?;
    assert!(connection.nodelay()? && connection.ttl()? == 7);
    assert_eq!(connection.read_timeout()?, Some(hour));
    assert_eq!(connection.write_timeout()?, None);
    assert!(connection.take_error()?.is_none());
    let begun = Instant::now();
    let error = connection.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(begun.elapsed() >= hour && begun.elapsed() < 2 * hour);
    connection.set_nonblocking(true)?;
    assert_eq!(
        connection.read(&mut [0]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert!(begun.elapsed() < 2 * hour);
    (&accepted).write_all(b"hello")?;
    let mut bytes = [0; 8];
    assert_eq!(connection.peek(&mut bytes)?, 5);
    assert_eq!(connection.read(&mut bytes)?, 5);
    let other = connection.try_clone()?;
    drop(connection);
    (&other).write_all(b"more")?;
    drop(other);
    let mut text = String::new();
    (&accepted).read_to_string(&mut text)?;
    assert_eq!(text, "more");
    listener.set_nonblocking(true)?;
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    Ok(())
}

#[haft::test]
fn a_connect_has_a_limit_of_time() -> io::Result<()> {
    let connect = |seconds| {
        TcpStream::connect_timeout(&address("127.0.0.1:80"), Duration::from_secs(seconds))
    };
    assert_eq!(connect(1).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let listener = TcpListener::bind("127.0.0.1:80")?; // which has room for 129
    let waiting: Vec<_> = (0..129).map(|_| connect(1).unwrap()).collect();
    let begun = Instant::now();
    assert_eq!(connect(60).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() >= Duration::from_secs(60));
    let late = haft::spawn(move || connect(60));
    haft::sleep(Duration::from_secs(1));
    drop(listener.accept()?);
    late.join().unwrap()?;
    drop(waiting);
    Ok(())
}

#[haft::test(seeds = 5)]
fn datagrams_have_addresses() -> io::Result<()> {
    let (one, other) = (
        UdpSocket::bind("127.0.0.1:53")?,
        UdpSocket::bind("0.0.0.0:0")?,
    );
    other.send_to(b"ping", "127.0.0.1:53")?;
    let mut bytes = [0; 16];
    let (size, from) = one.recv_from(&mut bytes)?;
    assert_eq!(&bytes[..size], b"ping");
    assert_eq!(from.port(), other.local_addr()?.port());
    assert_eq!(from.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    one.connect(from)?;
    assert_eq!(one.peer_addr()?, from);
    one.send(b"pong")?;
    assert_eq!(other.recv(&mut bytes)?, 4);
    one.set_read_timeout(Some(Duration::from_secs(5)))?;
    assert_eq!(
        one.recv(&mut bytes).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    Ok(())
}

#[haft::test(seeds = 5, short_counts)]
fn unix_sockets_have_paths() -> io::Result<()> {
    let listener = UnixListener::bind("/run/service")?;
    assert_eq!(
        listener.local_addr()?.as_pathname().unwrap().to_str(),
        Some("/run/service")
    );
    let server = haft::spawn(move || -> io::Result<()> {
        let (mut connection, client) = listener.accept()?;
        assert!(client.is_unnamed());
        connection.write_all(b"hello")
    });
    let mut text = String::new();
    let mut connection = UnixStream::connect("/run/service")?;
    assert!(connection.peer_addr()?.as_pathname().is_some());
    connection.read_to_string(&mut text)?;
    assert_eq!(text, "hello");
    server.join().unwrap()?;
    let (mut one, mut other) = UnixStream::pair()?;
    let echo = haft::spawn(move || io::copy(&mut other.try_clone().unwrap(), &mut other));
    let mut sender = one.try_clone()?;
    let sent = haft::spawn(move || {
        sender.write_all(&[7; 100_000])?;
        sender.shutdown(Shutdown::Write)
    });
    let mut bytes = Vec::new();
    one.read_to_end(&mut bytes)?;
    sent.join().unwrap()?;
    assert_eq!(bytes.len(), 100_000);
    assert_eq!(echo.join().unwrap()?, 100_000);
    Ok(())
}

/// Some seed breaks a connection, some refuses one; and each does so again.
#[test]
fn faults_come_to_code_that_knows_nothing_of_them() {
    let outcome = |seed| {
        let simulation = haft::Simulation::new().seed(seed).faults_one_in(40);
        simulation.run(|| -> io::Result<usize> {
            let listener = TcpListener::bind("127.0.0.1:80")?;
            drop(haft::spawn(move || {
                let served = haft::timeout(Duration::from_secs(60), || {
                    listener.accept()?.0.write_all(&[7; 10_000])
                });
                drop(served);
            }));
            let mut bytes = Vec::new();
            TcpStream::connect("127.0.0.1:80")
                .and_then(|mut connection| connection.read_to_end(&mut bytes))
        })
    };
    let outcomes = || (1..=40).map(|seed| outcome(seed).map_err(|error| error.kind()));
    let all: Vec<_> = outcomes().collect();
    assert!(all.contains(&Ok(10_000)), "{all:?}");
    assert!(all.contains(&Err(ErrorKind::ConnectionReset)), "{all:?}");
    assert!(
        all.iter()
            .any(|one| matches!(one, Err(kind) if *kind != ErrorKind::ConnectionReset))
    );
    assert_eq!(outcomes().collect::<Vec<_>>(), all);
}

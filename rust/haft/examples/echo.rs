// SPDX-License-Identifier: MIT
//! An echo server and its clients, written with std::net as for threads: all are tasks of one
//! thread.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};

fn serve(connection: TcpStream) -> Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        (&connection).write_all(line.as_bytes())?;
        line.clear();
    }
    Ok(())
}

fn ask(address: std::net::SocketAddr, name: u32) -> Result<String> {
    let mut connection = TcpStream::connect(address)?;
    writeln!(connection, "hello from {name}")?;
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer)?;
    Ok(answer)
}

fn main() -> Result<()> {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let answers = haft::scope(|s| {
            s.spawn(|| {
                loop {
                    match listener.accept() {
                        Ok((connection, _)) => drop(s.spawn(|| serve(connection))),
                        // A cancel is an error of std's call; the task is unwound by its next wait
                        // here.
                        Err(_) => haft::yield_now(),
                    }
                }
            });
            let answers = haft::all((1..=3).map(|name| move || ask(address, name)));
            s.cancel();
            answers
        });
        for answer in answers {
            print!("{}", answer?);
        }
        Ok(())
    })
}

// SPDX-License-Identifier: MIT
//! A service that ends in an orderly way at a signal: requests that have begun are finished, and no
//! new ones begin.

use haft::net::{TcpListener, TcpStream};
use haft::process::Command;
use haft::signal::{SIGTERM, Signals};
use std::io::{self, BufRead, Write};
use std::time::Duration;

fn serve(connection: &TcpStream) -> io::Result<()> {
    for line in connection.reader().lines() {
        // A request that has begun is answered, whatever happens meanwhile.
        haft::shield(|| {
            haft::sleep(Duration::from_millis(5));
            let mut out = connection;
            out.write_all(line?.to_uppercase().as_bytes())?;
            out.write_all(b"\n")
        })?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let signals = Signals::block(&[SIGTERM])?;
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let mut lines = client.reader().lines();
        haft::scope(|s| -> io::Result<()> {
            s.spawn(|| -> io::Result<()> {
                loop {
                    let (connection, _) = listener.accept()?;
                    s.spawn(move || serve(&connection));
                }
            });
            writeln!(&client, "hello")?;
            println!("{}", lines.next().expect("an answer")?);

            writeln!(&client, "the last one")?;
            haft::sleep(Duration::from_millis(1)); // until the service has begun with it
            let me = std::process::id().to_string();
            Command::new("kill").args(["-TERM", &me]).status()?;
            println!("signal {}", signals.wait()?);
            s.cancel();
            Ok(())
        })?;
        // The scope has waited for its tasks.
        println!("{}", lines.next().expect("an answer")?);
        assert!(lines.next().is_none());
        Ok(())
    })
}

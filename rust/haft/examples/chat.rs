// SPDX-License-Identifier: MIT
//! A chat: each line goes to all other members. Each connection is two tasks, which read and write;
//! the room is a list of channels.

use haft::net::{TcpListener, TcpStream};
use haft::{Sender, channel};
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::sync::Mutex;

#[derive(Default)]
struct Room(Mutex<Vec<(String, Sender<String>)>>);

impl Room {
    fn members(&self) -> std::sync::MutexGuard<'_, Vec<(String, Sender<String>)>> {
        self.0.lock().expect("nobody panics here")
    }
    fn say(&self, speaker: &str, text: &str) {
        let others: Vec<_> = self.members().clone();
        for (name, others_lines) in others {
            if name != speaker {
                // (A member that leaves meanwhile does not get it.)
                let _ = others_lines.send(format!("{speaker}: {text}"));
            }
        }
    }
}

/// The first line of a connection is a name.
fn serve(connection: &TcpStream, room: &Room) -> io::Result<()> {
    let mut lines = connection.reader().lines();
    let Some(name) = lines.next().transpose()? else {
        return Ok(());
    };
    let (sender, heard) = channel(16);
    room.members().push((name.clone(), sender));
    haft::scope(|s| {
        s.spawn(move || {
            for line in heard.iter() {
                let mut out = connection;
                let _ = writeln!(out, "{line}");
            }
        });
        room.say(&name, "is here");
        for line in lines {
            room.say(&name, &line?);
        }
        room.members().retain(|(other, _)| *other != name);
        room.say(&name, "is gone");
        Ok(())
    })
}

fn join(address: SocketAddr, name: &str) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(address)?;
    writeln!(&connection, "{name}")?;
    Ok(connection)
}

fn main() -> io::Result<()> {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let room = Room::default();
        haft::scope(|s| -> io::Result<()> {
            s.spawn(|| -> io::Result<()> {
                loop {
                    let (connection, _) = listener.accept()?;
                    s.spawn(|| serve(&{ connection }, &room));
                }
            });
            let ada = join(address, "ada")?;
            let mut ada_hears = ada.reader().lines();
            let bob = join(address, "bob")?;
            println!("{}", ada_hears.next().expect("a line")?);
            writeln!(&bob, "hello")?;
            println!("{}", ada_hears.next().expect("a line")?);
            writeln!(&ada, "good morning")?;
            println!("{}", bob.reader().lines().next().expect("a line")?);
            drop(bob);
            println!("{}", ada_hears.next().expect("a line")?);
            s.cancel();
            Ok(())
        })
    })
}

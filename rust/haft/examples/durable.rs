// SPDX-License-Identifier: MIT
//! A service of std alone, which was written without Haft in mind, and a test whether the sums that
//! it has answered survive a crash of its machine: two ways to save, each tried in worlds whose
//! machines crash.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

// The service.

type Save = fn(&str) -> io::Result<()>;

fn load() -> u64 {
    fs::read_to_string("/sum").map_or(0, |text| text.parse().unwrap_or(0))
}

fn save_in_place(sum: &str) -> io::Result<()> {
    fs::write("/sum", sum)
}

fn save_beside(sum: &str) -> io::Result<()> {
    let mut file = File::create("/sum.new")?;
    file.write_all(sum.as_bytes())?;
    file.sync_all()?;
    fs::rename("/sum.new", "/sum")?;
    File::open("/")?.sync_all()
}

/// Adds the number that each client sends, and answers with the sum, which is saved by then.
fn serve(listener: &TcpListener, save: Save) -> io::Result<()> {
    let mut sum = load();
    for connection in listener.incoming() {
        let connection = connection?;
        let mut line = String::new();
        BufReader::new(&connection).read_line(&mut line)?;
        let Ok(number) = line.trim().parse::<u64>() else {
            return Ok(());
        };
        save(&(sum + number).to_string())?;
        sum += number;
        writeln!(&connection, "{sum}")?;
    }
    Ok(())
}

fn add(line: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect("sums.example:7000")?;
    writeln!(connection, "{line}")?;
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer)?;
    Ok(answer)
}

// The test.

/// Returns the last sum that the service has answered, and the one that it has after the crash.
fn crash(seed: u64, save: Save) -> (u64, u64) {
    haft::simulate(seed, || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        let server = haft::spawn(move || serve(&listener, save));
        let mut said = 0;
        for number in ["1", "20", "300"] {
            said = add(number).unwrap().trim().parse().unwrap();
        }
        add("that is all").unwrap();
        server.join().unwrap().unwrap();
        haft::simulate_crash();
        (said, load())
    })
}

fn main() {
    let keeps = |save| move |seed: &u64| crash(*seed, save) == (321, 321);
    let seeds = || 1..=200;
    let forgets = seeds().find(|seed| !keeps(save_in_place)(seed));
    println!("in place, some world forgets: {}", forgets.is_some());
    let kept = seeds().filter(keeps(save_beside)).count();
    println!("beside, {kept} of 200 worlds keep it");
}

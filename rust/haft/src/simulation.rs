// SPDX-License-Identifier: MIT
//! Runs for tests: in virtual time, the same way for the same seed.

use crate::run::run_by;
use haft_sys as sys;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs `main` as [`run`](crate::run) does, for tests: the same way for the same seed, in a world
/// of its own.
///
/// The seed decides which of the tasks that can go on does; time stands still while one can, and
/// then jumps to the next timer. The network and the files exist in this simulation only: one host,
/// which has every address and name, and at first no files. With the feature `posix` that holds for
/// std, too, and for crates that were written without Haft in mind: its sockets, files, clocks,
/// sleeps and random bytes. Seed 0 draws a seed, unless the environment has one in `HAFT_IO_SEED`.
///
/// [`Simulation`] chooses the simulated parts, and adds faults.
///
/// # Panics
/// If `main` panics, or no task will ever go on. The seed is printed then.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use std::time::Duration;
///
/// # #[cfg(feature = "posix")]
/// haft::simulate(7, || -> std::io::Result<()> {
///     let listener = TcpListener::bind("0.0.0.0:80")?;
///     let server = haft::spawn(move || -> std::io::Result<()> {
///         let (mut connection, _) = listener.accept()?;
///         std::thread::sleep(Duration::from_secs(3600)); // at once
///         connection.write_all(b"hello")
///     });
///     let mut text = String::new();
///     TcpStream::connect("service.example:80")?.read_to_string(&mut text)?;
///     std::fs::write("/answer", &text)?;
///     assert_eq!(std::fs::read_to_string("/answer")?, "hello");
///     server.join().unwrap()
/// })
/// .unwrap();
/// ```
pub fn simulate<T>(seed: u64, main: impl FnOnce() -> T) -> T {
    Simulation::new().seed(seed).run(main)
}

/// A simulation (see [`simulate`]) with faults, or with fewer simulated parts.
///
/// ```
/// use haft::net::{TcpListener, TcpStream};
/// use std::io::{Read, Write};
///
/// haft::Simulation::new().seed(3).short_counts(true).run(|| -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:80")?; // of the simulation's only host
///     let server = haft::spawn(move || listener.accept()?.0.write_all(b"hello"));
///     let mut text = String::new();
///     TcpStream::connect("192.0.2.1:80")?.read_to_string(&mut text)?;
///     assert_eq!(text, "hello");
///     server.join().unwrap()
/// })
/// .unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "it runs nothing by itself"]
pub struct Simulation {
    seed: u64,
    short_counts: bool,
    network: bool,
    files: bool,
    faults_one_in: u32,
    switches_one_in: u32,
    date: i64,
}

impl Simulation {
    /// A simulation with a network and files of its own, without faults.
    ///
    /// ```
    /// assert_eq!(haft::Simulation::new().run(|| 42), 42);
    /// ```
    pub fn new() -> Self {
        Self {
            seed: 0,
            short_counts: false,
            network: true,
            files: true,
            faults_one_in: 0,
            switches_one_in: 0,
            date: 0,
        }
    }
    /// Sets the seed; 0 draws one, unless the environment has one in `HAFT_IO_SEED`.
    ///
    /// ```
    /// assert_eq!(haft::Simulation::new().seed(7).run(haft::simulation_seed), Some(7));
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Lets reads and writes of simulated streams do less than they are asked to.
    ///
    /// ```
    /// use std::io::{Read, Write};
    ///
    /// haft::Simulation::new().seed(1).short_counts(true).run(|| {
    ///     let (mut one, mut other) = haft::net::UnixStream::pair().unwrap();
    ///     one.write_all(b"in as many parts as the seed decides").unwrap();
    ///     drop(one);
    ///     let mut text = String::new();
    ///     other.read_to_string(&mut text).unwrap();
    ///     assert_eq!(text.len(), 36);
    /// });
    /// ```
    pub fn short_counts(mut self, yes: bool) -> Self {
        self.short_counts = yes;
        self
    }
    /// Sets whether sockets, by [`net`](crate::net) and, with the feature `posix`, by `std::net`,
    /// are of a network that exists in the simulation only, whose one host has every address and
    /// name. Otherwise they are the machine's, and block the thread with all its tasks.
    ///
    /// ```
    /// let simulation = haft::Simulation::new();
    /// simulation.run(|| assert!(haft::net::TcpListener::bind("192.0.2.1:80").is_ok()));
    /// ```
    pub fn network(mut self, yes: bool) -> Self {
        self.network = yes;
        self
    }
    /// Sets whether files, by [`fs`](crate::fs) and, with the feature `posix`, by `std::fs`, exist
    /// in the simulation only; at first there are none.
    ///
    /// ```
    /// let simulation = haft::Simulation::new();
    /// simulation.run(|| assert!(haft::fs::metadata("/etc").is_err()));
    /// simulation.files(false).run(|| assert!(haft::fs::metadata("/etc").is_ok()));
    /// ```
    pub fn files(mut self, yes: bool) -> Self {
        self.files = yes;
        self
    }
    /// Lets one in so many operations on simulated sockets and files fail, as the seed decides; 0:
    /// none.
    ///
    /// ```
    /// let simulation = haft::Simulation::new().seed(1).faults_one_in(2);
    /// let failed = simulation.run(|| (0..100).filter(|_| haft::fs::write("/file", "x").is_err()).count());
    /// assert!(failed > 0);
    /// ```
    pub fn faults_one_in(mut self, count: u32) -> Self {
        self.faults_one_in = count;
        self
    }
    /// Lets another task go on at one in so many operations that need not wait; 0: at none. So
    /// seeds find races between operations.
    ///
    /// A lock of std that is free is no such operation, nor is an atomic: they call nothing, so no
    /// seed lets another task go on there. A value that is read under a std `Mutex` and written
    /// under the next lock of it is a race that simulations do not find, unless something between
    /// the two is an operation. Locks of [`sync`](crate::sync) are operations, and so is
    /// [`yield_now`](crate::yield_now).
    ///
    /// ```
    /// let simulation = haft::Simulation::new().switches_one_in(1);
    /// simulation.run(|| drop(haft::net::UnixStream::pair().unwrap()));
    /// ```
    pub fn switches_one_in(mut self, count: u32) -> Self {
        self.switches_one_in = count;
        self
    }
    /// Sets the date at which the simulation begins, to the second; otherwise it begins with the
    /// year 2025 (UTC). The time stamps of its files follow, and with the feature `posix` also
    /// `SystemTime::now`.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    ///
    /// let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    /// let written = haft::Simulation::new().date(date).run(|| {
    ///     haft::fs::write("/file", "x").unwrap();
    ///     haft::fs::metadata("/file").unwrap().modified()
    /// });
    /// assert_eq!(written, date);
    /// ```
    pub fn date(mut self, date: SystemTime) -> Self {
        self.date = match date.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_secs() as i64,
            Err(before) => -(before.duration().as_secs() as i64),
        };
        self
    }

    /// Runs `main`, on this thread.
    ///
    /// Random numbers that std and crates have drawn before the simulation stay: the keys of
    /// `HashMap`s and the generator of `rand` are the thread's, and some crates have variables of
    /// the process (SQLite's random numbers). So run a seed on a fresh thread, as
    /// [`#[haft::test]`](macro@crate::test) does, if it is to repeat the order of a `HashMap`;
    /// variables of the process repeat only in the first simulation of the process.
    ///
    /// # Panics
    /// Like [`simulate`].
    ///
    /// ```
    /// let hour = std::time::Duration::from_secs(3600);
    /// assert!(haft::Simulation::new().run(|| haft::timeout(hour, || haft::sleep(2 * hour))).is_err());
    /// ```
    pub fn run<T>(&self, main: impl FnOnce() -> T) -> T {
        let options = sys::haft_io_simulation_options_t {
            seed: self.seed,
            short_counts: self.short_counts,
            network: self.network,
            files: self.files,
            faults_one_in: self.faults_one_in,
            switches_one_in: self.switches_one_in,
            date: self.date,
        };
        // SAFETY: as in `run`: a simulation has one thread.
        run_by(main, |body, argument| unsafe {
            sys::haft_io_simulate_with(&options, body, argument)
        })
        .unwrap_or_else(|error| panic!("haft::simulate: {error}"))
    }
}

/// The seed of the simulation in which the caller runs, for messages; `None` outside of one.
///
/// ```
/// assert_eq!(haft::simulate(7, haft::simulation_seed), Some(7));
/// assert_eq!(haft::simulation_seed(), None);
/// ```
#[must_use]
pub fn simulation_seed() -> Option<u64> {
    // SAFETY: any thread may call it.
    Some(unsafe { sys::haft_io_seed() }).filter(|seed| *seed != 0)
}

/// Simulates a crash of the machine, and a restart: the simulated files then hold contents that
/// they could have after a real one, as the seed decides. Synced data is there; other data may be
/// there in part. Call this when the tasks that use files have ended; files opened before are of no
/// use.
///
/// # Panics
/// Outside of a simulation with files the C library ends the process with a message.
///
/// ```
/// use haft::fs;
///
/// haft::Simulation::new().seed(1).run(|| -> std::io::Result<()> {
///     use std::io::Write;
///     let mut file = fs::File::create("/safe")?;
///     file.write_all(b"synced")?;
///     file.sync_all()?;
///     fs::File::open("/")?.sync_all()?; // its name
///     drop(file);
///     haft::simulate_crash();
///     assert_eq!(fs::read("/safe")?, b"synced");
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn simulate_crash() {
    // SAFETY: an ordinary call.
    unsafe { sys::haft_io_simulated_crash() };
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}

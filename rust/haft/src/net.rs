// SPDX-License-Identifier: MIT
//! Sockets by the library's own operations, for tasks: a cancel unwinds the task where it waits,
//! while in [`std::net`] it is an error of the call. They need no feature.
//!
//! One task reads a stream and one writes it at a time; a second one gets an error.

use crate::descriptor::{Descriptor, c_string, done, stream};
use haft_sys as sys;
use std::ffi::CString;
use std::io;
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Makes a call of std's type that never waits.
fn by_std<T: FromRawFd, R>(descriptor: &Descriptor, call: impl FnOnce(&T) -> R) -> R {
    // SAFETY: the descriptor is open while it is borrowed, and not closed here.
    call(&ManuallyDrop::new(unsafe {
        T::from_raw_fd(descriptor.raw())
    }))
}

/// The address of a socket. The system does not know the sockets of a simulation, which are all of
/// one host.
fn address_or_simulated(
    address: io::Result<SocketAddr>,
    socket: &Descriptor,
) -> io::Result<SocketAddr> {
    // SAFETY: any thread may call it.
    let is_simulated = || unsafe { sys::haft_io_seed() } != 0;
    match address {
        Err(_) if is_simulated() => {
            // SAFETY: the descriptor is open.
            let port = unsafe { sys::haft_io_port(socket.raw()) };
            Ok((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or(0)).into())
        }
        address => address,
    }
}

/// Calls the function with each of the addresses, up to the first for which it succeeds.
fn first_of<T>(
    addresses: impl ToSocketAddrs,
    call: impl Fn(CString, u16) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "there is no address");
    for address in addresses.to_socket_addrs()? {
        match call(CString::new(address.ip().to_string())?, address.port()) {
            Err(error) => last = error,
            done => return done,
        }
    }
    Err(last)
}

pub(crate) fn shut_down(socket: &Descriptor, how: Shutdown) -> io::Result<()> {
    let how = match how {
        Shutdown::Read => 0,
        Shutdown::Write => 1,
        Shutdown::Both => 2,
    };
    // SAFETY: the descriptor is open.
    done(|| unsafe { sys::haft_io_shutdown(socket.raw(), how) as isize }).map(drop)
}

fn accept(listener: &Descriptor) -> io::Result<Descriptor> {
    // SAFETY: the descriptor is open until the wait has ended; what it returns is new.
    unsafe { Descriptor::made_by(|| sys::haft_io_accept(listener.raw())) }
}

/// The functions of a listener, and conversions to and from std's types.
macro_rules! listener {
    ($name:ident) => {
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
        impl From<OwnedFd> for $name {
            fn from(descriptor: OwnedFd) -> Self {
                $name(descriptor.into())
            }
        }
        impl From<$name> for OwnedFd {
            fn from(listener: $name) -> Self {
                listener.0.into()
            }
        }
    };
}

// ---- TCP ----

/// A connection, like [`std::net::TcpStream`]. Written bytes are sent at once (`TCP_NODELAY`).
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::net::{TcpListener, TcpStream};
///     use std::io::{Read, Write};
///
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?)?;
///     let (mut served, _) = listener.accept()?;
///     client.write_all(b"hello")?;
///     let mut text = [0; 5];
///     served.read_exact(&mut text)?;
///     assert_eq!(&text, b"hello");
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct TcpStream(Descriptor);
stream! { TcpStream: read write }

impl TcpStream {
    /// Connects to the first of the addresses that answers.
    ///
    /// # Errors
    /// The error of the last address.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     haft::net::TcpStream::connect(listener.local_addr()?)?;
    ///     haft::net::TcpStream::connect(("127.0.0.1", listener.local_addr()?.port()))?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn connect(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        first_of(addresses, |host, port| {
            // SAFETY: the name lives until the call returns; the socket is new.
            unsafe { Descriptor::made_by(|| sys::haft_io_connect_tcp(host.as_ptr(), port)) }
        })
        .map(TcpStream)
    }

    /// Returns the other end's address.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let client = haft::net::TcpStream::connect(listener.local_addr()?)?;
    ///     assert_eq!(client.peer_addr()?, listener.local_addr()?);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let address = by_std(&self.0, std::net::TcpStream::peer_addr);
        address_or_simulated(address, &self.0)
    }
    /// Returns this end's address.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let client = haft::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let (served, _) = listener.accept()?;
    ///     assert_eq!(client.local_addr()?, served.peer_addr()?);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = by_std(&self.0, std::net::TcpStream::local_addr);
        address_or_simulated(address, &self.0)
    }
    /// Ends one direction, or both.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use std::io::Read;
    ///     use std::net::Shutdown;
    ///
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let client = haft::net::TcpStream::connect(listener.local_addr()?)?;
    ///     client.shutdown(Shutdown::Write)?;
    ///     assert_eq!(listener.accept()?.0.read(&mut [0; 8])?, 0); // the end
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        shut_down(&self.0, how)
    }
}

/// A socket that takes connections, as [`std::net::TcpListener`].
///
/// ```
/// use haft::net::{TcpListener, TcpStream};
/// use std::io::{Read, Write};
///
/// haft::run(|| -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let address = listener.local_addr()?;
///     let server = haft::spawn(move || listener.accept()?.0.write_all(b"hello"));
///     let mut text = String::new();
///     TcpStream::connect(address)?.read_to_string(&mut text)?;
///     assert_eq!(text, "hello");
///     server.join().unwrap()
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct TcpListener(Descriptor);

impl TcpListener {
    /// Listens at the first of the addresses at which this can be done.
    ///
    /// # Errors
    /// The error of the last address.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?; // any free port
    ///     assert_ne!(listener.local_addr()?.port(), 0);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        first_of(addresses, |host, port| {
            // SAFETY: the name lives until the call returns; the socket is new.
            unsafe { Descriptor::made_by(|| sys::haft_io_listen_tcp(host.as_ptr(), port, 0)) }
        })
        .map(TcpListener)
    }
    /// Returns the address at which it listens.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     assert!(listener.local_addr()?.ip().is_loopback());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = by_std(&self.0, std::net::TcpListener::local_addr);
        address_or_simulated(address, &self.0)
    }
    /// Waits for the next connection. One that its peer has reset already is left out.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = haft::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let client = haft::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let (_served, address) = listener.accept()?;
    ///     assert_eq!(address, client.local_addr()?);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let stream = TcpStream(accept(&self.0)?);
            match stream.peer_addr() {
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                address => return Ok((stream, address?)),
            }
        }
    }
}
listener! { TcpListener }

// ---- Unix ----

/// A connection of this machine, as [`std::os::unix::net::UnixStream`]; descriptors can be passed
/// over it.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::net::UnixStream;
///     use std::io::{Read, Write};
///
///     let (mut one, mut other) = UnixStream::pair()?;
///     one.write_all(b"hello")?;
///     let mut text = [0; 5];
///     other.read_exact(&mut text)?;
///     assert_eq!(&text, b"hello");
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct UnixStream(Descriptor);
stream! { UnixStream: read write }

impl UnixStream {
    /// Connects to the socket of this path.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     assert!(haft::net::UnixStream::connect("/no/such/socket").is_err());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = c_string(path.as_ref().as_os_str())?;
        // SAFETY: the path lives until the call returns; the socket is new.
        unsafe { Descriptor::made_by(|| sys::haft_io_connect_unix(path.as_ptr())) }.map(UnixStream)
    }

    /// Makes two ends that are connected.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let (one, other) = haft::net::UnixStream::pair()?;
    ///     drop(one);
    ///     assert!(other.read_lent()?.is_empty()); // the end
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn pair() -> io::Result<(Self, Self)> {
        const AF_UNIX: i32 = 1;
        const SOCK_STREAM: i32 = 1;
        // SAFETY: the ends are new.
        let ends = unsafe {
            Descriptor::pair(|ends| sys::haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends))
        };
        ends.map(|(first, second)| (UnixStream(first), UnixStream(second)))
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let (one, other) = haft::net::UnixStream::pair()?;
    ///     one.shutdown(std::net::Shutdown::Write)?;
    ///     assert!(other.read_lent()?.is_empty());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        shut_down(&self.0, how)
    }

    /// Passes a copy of the descriptor to the other end, along with one byte.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// use haft::net::UnixStream;
    /// use std::io::{Read, Write};
    ///
    /// haft::run(|| -> std::io::Result<()> {
    ///     let (here, there) = UnixStream::pair()?;
    ///     let (mut sender, receiver) = UnixStream::pair()?;
    ///     here.send_descriptor(&receiver)?;
    ///     drop(receiver);
    ///     let mut received = UnixStream::from(there.receive_descriptor()?);
    ///     sender.write_all(b"by way of the other")?;
    ///     drop(sender);
    ///     let mut text = String::new();
    ///     received.read_to_string(&mut text)?;
    ///     assert_eq!(text, "by way of the other");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn send_descriptor(&self, descriptor: impl AsFd) -> io::Result<()> {
        let descriptor = descriptor.as_fd();
        // SAFETY: both are open until the call returns.
        done(|| unsafe {
            sys::haft_io_send_descriptor(self.0.raw(), descriptor.as_raw_fd()) as isize
        })
        .map(drop)
    }

    /// Waits for a descriptor that the other end passes.
    ///
    /// # Errors
    /// The system's; `BrokenPipe` at the end of the stream, `EBADMSG` if a byte came without one.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let (here, there) = haft::net::UnixStream::pair()?;
    ///     here.send_descriptor(&std::fs::File::open("/dev/null")?)?;
    ///     std::fs::File::from(there.receive_descriptor()?).metadata()?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn receive_descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the socket is open until the call returns; the descriptor is new.
        unsafe { Descriptor::made_by(|| sys::haft_io_receive_descriptor(self.0.raw())) }
            .map(OwnedFd::from)
    }
}

/// A socket that takes connections of this machine, as [`std::os::unix::net::UnixListener`].
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::net::{UnixListener, UnixStream};
///
///     let path = std::env::temp_dir().join(format!("haft-listener-{}", std::process::id()));
///     let listener = UnixListener::bind(&path)?;
///     let _client = UnixStream::connect(&path)?;
///     let _served = listener.accept()?;
///     haft::fs::remove_file(&path)?;
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct UnixListener(Descriptor);

impl UnixListener {
    /// Listens at a path at which there is nothing yet.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// use haft::net::{UnixListener, UnixStream};
    /// use std::io::{Read, Write};
    ///
    /// let path = std::env::temp_dir().join(format!("haft-doc-{}", std::process::id()));
    /// haft::run(|| -> std::io::Result<()> {
    ///     let listener = UnixListener::bind(&path)?;
    ///     let server = haft::spawn(move || listener.accept()?.write_all(b"hello"));
    ///     let mut text = String::new();
    ///     UnixStream::connect(&path)?.read_to_string(&mut text)?;
    ///     assert_eq!(text, "hello");
    ///     std::fs::remove_file(&path)?;
    ///     server.join().unwrap()
    /// })
    /// .unwrap();
    /// ```
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = c_string(path.as_ref().as_os_str())?;
        // SAFETY: the path lives until the call returns; the socket is new.
        unsafe { Descriptor::made_by(|| sys::haft_io_listen_unix(path.as_ptr(), 0)) }
            .map(UnixListener)
    }
    /// Waits for the next connection.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::net::{UnixListener, UnixStream};
    ///
    ///     let path = std::env::temp_dir().join(format!("haft-accept-{}", std::process::id()));
    ///     let listener = UnixListener::bind(&path)?;
    ///     let _client = UnixStream::connect(&path)?;
    ///     let _served = listener.accept()?;
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn accept(&self) -> io::Result<UnixStream> {
        accept(&self.0).map(UnixStream)
    }
}
listener! { UnixListener }

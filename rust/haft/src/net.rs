// SPDX-License-Identifier: MIT
//! TCP by the library's own operations, for tasks: a cancel unwinds the task where it waits, while
//! in [`std::net`] it is an error of the call. They need no feature.

use crate::wait::{ECANCELED, ETIMEDOUT, Interrupted, wait};
use haft_sys as sys;
use std::ffi::CString;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};

fn error_of(interrupted: Interrupted) -> io::Error {
    io::Error::from_raw_os_error(match interrupted {
        Interrupted::Cancelled => ECANCELED,
        Interrupted::TimedOut => ETIMEDOUT,
        Interrupted::Failed(number) => number,
    })
}

fn closed(descriptor: RawFd) {
    // SAFETY: the caller has taken it from its owner, who is gone.
    unsafe { sys::haft_io_close(descriptor) };
}

/// A connection, as [`std::net::TcpStream`].
///
/// One task reads and one writes at a time; a second one gets an error.
#[derive(Debug)]
pub struct TcpStream(ManuallyDrop<std::net::TcpStream>);

impl TcpStream {
    /// Connects to the first of the addresses that answers.
    ///
    /// # Errors
    /// Of the last address.
    pub fn connect(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to connect to");
        for address in addresses.to_socket_addrs()? {
            let host = CString::new(address.ip().to_string())?;
            // SAFETY: the name lives until the call returns.
            let connected = wait(|| unsafe {
                sys::haft_io_connect_tcp(host.as_ptr(), address.port()) as isize
            });
            match connected {
                Ok(descriptor) => return Ok(Self::of(descriptor as RawFd)),
                Err(interrupted) => last = error_of(interrupted),
            }
        }
        Err(last)
    }

    fn of(descriptor: RawFd) -> Self {
        // SAFETY: the library has just made it, and it is nobody else's.
        TcpStream(ManuallyDrop::new(unsafe {
            std::net::TcpStream::from_raw_fd(descriptor)
        }))
    }

    /// The other end's address.
    ///
    /// # Errors
    /// The system's.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
    /// This end's address.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    /// Ends one direction, or both.
    ///
    /// # Errors
    /// The system's.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the descriptor is open, and the buffer lent, until the wait has ended.
        wait(|| unsafe { sys::haft_io_read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) })
            .map_err(error_of)
    }
}
impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the descriptor is open, and the bytes lent, until the wait has ended. (A send to
        // a broken connection sends no signal.)
        wait(|| unsafe { sys::haft_io_send(descriptor, bytes.as_ptr().cast(), bytes.len(), 0) })
            .map_err(error_of)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}
impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
impl Drop for TcpStream {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        closed(unsafe { ManuallyDrop::take(&mut self.0) }.into_raw_fd());
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
pub struct TcpListener(ManuallyDrop<std::net::TcpListener>);

impl TcpListener {
    /// Listens at the first of the addresses at which this can be done.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(addresses: impl ToSocketAddrs) -> io::Result<Self> {
        std::net::TcpListener::bind(addresses).map(|inner| TcpListener(ManuallyDrop::new(inner)))
    }
    /// The address at which it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    /// Waits for the next connection.
    ///
    /// # Errors
    /// The system's.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let descriptor = self.0.as_raw_fd();
        // SAFETY: the descriptor is open until the wait has ended.
        let accepted = wait(|| unsafe { sys::haft_io_accept(descriptor) as isize });
        let stream = TcpStream::of(accepted.map_err(error_of)? as RawFd);
        let address = stream.peer_addr()?;
        Ok((stream, address))
    }
}
impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
impl Drop for TcpListener {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        closed(unsafe { ManuallyDrop::take(&mut self.0) }.into_raw_fd());
    }
}

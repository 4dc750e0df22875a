// SPDX-License-Identifier: MIT
//! An open descriptor with the library's operations, of which files, sockets and pipes here are
//! made.

use crate::wait::{ECANCELED, ETIMEDOUT, Interrupted, error_of_number, wait};
use haft_sys as sys;
use std::ffi::{CString, OsStr, c_int, c_void};
use std::io::{self, BufRead, IoSlice, IoSliceMut, Read};
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::{fmt, ptr, slice};

pub(crate) fn error_of(interrupted: Interrupted) -> io::Error {
    error_of_number(match interrupted {
        Interrupted::Cancelled => ECANCELED,
        Interrupted::TimedOut => ETIMEDOUT,
        Interrupted::Failed(number) => number,
    })
}

/// Makes a call that may wait; a cancel of the task unwinds it.
pub(crate) fn done(call: impl FnOnce() -> isize) -> io::Result<usize> {
    wait(call).map_err(error_of)
}

pub(crate) fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

#[derive(Debug)]
pub(crate) struct Descriptor(ManuallyDrop<OwnedFd>);

impl Descriptor {
    /// Takes the new descriptor that the call returns; or its error, a negative number.
    ///
    /// # Safety
    /// Nobody else owns the descriptor.
    pub(crate) unsafe fn made_by(call: impl FnOnce() -> c_int) -> io::Result<Self> {
        let descriptor = done(|| call() as isize)?;
        // SAFETY: the caller promises it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }.into())
    }

    /// # Safety
    /// The same as for `made_by`, for both ends.
    pub(crate) unsafe fn pair(call: impl FnOnce(*mut c_int) -> c_int) -> io::Result<(Self, Self)> {
        let mut ends = [-1; 2];
        done(|| call(ends.as_mut_ptr()) as isize)?;
        // SAFETY: the caller promises it.
        let [first, second] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }.into());
        Ok((first, second))
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the descriptor is open, and what is lent is lent until the wait has ended.
        done(|| unsafe { sys::haft_io_read(self.raw(), buffer.as_mut_ptr().cast(), buffer.len()) })
    }
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: as in `read`.
        done(|| unsafe { sys::haft_io_write(self.raw(), bytes.as_ptr().cast(), bytes.len()) })
    }
    /// (`IoSlice` has the layout of C's `iovec`; more than C takes at once are left to the next
    /// call.)
    pub(crate) fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = parts.len().min(MOST_PARTS);
        // SAFETY: as in `read`.
        done(|| unsafe { sys::haft_io_writev(self.raw(), parts.as_ptr().cast(), count) })
    }
    pub(crate) fn read_vectored(&self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = parts.len().min(MOST_PARTS);
        // SAFETY: as in `read`.
        done(|| unsafe { sys::haft_io_readv(self.raw(), parts.as_mut_ptr().cast(), count) })
    }
    /// Reads without waiting: `WouldBlock` instead.
    #[cfg(feature = "hyper")]
    pub(crate) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (bytes, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as in `read`.
        done(|| unsafe { sys::haft_io_receive(self.raw(), bytes, size, MSG_DONTWAIT) })
    }
    #[cfg(feature = "hyper")]
    pub(crate) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let (bytes, size) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: as in `read`.
        done(|| unsafe { sys::haft_io_send(self.raw(), bytes, size, MSG_DONTWAIT) })
    }
    pub(crate) fn read_lent(&self) -> io::Result<Lent> {
        let mut lent = Lent::NONE;
        // SAFETY: as in `read`.
        lent.size = done(|| unsafe { sys::haft_io_read_lent(self.raw(), &mut lent.bytes) })?;
        Ok(lent)
    }
}

#[cfg(feature = "hyper")]
const MSG_DONTWAIT: c_int = 0x40;
/// UIO_MAXIOV.
const MOST_PARTS: usize = 1024;

impl From<OwnedFd> for Descriptor {
    fn from(descriptor: OwnedFd) -> Self {
        Descriptor(ManuallyDrop::new(descriptor))
    }
}
impl From<Descriptor> for OwnedFd {
    fn from(descriptor: Descriptor) -> Self {
        let mut descriptor = ManuallyDrop::new(descriptor);
        // SAFETY: the field is not used after this.
        unsafe { ManuallyDrop::take(&mut descriptor.0) }
    }
}
impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this, and the descriptor is nobody else's.
        unsafe { sys::haft_io_close(ManuallyDrop::take(&mut self.0).into_raw_fd()) };
    }
}

/// `Read`, `Write`, and the other functions of each type that is a stream of bytes.
macro_rules! stream {
    ($name:ident: $($way:ident)+) => {
        $(crate::descriptor::stream! { @$way $name })+
        impl ::std::os::fd::AsFd for $name {
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
        impl From<$name> for ::std::os::fd::OwnedFd {
            fn from(stream: $name) -> Self {
                stream.0.into()
            }
        }
        impl From<::std::os::fd::OwnedFd> for $name {
            fn from(descriptor: ::std::os::fd::OwnedFd) -> Self {
                Self(descriptor.into())
            }
        }
    };
    (@read $name:ident) => {
        crate::descriptor::stream! { @reads &$name }
        crate::descriptor::stream! { @reads $name }
        impl $name {
            /// Reads what there is into memory that the library lends: a task that waits for an
            /// idle stream occupies no buffer. At the end of the stream nothing is lent.
            ///
            /// On io_uring the library may hold bytes of a TCP connection that no read has asked
            /// for yet. Reads by this type return them; reads of a stream of std that is made of
            /// it, or of a duplicate of its descriptor, do not.
            ///
            /// # Errors
            /// The system's.
            ///
            /// ```
            /// use haft::net::UnixStream;
            /// use std::io::Write;
            ///
            /// haft::run(|| -> std::io::Result<()> {
            ///     let (mut sender, receiver) = UnixStream::pair()?;
            ///     sender.write_all(b"hello")?;
            ///     assert_eq!(&receiver.read_lent()?[..], b"hello");
            ///     Ok(())
            /// })
            /// .unwrap();
            /// ```
            pub fn read_lent(&self) -> ::std::io::Result<crate::io::Lent> {
                self.0.read_lent()
            }
            /// A reader of lines and the like, by [`read_lent`](Self::read_lent).
            ///
            /// ```
            /// use std::io::BufRead;
            ///
            /// haft::run(|| -> std::io::Result<()> {
            ///     let (sender, receiver) = haft::net::UnixStream::pair()?;
            ///     drop(sender);
            ///     assert_eq!(receiver.reader().lines().count(), 0);
            ///     Ok(())
            /// })
            /// .unwrap();
            /// ```
            pub fn reader(&self) -> crate::io::LentReader<'_> {
                crate::io::LentReader::new(&self.0)
            }
        }
    };
    (@write $name:ident) => {
        crate::descriptor::stream! { @writes &$name }
        crate::descriptor::stream! { @writes $name }
    };
    (@reads $type:ty) => {
        impl ::std::io::Read for $type {
            fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
                self.0.read(buffer)
            }
            fn read_vectored(
                &mut self,
                parts: &mut [::std::io::IoSliceMut<'_>],
            ) -> ::std::io::Result<usize> {
                self.0.read_vectored(parts)
            }
            fn read_to_string(&mut self, text: &mut String) -> ::std::io::Result<usize> {
                crate::descriptor::read_to_string(|buffer| self.0.read(buffer), text)
            }
        }
    };
    (@writes $type:ty) => {
        impl ::std::io::Write for $type {
            fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
                self.0.write(bytes)
            }
            fn write_vectored(
                &mut self,
                parts: &[::std::io::IoSlice<'_>],
            ) -> ::std::io::Result<usize> {
                self.0.write_vectored(parts)
            }
            fn flush(&mut self) -> ::std::io::Result<()> {
                Ok(())
            }
        }
    };
}
pub(crate) use stream;

/// Bytes that have been read, in memory that the library lends until this is dropped.
///
/// ```
/// use haft::net::UnixStream;
/// use std::io::Write;
///
/// haft::run(|| -> std::io::Result<()> {
///     let (mut sender, receiver) = UnixStream::pair()?;
///     sender.write_all(b"hello")?;
///     let bytes = receiver.read_lent()?;
///     assert_eq!(&bytes[..], b"hello");
///     drop(sender);
///     assert!(receiver.read_lent()?.is_empty());
///     Ok(())
/// })
/// .unwrap();
/// ```
pub struct Lent {
    bytes: *const c_void,
    size: usize,
}

// SAFETY: the bytes are this one's alone, and any thread may give them back.
unsafe impl Send for Lent {}
// SAFETY: they are only read.
unsafe impl Sync for Lent {}

impl Lent {
    const NONE: Lent = Lent {
        bytes: ptr::null(),
        size: 0,
    };
}
impl Deref for Lent {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: so many bytes were read there, and stay until the drop.
        unsafe { slice::from_raw_parts(self.bytes.cast(), self.size) }
    }
}
impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: they were lent here; or it is null, which is ignored.
        unsafe { sys::haft_io_give_back(self.bytes) };
    }
}
impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

/// Reads a stream through lent memory, of which it has some only while there is something to read.
///
/// A read that a cancel or a deadline cuts short has taken nothing: the next one begins with the
/// bytes that have come. (The `read_line`, `lines`, `read_to_string` and `read_exact` of a
/// [`std::io::BufReader`] lose them.)
///
/// ```
/// use haft::net::UnixStream;
/// use std::io::{BufRead, Write};
/// use std::time::Duration;
///
/// haft::run(|| -> std::io::Result<()> {
///     let (mut sender, receiver) = UnixStream::pair()?;
///     let mut lines = receiver.reader().lines();
///     sender.write_all(b"one\ntw")?;
///     assert_eq!(lines.next().unwrap()?, "one");
///     assert!(haft::timeout(Duration::from_millis(1), || lines.next()).is_err());
///     sender.write_all(b"o\n")?;
///     assert_eq!(lines.next().unwrap()?, "two");
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct LentReader<'a> {
    stream: &'a Descriptor,
    /// Bytes of a read that waits, or was cut short; those of `lent` come after them.
    begun: Vec<u8>,
    lent: Lent,
    /// How many bytes are consumed: of `begun`, or if that is empty, of `lent`.
    taken: usize,
}

impl<'a> LentReader<'a> {
    pub(crate) fn new(stream: &'a Descriptor) -> Self {
        LentReader {
            stream,
            begun: Vec::new(),
            lent: Lent::NONE,
            taken: 0,
        }
    }

    /// The bytes that have come, in two parts.
    fn present(&self) -> [&[u8]; 2] {
        if self.begun.is_empty() {
            [&self.lent[self.taken..], &[]]
        } else {
            [&self.begun[self.taken..], &self.lent]
        }
    }

    /// Waits until `end_in`, which gets all bytes part by part, finds the end of the wanted part,
    /// or the stream ends. Returns the number of these bytes, which are not consumed.
    fn hold(&mut self, mut end_in: impl FnMut(&[u8]) -> Option<usize>) -> io::Result<usize> {
        let mut count = 0;
        for part in self.present() {
            if let Some(end) = end_in(part) {
                return Ok(count + end);
            }
            count += part.len();
        }
        loop {
            let [first, second] = self.present();
            if self.begun.is_empty() {
                (self.begun, self.taken) = (first.to_vec(), 0);
            } else {
                let second = second.to_vec();
                self.begun.extend(second);
            }
            self.lent = Lent::NONE; // which gives the memory back before the wait
            self.lent = self.stream.read_lent()?;
            if self.lent.is_empty() {
                return Ok(count);
            }
            if let Some(end) = end_in(&self.lent) {
                return Ok(count + end);
            }
            count += self.lent.len();
        }
    }

    /// Consumes so many bytes, which have come.
    fn take_into(&mut self, count: usize, mut place: impl FnMut(&[u8])) {
        let mut left = count;
        for part in self.present() {
            let here = left.min(part.len());
            place(&part[..here]);
            left -= here;
        }
        self.consume(count);
    }

    fn take_text(&mut self, count: usize, text: &mut String) -> io::Result<usize> {
        let mut bytes = Vec::with_capacity(count);
        self.take_into(count, |part| bytes.extend_from_slice(part));
        match std::str::from_utf8(&bytes) {
            Ok(more) => text.push_str(more),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        Ok(count)
    }
}
impl BufRead for LentReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.present()[0].is_empty() {
            self.lent = Lent::NONE;
            self.taken = 0;
            self.lent = self.stream.read_lent()?;
        }
        Ok(self.present()[0])
    }
    fn consume(&mut self, count: usize) {
        let first = self.present()[0].len();
        self.taken += count.min(first);
        if count >= first && !self.begun.is_empty() {
            self.begun = Vec::new();
            self.taken = self.lent.len().min(count - first);
        }
    }
    fn read_until(&mut self, delimiter: u8, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = self.hold(|part| after(delimiter, part))?;
        self.take_into(count, |part| buffer.extend_from_slice(part));
        Ok(count)
    }
    fn read_line(&mut self, text: &mut String) -> io::Result<usize> {
        let count = self.hold(|part| after(b'\n', part))?;
        self.take_text(count, text)
    }
}
impl Read for LentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut missing = buffer.len();
        let count = self.hold(|part| {
            let is_enough = missing <= part.len();
            let end = is_enough.then_some(missing);
            missing -= missing.min(part.len());
            end
        })?;
        if count < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut place = buffer;
        self.take_into(count, |part| {
            let (here, rest) = mem::take(&mut place).split_at_mut(part.len());
            here.copy_from_slice(part);
            place = rest;
        });
        Ok(())
    }
    fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = self.hold(|_| None)?;
        self.take_into(count, |part| buffer.extend_from_slice(part));
        Ok(count)
    }
    fn read_to_string(&mut self, text: &mut String) -> io::Result<usize> {
        let count = self.hold(|_| None)?;
        self.take_text(count, text)
    }
}

/// The length of the bytes up to and including the delimiter.
fn after(delimiter: u8, bytes: &[u8]) -> Option<usize> {
    let at = bytes.iter().position(|byte| *byte == delimiter)?;
    Some(at + 1)
}

/// [`Read::read_to_string`] of a stream, which cannot take bytes back: where a cancel or an error
/// cuts it short, the text has what was read, up to its last whole character.
pub(crate) fn read_to_string(
    stream: impl FnMut(&mut [u8]) -> io::Result<usize>,
    text: &mut String,
) -> io::Result<usize> {
    struct By<F>(F);
    impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Read for By<F> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            (self.0)(buffer)
        }
    }
    /// Moves its bytes to the text when it is dropped.
    struct Begun<'a> {
        bytes: Vec<u8>,
        text: &'a mut String,
    }
    impl Drop for Begun<'_> {
        fn drop(&mut self) {
            let whole = self.bytes.utf8_chunks().next();
            self.text.push_str(whole.map_or("", |chunk| chunk.valid()));
        }
    }
    let bytes = Vec::new();
    let mut begun = Begun { bytes, text };
    let count = By(stream).read_to_end(&mut begun.bytes)?;
    if let Err(error) = std::str::from_utf8(&begun.bytes) {
        begun.bytes.clear();
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    Ok(count)
}

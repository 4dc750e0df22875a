// SPDX-License-Identifier: MIT
//! Files by the library's own operations, for tasks: what may wait for the disk does so in a pool of
//! threads, and in a simulation with files they are the simulation's. They need no feature.

use crate::descriptor::{Descriptor, c_string, done, stream};
use haft_sys as sys;
use std::ffi::{CStr, CString, OsStr, OsString, c_int, c_void};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, SystemTime};

fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str())
}

/// An open file, as [`std::fs::File`].
///
/// ```
/// use haft::fs;
/// use std::io::{BufRead, Write};
///
/// let path = std::env::temp_dir().join(format!("haft-doc-file-{}", std::process::id()));
/// haft::run(|| -> std::io::Result<()> {
///     let mut file = fs::File::create(&path)?;
///     file.write_all(b"one\ntwo\n")?;
///     file.sync_all()?;
///     let lines: Vec<_> = fs::File::open(&path)?.reader().lines().collect::<Result<_, _>>()?;
///     assert_eq!(lines, ["one", "two"]);
///     fs::remove_file(&path)
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct File(Descriptor);
stream! { File: read write }

impl File {
    /// Opens a file to read it.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path)
    }
    /// Opens an empty file to write it: what was there is lost.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
    }
    /// Reads from a position on, and leaves the file's own position alone.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (bytes, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the file is open, and the buffer lent, until the call returns.
        done(|| unsafe { sys::haft_io_pread(self.0.raw(), bytes, size, offset as i64) })
    }
    /// Writes at a position, and leaves the file's own position alone.
    ///
    /// # Errors
    /// The system's.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (bytes, size) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the file is open, and the bytes lent, until the call returns.
        done(|| unsafe { sys::haft_io_pwrite(self.0.raw(), bytes, size, offset as i64) })
    }
    /// Returns when what was written is on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn sync_all(&self) -> io::Result<()> {
        // SAFETY: the file is open until the call returns.
        done(|| unsafe { sys::haft_io_fsync(self.0.raw()) as isize }).map(drop)
    }
}

/// How a file is opened, as [`std::fs::OpenOptions`].
///
/// ```
/// let missing = haft::run(|| haft::fs::OpenOptions::new().append(true).open("/no/such/file"));
/// assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
}

impl OpenOptions {
    /// For nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// To read.
    pub fn read(&mut self, yes: bool) -> &mut Self {
        self.read = yes;
        self
    }
    /// To write.
    pub fn write(&mut self, yes: bool) -> &mut Self {
        self.write = yes;
        self
    }
    /// To write at the end, wherever that is at each write.
    pub fn append(&mut self, yes: bool) -> &mut Self {
        self.append = yes;
        self
    }
    /// Empties the file.
    pub fn truncate(&mut self, yes: bool) -> &mut Self {
        self.truncate = yes;
        self
    }
    /// Makes the file if there is none.
    pub fn create(&mut self, yes: bool) -> &mut Self {
        self.create = yes;
        self
    }
    /// Makes the file; it is an error if there is one.
    pub fn create_new(&mut self, yes: bool) -> &mut Self {
        self.create_new = yes;
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The system's; `InvalidInput` if the file is to be neither read nor written, or is to be made
    /// or emptied without being written.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let path = c_path(path.as_ref())?;
        let flags = self.flags().ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the path lives until the call returns; the descriptor is new.
        unsafe { Descriptor::made_by(|| sys::haft_io_open(path.as_ptr(), flags, 0o666)) }.map(File)
    }

    fn flags(&self) -> Option<c_int> {
        const O_CREAT: c_int = 0o100;
        const O_EXCL: c_int = 0o200;
        const O_TRUNC: c_int = 0o1000;
        const O_APPEND: c_int = 0o2000;
        let writes = self.write || self.append;
        let makes = self.create || self.create_new;
        let empties = self.truncate && !self.create_new;
        if !writes && (makes || !self.read) || empties && !self.write {
            return None;
        }
        let access = match (self.read, writes) {
            (true, false) => 0,
            (false, _) => 1,
            (true, true) => 2,
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        Some(
            access
                | flag(self.append, O_APPEND)
                | flag(makes, O_CREAT)
                | flag(self.create_new, O_EXCL)
                | flag(empties, O_TRUNC),
        )
    }
}

/// What [`metadata`] returns.
#[derive(Clone, Debug)]
pub struct Metadata {
    size: u64,
    mode: u32,
    modified: SystemTime,
}

impl Metadata {
    /// Its size in bytes.
    #[allow(clippy::len_without_is_empty)] // as std's
    pub fn len(&self) -> u64 {
        self.size
    }
    /// Type and permissions, as in `st_mode` of stat(2).
    pub fn mode(&self) -> u32 {
        self.mode
    }
    fn is_of(&self, kind: u32) -> bool {
        self.mode & 0o170_000 == kind
    }
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.is_of(0o100_000)
    }
    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.is_of(0o040_000)
    }
    /// When it was last written.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }
}

/// What is known of a file, as [`std::fs::metadata`].
///
/// # Errors
/// The system's.
///
/// ```
/// assert!(haft::run(|| haft::fs::metadata("/")).unwrap().is_dir());
/// ```
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = c_path(path.as_ref())?;
    let mut status = sys::haft_rust_status_t::ZERO;
    // SAFETY: path and record live until the call returns.
    done(|| unsafe { sys::haft_rust_stat(path.as_ptr(), &mut status) as isize })?;
    let seconds = Duration::from_secs(status.modified.unsigned_abs());
    let whole = if status.modified < 0 {
        SystemTime::UNIX_EPOCH - seconds
    } else {
        SystemTime::UNIX_EPOCH + seconds
    };
    Ok(Metadata {
        size: status.size,
        mode: status.mode,
        modified: whole + Duration::from_nanos(u64::from(status.modified_nanoseconds)),
    })
}

/// The whole content of a file.
///
/// # Errors
/// The system's.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// The whole content of a file of text.
///
/// # Errors
/// The system's; `InvalidData` if it is not UTF-8.
///
/// ```
/// let name = haft::run(|| haft::fs::read_to_string("/proc/self/comm")).unwrap();
/// assert!(!name.is_empty());
/// ```
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut content = String::new();
    File::open(path)?.read_to_string(&mut content)?;
    Ok(content)
}

/// Makes a file with this content; what was there is lost.
///
/// # Errors
/// The system's.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    File::create(path)?.write_all(content.as_ref())
}

/// Makes an empty directory.
///
/// # Errors
/// The system's.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = c_path(path.as_ref())?;
    // SAFETY: the path lives until the call returns.
    done(|| unsafe { sys::haft_io_mkdir(path.as_ptr(), 0o777) as isize }).map(drop)
}

/// Makes a directory, and those around it that are not there.
///
/// # Errors
/// The system's.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_dir_all(path.parent().ok_or(error)?)?;
            create_dir_all(path)
        }
        Err(_) if metadata(path).is_ok_and(|found| found.is_dir()) => Ok(()),
        outcome => outcome,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path lives until the call returns.
    done(|| unsafe { sys::haft_io_remove(path.as_ptr()) as isize }).map(drop)
}

/// Removes a file.
///
/// # Errors
/// The system's; `IsADirectory` for a directory.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if metadata(path).is_ok_and(|found| found.is_dir()) && !path.is_symlink() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    remove(path)
}

/// Removes an empty directory.
///
/// # Errors
/// The system's; `NotADirectory` for anything else.
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if !metadata(path)?.is_dir() || path.is_symlink() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    remove(path)
}

/// Gives a file another name; what has that is replaced.
///
/// # Errors
/// The system's.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (c_path(from.as_ref())?, c_path(to.as_ref())?);
    // SAFETY: the paths live until the call returns.
    done(|| unsafe { sys::haft_io_rename(from.as_ptr(), to.as_ptr()) as isize }).map(drop)
}

/// The paths in a directory, sorted by name, without `.` and `..`.
///
/// # Errors
/// The system's.
///
/// ```
/// let entries = haft::run(|| haft::fs::read_dir("/proc/self")).unwrap();
/// assert!(entries.iter().any(|path| path.ends_with("status")));
/// ```
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let folder = path.as_ref();
    let path = c_path(folder)?;
    let mut entries: *mut c_void = ptr::null_mut();
    // SAFETY: path and variable live until the call returns.
    let count = done(|| unsafe { sys::haft_rust_list(path.as_ptr(), &mut entries) as isize })?;
    let names: Vec<OsString> = (0..count)
        // SAFETY: there are so many entries, each with a name, which is copied.
        .map(|i| unsafe { CStr::from_ptr(sys::haft_rust_entry_name(entries, i)) })
        .map(|name| OsStr::from_bytes(name.to_bytes()).to_owned())
        .collect();
    // SAFETY: they are this function's, and not used after this.
    unsafe { sys::haft_rust_entries_free(entries, count) };
    let is_entry = |name: &OsString| name != "." && name != "..";
    Ok(names
        .into_iter()
        .filter(is_entry)
        .map(|name| folder.join(name))
        .collect())
}

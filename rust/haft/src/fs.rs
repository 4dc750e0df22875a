// SPDX-License-Identifier: MIT
//! Files by the library's own operations, for tasks: calls that may wait for the disk do so in a
//! pool of threads, and in a simulation with files they act on the simulation's. They need no
//! feature.

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
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use std::io::Read;
    ///
    ///     let mut name = String::new();
    ///     haft::fs::File::open("/proc/self/comm")?.read_to_string(&mut name)?;
    ///     assert!(name.ends_with('\n'));
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path)
    }
    /// Opens an empty file to write it: earlier content is lost.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-create-{}", std::process::id()));
    ///     use std::io::Write;
    ///
    ///     haft::fs::File::create(&path)?.write_all(b"new")?;
    ///     assert_eq!(haft::fs::read(&path)?, b"new");
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
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
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-read-at-{}", std::process::id()));
    ///     haft::fs::write(&path, "hello")?;
    ///     let mut end = [0; 8];
    ///     assert_eq!(haft::fs::File::open(&path)?.read_at(&mut end, 3)?, 2);
    ///     assert_eq!(&end[..2], b"lo");
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (bytes, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the file is open, and the buffer lent, until the call returns.
        done(|| unsafe { sys::haft_io_pread(self.0.raw(), bytes, size, offset as i64) })
    }
    /// Writes at a position, and leaves the file's own position alone.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-write-at-{}", std::process::id()));
    ///     let file = haft::fs::File::create(&path)?;
    ///     file.write_at(b"lo", 3)?;
    ///     file.write_at(b"hel", 0)?;
    ///     assert_eq!(haft::fs::read(&path)?, b"hello");
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (bytes, size) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the file is open, and the bytes lent, until the call returns.
        done(|| unsafe { sys::haft_io_pwrite(self.0.raw(), bytes, size, offset as i64) })
    }
    /// Returns when the written data is on the disk.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-sync-{}", std::process::id()));
    ///     use std::io::Write;
    ///
    ///     let mut file = haft::fs::File::create(&path)?;
    ///     file.write_all(b"safe")?;
    ///     file.sync_all()?;
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn sync_all(&self) -> io::Result<()> {
        // SAFETY: the file is open until the call returns.
        done(|| unsafe { sys::haft_io_fsync(self.0.raw()) as isize }).map(drop)
    }
}

/// The options with which a file is opened, as [`std::fs::OpenOptions`].
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
    /// Options that allow nothing yet.
    ///
    /// ```
    /// // Neither read nor write is set.
    /// let refused = haft::run(|| haft::fs::OpenOptions::new().open("/dev/null"));
    /// assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Opens the file to read it.
    ///
    /// ```
    /// let null = haft::run(|| haft::fs::OpenOptions::new().read(true).open("/dev/null"));
    /// assert!(null.is_ok());
    /// ```
    pub fn read(&mut self, yes: bool) -> &mut Self {
        self.read = yes;
        self
    }
    /// Opens the file to write it.
    ///
    /// ```
    /// let null = haft::run(|| haft::fs::OpenOptions::new().write(true).open("/dev/null"));
    /// assert!(null.is_ok());
    /// ```
    pub fn write(&mut self, yes: bool) -> &mut Self {
        self.write = yes;
        self
    }
    /// Writes at the end, wherever that is at each write.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-append-{}", std::process::id()));
    ///     use std::io::Write;
    ///
    ///     haft::fs::write(&path, "one")?;
    ///     let mut file = haft::fs::OpenOptions::new().append(true).open(&path)?;
    ///     file.write_all(b", two")?;
    ///     assert_eq!(haft::fs::read(&path)?, b"one, two");
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn append(&mut self, yes: bool) -> &mut Self {
        self.append = yes;
        self
    }
    /// Empties the file.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-truncate-{}", std::process::id()));
    ///     haft::fs::write(&path, "old")?;
    ///     haft::fs::OpenOptions::new().write(true).truncate(true).open(&path)?;
    ///     assert!(haft::fs::read(&path)?.is_empty());
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn truncate(&mut self, yes: bool) -> &mut Self {
        self.truncate = yes;
        self
    }
    /// Makes the file if there is none.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-make-{}", std::process::id()));
    ///     haft::fs::OpenOptions::new().write(true).create(true).open(&path)?;
    ///     assert!(haft::fs::read(&path)?.is_empty());
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn create(&mut self, yes: bool) -> &mut Self {
        self.create = yes;
        self
    }
    /// Makes the file; it is an error if there is one.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-make-new-{}", std::process::id()));
    ///     haft::fs::write(&path, "there")?;
    ///     let refused = haft::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    ///     assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn create_new(&mut self, yes: bool) -> &mut Self {
        self.create_new = yes;
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The system's; `InvalidInput` if the file is to be neither read nor written, or is to be made
    /// or emptied without being written.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     haft::fs::OpenOptions::new().read(true).open("/proc/self/comm")?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
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

/// Result of [`metadata`].
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let about = haft::fs::metadata("/")?;
///     assert!(about.is_dir() && !about.is_file());
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Metadata {
    size: u64,
    mode: u32,
    modified: SystemTime,
}

impl Metadata {
    /// Its size in bytes.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-len-{}", std::process::id()));
    ///     haft::fs::write(&path, "four")?;
    ///     assert_eq!(haft::fs::metadata(&path)?.len(), 4);
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[allow(clippy::len_without_is_empty)] // as std's
    #[must_use]
    pub fn len(&self) -> u64 {
        self.size
    }
    /// Type and permissions, as in `st_mode` of stat(2).
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     assert_eq!(haft::fs::metadata("/tmp")?.mode() & 0o700, 0o700);
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }
    fn is_of(&self, kind: u32) -> bool {
        self.mode & 0o170_000 == kind
    }
    /// Whether it is a regular file.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     assert!(haft::fs::metadata("/proc/self/comm")?.is_file());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_of(0o100_000)
    }
    /// Whether it is a directory.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     assert!(haft::fs::metadata("/")?.is_dir());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.is_of(0o040_000)
    }
    /// When it was last written.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("haft-modified-{}", std::process::id()));
    ///     haft::fs::write(&path, "")?;
    ///     let age = haft::fs::metadata(&path)?.modified().elapsed().unwrap_or_default();
    ///     assert!(age.as_secs() < 3600);
    ///     haft::fs::remove_file(&path)?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn modified(&self) -> SystemTime {
        self.modified
    }
}

/// Returns the metadata of a file, like [`std::fs::metadata`].
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

/// Returns the whole content of a file.
///
/// # Errors
/// The system's.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     assert!(haft::fs::read("/dev/null")?.is_empty());
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the whole content of a file of text.
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

/// Makes a file with this content; earlier content is lost.
///
/// # Errors
/// The system's.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("haft-write-{}", std::process::id()));
///     haft::fs::write(&path, "hello")?;
///     assert_eq!(haft::fs::read(&path)?, b"hello");
///     haft::fs::remove_file(&path)?;
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    File::create(path)?.write_all(content.as_ref())
}

/// Makes an empty directory.
///
/// # Errors
/// The system's.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("haft-folder-{}", std::process::id()));
///     haft::fs::create_dir(&path)?;
///     assert!(haft::fs::create_dir(&path).is_err()); // it is there
///     haft::fs::remove_dir(&path)?;
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = c_path(path.as_ref())?;
    // SAFETY: the path lives until the call returns.
    done(|| unsafe { sys::haft_io_mkdir(path.as_ptr(), 0o777) as isize }).map(drop)
}

/// Makes a directory, and those around it that are not there.
///
/// # Errors
/// The system's.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("haft-folders-{}", std::process::id()));
///     haft::fs::create_dir_all(path.join("inner"))?;
///     haft::fs::create_dir_all(path.join("inner"))?;
///     haft::fs::remove_dir(path.join("inner"))?;
///     haft::fs::remove_dir(&path)?;
///     Ok(())
/// })
/// .unwrap();
/// ```
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
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("haft-remove-{}", std::process::id()));
///     haft::fs::write(&path, "")?;
///     haft::fs::remove_file(&path)?;
///     assert!(haft::fs::remove_file(&path).is_err());
///     Ok(())
/// })
/// .unwrap();
/// ```
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
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     assert!(haft::fs::remove_dir("/no/such/folder").is_err());
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    if !metadata(path)?.is_dir() || path.is_symlink() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    remove(path)
}

/// Gives a file another name; a file that has it is replaced.
///
/// # Errors
/// The system's.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("haft-rename-{}", std::process::id()));
///     haft::fs::write(path.with_extension("new"), "whole")?;
///     haft::fs::rename(path.with_extension("new"), &path)?;
///     assert_eq!(haft::fs::read(&path)?, b"whole");
///     haft::fs::remove_file(&path)?;
///     Ok(())
/// })
/// .unwrap();
/// ```
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (c_path(from.as_ref())?, c_path(to.as_ref())?);
    // SAFETY: the paths live until the call returns.
    done(|| unsafe { sys::haft_io_rename(from.as_ptr(), to.as_ptr()) as isize }).map(drop)
}

/// Returns the paths in a directory, sorted by name, without `.` and `..`.
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

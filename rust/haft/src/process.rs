// SPDX-License-Identifier: MIT
//! Processes by the library's own operations, for tasks: the wait for a child suspends the task,
//! and a cancel unwinds it. They need no feature.

use crate::descriptor::{Descriptor, c_string, done, stream};
use crate::scope::scope;
use haft_sys as sys;
use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::ptr;

/// A standard stream of a child, like [`std::process::Stdio`].
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::process::{Command, Stdio};
///
///     let status = Command::new("ls").stdout(Stdio::null()).status()?;
///     assert!(status.success());
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Stdio(Stream);

#[derive(Debug)]
enum Stream {
    Inherited,
    Null,
    Piped,
    Given(OwnedFd),
}

impl Stdio {
    /// The stream of this process.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     assert!(Command::new("true").stderr(Stdio::inherit()).status()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn inherit() -> Self {
        Stdio(Stream::Inherited)
    }
    /// A stream that is empty when it is read, and that drops all bytes written to it.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     assert!(Command::new("cat").stdin(Stdio::null()).status()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn null() -> Self {
        Stdio(Stream::Null)
    }
    /// A pipe, whose other end the [`Child`] has.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     let child = Command::new("echo").arg("hi").stdout(Stdio::piped()).spawn()?;
    ///     assert_eq!(child.wait_with_output()?.stdout, b"hi\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn piped() -> Self {
        Stdio(Stream::Piped)
    }
}
impl<T: Into<OwnedFd>> From<T> for Stdio {
    fn from(descriptor: T) -> Self {
        Stdio(Stream::Given(descriptor.into()))
    }
}

/// The end of a pipe to which a child's input is written.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::process::{Command, Stdio};
///     use std::io::Write;
///
///     let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     child.stdin.take().unwrap().write_all(b"hi")?; // and closes it
///     assert_eq!(child.wait_with_output()?.stdout, b"hi");
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ChildInput(Descriptor);
stream! { ChildInput: write }

/// The end of a pipe from which a child's output is read.
///
/// ```
/// haft::run(|| -> std::io::Result<()> {
///     use haft::process::{Command, Stdio};
///     use std::io::Read;
///
///     let mut child = Command::new("echo").arg("hi").stdout(Stdio::piped()).spawn()?;
///     let mut text = String::new();
///     child.stdout.take().unwrap().read_to_string(&mut text)?;
///     assert_eq!((text.as_str(), child.wait()?.success()), ("hi\n", true));
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ChildOutput(Descriptor);
stream! { ChildOutput: read }

/// A program to be started, as [`std::process::Command`].
///
/// ```
/// use haft::process::Command;
///
/// haft::run(|| -> std::io::Result<()> {
///     let output = Command::new("sh").arg("-c").arg("echo $WORD; exit 3").env("WORD", "hi").output()?;
///     assert_eq!(output.stdout, b"hi\n");
///     assert_eq!(output.status.code(), Some(3));
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Command {
    words: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    is_clear: bool,
    folder: Option<PathBuf>,
    is_group: bool,
    streams: [Option<Stdio>; 3],
}

impl Command {
    /// A command that runs a program, which is searched in `PATH`.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     assert!(Command::new("true").status()?.success());
    ///     assert!(Command::new("no-such-program").status().is_err());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Command {
            words: vec![program.as_ref().to_owned()],
            environment: Vec::new(),
            is_clear: false,
            folder: None,
            is_group: false,
            streams: [None, None, None],
        }
    }
    /// Adds an argument.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let output = Command::new("echo").arg("one argument").output()?;
    ///     assert_eq!(output.stdout, b"one argument\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.words.push(argument.as_ref().to_owned());
        self
    }
    /// Adds arguments.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let output = Command::new("echo").args(["a", "b"]).output()?;
    ///     assert_eq!(output.stdout, b"a b\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn args<T: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = T>) -> &mut Self {
        let arguments = arguments.into_iter();
        self.words.extend(arguments.map(|a| a.as_ref().to_owned()));
        self
    }
    /// Sets a variable of its environment.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let output = Command::new("sh").args(["-c", "echo $WORD"]).env("WORD", "hi").output()?;
    ///     assert_eq!(output.stdout, b"hi\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        let value = Some(value.as_ref().to_owned());
        self.environment.push((name.as_ref().to_owned(), value));
        self
    }
    /// Takes a variable out of its environment.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let output = Command::new("sh").args(["-c", "echo $HOME"]).env_remove("HOME").output()?;
    ///     assert_eq!(output.stdout, b"\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }
    /// Clears its environment: it gets only the variables that are set after this.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let output = Command::new("/usr/bin/env").env_clear().env("ONLY", "this").output()?;
    ///     assert_eq!(output.stdout, b"ONLY=this\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn env_clear(&mut self) -> &mut Self {
        self.is_clear = true;
        self.environment.clear();
        self
    }
    /// Sets its working directory.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     assert_eq!(Command::new("pwd").current_dir("/").output()?.stdout, b"/\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }
    /// Makes it the leader of a process group of its own: signals of the terminal do not reach it.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let mut child = Command::new("sleep").arg("60").group(true).spawn()?;
    ///     child.kill()?; // with what it has started
    ///     assert!(!child.wait()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn group(&mut self, yes: bool) -> &mut Self {
        self.is_group = yes;
        self
    }
    /// Sets its standard input, which otherwise is that of this process.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     assert!(Command::new("cat").stdin(Stdio::null()).status()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn stdin(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.streams[0] = Some(stream.into());
        self
    }
    /// Sets its standard output.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let file = std::fs::File::options().write(true).open("/dev/null")?;
    ///     assert!(Command::new("ls").stdout(file).status()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn stdout(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.streams[1] = Some(stream.into());
        self
    }
    /// Sets its standard error.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     assert!(!Command::new("ls").arg("/none").stderr(Stdio::null()).status()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn stderr(&mut self, stream: impl Into<Stdio>) -> &mut Self {
        self.streams[2] = Some(stream.into());
        self
    }

    /// The environment of the child; `None`: this process's.
    fn variables(&self) -> io::Result<Option<Vec<CString>>> {
        if !self.is_clear && self.environment.is_empty() {
            return Ok(None);
        }
        let mut all: Vec<(OsString, OsString)> = Vec::new();
        if !self.is_clear {
            all.extend(std::env::vars_os());
        }
        for (name, value) in &self.environment {
            all.retain(|(other, _)| other != name);
            all.extend(value.clone().map(|value| (name.clone(), value)));
        }
        let line = |(mut line, value): (OsString, OsString)| {
            line.push("=");
            line.push(value);
            c_string(&line)
        };
        all.into_iter()
            .map(line)
            .collect::<io::Result<_>>()
            .map(Some)
    }

    /// The child's end of a stream, if it is not this process's, and the other one of a pipe.
    fn open(
        stream: Option<&Stdio>,
        is_input: bool,
    ) -> io::Result<(Option<OwnedFd>, Option<Descriptor>)> {
        Ok(
            match stream.map_or(&Stream::Inherited, |stream| &stream.0) {
                Stream::Inherited => (None, None),
                Stream::Given(descriptor) => (Some(descriptor.try_clone()?), None),
                Stream::Null => {
                    let options = std::fs::File::options()
                        .read(true)
                        .write(true)
                        .open("/dev/null")?;
                    (Some(options.into()), None)
                }
                Stream::Piped => {
                    // SAFETY: the ends are new.
                    let (read, write) =
                        unsafe { Descriptor::pair(|ends| sys::haft_io_pipe(ends)) }?;
                    let (theirs, ours) = if is_input {
                        (read, write)
                    } else {
                        (write, read)
                    };
                    (Some(theirs.into()), Some(ours))
                }
            },
        )
    }

    /// Starts the program.
    ///
    /// # Errors
    /// The system's: `NotFound` if there is no such program.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let mut child = Command::new("true").spawn()?;
    ///     assert!(child.wait()?.success());
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn spawn(&mut self) -> io::Result<Child> {
        let words: Vec<CString> = self
            .words
            .iter()
            .map(|word| c_string(word))
            .collect::<io::Result<_>>()?;
        let variables = self.variables()?;
        let folder = self
            .folder
            .as_ref()
            .map(|f| c_string(f.as_os_str()))
            .transpose()?;
        let (stdin, input) = Self::open(self.streams[0].as_ref(), true)?;
        let (stdout, output) = Self::open(self.streams[1].as_ref(), false)?;
        let (stderr, errors) = Self::open(self.streams[2].as_ref(), false)?;
        let given = [&stdin, &stdout, &stderr];
        let numbers = given.map(|end| end.as_ref().map_or(-1, AsRawFd::as_raw_fd));
        let words = for_c(&words);
        let variables = variables.as_deref().map(for_c);
        let options = sys::haft_io_process_options_t {
            streams: numbers.as_ptr(),
            environment: variables.as_ref().map_or(ptr::null(), |v| v.as_ptr()),
            folder: folder.as_ref().map_or(ptr::null(), |f| f.as_ptr()),
            group: self.is_group,
        };
        // SAFETY: all of this lives until the call returns.
        let id =
            done(|| unsafe { sys::haft_io_process_start_with(&options, words.as_ptr()) as isize })?;
        Ok(Child {
            stdin: input.map(ChildInput),
            stdout: output.map(ChildOutput),
            stderr: errors.map(ChildOutput),
            id: id as c_int,
            status: None,
        })
    }

    /// Starts the program and waits for its end.
    ///
    /// # Errors
    /// The errors of [`spawn`](Self::spawn).
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let status = Command::new("sh").args(["-c", "exit 3"]).status()?;
    ///     assert_eq!(status.code(), Some(3));
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.spawn()?.wait()
    }

    /// Starts the program, waits for its end, and returns its output on standard output and
    /// standard error, which are pipes unless they are set.
    ///
    /// # Errors
    /// The errors of [`spawn`](Self::spawn).
    ///
    /// # Panics
    /// Outside of a run.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     assert_eq!(Command::new("echo").arg("hi").output()?.stdout, b"hi\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn output(&mut self) -> io::Result<Output> {
        self.streams[0].get_or_insert(Stdio::null());
        self.streams[1].get_or_insert(Stdio::piped());
        self.streams[2].get_or_insert(Stdio::piped());
        self.spawn()?.wait_with_output()
    }
}

/// Pointers to the texts, with a null at the end.
fn for_c(texts: &[CString]) -> Vec<*const c_char> {
    let texts = texts.iter().map(|text| text.as_ptr());
    texts.chain([ptr::null()]).collect()
}

/// A program that has been started, as [`std::process::Child`]. If it is dropped, the program goes
/// on.
///
/// ```
/// use haft::process::{Command, Stdio};
/// use std::io::{Read, Write};
///
/// haft::run(|| -> std::io::Result<()> {
///     let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     cat.stdin.take().unwrap().write_all(b"round and round")?;
///     let mut text = String::new();
///     cat.stdout.take().unwrap().read_to_string(&mut text)?;
///     assert_eq!(text, "round and round");
///     assert!(cat.wait()?.success());
///     Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Child {
    /// The child's standard input, if it is piped.
    pub stdin: Option<ChildInput>,
    /// The child's standard output, if it is piped.
    pub stdout: Option<ChildOutput>,
    /// The child's standard error, if it is piped.
    pub stderr: Option<ChildOutput>,
    id: c_int,
    status: Option<ExitStatus>,
}

impl Child {
    /// Returns its process number.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let mut child = Command::new("true").spawn()?;
    ///     assert_ne!(child.id(), std::process::id());
    ///     child.wait()?;
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// Closes its standard input, if it is a pipe, and waits for its end. A cancel leaves it
    /// running.
    ///
    /// # Errors
    /// The system's.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///
    ///     let mut child = Command::new("false").spawn()?;
    ///     assert_eq!(child.wait()?.code(), Some(1));
    ///     assert_eq!(child.wait()?.code(), Some(1)); // once more
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if let Some(status) = self.status {
            return Ok(status);
        }
        let mut status = 0;
        // SAFETY: the variable lives until the call returns.
        done(|| unsafe { sys::haft_io_process_wait(self.id, &mut status) as isize })?;
        Ok(*self.status.insert(ExitStatus::from_raw(status)))
    }

    /// Reads standard output and error, if they are pipes, to their ends, and waits for the end of
    /// the program.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// Outside of a run.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::{Command, Stdio};
    ///
    ///     let child = Command::new("echo").arg("hi").stdout(Stdio::piped()).spawn()?;
    ///     assert_eq!(child.wait_with_output()?.stdout, b"hi\n");
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        fn all_of(stream: Option<ChildOutput>) -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            stream.map_or(Ok(0), |mut s| s.read_to_end(&mut bytes))?;
            Ok(bytes)
        }
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (stdout, stderr) = scope(|s| {
            let errors = s.spawn(|| all_of(stderr));
            (
                all_of(stdout),
                errors.join().unwrap_or_else(|p| resume_unwind(p)),
            )
        });
        Ok(Output {
            status: self.wait()?,
            stdout: stdout?,
            stderr: stderr?,
        })
    }

    /// Ends it by the signal `SIGKILL`; it must still be waited for.
    ///
    /// # Errors
    /// The system's; `InvalidInput` if it has been waited for.
    ///
    /// ```
    /// haft::run(|| -> std::io::Result<()> {
    ///     use haft::process::Command;
    ///     use std::os::unix::process::ExitStatusExt;
    ///
    ///     let mut child = Command::new("sleep").arg("60").spawn()?;
    ///     child.kill()?;
    ///     assert_eq!(child.wait()?.signal(), Some(9));
    ///     Ok(())
    /// })
    /// .unwrap();
    /// ```
    pub fn kill(&mut self) -> io::Result<()> {
        const SIGKILL: c_int = 9;
        unsafe extern "C" {
            fn kill(process: c_int, signal: c_int) -> c_int;
        }
        if self.status.is_some() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: an ordinary call. The number is the child's, as nobody has waited for it.
        if unsafe { kill(self.id, SIGKILL) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

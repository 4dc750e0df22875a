// SPDX-License-Identifier: MIT
//! The library's own sockets, files, processes and signals.

use haft::fs;
use haft::io::LentReader;
use haft::net::{TcpListener, TcpStream, UnixStream};
use haft::process::{Command, Stdio};
use std::io::{self, BufRead, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(1);

/// A new folder for each test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path.canonicalize().unwrap()
}

#[test]
fn parts_are_written_and_read_at_once() {
    haft::run(|| -> io::Result<()> {
        let (mut here, mut there) = UnixStream::pair()?;
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(here.write_vectored(&parts)?, 7);
        let (mut first, mut second) = ([0; 2], [0; 8]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(there.read_vectored(&mut parts)?, 7);
        assert_eq!((&first, &second[..5]), (b"on", &b"e two"[..]));
        Ok(())
    })
    .unwrap();
}

#[test]
fn lent_bytes_outlive_the_stream_and_go_to_other_threads() {
    let bytes = haft::run(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"lent").unwrap();
        there.read_lent().unwrap()
    });
    let read = std::thread::spawn(move || bytes.to_vec());
    assert_eq!(read.join().unwrap(), b"lent");
}

#[test]
fn a_reader_reads_lines_that_come_in_pieces() {
    haft::run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = haft::spawn(move || {
            let mut connection = listener.accept().unwrap().0;
            for piece in ["on", "e\ntw", "o\nthree"] {
                connection.write_all(piece.as_bytes()).unwrap();
                haft::sleep(SHORT);
            }
        });
        let connection = TcpStream::connect(address).unwrap();
        let lines: Vec<String> = connection.reader().lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "two", "three"]);
        server.join().unwrap();
    });
}

#[test]
fn a_cancel_unwinds_a_read_and_the_stream_is_usable_after_it() {
    haft::run(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        assert!(haft::timeout(SHORT, || there.read_lent().unwrap()).is_err());
        here.write_all(b"late").unwrap();
        here.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        there.reader().read_to_string(&mut text).unwrap();
        assert_eq!(text, "late");
    });
}

#[test]
fn a_client_that_resets_its_connection_ends_no_loop_of_accepts() {
    /// Resets the connection.
    fn reset(stream: std::net::TcpStream) {
        unsafe extern "C" {
            fn setsockopt(socket: i32, level: i32, name: i32, value: *const i32, size: u32) -> i32;
        }
        const SOL_SOCKET: i32 = 1;
        const SO_LINGER: i32 = 13;
        let at_once = [1, 0];
        // SAFETY: the value is of this size, and lives until the call returns.
        let code = unsafe {
            setsockopt(
                stream.as_raw_fd(),
                SOL_SOCKET,
                SO_LINGER,
                at_once.as_ptr(),
                8,
            )
        };
        assert_eq!(code, 0);
    }
    haft::run(|| -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        for _ in 0..3 {
            reset(std::net::TcpStream::connect(address)?);
        }
        let client = TcpStream::connect(address)?;
        while listener.accept()?.1 != client.local_addr()? {} // one whose reset has not come yet
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_byte_without_a_descriptor_is_an_error_and_so_is_the_end() {
    haft::run(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"x").unwrap();
        const EBADMSG: i32 = 74;
        let error = there.receive_descriptor().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(EBADMSG));
        drop(here);
        let error = there.receive_descriptor().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn files_are_made_read_renamed_and_removed() {
    let folder = folder("files");
    haft::run(|| -> io::Result<()> {
        let (one, two) = (folder.join("a/b/one"), folder.join("a/b/two"));
        fs::create_dir_all(one.parent().unwrap())?;
        fs::create_dir_all(one.parent().unwrap())?;
        fs::write(&one, "hello")?;
        let mut more = fs::OpenOptions::new().append(true).open(&one)?;
        more.write_all(b" there")?;
        more.sync_all()?;
        assert_eq!(fs::read_to_string(&one)?, "hello there");
        let both = fs::OpenOptions::new().read(true).write(true).open(&one)?;
        assert_eq!(both.write_at(b"J", 0)?, 1);
        let mut bytes = [0; 5];
        assert_eq!(both.read_at(&mut bytes, 0)?, 5);
        assert_eq!(&bytes, b"Jello");
        fs::rename(&one, &two)?;
        let found = fs::metadata(&two)?;
        assert!(found.is_file() && found.len() == 11);
        assert!(found.modified().elapsed().unwrap() < Duration::from_secs(3600));
        assert_eq!(
            fs::read_dir(folder.join("a/b"))?,
            std::slice::from_ref(&two)
        );
        assert_eq!(fs::metadata(&one).unwrap_err().kind(), ErrorKind::NotFound);
        let there = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&two);
        assert_eq!(there.unwrap_err().kind(), ErrorKind::AlreadyExists);
        let directory = fs::remove_file(folder.join("a")).unwrap_err();
        assert_eq!(directory.kind(), ErrorKind::IsADirectory);
        assert_eq!(
            fs::remove_dir(&two).unwrap_err().kind(),
            ErrorKind::NotADirectory
        );
        fs::remove_file(&two)?;
        fs::remove_dir(folder.join("a/b"))?;
        let neither = fs::OpenOptions::new().open(&two);
        assert_eq!(neither.unwrap_err().kind(), ErrorKind::InvalidInput);
        Ok(())
    })
    .unwrap();
}

#[test]
fn many_processes_wait_at_once() {
    haft::run(|| {
        haft::scope(|s| {
            for i in 0..20 {
                s.spawn(move || {
                    let script = format!("read word; echo $word {i}; echo bad >&2; exit {i}");
                    let mut child = Command::new("sh")
                        .args(["-c", &script])
                        .stdin(Stdio::piped())
                        .stdout(Stdio::piped())
                        .stderr(Stdio::piped())
                        .spawn()
                        .unwrap();
                    child.stdin.as_mut().unwrap().write_all(b"word\n").unwrap();
                    let output = child.wait_with_output().unwrap();
                    assert_eq!(output.status.code(), Some(i));
                    assert_eq!(output.stdout, format!("word {i}\n").as_bytes());
                    assert_eq!(output.stderr, b"bad\n");
                });
            }
        });
    });
}

#[test]
fn a_process_that_is_killed_says_so_once_it_was_waited_for() {
    use std::os::unix::process::ExitStatusExt;
    haft::run(|| {
        let mut child = Command::new("sleep").arg("3600").spawn().unwrap();
        assert!(haft::timeout(SHORT, || child.wait()).is_err());
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert_eq!(child.kill().unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(child.wait().unwrap().signal().is_some());
    });
}

#[test]
fn a_program_begins_as_its_command_says() {
    let folder = folder("command");
    haft::run(|| -> io::Result<()> {
        let report = fs::File::create(folder.join("report"))?;
        let status = Command::new("sh")
            .args(["-c", "pwd; echo ${WORD-unset} ${HOME-unset}"])
            .env("WORD", "gone")
            .env_clear()
            .env("HOME", "here")
            .env_remove("WORD")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(report)
            .group(true)
            .status()?;
        assert!(status.success());
        let text = fs::read_to_string(folder.join("report"))?;
        assert_eq!(text, format!("{}\nunset here\n", folder.display()));
        let missing = Command::new("/no/such/program").status().unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        Ok(())
    })
    .unwrap();
}

/// Sends the pieces, each after a time limit has cut the read short, and returns what the read
/// gets.
fn read_cut_short<T>(pieces: &[&str], mut read: impl FnMut(&mut LentReader<'_>) -> T) -> T {
    haft::run(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut reader = there.reader();
        for piece in pieces {
            here.write_all(piece.as_bytes()).unwrap();
            assert!(haft::timeout(SHORT, || read(&mut reader)).is_err());
        }
        here.write_all(b"!\nrest").unwrap();
        drop(here);
        let result = read(&mut reader);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest == b"rest");
        result
    })
}

#[test]
fn a_read_that_a_time_limit_cuts_short_has_taken_nothing() {
    let pieces = ["caf\u{e9} ", "au ", "", "lait"];
    let line = read_cut_short(&pieces, |reader| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line
    });
    assert_eq!(line, "caf\u{e9} au lait!\n");
    let line = read_cut_short(&pieces, |reader| reader.lines().next().unwrap().unwrap());
    assert_eq!(line, "caf\u{e9} au lait!");
    let part = read_cut_short(&["a", "b"], |reader| {
        let mut part = Vec::new();
        reader.read_until(b'\n', &mut part).unwrap();
        part
    });
    assert_eq!(part, b"ab!\n");
    let exact = read_cut_short(&["a", "bc"], |reader| {
        let mut exact = [0; 5];
        reader.read_exact(&mut exact).unwrap();
        exact
    });
    assert_eq!(&exact, b"abc!\n");
    let text = read_cut_short(&pieces, |reader| {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(text, "caf\u{e9} au lait!\nrest");
    // Other reads get the beginning of a line, too; and what is no text is an error.
    haft::run(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut reader = there.reader();
        here.write_all(b"head \xff").unwrap();
        let mut line = String::new();
        assert!(haft::timeout(SHORT, || reader.read_line(&mut line)).is_err());
        let mut head = [0; 5];
        assert_eq!(reader.read(&mut head).unwrap(), 5);
        assert_eq!(&head, b"head ");
        here.write_all(b"\ntail").unwrap();
        let error = reader.read_line(&mut line).unwrap_err();
        assert_eq!((error.kind(), line.as_str()), (ErrorKind::InvalidData, ""));
        drop(here);
        assert_eq!(reader.read_line(&mut line).unwrap(), 4);
        assert_eq!(line, "tail");
    });
}

#[test]
fn the_text_of_a_stream_that_a_time_limit_cuts_short_is_kept_to_its_last_whole_character() {
    haft::run(|| {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        here.write_all(b"caf\xc3\xa9 \xe2\x82").unwrap();
        let mut text = String::from("> ");
        assert!(haft::timeout(SHORT, || there.read_to_string(&mut text)).is_err());
        assert_eq!(text, "> caf\u{e9} ");
        here.write_all(b"au \xff").unwrap();
        drop(here);
        let error = there.read_to_string(&mut text).unwrap_err();
        assert_eq!(
            (error.kind(), text.as_str()),
            (ErrorKind::InvalidData, "> caf\u{e9} ")
        );
    });
}

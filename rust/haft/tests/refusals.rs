// SPDX-License-Identifier: MIT
//! A call that is a mistake of the program fails with an error whose text has what is wrong, with
//! which value, and what to write instead.

use std::io::{self, ErrorKind};

fn check(error: &io::Error, kind: ErrorKind, words: &str) {
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, words));
}

#[test]
fn a_run_inside_of_a_run_says_what_to_do_instead() {
    let error = haft::run(|| haft::run_with(haft::Options::new(), || ()).unwrap_err());
    check(
        &error,
        ErrorKind::ResourceBusy,
        "haft_io_run: the caller is in a run already: spawn a task there (haft_io_spawn), or begin \
         the run on another thread",
    );
}

#[test]
fn a_back_end_that_there_is_not_is_named() {
    let options = haft::Options::new().backend(c"kqueue");
    check(
        &haft::run_with(options, || ()).unwrap_err(),
        ErrorKind::InvalidInput,
        "haft_io_run: there is no back end 'kqueue': write \"epoll\", \"io_uring\" where the \
         library has it, or NULL for the best",
    );
}

#[test]
fn a_dump_outside_of_a_run_says_where_to_call_it() {
    check(
        &haft::dump(io::stderr()).unwrap_err(),
        io::Error::from_raw_os_error(3).kind(), // ESRCH
        "haft_io_dump: this is outside of a task, which has no run to look into: call it under \
         haft_io_run",
    );
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_named() {
    let path = "x".repeat(108);
    let words = format!(
        "haft_io_connect_unix: '{path}' is no path of a local socket: write one of 1 to 107 bytes"
    );
    let error = haft::run(|| {
        haft::net::UnixStream::connect(&path)
            .map(|_| ())
            .unwrap_err()
    });
    check(&error, ErrorKind::InvalidInput, &words);
}

#[test]
fn an_error_of_the_system_is_as_it_was() {
    let error = haft::run(|| haft::fs::File::open("/none").map(|_| ()).unwrap_err());
    assert_eq!(error.raw_os_error(), Some(2));
}

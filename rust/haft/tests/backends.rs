// SPDX-License-Identifier: MIT
//! By what a run waits for the kernel: what its options name, else the environment, else io_uring
//! where the system allows it. test_rust.sh has the suite run with io_uring, and where a filter of
//! system calls refuses it.

use std::ffi::CStr;
use std::io::{self, ErrorKind};

fn named(name: &'static CStr) -> io::Result<Option<&'static str>> {
    haft::run_with(haft::Options::new().backend(name), haft::backend)
}

#[test]
fn a_run_has_the_back_end_that_its_options_name() {
    assert_eq!(named(c"epoll").unwrap(), Some("epoll"));
    match named(c"io_uring") {
        Ok(name) => assert_eq!(name, Some("io_uring")),
        Err(error) if cfg!(feature = "io-uring") => {
            assert_ne!(error.kind(), ErrorKind::InvalidInput, "it was compiled");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput),
    }
}

#[test]
fn a_run_that_names_none_has_the_best_of_the_system() {
    let expected = match std::env::var("HAFT_IO_BACKEND") {
        Ok(name) if !name.is_empty() => name,
        _ if named(c"io_uring").is_ok() => "io_uring".to_owned(),
        _ => "epoll".to_owned(),
    };
    assert_eq!(haft::run(haft::backend), Some(expected.as_str()));
    let threads = haft::Options::new().threads(2);
    assert!(haft::run_with(threads, haft::backend).unwrap().is_some());
}

#[test]
fn where_a_filter_refuses_io_uring_it_cannot_be_had_by_name() {
    if std::env::var_os("HAFT_TEST_REFUSES_URING").is_some() {
        assert!(named(c"io_uring").is_err());
    }
}

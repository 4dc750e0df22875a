// SPDX-License-Identifier: MIT
//! The programs of the guide and of the READMEs are doc tests of this crate; other tests are in
//! `tests/`.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Repository;

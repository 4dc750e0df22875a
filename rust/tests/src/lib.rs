// SPDX-License-Identifier: MIT
//! Nothing: the tests are in `tests/`.

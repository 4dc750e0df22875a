// SPDX-License-Identifier: MIT
//! Nothing; see `tests/`.

#!/bin/sh
# SPDX-License-Identifier: MIT
# The crates: layout, lints, tests, doc tests, what the examples print. Exit status 77: cargo is not here, or
# neither is the one crate that the build needs.
set -eu
cd "$HAFT_SOURCE_DIR/rust"
leave_out() {
  echo "left out: $1"
  exit 77
}
command -v cargo >/dev/null || leave_out 'cargo is not here'

CARGO_TARGET_DIR=$HAFT_BUILD_DIR/cargo
CARGO_TERM_COLOR=never
export CARGO_TARGET_DIR CARGO_TERM_COLOR
if command -v ccache >/dev/null; then
  CC="ccache $CC"
  CCACHE_BASEDIR=$HAFT_SOURCE_DIR
  CCACHE_NOHASHDIR=true
  export CC CCACHE_BASEDIR CCACHE_NOHASHDIR
fi

# The library needs one crate to be built (cc), the tests with other crates more: they are for a long campaign.
offline=
own='-p haft -p haft-macros -p haft-sys'
packages=$own
[ "${HAFT_CAMPAIGN:-}" != long ] || packages=--workspace
machine=$(rustc -vV | sed -n 's/^host: //p')
if ! timeout 100 cargo fetch --quiet --locked --target "$machine" 2>/dev/null; then
  offline=--offline
  packages=$own
  cargo check --quiet --locked --offline -p haft 2>/dev/null ||
    leave_out 'crates.io cannot be reached, and the crate cc is not in the cache'
  echo 'crates.io cannot be reached: the tests with other crates (rust/tests) are left out'
fi

if cargo fmt --version >/dev/null 2>&1; then
  cargo fmt --check
fi
if cargo clippy --version >/dev/null 2>&1; then
  # shellcheck disable=SC2086 # several options
  cargo clippy --quiet --locked $offline $packages --all-targets -- -D warnings
fi
# shellcheck disable=SC2086 # several options
cargo test --quiet --locked $offline $packages
for expected in haft/examples/*.expected tests/examples/*.expected; do
  # (The tests have built it, if its crates are here.)
  name=$(basename "$expected" .expected)
  case $packages/$expected in
  "$own"/tests/*) ;;
  *) "$CARGO_TARGET_DIR/debug/examples/$name" | diff "$expected" - ;;
  esac
done
# The newest versions of larger crates take minutes to build.
if [ -n "${HAFT_RUST_CRATES-}" ]; then
  (cd crates && CARGO_TARGET_DIR=$HAFT_BUILD_DIR/cargo-crates cargo test --quiet)
fi

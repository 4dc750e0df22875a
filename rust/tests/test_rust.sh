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

# step WORD... -- COMMAND...: a step of this test. Its output is shown, with its name first, if it fails: CI keeps the
# end of a long output.
step() {
  named=
  while [ "$1" != -- ]; do
    named="$named $1"
    shift
  done
  shift
  "$@" >"$HAFT_BUILD_DIR/rust-step.log" 2>&1 || {
    status=$?
    tail -n 150 "$HAFT_BUILD_DIR/rust-step.log"
    echo "this step failed, with $status:$named"
    exit 1
  }
}

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
  step layout -- cargo fmt --check
fi
if cargo clippy --version >/dev/null 2>&1; then
  # shellcheck disable=SC2086 # several options
  step lints -- cargo clippy --quiet --locked $offline $packages --all-targets -- -D warnings
fi
# shellcheck disable=SC2086 # several options
step documentation -- env RUSTDOCFLAGS='-D warnings' cargo doc --quiet --locked $offline --no-deps $packages
# The files that a stranger looks for in a package.
for package in haft haft-macros haft-sys; do
  files=$(cargo package --list --allow-dirty --locked $offline -p "$package")
  for file in LICENSE README.md; do
    echo "$files" | grep -qx "$file" || {
      echo "the package $package has no $file"
      exit 1
    }
  done
  for field in repository readme keywords; do
    grep -q "^$field.workspace = true" "$package/Cargo.toml" || {
      echo "the package $package has no $field"
      exit 1
    }
  done
done
# shellcheck disable=SC2086 # several options
step tests -- cargo test --quiet --locked $offline $packages
for expected in haft/examples/*.expected tests/examples/*.expected; do
  # (The tests have built it, if its crates are here.)
  name=$(basename "$expected" .expected)
  case $packages/$expected in
  "$own"/tests/*) ;;
  *) "$CARGO_TARGET_DIR/debug/examples/$name" | step the example "$name" -- diff "$expected" - ;;
  esac
done
# A trace shows the tasks of Rust.
if command -v python3 >/dev/null; then
  trace=$CARGO_TARGET_DIR/chat.trace
  rm -f "$trace"
  step a trace -- python3 ../tools/haft-trace record -o "$trace" -- "$CARGO_TARGET_DIR/debug/examples/chat"
  step a view of it -- python3 ../tools/haft-trace view -o "$trace.json" "$trace"
  step what it shows -- python3 ../io/tests/traces/check.py "$trace.json" running ready 'waits: a channel to receive from'
fi
# gdb shows the tasks of a program that gets stuck.
debugs() {
  sh "$HAFT_SOURCE_DIR/tools/debug/tests/debugger_rust.sh" "$CARGO_TARGET_DIR/debug/examples/stuck" || [ $? -eq 77 ]
}
step a debugger -- debugs
# With the back end for io_uring, if liburing is installed: as the system has it, and where a filter refuses it.
# (All tests above were on epoll.) The build needs one crate more.
uring=
if [ -z "$offline" ] && pkg-config --exists 'liburing >= 2.3' 2>/dev/null; then
  uring='--features haft/io-uring'
  # shellcheck disable=SC2086 # several options
  step lints with io_uring -- cargo clippy --quiet --locked $offline -p haft $uring --all-targets -- -D warnings
  # shellcheck disable=SC2086 # several options
  step tests with io_uring -- cargo test --quiet --locked $offline -p haft $uring --tests
  # shellcheck disable=SC2086 # a command with arguments
  step a filter -- $CC -O1 tests/c/refuse_uring.c -o "$HAFT_BUILD_DIR/refuse_uring"
  runner=CARGO_TARGET_$(echo "$machine" | tr 'a-z-' 'A-Z_')_RUNNER
  # shellcheck disable=SC2086 # several options
  step tests where io_uring is refused -- env "$runner=$HAFT_BUILD_DIR/refuse_uring" cargo test --quiet --locked $offline -p haft $uring --tests
fi
# With the feature `system`, on the installed libraries: tasks wait in std's calls, which only libhaft-posix has them do.
# The build needs the crate pkg-config, as for io_uring.
if [ -z "$offline" ] && command -v pkg-config >/dev/null; then
  installed=$HAFT_BUILD_DIR/rust-installed
  rm -rf "$installed"
  step installation -- cmake --install "$HAFT_BUILD_DIR" --prefix "$installed"
  libraries=$(dirname "$(find "$installed" -name libhaft.so)")
  step with the installed libraries -- env PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries" \
    cargo test --quiet --locked -p haft --features haft/system --target-dir "$CARGO_TARGET_DIR-installed" --test waits
fi
# Two versions in one program would be two copies of what there is once in a process: cargo refuses them.
two=$HAFT_BUILD_DIR/cargo-two
mkdir -p "$two/older/src" "$two/both/src"
: >"$two/older/src/lib.rs"
: >"$two/both/src/lib.rs"
echo 'fn main() {}' >"$two/older/build.rs"
cat >"$two/older/Cargo.toml" <<'end'
[package]
name = "haft-sys"
version = "0.2.0"
links = "haft"
end
cat >"$two/both/Cargo.toml" <<end
[package]
name = "both"
version = "0.0.0"
[workspace]
[dependencies]
haft = { path = "$PWD/haft" }
older = { package = "haft-sys", path = "../older" }
end
if (cd "$two/both" && cargo metadata --offline --format-version 1 >/dev/null 2>"$two/said") ||
  ! grep -q 'haft-sys. links to the native library .haft., but it conflicts' "$two/said"; then
  echo 'two versions of the library in one program are not refused:'
  cat "$two/said"
  exit 1
fi

# Other ways to compile and run it: under Valgrind; optimized; as a package in an empty folder; by
# the oldest compiler (rust-version in Cargo.toml); with panics that abort, where only what has to be
# unwound ends the process; for the other architecture, in an emulator. (Valgrind and the emulator
# begin programs otherwise than the system.)
if [ -n "${HAFT_RUST_ALL-}" ]; then
  emulated='--skip a_program_begins_as_its_command_says --skip tasks_panic_at_once --skip tasks_print_to_a_pipe'
  # shellcheck disable=SC2086 # several options
  step under Valgrind -- env CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='valgrind --quiet --error-exitcode=9' \
    cargo test --quiet --locked $offline -p haft --tests -- $emulated
  # shellcheck disable=SC2086 # several options
  step optimized -- cargo test --quiet --locked $offline --release -p haft $uring --tests
  package=$HAFT_BUILD_DIR/cargo-package
  rm -rf "$package"
  # shellcheck disable=SC2086 # several options
  cargo package --quiet --locked $offline --no-verify --allow-dirty --target-dir "$package/made" $own
  for crate in "$package"/made/package/*.crate; do
    tar -xzf "$crate" -C "$package"
  done
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
  cat >"$package/Cargo.toml" <<end
[workspace]
resolver = "2"
members = ["haft-$version"]
[patch.crates-io]
haft-sys = { path = "haft-sys-$version" }
haft-macros = { path = "haft-macros-$version" }
end
  # shellcheck disable=SC2086 # several options
  (cd "$package" && cargo test --quiet $offline --target-dir "$package/target" -p haft $uring --tests)
  oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  step the oldest compiler -- cargo "+$oldest" test --quiet --locked $offline --target-dir "$CARGO_TARGET_DIR-oldest" -p haft --tests
  aborting=$CARGO_TARGET_DIR-abort
  step panics that abort -- env CARGO_PROFILE_DEV_PANIC=abort \
    cargo build --quiet --locked $offline --target-dir "$aborting" -p haft --examples
  for name in deterministic generator; do
    "$aborting/debug/examples/$name" | diff "haft/examples/$name.expected" -
  done
  said=$("$aborting/debug/examples/transaction" 2>&1 || true)
  case $said in
  *'panic = "abort" makes it impossible'*) ;;
  *)
    echo "with panic = abort a computation is to be unwound, and nothing says so: $said"
    exit 1
    ;;
  esac
  # shellcheck disable=SC2086 # several options
  step the other architecture -- env CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' \
    cargo test --quiet --locked $offline --target aarch64-unknown-linux-gnu -p haft --tests -- $emulated
fi
# The newest versions of larger crates take minutes to build.
if [ -n "${HAFT_RUST_CRATES-}" ]; then
  (cd crates && CARGO_TARGET_DIR=$HAFT_BUILD_DIR/cargo-crates cargo test --quiet)
fi

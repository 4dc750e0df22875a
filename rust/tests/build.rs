// SPDX-License-Identifier: MIT
//! Compiles the side of C of `tests/shared.rs`.

fn main() {
    println!("cargo:rerun-if-changed=c");
    cc::Build::new()
        .std("gnu11")
        .flag("-fexceptions")
        .include("../haft-sys/c/core/include")
        .file("c/shared.c")
        .compile("demo_shared");
}

// SPDX-License-Identifier: MIT
fn main() {
    println!("cargo:rerun-if-changed=c");
    cc::Build::new()
        .file("c/perform.c")
        .include("../../core/include")
        .std("gnu11")
        .flag("-fexceptions")
        .opt_level(3)
        .compile("bench_perform");
}

// SPDX-License-Identifier: MIT
//! Compiles the C libraries that the package contains, with the back end for io_uring if the
//! feature `io-uring` is on and liburing installed; or finds the installed libraries (feature
//! `system`). Then it compiles `shim/`, which makes the inlined functions of the headers functions
//! that Rust can call.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let of_target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let architecture = of_target("ARCH");
    let system = format!("{}-{}", of_target("OS"), of_target("ENV"));
    assert!(
        system == "linux-gnu" && ["x86_64", "aarch64"].contains(&architecture.as_str()),
        "Haft for Rust runs on x86-64 and AArch64 Linux with glibc, not on {architecture} {system}"
    );
    assert!(
        !of_target("FEATURE").contains("crt-static"),
        "Haft for Rust stands before functions of the C library, which cannot be static"
    );
    let posix = env::var_os("CARGO_FEATURE_POSIX").is_some();
    if env::var_os("CARGO_FEATURE_SYSTEM").is_some() {
        installed(posix);
    } else {
        compiled(&architecture, posix);
    }
}

/// The options with which Haft compiles its own sources.
fn compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .flag("-fexceptions")
        .flag("-fvisibility=hidden")
        .flag("-fno-omit-frame-pointer")
        .define("_GNU_SOURCE", None)
        .pic(true)
        .warnings(false);
    if env::var("OPT_LEVEL").as_deref() != Ok("0") {
        build.define("NDEBUG", None);
    }
    build
}

fn shim(includes: &[PathBuf], posix: bool) -> cc::Build {
    println!("cargo:rerun-if-changed=shim");
    let mut shim = compiler();
    shim.includes(includes).file("shim/declarations.c");
    if posix {
        shim.define("HAFT_RUST_POSIX", None);
    }
    shim
}

#[cfg(feature = "system")]
fn installed(posix: bool) {
    let io = pkg_config::Config::new()
        .atleast_version(env!("CARGO_PKG_VERSION"))
        .probe("haft-io")
        .expect("pkg-config finds haft-io, which the feature `system` needs");
    shim(&io.include_paths, posix).compile("haft_rust_shim");
    if posix {
        pkg_config::Config::new()
            .probe("haft-posix")
            .expect("pkg-config finds haft-posix, which the feature `posix` needs");
    }
}
#[cfg(not(feature = "system"))]
fn installed(_posix: bool) {
    unreachable!("the feature is off");
}

/// Adds the back end for io_uring, which is on the system's liburing. (The crates that carry its
/// sources are older than what the back end calls, or need libclang to be built.)
#[cfg(feature = "io-uring")]
fn add_uring(library: &mut cc::Build, folder: &Path) {
    let liburing = pkg_config::Config::new()
        .atleast_version("2.3")
        .probe("liburing")
        .expect("pkg-config finds liburing, which the feature `io-uring` needs");
    library
        .define("HAFT_IO_URING", None)
        .includes(&liburing.include_paths)
        .files(sources(folder, "c", &[]));
}
#[cfg(not(feature = "io-uring"))]
fn add_uring(_library: &mut cc::Build, _folder: &Path) {}

fn sources(folder: &Path, extension: &str, without: &[&str]) -> Vec<PathBuf> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the C sources are in the package");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter(|path| {
            !without
                .iter()
                .any(|name| path.file_name().is_some_and(|file| file == *name))
        })
        .collect();
    files.sort();
    files
}

fn compiled(architecture: &str, posix: bool) {
    let c = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("c");
    let core = c.join("core");
    let io = c.join("io");
    let includes = ["core/include", "io/include", "io/posix/include"].map(|folder| c.join(folder));
    for folder in &includes {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let mut libraries = vec![("haft_rust_shim", shim(&includes, posix))];
    if posix {
        let mut library = compiler();
        library
            .flag("-U_FORTIFY_SOURCE")
            .includes(&includes)
            .include(io.join("posix/src"))
            .files(sources(&io.join("posix/src"), "c", &[]));
        libraries.push(("haft_posix", library));
    }
    let mut library = compiler();
    library
        .flag("-fno-plt")
        .flag("-fno-tree-slp-vectorize")
        .includes(&includes)
        .include(io.join("src"))
        .files(sources(&io.join("src"), "c", &[]))
        .files(sources(&io.join("src/simulation"), "c", &[]))
        .files(sources(&io.join("src/tape"), "c", &[]));
    add_uring(&mut library, &io.join("src/uring"));
    libraries.push(("haft_io", library));
    let mut library = compiler();
    library
        .includes(&includes)
        .include(core.join("src"))
        .files(sources(&core.join("src"), "c", &["freestanding.c"]))
        .files(sources(
            &core.join("arch").join(architecture),
            "S",
            &["morestack_wrap.S"],
        ));
    libraries.push(("haft", library));

    std::thread::scope(|s| {
        for (name, library) in &mut libraries {
            s.spawn(|| library.cargo_metadata(false).compile(name));
        }
    });
    let out = env::var("OUT_DIR").expect("cargo says where");
    println!("cargo:rustc-link-search=native={out}");
    // All of libhaft-posix is linked, as its functions have the names of those of the C library;
    // and all of what it uses, since rustc places that before it, where linkers look only once.
    let kind = if posix {
        "static:+whole-archive"
    } else {
        "static"
    };
    for (name, _) in libraries {
        println!("cargo:rustc-link-lib={kind}={name}");
    }
    println!("cargo:include={}", includes[0].display());
}

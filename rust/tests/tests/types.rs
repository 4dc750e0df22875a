// SPDX-License-Identifier: MIT
//! Promises of the types: the programs in `fail/` do not compile, for the reason that their last
//! line names.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Compiles a program that uses the library of this test, with warnings as errors; returns whether
/// it compiled, and the messages.
fn compile(program: &Path) -> (bool, String) {
    let this = env::current_exe().unwrap();
    let folder = this.parent().unwrap();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libhaft-") && name.ends_with(".rlib")
    };
    let libraries = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let library = libraries
        .filter(is_library)
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap();
    let output = Command::new("rustc")
        .args([
            "--edition=2024",
            "--emit=metadata",
            "-Dwarnings",
            "--out-dir",
            env!("CARGO_TARGET_TMPDIR"),
        ])
        .arg(format!("-Ldependency={}", folder.display()))
        .arg(format!("--extern=haft={}", library.display()))
        .arg(program)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), said)
}

#[test]
fn programs_that_break_a_promise_do_not_compile() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    // (Else they might fail for want of the library.)
    let (compiles, said) = compile(&tests.join("../haft/examples/transaction.rs"));
    assert!(compiles, "{said}");
    let mut programs = 0;
    for program in fs::read_dir(tests.join("fail")).unwrap() {
        let program = program.unwrap().path();
        let text = fs::read_to_string(&program).unwrap();
        let expected = text.lines().last().unwrap().trim_start_matches("// ");
        let (compiles, said) = compile(&program);
        assert!(!compiles, "{} compiles", program.display());
        assert!(said.contains(expected), "{}: {said}", program.display());
        programs += 1;
    }
    assert!(programs >= 20);
}

#[test]
fn the_example_of_the_readme_compiles_without_a_warning() {
    let text = include_str!("../../README.md");
    let start = text.find("```rust").unwrap();
    let (_, example) = text[start..].split_once('\n').unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.rs");
    fs::write(&program, example).unwrap();
    let (compiles, said) = compile(&program);
    assert!(compiles, "{said}");
}

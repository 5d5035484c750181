//! Libraries of drivers, compiled by the C compiler, next to a library that exports the symbols of their dependency.

use crate::abi::driver::{export_to_all, version_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Compiles a library from this line of C, linked to the others in the directory.
fn compile(directory: &Path, name: &str, source: &str, links: &[&str]) -> PathBuf {
    let library = directory.join(format!("lib{name}.so"));
    let file = directory.join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &file]);
    compiler.arg("-L").arg(directory).arg(format!("-Wl,-rpath,{}", directory.display()));
    compiler.args(links.iter().map(|link| format!("-l{link}")));
    assert!(compiler.status().expect("the C compiler `cc`").success(), "{compiler:?}");
    library
}

/// Compiles a driver, which calls `compiler_version` of the library that it links. That has a name which no other test of the process
/// uses: the system does not load a second library of the same name.
fn driver(compiler: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    compile(directory.path(), compiler, "int compiler_version(void) { return 15; }", &[]);
    let source = "int compiler_version(void); int version(void) { return compiler_version(); }";
    let driver = compile(directory.path(), "driver", source, &[compiler]);
    (directory, driver)
}

#[test]
fn a_driver_prefers_its_own_dependencies() {
    let (directory, driver) = driver("preferred");
    let source = "int compiler_version(void) { return 99; }";
    export_to_all(&compile(directory.path(), "tensorflow", source, &[]));
    assert_eq!(version_of(&driver), Ok(15));
}

/// Their `dlopen` ends the process on `RTLD_DEEPBIND`.
#[test]
fn sanitizers_do_not_end_the_process() {
    const CHILD: &str = "SE_PLUGIN_TEST_SANITIZED";
    if std::env::var_os(CHILD).is_some() {
        let (_directory, driver) = driver("sanitized");
        assert_eq!(version_of(&driver), Ok(15));
        return;
    }
    let asked = Command::new("cc").arg("-print-file-name=libasan.so").output().expect("`cc`");
    let sanitizer = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
    if !sanitizer.is_absolute() {
        println!("skipped: the C compiler has no address sanitizer");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "driver::sanitizers_do_not_end_the_process"])
        .env(CHILD, "1")
        .env("LD_PRELOAD", sanitizer)
        // Of the C compiler, which has it as well.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

#[test]
fn an_error_names_the_file_the_reason_and_the_next_step() {
    let (directory, driver) = driver("missed");
    let missing = directory.path().join("libmissing.so");
    let error = version_of(&missing).unwrap_err();
    assert_eq!(
        error,
        format!(
            "cannot load the driver `{0}`: {0}: cannot open shared object file: No such file or directory; install \
             the driver, or correct the path",
            missing.display()
        )
    );
    let error = version_of(Path::new("libmissing.so")).unwrap_err();
    let expected = "; install the driver, or add the directory of the file to LD_LIBRARY_PATH";
    assert!(error.ends_with(expected), "{error}");
    std::fs::remove_file(directory.path().join("libmissed.so")).unwrap();
    let error = version_of(&driver).unwrap_err();
    assert!(error.contains(&format!("`{}`: libmissed.so: ", driver.display())), "{error}");
    assert!(error.ends_with("; install the library that the driver needs"), "{error}");
    let text = directory.path().join("driver.c");
    let error = version_of(&text).unwrap_err();
    assert!(error.contains(&format!("`{}`: ", text.display())), "{error}");
    assert!(error.contains("; install the driver for this system"), "{error}");
    let other = compile(directory.path(), "other", "int other;", &[]);
    let error = version_of(&other).unwrap_err();
    let expected = "does not export `version`; update the driver";
    assert_eq!(error, format!("the driver `{}` {expected}", other.display()));
}

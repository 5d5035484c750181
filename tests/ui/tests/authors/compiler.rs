//! The compiler's messages to authors: one mistake, one error, in the right place, with the fix.
//!
//! A file in `fail/` has many mistakes, because each file costs a run of the compiler. A mistake that would hide
//! others is in a separate file: an unknown name hides wrong types, and a second plugin is reported last.
//!
//! `fail/*.stderr` is on record for one release of Rust, since others word their own errors
//! differently. After a change, write them again and read each one:
//!
//! ```sh
//! TRYBUILD=overwrite cargo test -p tf-plugin-ui-tests --test authors
//! ```

use std::fs;
use std::path::Path;
use std::process::Command;

/// Whose words are on record.
const RUST: &str = "1.95.";

#[test]
fn mistakes_are_explained() {
    let output = Command::new(env!("CARGO")).arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    assert!(
        version.starts_with(&format!("cargo {RUST}")),
        "the errors on record are those of Rust {RUST}x, and this is {version}; use that toolchain, \
         or put the new release into {} and write the errors again with `TRYBUILD=overwrite`",
        file!(),
    );
    // The cases' crate is in no workspace, so cargo would write all debug information, for dependencies as well; it reads
    // this configuration on its way up from the crate's folder.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("tests/trybuild/.cargo");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[profile.dev]\ndebug = false\n").unwrap();
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}

//! Exports the functions that replace TensorFlow's to the plugins that the tool loads, and says that the tool is compiled.

use std::fs::{OpenOptions, read};
use std::io::Write as _;
use std::os::unix::process::parent_id;

fn main() {
    for path in ["build.rs", "src", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rustc-link-arg-bins=-rdynamic");
    announce();
}

/// In a clone `cargo tf-plugin` is an alias of `cargo run --quiet`, so that no call prints what cargo did. Cargo keeps what
/// build scripts print to itself: this line goes to cargo's own standard error.
fn announce() {
    let cargo = format!("/proc/{}", parent_id());
    let arguments = read(format!("{cargo}/cmdline")).unwrap_or_default();
    if arguments.split(|byte| *byte == 0).nth(1) == Some(b"tf-plugin")
        && let Ok(mut stderr) = OpenOptions::new().append(true).open(format!("{cargo}/fd/2"))
    {
        let _ = writeln!(stderr, "Compiling `cargo tf-plugin`: about a minute the first time");
    }
}

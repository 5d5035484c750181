//! C++ plugins, compiled with the headers of the newest TensorFlow.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cargo_tf_plugin::{NEWEST, TensorFlow};
use tempfile::TempDir;

/// Compiles a C++ source to the shared library `name`.
pub(crate) fn compile(source: &Path, defines: &[&str], name: &str, flags: &[&str]) -> PathBuf {
    static SCRATCH: OnceLock<TempDir> = OnceLock::new();
    let scratch = SCRATCH.get_or_init(|| tempfile::tempdir().expect("a scratch directory"));
    let library = scratch.path().join(name);
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let output = Command::new(&compiler)
        .args(["-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .args(flags)
        .arg("-I")
        .arg(tensorflow.include_dir())
        .arg(source)
        .arg("-o")
        .arg(&library)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => panic!(
            "the C++ compiler {} is not on this machine; install one (Debian and Ubuntu: `apt-get install g++`) or \
             name one in the environment variable CXX",
            compiler.display()
        ),
        output => output.expect("the compiler runs"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Returns the path of the source `name` in this directory.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/plugins").join(name)
}

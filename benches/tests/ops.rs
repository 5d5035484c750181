//! The bench of ops, on small inputs in the newest TensorFlow: the ops in Rust, in C++ and in Python return the same.

use std::env::{self, consts};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cargo_tf_plugin::host::Library;
use cargo_tf_plugin::workspace::Workspace;
use cargo_tf_plugin::{NEWEST, TensorFlow};
use tf_plugin_benches::abi::eager::Eager;
use tf_plugin_benches::build;
use tf_plugin_benches::comparison::Session as _;
use tf_plugin_benches::ops::rows::{Row, Session};
use tf_plugin_benches::ops::tables::{self, Timed};

static TENSORFLOW: LazyLock<TensorFlow> =
    LazyLock::new(|| TensorFlow::pinned(NEWEST).expect("TensorFlow is provided"));

/// The library in Rust, in the profile `dev`, and the one in C++.
static LIBRARIES: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let test = env::current_exe().expect("the test has a path");
    let rust = format!("{}benchops{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ops/ops.cc");
    let target = Workspace::current().expect("tests run in the workspace").target_dir();
    let directory = target.join("bench-ops").join(NEWEST);
    let cpp = build::cpp_ops(&source, &TENSORFLOW, &directory).expect("C++ compiles");
    [test.with_file_name(rust), cpp]
});

#[test]
fn each_row_returns_the_same_in_rust_cpp_and_python() {
    let timed = Timed::measure(&TENSORFLOW, &LIBRARIES, "", true).expect("it is measured");
    let text = tables::of_times(&[timed]).expect("a table");
    for row in
        ["4 floats, in a graph", "10⁷ floats, in place", "to ragged words", "several threads"]
    {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn each_counted_call_succeeds() {
    let eager = Eager::open(TENSORFLOW.library_dir()).expect("TensorFlow loads");
    for (library, language) in LIBRARIES.iter().zip(["Rust", "Cpp"]) {
        Library::open(library).expect("the library loads");
        for &row in Row::ALL {
            let mut session = Session::new(&eager, language, row).expect("an input");
            session.run(1);
            session.check().expect("the op computes");
        }
    }
}

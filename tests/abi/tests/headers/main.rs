//! `tf-fs-sys` against the headers and libraries of real TensorFlow releases.
//!
//! Both sides are read: the headers by bindgen, what bindgen writes and the sources of `tf-fs-sys` by syn.
//! A name on one side only is a problem, and so is one whose type differs. The build script
//! generates code that says sizes, offsets and values, which bindgen says of the headers. A program loads the
//! libraries and binds every table of functions, to see that what is exported is found and can be called.
//!
//! A new header is a line in `lists.rs`; what not all releases have is listed there too.
//! `cargo test -p tf-plugin-abi-tests` compares with the newest TensorFlow, with `--features matrix` with
//! the older releases and release candidates too. It needs a C++ compiler for the system's headers.

#![expect(unsafe_code, reason = "converts tables of function pointers to addresses")]

mod binding;
mod compare;
mod declarations;
mod doctored;
mod header;
mod lists;
mod mirror;
#[path = "../../src/records.rs"]
mod records;

use cargo_tf_plugin::{CANDIDATES, MATRIX, NEWEST, TensorFlow};
use compare::compare;
use lists::not_declared;

/// The releases to compare with, newest last; the last one is that which the environment names.
fn releases() -> Vec<TensorFlow> {
    let named = std::env::var("TF_PLUGIN_TEST_TENSORFLOW").ok();
    let (older, candidates) =
        if cfg!(feature = "matrix") { (MATRIX, CANDIDATES) } else { Default::default() };
    older
        .iter()
        .chain([&NEWEST])
        .chain(candidates)
        .copied()
        .chain(named.as_deref())
        .map(|version| TensorFlow::pinned(version).unwrap_or_else(|problem| panic!("{problem:?}")))
        .collect()
}

#[test]
fn declarations_are_those_of_the_headers() {
    for tensorflow in releases() {
        let version = tensorflow.version();
        let is_2_22 = tensorflow.major_minor() >= (2, 22);
        let source = mirror::declarations(&mirror::sources(), is_2_22);
        let include_dir = tensorflow.include_dir();
        let numbers = mirror::numbers(is_2_22);
        let comparison = compare(&tensorflow, &[&include_dir], &source, numbers);
        assert!(
            comparison.problems.is_empty(),
            "tf-fs-sys is not what TensorFlow {version} declares:\n{}",
            comparison.problems.join("\n")
        );
        assert_eq!(
            comparison.absent.iter().map(String::as_str).collect::<Vec<_>>(),
            not_declared(tensorflow.major_minor()),
            "what the headers of TensorFlow {version} lack"
        );
    }
}

/// `docs/ops.md` says that a kernel cannot notice that its step was cancelled.
#[test]
fn no_release_lets_a_kernel_notice_a_cancellation() {
    for tensorflow in releases() {
        for header in ["kernels.h", "kernels_experimental.h"] {
            let path = tensorflow.include_dir().join("tensorflow/c").join(header);
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let line = text.lines().find(|line| line.to_lowercase().contains("cancel"));
            assert_eq!(
                line,
                None,
                "{} of TensorFlow {} may tell a kernel: use it in `OpContext`, and correct docs/ops.md",
                path.display(),
                tensorflow.version()
            );
        }
    }
}

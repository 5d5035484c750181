//! Compares `tf-fs-sys` with the C headers of an installed TensorFlow and with what its libraries
//! export.
//!
//! Nothing is listed by hand. The names on the C side come out of the headers ([`c_header`]), those on
//! the Rust side out of the sources ([`rust_source`]); a name on one side only is a problem. For the
//! names on both sides, a generated C++ program says sizes, alignments, offsets, values and types
//! ([`compare`]), and code that the build script generates says the same for Rust ([`measured`]).
//!
//! A program of its own loads the libraries and binds every table of functions, to see that what is
//! exported is found and can be called.
//!
//! A new header is a line in [`headers::HEADERS`]; what not all releases have is listed there too.
//!
//! `cargo test -p tf-plugin-abi-tests` compares with the newest TensorFlow, with `--features matrix` with
//! the older releases and release candidates too. It needs a C++ compiler.

// The generated code names this crate from inside and from its tests.
extern crate self as tf_plugin_abi_tests;

pub mod c_header;
pub mod compare;
pub mod compiler;
pub mod doctored;
pub mod exports;
pub mod headers;
pub mod measured;
pub mod release_2_22;
pub mod rust_source;

use std::path::Path;

mod generated {
    include!(concat!(env!("OUT_DIR"), "/measure.rs"));
}

/// Measures the declarations of `tf-fs-sys`.
pub use generated::tf_fs_sys as measure_tf_fs_sys;

/// Name and source text of each module of `tf-fs-sys` that mirrors a header.
///
/// # Errors
/// When a source cannot be read.
pub fn tf_fs_sys_sources() -> Result<Vec<(&'static str, String)>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tf-fs-sys/src");
    headers::HEADERS
        .iter()
        .map(|header| {
            let path = directory.join(header.module).with_extension("rs");
            let text = std::fs::read_to_string(&path)
                .map_err(|problem| format!("{}: {problem}", path.display()))?;
            Ok((header.module, text))
        })
        .collect()
}

/// As [`tf_fs_sys_sources`], for TensorFlow 2.22.
///
/// # Errors
/// When a source cannot be read, or [`release_2_22`] does not fit it any more.
pub fn tf_fs_sys_sources_2_22() -> Result<Vec<(&'static str, String)>, String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tf-fs-sys/src/stream_executor_2_22.rs");
    let added = std::fs::read_to_string(&path)
        .map_err(|problem| format!("{}: {problem}", path.display()))?;
    tf_fs_sys_sources()?
        .into_iter()
        .map(|(module, text)| Ok((module, release_2_22::apply(module, &text, &added)?)))
        .collect()
}

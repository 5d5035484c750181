//! `tf-fs-sys` against the headers and libraries of real TensorFlow releases.

use std::collections::BTreeSet;

use cargo_tf_plugin::{MATRIX, NEWEST, TensorFlow};
use tf_plugin_abi_tests::compare::compare;
use tf_plugin_abi_tests::compiler::Compiler;
use tf_plugin_abi_tests::exports::{exports, missing};
use tf_plugin_abi_tests::headers::{DECLARED, EXPORTED, absent_from};
use tf_plugin_abi_tests::rust_source::RustSource;
use tf_plugin_abi_tests::{measure_tf_fs_sys, tf_fs_sys_sources};

/// The releases to compare with, newest last.
fn releases() -> Vec<TensorFlow> {
    let older: &[&str] = if cfg!(feature = "matrix") { MATRIX } else { &[] };
    older
        .iter()
        .chain([&NEWEST])
        .map(|version| TensorFlow::pinned(version).unwrap_or_else(|problem| panic!("{problem:?}")))
        .collect()
}

fn source() -> RustSource {
    let sources = tf_fs_sys_sources().expect("sources");
    RustSource::parse(sources.iter().map(|(name, text)| (*name, text.as_str())))
        .expect("readable declarations")
}

#[test]
fn declarations_are_those_of_the_headers() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    for tensorflow in releases() {
        let version = tensorflow.version();
        let comparison =
            compare(&compiler, &[&tensorflow.include_dir()], &source(), &measure_tf_fs_sys())
                .unwrap_or_else(|problem| panic!("TensorFlow {version}: {problem}"));
        assert!(
            comparison.problems.is_empty(),
            "tf-fs-sys is not what TensorFlow {version} declares:\n{}",
            comparison.problems.join("\n")
        );
        assert_eq!(
            comparison.absent.iter().map(String::as_str).collect::<Vec<_>>(),
            absent_from(DECLARED, tensorflow.major_minor()),
            "what the headers of TensorFlow {version} lack"
        );
    }
}

#[test]
fn version_metadata_is_that_of_the_header() {
    let compiler = Compiler::find().unwrap_or_else(|problem| panic!("{problem}"));
    let source = source();
    let metadata: BTreeSet<String> = source.modules["filesystem"]
        .records
        .iter()
        .filter(|record| record.name == "TF_FilesystemPluginOps")
        .flat_map(|record| &record.fields)
        .filter(|field| ["_abi", "_api", "_size"].iter().any(|end| field.name.ends_with(end)))
        .map(|field| format!("TF_FilesystemPluginOps::{}", field.name))
        .collect();
    assert_eq!(metadata.len(), 12, "{metadata:?}");
    for tensorflow in releases() {
        let comparison =
            compare(&compiler, &[&tensorflow.include_dir()], &source, &measure_tf_fs_sys())
                .expect("readable headers");
        // The comparison has compared the bytes; here is only seen that it had something to compare.
        let filled = &comparison.filled["TF_SetFilesystemVersionMetadata"];
        assert_eq!(filled.iter().cloned().collect::<BTreeSet<_>>(), metadata);
        let differences: Vec<_> = comparison
            .problems
            .iter()
            .filter(|problem| problem.contains("TF_SetFilesystemVersionMetadata"))
            .collect();
        assert!(differences.is_empty(), "{differences:?}");
    }
}

#[test]
fn host_functions_are_exported() {
    let source = source();
    assert!(source.host_functions().count() > 1);
    for tensorflow in releases() {
        let version = tensorflow.version();
        let suffix = if cfg!(target_os = "macos") { ".2.dylib" } else { ".so.2" };
        let mut exported = BTreeSet::new();
        for library in ["libtensorflow_framework", "libtensorflow_cc"] {
            let path = tensorflow.library_dir().join(format!("{library}{suffix}"));
            exported.append(&mut exports(&path).unwrap_or_else(|problem| panic!("{problem}")));
        }
        assert_eq!(
            missing(&source, true, &exported),
            [""; 0],
            "TensorFlow {version} lacks functions that tf-fs-sys requires"
        );
        assert_eq!(
            missing(&source, false, &exported),
            absent_from(EXPORTED, tensorflow.major_minor()),
            "optional functions that TensorFlow {version} lacks"
        );
    }
}

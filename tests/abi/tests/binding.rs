//! The tables of `tf-fs-sys`, bound in a process that has loaded a real TensorFlow.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_tf_plugin::{CANDIDATES, MATRIX, NEWEST, TensorFlow};
use tf_plugin_abi_tests::headers::{EXPORTED, absent_from};
use tf_plugin_abi_tests::rust_source::RustSource;
use tf_plugin_abi_tests::tf_fs_sys_sources;

#[test]
fn every_function_that_a_release_exports_is_bound_and_can_be_called() {
    let sources = tf_fs_sys_sources().expect("sources");
    let source = RustSource::parse(sources.iter().map(|(name, text)| (*name, text.as_str())))
        .expect("readable declarations");
    let declared: BTreeSet<&str> =
        source.host_functions().map(|function| function.name.as_str()).collect();
    let suffix = if cfg!(target_os = "macos") { ".2.dylib" } else { ".so.2" };
    let (older, candidates) =
        if cfg!(feature = "matrix") { (MATRIX, CANDIDATES) } else { Default::default() };
    for version in older.iter().chain([&NEWEST]).chain(candidates) {
        let tensorflow =
            TensorFlow::pinned(version).unwrap_or_else(|problem| panic!("{problem:?}"));
        let output = Command::new(env!("CARGO_BIN_EXE_bind-host-functions"))
            .args(
                ["libtensorflow_framework", "libtensorflow_cc"]
                    .map(|name| tensorflow.library_dir().join(format!("{name}{suffix}"))),
            )
            .output()
            .expect("a program");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "TensorFlow {version}: {}\n{log}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let bound: BTreeMap<&str, bool> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, state)| (name, state == "present"))
            .collect();
        assert_eq!(
            bound.keys().copied().collect::<BTreeSet<_>>(),
            declared,
            "the program binds every table"
        );
        let absent: Vec<&str> =
            bound.iter().filter(|(_, present)| !**present).map(|(name, _)| *name).collect();
        assert_eq!(absent, absent_from(EXPORTED, tensorflow.major_minor()), "TensorFlow {version}");
        if bound["TF_Log"] {
            let line = "twenty-three bytes or more, 2 and 0.5";
            assert!(log.contains(line), "TensorFlow {version} logged: {log}");
        }
    }
}

//! The tables of `tf-fs-sys`, bound in a process that has loaded a real TensorFlow.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::declarations::{Aliases, Reader};
use crate::lists::not_exported;
use crate::{mirror, releases};

#[test]
fn every_function_that_a_release_exports_is_bound_and_can_be_called() {
    let source = mirror::declarations(&mirror::sources(), false);
    let aliases = Aliases::of(&source);
    let source = Reader::read(&source, &aliases, &BTreeSet::new());
    let declared: BTreeSet<&str> = source.host.keys().map(String::as_str).collect();
    let suffix = if cfg!(target_os = "macos") { ".2.dylib" } else { ".so.2" };
    for tensorflow in releases() {
        let version = tensorflow.version();
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
        assert_eq!(
            absent,
            not_exported(tensorflow.major_minor(), &declared),
            "TensorFlow {version}"
        );
        if bound["TF_Log"] {
            let line = "twenty-three bytes or more, 2 and 0.5";
            assert!(log.contains(line), "TensorFlow {version} logged: {log}");
        }
    }
}

//! The public interface of each library is on record, so that no change goes unnoticed. `tf-fs-sys` has no record: it
//! mirrors TensorFlow's headers, and `tests/abi` compares each declaration with them. The names of the in-process
//! conformance cases are on record in `tests/conformance`, next to the defects that they catch.
//!
//! After a change on purpose, write the records again, and tell users in `CHANGELOG.md`:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_INTERFACES=1 cargo test -p tf-plugin-release-tests --features interfaces
//! ```

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};
use tf_plugin_release_tests::{interfaces, is_library, metadata, root};

/// Returns whether a line of an interface is an in-process conformance case.
fn is_case(line: &str) -> bool {
    line.starts_with("pub static ")
        && line.contains("::cases::")
        && line.trim_end().ends_with("::Case")
}

#[test]
fn public_interfaces_are_those_on_record() {
    let folder = root().join("tests/release/interfaces");
    let write = env::var_os("TF_FS_PLUGIN_WRITE_INTERFACES").is_some();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interfaces");
    let mut wrong = String::new();
    let mut files = BTreeSet::new();
    let metadata = metadata();
    let libraries = metadata
        .packages
        .iter()
        .filter(|package| is_library(package) && package.name.as_str() != "tf-fs-sys");
    let names: Vec<&str> = libraries.map(|package| package.name.as_str()).collect();
    for (name, new) in names.iter().zip(interfaces(&names, &target)) {
        let file = format!("{name}.txt");
        let new: String = new.split_inclusive('\n').filter(|line| !is_case(line)).collect();
        assert!(!new.is_empty(), "{name} has no public item");
        if write {
            fs::write(folder.join(&file), &new).expect("the record is written");
        }
        let (record, written) = (folder.join(&file), target.join(&file));
        if fs::read_to_string(&record).unwrap_or_default() != new {
            fs::write(&written, &new).expect("the interface is written");
            let mut git = Command::new("git");
            git.args(["diff", "--no-index", "--unified=0"]).args([record, written]);
            let differences = git.output().expect("git can be run").stdout;
            wrong += &format!("{name}:\n{}", String::from_utf8_lossy(&differences));
        }
        files.insert(file);
    }
    assert!(
        wrong.is_empty(),
        "public interfaces are not those on record in tests/release/interfaces:\n\n{wrong}\n\
         If that is meant, say so in CHANGELOG.md, and write the records again:\n\n    \
         TF_FS_PLUGIN_WRITE_INTERFACES=1 cargo test -p tf-plugin-release-tests --features interfaces\n"
    );
    let found = fs::read_dir(&folder)
        .expect("the records")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"));
    assert_eq!(found.collect::<BTreeSet<_>>(), files, "one record for each library");
}

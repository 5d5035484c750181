//! The public interface of each library is on record, so that no change goes unnoticed.
//!
//! After a change on purpose, write the records again, and tell users in `CHANGELOG.md`:
//!
//! ```sh
//! TF_FS_PLUGIN_WRITE_INTERFACES=1 cargo test -p tf-plugin-release-tests --test interfaces
//! ```

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};
use tf_plugin_release_tests::{differences, interface, is_library, metadata, root};

#[test]
fn public_interfaces_are_those_on_record() {
    let folder = root().join("tests/release/interfaces");
    let write = env::var_os("TF_FS_PLUGIN_WRITE_INTERFACES").is_some();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interfaces");
    let mut wrong = String::new();
    let mut files = BTreeSet::new();
    for package in metadata().packages.iter().filter(|package| is_library(package)) {
        let file = format!("{}.txt", package.name);
        let new = interface(&package.name, &target);
        assert!(!new.is_empty(), "{} has no public item", package.name);
        if write {
            fs::write(folder.join(&file), &new).expect("the record is written");
        }
        let old = fs::read_to_string(folder.join(&file)).unwrap_or_default();
        if old != new {
            wrong += &format!("{}:\n{}", package.name, differences(&old, &new));
        }
        files.insert(file);
    }
    assert!(
        wrong.is_empty(),
        "public interfaces are not those on record in tests/release/interfaces:\n\n{wrong}\n\
         If that is meant, say so in CHANGELOG.md, and write the records again:\n\n    \
         TF_FS_PLUGIN_WRITE_INTERFACES=1 cargo test -p tf-plugin-release-tests --test interfaces\n"
    );
    let found = fs::read_dir(&folder)
        .expect("the records")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"));
    assert_eq!(found.collect::<BTreeSet<_>>(), files, "one record for each library");
}

#[test]
fn a_difference_is_shown_line_by_line() {
    assert_eq!(differences("a\nb\nb\n", "b\nc\n"), "  - a\n  - b\n  + c\n");
    assert_eq!(differences("a\n", "a\n"), "");
}

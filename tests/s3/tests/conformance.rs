//! Held against TensorFlow's header: what deviates is known, and each has a reason.

use std::collections::BTreeSet;
use tf_fs_plugin::testing::Conformance;
use tf_plugin_s3_tests::{Store, host};

/// All deviations, without what the plugin says.
fn deviations() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add =
        |lines: &[&str], what: &str| all.extend(lines.iter().map(|line| format!("{line}: {what}")));

    // A name that can never be one is an invalid argument, as everywhere in TensorFlow but in this header.
    add(
        &[
            "copy_file from Malformed to a new name",
            "copy_file from a file to Malformed",
            "create_dir of Malformed",
            "delete_dir of Malformed",
            "delete_file of Malformed",
            "delete_recursively of Malformed",
            "get_children of Malformed",
            "get_file_size of Malformed",
            "is_directory of Malformed",
            "new_appendable_file of Malformed",
            "new_random_access_file of Malformed",
            "new_read_only_memory_region_from_file of Malformed",
            "new_writable_file of Malformed",
            "path_exists of Malformed",
            "recursively_create_dir of Malformed",
            "rename_file from Malformed to a new name",
            "rename_file from a file to Malformed",
            "stat of Malformed",
        ],
        "FailedPrecondition, not InvalidArgument",
    );

    // Keys are flat. A directory need not be made before something is put into it,
    add(
        &[
            "copy_file from a file to ParentMissing",
            "create_dir of ParentMissing",
            "new_appendable_file of ParentMissing",
            "new_writable_file of ParentMissing",
            "rename_file from a file to ParentMissing",
        ],
        "NotFound, not OK",
    );
    // something can be below a file,
    for below in ["BelowFile", "FarBelowFile"] {
        let to = ["copy_file from a file to", "rename_file from a file to"];
        let of = [
            "create_dir of",
            "new_appendable_file of",
            "new_writable_file of",
            "recursively_create_dir of",
        ];
        for op in [&to[..], &of[..]].concat() {
            add(&[&format!("{op} {below}")], "FailedPrecondition, not OK");
        }
        // and if nothing is, it is just missing.
        for op in [
            "delete_dir",
            "delete_file",
            "delete_recursively",
            "get_children",
            "get_file_size",
            "is_directory",
            "new_random_access_file",
            "new_read_only_memory_region_from_file",
            "path_exists",
            "stat",
        ] {
            add(&[&format!("{op} of {below}")], "FailedPrecondition, not NotFound");
        }
        for op in ["copy_file", "rename_file"] {
            add(&[&format!("{op} from {below} to a new name")], "FailedPrecondition, not NotFound");
        }
    }
    add(&["paths_exist of BelowFile"], "FailedPrecondition, not NotFound");

    // Creating a file asks the store nothing, so that it does not learn of a directory of this name.
    for directory in ["EmptyDir", "FullDir"] {
        add(
            &[
                &format!("new_appendable_file of {directory}"),
                &format!("new_writable_file of {directory}"),
            ],
            "FailedPrecondition, not OK",
        );
        // Users of object stores rename directories; TensorFlow's own filesystems do it too.
        add(
            &[&format!("rename_file from {directory} to a new name")],
            "FailedPrecondition, not OK",
        );
    }

    // What was never closed is given up: nobody ever sees half a file.
    for op in ["get_children", "get_file_size", "new_random_access_file", "path_exists", "stat"] {
        add(&[&format!("{op} of a file that was dropped without a close")], "OK, not NotFound");
    }
    for op in ["copy_file", "rename_file"] {
        add(&[&format!("{op} of a file that was dropped without a close")], "OK, not NotFound");
    }
    // Before it is closed the store has nothing of it that could be copied or read.
    for op in ["copy_file", "rename_file", "new_random_access_file"] {
        add(&[&format!("{op} of a file that is open for writing")], "OK, not FailedPrecondition");
    }
    add(&["create_dir of a file that was dropped without a close"], "AlreadyExists, not OK");
    add(
        &["is_directory of a file that was dropped without a close"],
        "FailedPrecondition, not NotFound",
    );
    all.extend(
        [
            "new_appendable_file of Missing: the content is kept",
            "new_writable_file of File: an empty file is there",
            "new_writable_file of Missing: an empty file is there",
            // Keys are exact.
            "a name that is not in canonical form names the same file",
            "translate_name of ./a_file: ends in a_file",
            "translate_name of a/convoluted/../path/./to/.//.///a/file: ends in a/path/to/a/file",
        ]
        .map(str::to_owned),
    );
    all
}

#[test]
fn deviations_from_the_header_are_those_that_are_meant() {
    let store = Store::new("conformance");
    let root = store.uri("root");
    host().create_dir(&root).unwrap();
    let found = Conformance::new(host(), &root).malformed("s3://user:pw@bucket/key").deviations();
    let found: BTreeSet<String> =
        found.iter().map(|line| line.split(" (").next().unwrap_or_default().to_owned()).collect();
    let meant = deviations();
    let list = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
        these.difference(those).map(|line| format!("\n  {line}")).collect::<String>()
    };
    assert!(found == meant, "new:{}\ngone:{}", list(&found, &meant), list(&meant, &found));
    host().check();
}

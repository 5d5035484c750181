//! Options, the environment and transactions.

mod common;

use common::{TestDir, code};
use localfs::{LocalFs, ROOT_VARIABLE};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use tf_fs_plugin::prelude::*;

fn int(name: &str, value: i64) -> FilesystemOption {
    FilesystemOption::new(name, OptionValues::Int(vec![value]))
}

fn buffer(name: &str, value: impl AsRef<[u8]>) -> FilesystemOption {
    FilesystemOption::new(name, OptionValues::Buffer(vec![value.as_ref().to_vec()]))
}

#[test]
fn options_are_listed_with_their_values() {
    let area = TestDir::confined();
    let fs = &area.fs;
    let keys = fs.get_filesystem_configuration_keys().unwrap();
    assert_eq!(keys, ["root", "write_buffer_bytes", "sync_on_close"]);
    let all = fs.get_filesystem_configuration().unwrap();
    for (key, option) in keys.iter().zip(&all) {
        assert_eq!(&fs.get_filesystem_configuration_option(key).unwrap(), option);
        assert!(option.name == *key && !option.description.is_empty() && !option.per_file);
    }
    let root = area.path("").as_os_str().as_bytes().strip_suffix(b"/").unwrap().to_vec();
    assert_eq!(all[0].values, OptionValues::Buffer(vec![root]));
    assert_eq!(all[2].values, OptionValues::Int(vec![0]));
    fs.set_filesystem_configuration(&[int("write_buffer_bytes", 5), int("sync_on_close", 1)])
        .unwrap();
    let value = |key| fs.get_filesystem_configuration_option(key).unwrap().values;
    assert_eq!(value("write_buffer_bytes"), OptionValues::Int(vec![5]));
    assert_eq!(value("sync_on_close"), OptionValues::Int(vec![1]));
    let name = area.uri("file");
    let mut file = fs.new_writable_file(Uri::new(&name)).unwrap();
    file.append(b"123456").unwrap();
    file.close().unwrap();
    assert_eq!(area.read("file"), b"123456");
}

#[test]
fn wrong_options_change_nothing() {
    let area = TestDir::confined();
    let fs = &area.fs;
    let before = fs.get_filesystem_configuration().unwrap();
    let bad = Code::InvalidArgument;
    for (option, expected) in [
        (int("no_such_option", 1), Code::NotFound),
        (int("root", 1), bad),
        (buffer("root", "relative"), bad),
        (buffer("root", "/no/such/directory"), Code::NotFound),
        (buffer("root", "/dev/null"), Code::FailedPrecondition),
        (FilesystemOption::new("root", OptionValues::Buffer(vec![])), bad),
        (buffer("write_buffer_bytes", "1"), bad),
        (FilesystemOption::new("write_buffer_bytes", OptionValues::Real(vec![1.0])), bad),
        (FilesystemOption::new("write_buffer_bytes", OptionValues::Int(vec![1, 2])), bad),
        (int("write_buffer_bytes", -1), bad),
        (int("write_buffer_bytes", i64::MAX), bad),
        (int("sync_on_close", 2), bad),
    ] {
        let error = fs.set_filesystem_configuration_option(&option).unwrap_err();
        assert_eq!(error.code(), expected, "{error}");
        assert!(error.to_string().contains(&option.name), "{error}");
        // Together with a good one, before or after it.
        let good = int("sync_on_close", 1);
        for options in [[good.clone(), option.clone()], [option, good]] {
            assert_eq!(code(fs.set_filesystem_configuration(&options)), expected);
        }
    }
    assert_eq!(fs.get_filesystem_configuration().unwrap(), before);
    assert_eq!(code(fs.get_filesystem_configuration_option("no_such_option")), Code::NotFound);
}

#[test]
fn the_root_can_be_set() {
    let (area, fs) = (TestDir::confined(), LocalFs::unconfined());
    area.write("file", "content");
    let uri = Uri::new(b"local:///file");
    assert!(!fs.path_exists(uri).unwrap());
    let root = area.path("");
    fs.set_filesystem_configuration_option(&buffer("root", root.as_os_str().as_bytes())).unwrap();
    assert_eq!(fs.get_file_size(uri).unwrap(), 7);
    assert!(!fs.path_exists(Uri::new(b"local:///dev/null")).unwrap());
    fs.set_filesystem_configuration_option(&buffer("root", "")).unwrap();
    assert!(fs.path_exists(Uri::new(b"local:///dev/null")).unwrap());
}

/// Runs a test of this file again, in a process with another environment.
#[track_caller]
fn run_again(test: &str, root: &str, role: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ROOT_VARIABLE, root)
        .env("LOCALFS_TEST_ROLE", role)
        .output()
        .unwrap();
    assert!(output.status.success(), "{root:?}: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_environment_fixes_the_root() {
    match std::env::var("LOCALFS_TEST_ROLE").as_deref() {
        Err(_) => {
            let area = TestDir::confined();
            area.write("file", "content");
            let root = area.path("");
            run_again("the_environment_fixes_the_root", root.to_str().unwrap(), "good");
            for bad in ["", "relative", "/no/such/directory", "/dev/null"] {
                run_again("the_environment_fixes_the_root", bad, "bad");
            }
        }
        Ok("good") => {
            let fs = LocalFs::new("local").unwrap();
            assert_eq!(fs.get_file_size(Uri::new(b"local:///file")).unwrap(), 7);
            assert!(!fs.path_exists(Uri::new(b"local:///dev/null")).unwrap());
            let free = fs.set_filesystem_configuration_option(&buffer("root", ""));
            assert_eq!(code(free), Code::FailedPrecondition);
            assert!(!fs.path_exists(Uri::new(b"local:///dev/null")).unwrap());
        }
        Ok(_) => {
            let error = LocalFs::new("local").unwrap_err();
            assert!(error.to_string().starts_with(ROOT_VARIABLE), "{error}");
        }
    }
}

#[test]
fn transactions_group_paths() {
    let area = TestDir::confined();
    let fs = &area.fs;
    area.write("a", "content");
    area.mkdir("dir");
    let names = ["a", "dir", "missing", "gone/x/y"].map(|path| area.uri(path));
    let [a, dir, missing, gone] = names.each_ref().map(|name| Uri::new(name));
    let one = fs.start_transaction().unwrap();
    let two = fs.start_transaction().unwrap();
    for uri in [a, dir, missing, gone] {
        fs.add_to_transaction(uri, &one).unwrap();
        fs.add_to_transaction(uri, &one).unwrap();
        assert_eq!(code(fs.add_to_transaction(uri, &two)), Code::FailedPrecondition);
        let transaction = fs.get_transaction_for_path(uri).unwrap().unwrap();
        assert!(Arc::ptr_eq(&transaction, &one));
        assert!(Arc::ptr_eq(&fs.get_or_start_transaction_for_path(uri).unwrap(), &one));
    }
    let other = area.uri("other");
    assert!(fs.get_transaction_for_path(Uri::new(&other)).unwrap().is_none());
    let third = fs.get_or_start_transaction_for_path(Uri::new(&other)).unwrap();
    assert_eq!(
        fs.decode_transaction_token(&one),
        "transaction 1: local:///a, local:///dir, local:///gone/x/y, local:///missing"
    );
    assert_eq!(fs.decode_transaction_token(&two), "transaction 2: no paths");
    assert_eq!(fs.decode_transaction_token(&third), "transaction 3: local:///other");
    fs.end_transaction(one).unwrap();
    assert!(fs.get_transaction_for_path(a).unwrap().is_none());
    fs.add_to_transaction(a, &two).unwrap();
    assert!(fs.get_transaction_for_path(Uri::new(&other)).unwrap().is_some());
    fs.end_transaction(two).unwrap();
    fs.end_transaction(third).unwrap();
}

#[test]
fn paths_of_others_are_in_no_transaction() {
    let area = TestDir::confined();
    let fs = &area.fs;
    let foreign = Uri::new(b"s3://bucket/x");
    assert_eq!(code(fs.get_transaction_for_path(foreign)), Code::FailedPrecondition);
    assert_eq!(code(fs.get_or_start_transaction_for_path(foreign)), Code::NotFound);
    let transaction = fs.start_transaction().unwrap();
    assert_eq!(code(fs.add_to_transaction(foreign, &transaction)), Code::FailedPrecondition);
}

#[test]
fn a_transaction_that_cannot_be_made_durable_says_so() {
    let area = TestDir::confined();
    let fs = &area.fs;
    area.mkdir("dir");
    area.write("dir/file", "");
    std::os::unix::fs::symlink("/", area.path("dir/link")).unwrap();
    // What cannot be reached is the path itself, or only the directory that holds it.
    for bad in ["dir/link", "dir/link/x"] {
        let (bad, file) = (area.uri(bad), area.uri("dir/file"));
        let transaction = fs.start_transaction().unwrap();
        for name in [&bad, &file] {
            fs.add_to_transaction(Uri::new(name), &transaction).unwrap();
        }
        assert_eq!(code(fs.end_transaction(transaction)), Code::PermissionDenied);
        // It has ended nevertheless.
        assert!(fs.get_transaction_for_path(Uri::new(&file)).unwrap().is_none());
    }
}

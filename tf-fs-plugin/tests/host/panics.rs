//! A plugin that panics in every single place: no panic leaves it, each is told, and all goes on.

use crate::full::Full;
use crate::support::fails;
use crate::trips::{Trip, arm, disarm, panic_line};
use std::collections::BTreeSet;
use tf_fs_plugin::{Code, Error, FilesystemOption, Ops, OptionValues, Result};
use tf_plugin_testing::filesystem::{Host, TestFilesystem, TestTransaction};

const DIR: &str = "full://h/dir";
const FILE: &str = "full://h/dir/file";

/// A filesystem with a file of 7 bytes, an option and a transaction.
struct Fixture {
    host: Host,
    fs: TestFilesystem,
    transaction: TestTransaction,
}

fn fixture() -> Fixture {
    let host = Host::load::<Full>().expect("loaded");
    let fs = host.filesystem("full").expect("there");
    fs.create_dir(DIR).expect("created");
    fs.write_file(FILE, "content").expect("written");
    fs.set_filesystem_configuration_option(&option()).expect("set");
    let transaction = fs.start_transaction().expect("started");
    fs.add_to_transaction(FILE, &transaction).expect("added");
    Fixture { host, fs, transaction }
}

fn option() -> FilesystemOption {
    FilesystemOption::new("depth", OptionValues::Int(vec![1, 2]))
}

impl Fixture {
    /// The filesystem works and nothing was lost.
    #[track_caller]
    fn is_sound(&self) {
        let fs = &self.fs;
        assert!(!disarm(), "the place was never passed");
        assert_eq!(fs.read_file(FILE).expect("there"), b"content");
        assert_eq!(fs.get_children(DIR).expect("listed"), [b"file"]);
        assert_eq!(fs.stat(FILE).expect("there").length, 7);
        fs.write_file("full://h/other", "x").expect("written");
        fs.rename_file("full://h/other", "full://h/another").expect("renamed");
        fs.delete_file("full://h/another").expect("deleted");
        assert_eq!(fs.get_filesystem_configuration().expect("listed"), [option()]);
        assert_eq!(fs.get_transaction_for_path(FILE).expect("there"), self.transaction);
        self.host.check();
    }
}

/// The statuses that each operation returns, by its name.
type Case = (&'static str, fn(&Fixture) -> Result<()>);

const CASES: &[Case] = &[
    ("new_random_access_file", |f| f.fs.new_random_access_file(FILE).map(drop)),
    ("new_writable_file", |f| f.fs.new_writable_file("full://h/new").map(drop)),
    ("new_appendable_file", |f| f.fs.new_appendable_file(FILE).map(drop)),
    ("new_read_only_memory_region_from_file", |f| {
        f.fs.new_read_only_memory_region_from_file(FILE).map(drop)
    }),
    ("create_dir", |f| f.fs.create_dir("full://h/new")),
    ("recursively_create_dir", |f| f.fs.recursively_create_dir("full://h/new/er")),
    ("delete_file", |f| f.fs.delete_file(FILE)),
    ("delete_dir", |f| f.fs.delete_dir(DIR)),
    ("delete_recursively", |f| {
        f.fs.delete_recursively(DIR).map_err(|left| {
            assert_eq!((left.files, left.dirs), (0, 1), "nothing was touched");
            left.error
        })
    }),
    ("rename_file", |f| f.fs.rename_file(FILE, "full://h/new")),
    ("copy_file", |f| f.fs.copy_file(FILE, "full://h/new")),
    ("path_exists", |f| f.fs.path_exists(FILE)),
    ("stat", |f| f.fs.stat(FILE).map(drop)),
    ("is_directory", |f| f.fs.is_directory(DIR)),
    ("get_file_size", |f| f.fs.get_file_size(FILE).map(drop)),
    ("get_children", |f| f.fs.get_children(DIR).map(drop)),
    ("get_matching_paths", |f| f.fs.get_matching_paths("full://h/*").map(drop)),
    ("start_transaction", |f| f.fs.start_transaction().map(drop)),
    ("end_transaction", |f| {
        let other = f.fs.start_transaction()?;
        f.fs.end_transaction(&other)
    }),
    ("add_to_transaction", |f| f.fs.add_to_transaction(DIR, &f.transaction)),
    ("get_transaction_for_path", |f| f.fs.get_transaction_for_path(FILE).map(drop)),
    ("get_or_start_transaction_for_path", |f| {
        f.fs.get_or_start_transaction_for_path(DIR).map(drop)
    }),
    ("get_filesystem_configuration", |f| f.fs.get_filesystem_configuration().map(drop)),
    ("set_filesystem_configuration", |f| f.fs.set_filesystem_configuration(&[option()])),
    ("get_filesystem_configuration_option", |f| {
        f.fs.get_filesystem_configuration_option("depth").map(drop)
    }),
    ("set_filesystem_configuration_option", |f| {
        f.fs.set_filesystem_configuration_option(&option())
    }),
    ("get_filesystem_configuration_keys", |f| f.fs.get_filesystem_configuration_keys().map(drop)),
];

/// Operations that have no status, or one a path; each has a test of its own below.
const ELSEWHERE: &[&str] =
    &["paths_exist", "translate_name", "flush_caches", "decode_transaction_token"];

#[test]
fn every_operation_has_a_case() {
    let cases: BTreeSet<&str> =
        CASES.iter().map(|(op, _)| *op).chain(ELSEWHERE.iter().copied()).collect();
    let ops: BTreeSet<&str> = Ops::NAMES.iter().map(|(op, _)| *op).collect();
    assert_eq!(cases, ops);
    for (op, flag) in Ops::NAMES {
        use tf_fs_plugin::OperationTable;
        assert!(Full::PROVIDED.contains(*flag), "{op} is not even written");
    }
}

/// Checks that an error is that of a panic of this operation.
#[track_caller]
fn is_panic(error: &Error, op: &str, what: &str) {
    assert_eq!(error.code(), Code::Internal, "{error}");
    let place = format!("tests/host/trips.rs:{}", panic_line());
    let text = error.message();
    assert!(text.starts_with(&format!("plugin panicked in `{op}` at ")), "{text}");
    assert!(text.ends_with(&format!("{place}: {what}")), "{text}, not {place}");
}

#[test]
fn a_panic_in_an_operation_is_an_internal_error() {
    let fixture = fixture();
    for (op, call) in CASES {
        arm(op, Trip::Panic, 0);
        let error = call(&fixture).expect_err(op);
        is_panic(&error, op, &format!("boom in {op}"));
        fixture.is_sound();
    }
}

#[test]
fn a_panic_with_a_value_that_panics_when_dropped_is_one_too() {
    let fixture = fixture();
    for (op, call) in CASES {
        arm(op, Trip::PanicWithBomb, 0);
        let error = call(&fixture).expect_err(op);
        is_panic(&error, op, "(no text)");
        fixture.is_sound();
    }
}

#[test]
fn an_error_that_panics_when_it_is_shown_or_dropped_keeps_its_code() {
    let fixture = fixture();
    for (op, call) in CASES {
        if *op == "delete_recursively" {
            // Its error comes with counters of its own.
            continue;
        }
        for (trip, part) in [
            (Trip::FailWithBadText, "a bomb was shown"),
            (Trip::FailWithBoth, "a bomb was shown"),
            (Trip::FailWithBomb, "the disk is on fire: a quiet bomb"),
        ] {
            arm(op, trip, 0);
            fails(call(&fixture), Code::DataLoss, part);
            fixture.is_sound();
        }
    }
}

#[test]
fn paths_exist_tells_each_path() {
    let fixture = fixture();
    for (trip, part) in [
        (Trip::Panic, "`paths_exist` failed"),
        (Trip::PanicWithBomb, "`paths_exist` failed"),
        (Trip::Fail(Code::Unavailable), "answered for too few paths"),
    ] {
        arm("paths_exist", trip, 0);
        for answer in fixture.fs.paths_exist(&[FILE, DIR]).expect("statuses") {
            fails(answer, Code::Internal, part);
        }
        fixture.is_sound();
        arm("paths_exist", trip, 0);
        assert!(!fixture.fs.all_paths_exist(&[FILE, DIR]).expect("no status"));
        fixture.is_sound();
    }
}

#[test]
fn operations_without_a_status_fall_back() {
    let fixture = fixture();
    let fs = &fixture.fs;
    for trip in [Trip::Panic, Trip::PanicWithBomb] {
        arm("translate_name", trip, 0);
        let unchanged = fs.translate_name("full://h/a//b/").expect("a string");
        assert_eq!(unchanged, b"full://h/a//b/");
        fixture.is_sound();
        arm("flush_caches", trip, 0);
        fs.flush_caches();
        fixture.is_sound();
        arm("decode_transaction_token", trip, 0);
        assert_eq!(
            fs.decode_transaction_token(&fixture.transaction).expect("a string"),
            "(unknown transaction)"
        );
        fixture.is_sound();
    }
}

#[test]
fn a_panic_in_init_refuses_the_scheme() {
    for trip in [Trip::Panic, Trip::PanicWithBomb] {
        arm("init", trip, 0);
        let error = Host::load::<Full>().expect_err("refused");
        let what = match trip {
            Trip::Panic => "boom in init",
            _ => "(no text)",
        };
        is_panic(&error, "init", what);
        assert!(!disarm());
    }
    fixture().is_sound();
}

#[test]
fn a_panic_in_a_reader() {
    let fixture = fixture();
    let file = fixture.fs.new_random_access_file(FILE).expect("opened");
    for (trip, what) in [(Trip::Panic, "boom in read"), (Trip::PanicWithBomb, "(no text)")] {
        arm("read", trip, 0);
        let (bytes, status) = file.read_with_status(0, 4);
        assert_eq!(bytes, b"");
        is_panic(&status.expect_err("panicked"), "read", what);
        assert_eq!(file.read(0, 4).expect("a panic does not break a reader"), b"cont");
    }
    drop(file);
    fixture.is_sound();
}

#[test]
fn a_panic_breaks_only_its_writer() {
    type Call = fn(&mut tf_plugin_testing::filesystem::TestWritableFile) -> Result<()>;
    let calls: [(&str, Call); 5] = [
        ("append", |file| file.append(b"x")),
        ("tell", |file| file.tell().map(drop)),
        ("flush", |file| file.flush()),
        ("sync", |file| file.sync()),
        ("close", |file| file.close()),
    ];
    let fixture = fixture();
    let mut other = fixture.fs.new_writable_file("full://h/b").expect("opened");
    for (op, call) in calls {
        for (trip, what) in [
            (Trip::Panic, format!("boom in {op}")),
            (Trip::PanicWithBomb, String::from("(no text)")),
        ] {
            let mut file = fixture.fs.new_writable_file("full://h/a").expect("opened");
            arm(op, trip, 0);
            is_panic(&call(&mut file).expect_err(op), op, &what);
            for (_, call) in calls {
                fails(call(&mut file), Code::Internal, "the file is broken");
            }
            drop(file);
            other.append(b"y").expect("another file");
            fixture.is_sound();
        }
    }
    other.close().expect("closed");
    assert_eq!(fixture.fs.read_file("full://h/b").expect("there"), b"yyyyyyyyyy");
}

#[test]
fn a_panic_in_a_region_s_content() {
    let fixture = fixture();
    for (trip, what) in [(Trip::Panic, "boom in content"), (Trip::PanicWithBomb, "(no text)")] {
        arm("content", trip, 0);
        let error = fixture.fs.new_read_only_memory_region_from_file(FILE).expect_err("panicked");
        is_panic(&error, "new_read_only_memory_region_from_file", what);
        fixture.is_sound();
    }
}

#[test]
fn a_panic_in_a_destructor_is_swallowed() {
    for (trip, what) in
        [(Trip::Panic, "boom in drop transaction"), (Trip::PanicWithBomb, "(no text)")]
    {
        let fixture = fixture();
        let fs = &fixture.fs;
        let reader = fs.new_random_access_file(FILE).expect("opened");
        arm("drop reader", trip, 0);
        drop(reader);
        fixture.is_sound();
        let writer = fs.new_appendable_file(FILE).expect("opened");
        arm("drop writer", trip, 0);
        drop(writer);
        fixture.is_sound();
        let region = fs.new_read_only_memory_region_from_file(FILE).expect("opened");
        arm("drop region", trip, 0);
        drop(region);
        fixture.is_sound();
        let transaction = fs.start_transaction().expect("started");
        arm("drop transaction", trip, 0);
        let error = fs.end_transaction(&transaction).expect_err("panicked");
        is_panic(&error, "end_transaction", what);
        fails(fs.end_transaction(&transaction), Code::NotFound, "ended");
        fixture.is_sound();
        drop(transaction);
        arm("drop filesystem", trip, 0);
        drop(fixture);
        assert!(!disarm(), "the filesystem was dropped");
    }
}

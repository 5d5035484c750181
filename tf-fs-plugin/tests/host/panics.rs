//! A plugin that panics in each place: no panic leaves it, each one is reported, and everything else still works.

use crate::abi::raw::{self, Arguments};
use crate::bad_input::fallback;
use crate::full::Full;
use crate::support::fails;
use crate::trips::{Trip, arm, disarm, panic_line};
use tf_fs_plugin::{Code, Error, FilesystemOption, Operations, OptionValues, Result};
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
    /// Checks that the filesystem works and nothing was lost.
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

/// Operations that have no status, or one per path; each has a test of its own below.
const ELSEWHERE: &[&str] =
    &["paths_exist", "translate_name", "flush_caches", "decode_transaction_token"];

fn operations() -> impl Iterator<Item = &'static str> {
    Operations::NAMES.iter().map(|(op, _)| *op).filter(|op| !ELSEWHERE.contains(op))
}

/// Calls an operation that fails, and checks that it leaves nothing but its status.
fn call(fixture: &Fixture, op: &str) -> Result<()> {
    let fs = &fixture.fs;
    match op {
        // Without a valid token or option the plugin is not called.
        "end_transaction" => {
            let other = fs.start_transaction()?;
            fs.end_transaction(&other)
        }
        "add_to_transaction" => fs.add_to_transaction(DIR, &fixture.transaction),
        "set_filesystem_configuration" => fs.set_filesystem_configuration(&[option()]),
        "set_filesystem_configuration_option" => fs.set_filesystem_configuration_option(&option()),
        _ => {
            let answer = raw::call(fs, op, FILE, Arguments::ALL);
            assert_eq!(answer.returned, fallback(op), "{op}");
            answer.status
        }
    }
}

/// Returns the ways in which a place panics, and what the host is told of each.
fn panics_in(place: &str) -> [(Trip, String); 2] {
    [(Trip::Panic, format!("boom in {place}")), (Trip::PanicWithBomb, String::from("(no text)"))]
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
    for op in operations() {
        for (trip, what) in panics_in(op) {
            arm(op, trip, 0);
            is_panic(&call(&fixture, op).expect_err(op), op, &what);
            fixture.is_sound();
        }
    }
}

#[test]
fn an_error_that_panics_when_it_is_shown_or_dropped_keeps_its_code() {
    let fixture = fixture();
    // The error of `delete_recursively` comes with counters.
    for op in operations().filter(|op| *op != "delete_recursively") {
        for (trip, part) in [
            (Trip::FailWithBadText, "a bomb was shown"),
            (Trip::FailWithBoth, "a bomb was shown"),
            (Trip::FailWithBomb, "the disk is on fire: a quiet bomb"),
        ] {
            arm(op, trip, 0);
            fails(call(&fixture, op), Code::DataLoss, part);
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
        (Trip::Fail(Code::Unavailable), "returned too few answers"),
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
    for (trip, what) in panics_in("init") {
        arm("init", trip, 0);
        is_panic(&Host::load::<Full>().expect_err("refused"), "init", &what);
        assert!(!disarm());
    }
    fixture().is_sound();
}

#[test]
fn a_panic_in_a_reader() {
    let fixture = fixture();
    let file = fixture.fs.new_random_access_file(FILE).expect("opened");
    for (trip, what) in panics_in("read") {
        arm("read", trip, 0);
        let (bytes, status) = file.read_with_status(0, 4);
        assert_eq!(bytes, b"");
        is_panic(&status.expect_err("panicked"), "read", &what);
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
        for (trip, what) in panics_in(op) {
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
    for (trip, what) in panics_in("content") {
        arm("content", trip, 0);
        let error = fixture.fs.new_read_only_memory_region_from_file(FILE).expect_err("panicked");
        is_panic(&error, "new_read_only_memory_region_from_file", &what);
        fixture.is_sound();
    }
}

#[test]
fn a_panic_in_a_destructor_is_swallowed() {
    for (trip, what) in panics_in("drop transaction") {
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
        is_panic(&error, "end_transaction", &what);
        fails(fs.end_transaction(&transaction), Code::NotFound, "ended");
        fixture.is_sound();
        drop(transaction);
        arm("drop filesystem", trip, 0);
        drop(fixture);
        assert!(!disarm(), "the filesystem was dropped");
    }
}

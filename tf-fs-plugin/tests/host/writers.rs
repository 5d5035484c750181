//! A writable file after `close`, and without it.

use crate::full::{Full, alive};
use crate::support::{code, fails};
use crate::trips::{Trip, arm, disarm};
use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::Host;

const A: &str = "full://h/a";

fn host() -> Host {
    Host::load::<Full>().expect("loaded")
}

#[test]
fn after_a_close_only_appending_is_an_error() {
    let host = host();
    let mut file = host.new_writable_file(A).expect("opened");
    file.append(b"x").expect("appended");
    file.close().expect("closed");
    // The plugin is not called again.
    for place in ["close", "flush", "sync", "append", "tell"] {
        arm(place, Trip::Panic, 0);
        file.close().expect("closed already");
        file.flush().expect("nothing to flush");
        file.sync().expect("nothing to sync");
        fails(file.append(b"y"), Code::FailedPrecondition, "the file is closed");
        fails(file.append(b""), Code::FailedPrecondition, "the file is closed");
        assert_eq!(code(file.tell()), Code::FailedPrecondition);
        assert!(disarm(), "{place}");
    }
    drop(file);
    assert_eq!(host.read_file(A).expect("there"), b"x");
}

#[test]
fn a_close_that_failed_may_be_tried_again() {
    let host = host();
    let mut file = host.new_writable_file(A).expect("opened");
    file.append(b"x").expect("appended");
    for _ in 0..2 {
        arm("close", Trip::Fail(Code::Unavailable), 0);
        assert_eq!(code(file.close()), Code::Unavailable);
    }
    file.append(b"y").expect("it is still open");
    assert_eq!(file.tell().expect("told"), 2);
    file.close().expect("closed");
    assert_eq!(host.read_file(A).expect("there"), b"xy");
}

#[test]
fn errors_of_each_operation_pass_and_break_nothing() {
    let host = host();
    let mut file = host.new_writable_file(A).expect("opened");
    arm("append", Trip::Fail(Code::ResourceExhausted), 0);
    fails(file.append(b"x"), Code::ResourceExhausted, "append was told to fail");
    arm("tell", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(file.tell()), Code::Unavailable);
    arm("flush", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(file.flush()), Code::Unavailable);
    arm("sync", Trip::Fail(Code::Unavailable), 0);
    assert_eq!(code(file.sync()), Code::Unavailable);
    file.append(b"y").expect("appended");
    file.sync().expect("synced");
    assert_eq!(host.read_file(A).expect("there"), b"y");
}

#[test]
fn a_file_may_be_dropped_without_a_close() {
    let host = host();
    let mut file = host.new_writable_file(A).expect("opened");
    file.append(b"x").expect("appended");
    let before = alive();
    drop(file);
    assert_eq!(alive(), before - 1);
    host.stat(A).expect("it exists since it was opened");
    drop(host);
    assert_eq!(alive(), 0);
}

#[test]
fn a_file_may_outlive_its_host() {
    let host = host();
    let mut file = host.new_writable_file(A).expect("opened");
    drop(host);
    file.append(b"x").expect("appended");
    file.close().expect("closed");
    drop(file);
    assert_eq!(alive(), 0, "with the last file the filesystem is cleaned up");
}

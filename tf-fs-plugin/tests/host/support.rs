//! Exports filesystems by hand: a test crate has many plugins, while `#[filesystem_plugin]` makes
//! one per crate, with the C entry points of a shared library.

use std::fmt::Debug;
use tf_fs_plugin::{Code, Result};

/// Makes a type the export of filesystems: `export!(Export: "mem" => MemFs, "log" => LogFs);`.
macro_rules! export {
    ($($filesystems:tt)*) => { tf_plugin_testing::__export_filesystems! { $($filesystems)* } };
}

/// Returns the code that a call failed with.
#[track_caller]
pub(crate) fn code<T: Debug>(result: Result<T>) -> Code {
    result.expect_err("the call must fail").code()
}

/// Asserts that a call failed with this code and with a message that contains `part`.
#[track_caller]
pub(crate) fn fails<T: Debug>(result: Result<T>, code: Code, part: &str) {
    let error = result.expect_err("the call must fail");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.message().contains(part), "{error}\n  lacks: {part}");
}

//! All options, in any order, and what the set-up may make.

#![deny(warnings)]
#![allow(dead_code, reason = "the tests that use it are not compiled")]

use tf_fs_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct Server;

mod all {
    tf_plugin_testing::filesystem::conformance! {
        super::MemFs,
        without: [checkpoint => "slow", walk => format!("{} is slow", 1)],
        append: unsupported,
        directories: implied,
        visible: close,
        malformed: String::from("mem://x"),
        other_host: String::from("mem://other/"),
        files: provided,
        root: once(|| (String::from("mem://box/"), super::Server)),
    }
}

mod each {
    tf_plugin_testing::filesystem::conformance! {
        super::MemFs,
        root: each_case(|| format!("mem://box{}/", 1)),
        without: [],
        append: supported,
        directories: real,
        visible: create,
        files: written
    }
}

mod device_with_options {
    tf_plugin_testing::device::conformance! {
        super::P,
        without: [timer_measures => "no clock"],
        limit: std::time::Duration::from_secs(3),
    }
}

mod ops_with_options {
    tf_plugin_testing::ops::conformance! {
        [tf_plugin_testing::ops::Sample::new("MyOp").input("x", [1.0])],
        without: [python_forks => "no forks"],
        limit: std::time::Duration::from_secs(3),
    }
}

fn main() {}

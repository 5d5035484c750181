//! All options, in any order, and what the set-up may make.

#![deny(warnings)]

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

mod short {
    tf_fs_plugin::conformance!(super::MemFs, "mem://box/");
}

mod all {
    tf_fs_plugin::conformance! {
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
    tf_fs_plugin::conformance! {
        super::MemFs,
        root: each_case(|| format!("mem://box{}/", 1)),
        without: [],
        append: supported,
        directories: real,
        visible: create,
        files: written
    }
}

mod in_place {
    tf_fs_plugin::conformance! { super::MemFs, visible: in_place, root: "mem://box/" }
}

mod device {
    se_plugin::conformance!(super::P);
}

mod device_with_options {
    se_plugin::conformance! {
        super::P,
        without: [timer_measures => "no clock"],
        limit: std::time::Duration::from_secs(3),
    }
}

fn main() {}

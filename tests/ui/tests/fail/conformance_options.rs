//! The form of `conformance!`. None of these mistakes hides another.

use tf_fs_plugin::prelude::*;
use tf_plugin_testing::{device, filesystem};
use tf_plugin_ui_tests::device::P;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// An excluded case has a reason.
filesystem::conformance!(MemFs, root: "mem://box/", without: [checkpoint]);
device::conformance!(P, without: [timer_measures]);

// The mistake is named, not the option after it.
filesystem::conformance!(MemFs, root: "mem://box/" directories: implied);
device::conformance!(P, limit: std::time::Duration::from_secs(3) without: [timer_measures => "no clock"]);

// The options are listed.
filesystem::conformance!(MemFs, root: "mem://box/", malfromed: "mem://box/x");
device::conformance!(P, timeout: std::time::Duration::from_secs(3));

// The kind is not guessed.
filesystem::conformance!(MemFs, root: "mem://box/", append);
filesystem::conformance!(MemFs, root: "mem://box/", append: false);
filesystem::conformance!(MemFs, root: "mem://box/", directories: prefixes);
filesystem::conformance!(MemFs, root: "mem://box/", files: read_only);
filesystem::conformance!(MemFs, root: "mem://box/", visible: true);

// The tests need a root, and the short form says how it is written.
filesystem::conformance!(MemFs);
// The message says in which three ways it can be given.
filesystem::conformance!(MemFs, directories: implied);
// A device needs no directory.
device::conformance!(P, "mem://box/");

// A URI is not a filesystem, and a type of devices is not a platform.
filesystem::conformance!("mem://box/");
device::conformance!("MINE");

// Which one counts would be a guess.
mod visible_twice {
    super::filesystem::conformance!(super::MemFs, visible: create, root: "mem://box/", visible: close);
}
mod root_twice {
    super::filesystem::conformance!(super::MemFs, root: "mem://box/", root: "mem://other/");
}
mod limit_twice {
    use std::time::Duration;
    super::device::conformance!(super::P, limit: Duration::from_secs(3), limit: Duration::from_secs(4));
}

// One list has all cases.
mod without_twice {
    super::filesystem::conformance!(super::MemFs, root: "mem://box/", without: [walk => "slow"], without: []);
}
mod device_without_twice {
    super::device::conformance!(super::P, without: [timer_measures => "no clock"], without: []);
}

fn main() {}

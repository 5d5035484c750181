//! The form of `conformance!`. None of these mistakes hides another.

use tf_fs_plugin::prelude::*;
use tf_plugin_ui_tests::device::P;

struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// What is left out has a reason.
tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    without: [checkpoint],
}

// The mistake is named, not the option after it.
tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/"
    directories: implied,
}

// Which one counts would be a guess.
mod visible_twice {
    tf_plugin_testing::filesystem::conformance! {
        super::MemFs,
        visible: create,
        root: "mem://box/",
        visible: close,
    }
}

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    directories: prefixes,
}

// What it is to be is not guessed.
tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    append,
}

// The options are listed.
tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    malfromed: "mem://box/x",
}

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    append: false,
}

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    files: read_only,
}

// The tests need one, and the short form says how it is written.
tf_plugin_testing::filesystem::conformance!(MemFs);

// The tests need one, and the message says in which three ways it can be given.
tf_plugin_testing::filesystem::conformance! {
    MemFs,
    directories: implied,
}

// A URI is not a filesystem.
tf_plugin_testing::filesystem::conformance!("mem://box/");

// Which one counts would be a guess.
mod root_twice {
    tf_plugin_testing::filesystem::conformance! {
        super::MemFs,
        root: "mem://box/",
        root: "mem://other/",
    }
}

tf_plugin_testing::filesystem::conformance! {
    MemFs,
    root: "mem://box/",
    visible: true,
}

// One list has all cases.
mod without_twice {
    tf_plugin_testing::filesystem::conformance! {
        super::MemFs,
        root: "mem://box/",
        without: [checkpoint => "slow"],
        without: [walk => "slow"],
    }
}

// What is left out has a reason.
tf_plugin_testing::device::conformance! {
    P,
    without: [timer_measures],
}

// The mistake is named, not the option after it.
tf_plugin_testing::device::conformance! {
    P,
    limit: std::time::Duration::from_secs(3)
    without: [timer_measures => "no clock"],
}

// A device needs no directory.
tf_plugin_testing::device::conformance!(P, "mem://box/");

// The options are listed.
tf_plugin_testing::device::conformance! {
    P,
    timeout: std::time::Duration::from_secs(3),
}

// Which one counts would be a guess.
mod limit_twice {
    tf_plugin_testing::device::conformance! {
        super::P,
        limit: std::time::Duration::from_secs(3),
        limit: std::time::Duration::from_secs(4),
    }
}

// A type of devices is not a platform.
tf_plugin_testing::device::conformance!("MINE");

// One list has all cases.
mod device_without_twice {
    tf_plugin_testing::device::conformance! {
        super::P,
        without: [timer_measures => "no clock"],
        without: [timer_measures => "no clock"],
    }
}

fn main() {}

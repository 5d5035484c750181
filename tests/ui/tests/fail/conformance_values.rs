//! Values of a wrong type in `conformance!`, and names that do not exist.

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

struct Server;

struct Other;

// The compiler knows the names of the cases.
mod a_case_is_unknown {
    super::filesystem::conformance!(super::MemFs, root: "mem://box/", without: [chekpoint => "slow"]);
}
mod device_a_case_is_unknown {
    super::device::conformance!(super::P, without: [timer_mesures => "no clock"]);
}

// The reason is for people.
mod a_reason_is_no_text {
    super::filesystem::conformance!(super::MemFs, root: "mem://box/", without: [checkpoint => 4711]);
}
mod device_a_reason_is_no_text {
    super::device::conformance!(super::P, without: [timer_measures => false]);
}

// A URI is a text, and a set-up makes one.
mod root_is_no_text {
    super::filesystem::conformance!(super::MemFs, 4711);
}
mod malformed_is_no_text {
    super::filesystem::conformance!(super::MemFs, root: "mem://box/", malformed: 4711);
}
// A directory alone is not what the filesystem calls it.
mod a_set_up_without_a_uri {
    super::filesystem::conformance!(super::MemFs, root: once(|| super::Server));
}

// The attribute is missing on the type that is tested.
mod a_type_that_is_not_exported {
    super::filesystem::conformance!(super::Other, "mem://box/");
}
mod device_a_type_that_is_no_platform {
    super::device::conformance!(super::Other);
}

// Seconds or milliseconds?
mod device_limit_is_no_duration {
    super::device::conformance!(super::P, limit: 300);
}

fn main() {}

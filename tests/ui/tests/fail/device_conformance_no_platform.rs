//! A type of devices is not a platform.

tf_plugin_testing::device::conformance!("MINE");

fn main() {}

//! A type of devices is not a platform.

se_plugin::conformance!("MINE");

fn main() {}

//! A type of devices is no platform.

se_plugin::conformance!("MINE");

fn main() {}

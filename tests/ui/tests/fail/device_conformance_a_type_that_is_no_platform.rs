//! What is tested is a platform.

struct Other;

se_plugin::conformance!(Other);

fn main() {}

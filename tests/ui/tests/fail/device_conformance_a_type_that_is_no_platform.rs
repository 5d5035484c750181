//! What is tested is a platform.

struct Other;

tf_plugin_testing::device::conformance!(Other);

fn main() {}

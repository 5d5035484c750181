//! Which one counts would be a guess.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    limit: std::time::Duration::from_secs(3),
    limit: std::time::Duration::from_secs(4),
}

fn main() {}

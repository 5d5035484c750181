//! The options are listed.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    timeout: std::time::Duration::from_secs(3),
}

fn main() {}

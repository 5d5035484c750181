//! Seconds or milliseconds?

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    limit: 300,
}

fn main() {}

//! Seconds or milliseconds?

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    limit: 300,
}

fn main() {}

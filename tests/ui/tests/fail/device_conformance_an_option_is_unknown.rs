//! The options are listed.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    timeout: std::time::Duration::from_secs(3),
}

fn main() {}

//! What is left out has a reason.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures],
}

fn main() {}

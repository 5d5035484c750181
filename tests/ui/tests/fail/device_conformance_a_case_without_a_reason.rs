//! What is left out has a reason.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures],
}

fn main() {}

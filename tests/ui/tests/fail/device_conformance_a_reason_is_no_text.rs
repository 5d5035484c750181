//! The reason is for people.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures => false],
}

fn main() {}

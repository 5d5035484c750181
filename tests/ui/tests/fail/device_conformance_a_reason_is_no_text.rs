//! The reason is for people.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures => false],
}

fn main() {}

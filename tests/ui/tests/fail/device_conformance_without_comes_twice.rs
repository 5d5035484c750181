//! One list has all cases.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures => "no clock"],
    without: [timer_measures => "no clock"],
}

fn main() {}

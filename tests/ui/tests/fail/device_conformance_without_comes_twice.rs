//! One list has all cases.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_measures => "no clock"],
    without: [timer_measures => "no clock"],
}

fn main() {}

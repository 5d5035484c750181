//! The compiler knows the names of the cases.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_mesures => "no clock"],
}

fn main() {}

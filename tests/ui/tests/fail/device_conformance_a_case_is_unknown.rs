//! The compiler knows the names of the cases.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    without: [timer_mesures => "no clock"],
}

fn main() {}

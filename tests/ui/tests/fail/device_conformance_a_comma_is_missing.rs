//! The mistake is named, not the option after it.

tf_plugin_testing::device::conformance! {
    tf_plugin_ui_tests::device::P,
    limit: std::time::Duration::from_secs(3)
    without: [timer_measures => "no clock"],
}

fn main() {}

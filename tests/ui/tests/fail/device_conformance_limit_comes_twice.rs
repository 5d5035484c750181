//! Which one counts would be a guess.

se_plugin::conformance! {
    tf_plugin_ui_tests::device::P,
    limit: std::time::Duration::from_secs(3),
    limit: std::time::Duration::from_secs(4),
}

fn main() {}

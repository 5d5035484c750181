//! As in an example in a documentation, in a crate that forbids lints.
#![forbid(unsafe_code, non_local_definitions, non_upper_case_globals)]
#![deny(warnings)]

use se_plugin::{Platform, Result, device_plugin};
use tf_plugin_ui_tests::no_devices;

#[test]
fn plugins_in_a_function_are_registered() {
    use tf_fs_plugin::__private::Plugin;
    use tf_fs_plugin::prelude::{Filesystem, filesystem_plugin};

    struct Both;

    #[filesystem_plugin(scheme = "both")]
    impl Filesystem for Both {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
    }

    #[device_plugin]
    impl Platform for Both {
        const NAME: &'static str = "BOTH";
        const TYPE: &'static str = "BOTH";
        no_devices!();
    }

    assert_eq!(Both::registrations()[0].scheme(), "both");
}

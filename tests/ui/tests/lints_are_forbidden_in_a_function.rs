//! As in an example in a documentation, in a crate that forbids lints; a `macro_rules!` macro writes the whole `impl`.
#![forbid(unsafe_code, non_local_definitions, non_upper_case_globals)]
#![deny(warnings)]

use se_plugin::{Platform, Result, device_plugin};
use tf_plugin_ui_tests::no_devices;

macro_rules! filesystem_for {
    ($scheme:literal, $ty:ty, $method:item, $name:ident) => {
        #[filesystem_plugin(scheme = $scheme)]
        impl Filesystem for $ty {
            fn new(_: &str) -> Result<Self> {
                Ok(Self)
            }

            $method

            fn $name(&self, uri: Uri<'_>) -> Result<()> {
                Err(Error::not_found(uri))
            }
        }
    };
}

#[test]
fn plugins_in_a_function_are_registered() {
    use tf_fs_plugin::__private::Plugin;
    use tf_fs_plugin::prelude::{Error, FileStatistics, Filesystem, Uri, filesystem_plugin};
    use tf_fs_plugin::{OperationTable, Operations};

    struct Both;

    filesystem_for! {
        "both",
        Both,
        fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
            Err(Error::not_found(uri))
        },
        delete_file
    }

    #[device_plugin]
    impl Platform for Both {
        const NAME: &'static str = "BOTH";
        const TYPE: &'static str = "BOTH";
        no_devices!();
    }

    assert_eq!(Both::registrations()[0].scheme(), "both");
    assert_eq!(Both::PROVIDED, Operations::STAT.union(Operations::DELETE_FILE));
}

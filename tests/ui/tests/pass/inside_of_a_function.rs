//! As in an example in a documentation.

#![deny(warnings)]

fn main() {
    use tf_fs_plugin::__private::Plugin;
    use tf_fs_plugin::prelude::*;

    struct MemFs;

    #[filesystem_plugin(scheme = "mem")]
    impl Filesystem for MemFs {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
    }

    assert_eq!(MemFs::registrations()[0].scheme(), "mem");
}

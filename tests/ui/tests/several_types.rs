//! One library serves filesystems of several types, which may be generic.

#![deny(warnings)]

use std::marker::PhantomData;
use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::prelude::*;

mod plain {
    use super::*;

    pub(crate) struct Plain;

    #[filesystem]
    impl Filesystem for Plain {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
    }
}

struct Cache<T, const N: usize>(PhantomData<T>);

#[filesystem]
impl<T, const N: usize> Filesystem for Cache<T, N>
where
    T: Send + Sync + 'static,
{
    fn new(_: &str) -> Result<Self> {
        Ok(Self(PhantomData))
    }
}

filesystem_plugins! {
    "a1" | "b1" => plain::Plain,
    "c1" => Cache<plain::Plain, 3>,
    "d1" => Cache<(u8, u16), { 1 + 2 }>;
    autoload = false, allow_panic_abort
}

#[test]
fn each_type_is_registered() {
    let registrations = FilesystemPlugins::registrations();
    let schemes: Vec<_> = registrations.iter().map(|one| one.scheme()).collect();
    assert_eq!(schemes, ["a1", "b1", "c1", "d1"]);
}

//! A library has one `TF_InitPlugin`: no second attribute and no second list of plugins, nor one next to the other.
//! `cargo check` finds it, wherever they are.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

mod a {
    super::filesystem_plugins! { "a1" => super::MemFs }
}

mod b {
    super::filesystem_plugins! { "b1" => super::MemFs }
}

struct Exported;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for Exported {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

mod c {
    pub mod d {
        use tf_fs_plugin::prelude::*;

        struct InAModule;

        #[filesystem_plugin(scheme = "c1")]
        impl Filesystem for InAModule {
            fn new(_: &str) -> Result<Self> {
                Ok(Self)
            }
        }
    }
}

fn main() {}

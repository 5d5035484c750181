//! The form, the options and the schemes of `filesystem_plugins!`.

use tf_fs_plugin::prelude::*;

struct MemFs;

#[filesystem]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

mod no_comma {
    super::filesystem_plugins! { "mem" => super::MemFs "mem2" => super::MemFs }
}

mod no_type {
    use super::filesystem_plugins;

    filesystem_plugins! {}
}

mod no_arrow {
    super::filesystem_plugins! { "mem" super::MemFs }
}

mod nothing_after_a_scheme {
    use super::filesystem_plugins;

    filesystem_plugins! { "mem" }
}

mod no_scheme_after_a_bar {
    super::filesystem_plugins! { "mem" | => super::MemFs }
}

mod no_quotes {
    super::filesystem_plugins! { mem => super::MemFs }
}

mod options {
    use super::{MemFs, filesystem_plugins};

    filesystem_plugins! { "mem" => MemFs; schemes("mem2"), colour = "red", autoload }
}

// The rules are those of the attribute, also across types.
mod schemes {
    use super::{MemFs, filesystem_plugins};

    filesystem_plugins! { "mem" | "my-fs" => MemFs, "gs" => MemFs, "mem" => MemFs }
}

fn main() {}

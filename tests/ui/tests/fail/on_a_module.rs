//! The attribute belongs to the impl of the trait.

use tf_fs_plugin::filesystem_plugin;

#[filesystem_plugin(scheme = "mem")]
mod mem {
    pub fn helper() {}
}

fn main() {}

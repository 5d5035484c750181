//! The attribute belongs to the impl of the trait.

use tf_fs_plugin::filesystem_plugin;

#[filesystem_plugin(scheme = "mem")]
struct MemFs;

fn main() {}

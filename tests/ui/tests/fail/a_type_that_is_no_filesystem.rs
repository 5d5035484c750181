//! Only filesystems are exported.

use tf_fs_plugin::filesystem_plugins;

struct MemFs;

filesystem_plugins! { "mem" => MemFs }

fn main() {}

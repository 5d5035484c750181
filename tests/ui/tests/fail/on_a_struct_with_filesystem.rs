//! `#[filesystem]` too belongs to the impl of the trait.

use tf_fs_plugin::filesystem;

#[filesystem]
struct MemFs {
    size: u64,
}

fn main() {
    let _ = MemFs { size: 1 }.size;
}

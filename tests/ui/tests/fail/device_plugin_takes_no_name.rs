//! Name and type are constants of the trait.

use se_plugin::device_plugin;

#[device_plugin(name = "MINE")]
struct P;

fn main() {}

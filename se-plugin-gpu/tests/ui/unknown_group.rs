//! A group of ops that there is not.

use se_plugin::Result;
use se_plugin_gpu::backend::OpenedGpu;
use se_plugin_gpu::settings::Settings;

fn open(_: &Settings) -> Result<Vec<OpenedGpu>> {
    Err(se_plugin::Error::unavailable("no driver"))
}

se_plugin_gpu::plugin! {
    pub Mine, name = "MINE", type = "GPU", open = open, ops = [all, sound]
}

fn main() {}

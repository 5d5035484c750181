//! A plugin whose backend is none.

pub struct Nothing;

se_plugin_gpu::plugin! {
    /// The platform.
    pub Mine, name = "MINE", type = "GPU", backend = Nothing, ops = [math, nn]
}

fn main() {}

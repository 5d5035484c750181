//! Options of `plugin!`.

se_plugin_gpu::plugin! {
    pub NoGroups, name = "MINE", type = "GPU", backend = (), ops = []
}

se_plugin_gpu::plugin! {
    pub NoBackend, name = "MINE", type = "GPU", ops = [all]
}

fn main() {}

//! Platforms that differ from `HostPlatform` in their graph pass and profiler alone.

macro_rules! platform {
    ($name:ident, graph: $graph:expr, profiler: $profiler:expr) => {
        struct $name;
        impl se_plugin::Platform for $name {
            const NAME: &'static str = "RUST_TEST";
            const TYPE: &'static str = "RUST_TEST";
            type Device = hostdevice::HostDevice;

            fn new() -> se_plugin::Result<Self> {
                Ok(Self)
            }
            fn device_count(&self) -> se_plugin::Result<usize> {
                Ok(0)
            }
            fn open(&self, ordinal: usize) -> se_plugin::Result<Self::Device> {
                <hostdevice::HostPlatform as se_plugin::Platform>::new()?.open(ordinal)
            }
        }
        impl se_plugin::__private::Exported for $name {
            fn graph() -> &'static se_plugin::__private::GraphExport {
                use se_plugin::__private::GraphExport;
                static GRAPH: GraphExport = GraphExport::new($graph);
                &GRAPH
            }
            fn profiler() -> &'static se_plugin::__private::ProfilerExport {
                use se_plugin::__private::ProfilerExport;
                static PROFILER: ProfilerExport = ProfilerExport::new($profiler);
                &PROFILER
            }
        }
    };
}

pub(crate) use platform;

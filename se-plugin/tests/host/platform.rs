//! The platform of these tests: a device on the host, with a graph pass and a profiler of each test's own.

use se_plugin::host::{HostDevice, HostMemory, Ran, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::profiler::Timeline;
use std::sync::Mutex;

/// What the streams do.
static TIMELINE: Timeline = Timeline::new("RUST_TEST");

/// Of the streams that were made with options.
pub(crate) static PRIORITIES: Mutex<Vec<Option<i32>>> = Mutex::new(Vec::new());

/// Methods that call those of the device or stream in `self.0`, behind a check of their names.
macro_rules! forward {
    ($before:expr; $($name:literal $method:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $method(&self, $($arg: $type),*) -> se_plugin::Result<$answer> {
            let before: fn(&str) -> se_plugin::Result<()> = $before;
            before($name)?;
            self.0.$method($($arg),*)
        }
    )*};
}

/// The methods of devices that only pass their arguments.
macro_rules! forward_device {
    ($before:expr) => {
        crate::platform::forward! {
            $before;
            "deallocate" deallocate(memory: DevicePtr) -> ();
            "memory_usage" memory_usage() -> MemoryUsage;
            "sync_to_device" copy_to_device(target: DevicePtr, source: &[u8]) -> ();
            "sync_to_host" copy_to_host(target: HostBuf<'_>, source: DevicePtr) -> ();
            "sync_on_device" copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> ();
            "synchronize" synchronize() -> ();
        }
    };
}

/// A [`HostDevice`] that remembers the priorities of its streams.
pub(crate) struct Observed(HostDevice);

impl Observed {
    pub(crate) fn open() -> Result<Self> {
        let observer = |task: &Ran| {
            let line = TIMELINE.line(0, format!("Stream {}", task.stream));
            TIMELINE.record(line, task.op, task.start, task.duration);
        };
        Ok(Self(HostDevice::new(HostMemory::new(64 << 20)?).with_observer(observer)))
    }
}

impl Device for Observed {
    type Stream = WorkerStream;
    type Event = WorkerEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.0.allocate(bytes)
    }
    fn create_stream(&self) -> Result<WorkerStream> {
        self.0.create_stream()
    }
    fn create_stream_with_options(&self, options: &StreamOptions) -> Result<WorkerStream> {
        PRIORITIES.lock()?.push(options.priority);
        self.0.create_stream()
    }
    fn create_event(&self) -> Result<WorkerEvent> {
        self.0.create_event()
    }
    forward_device!(|_| Ok(()));
}

/// A platform of this name, with so many devices, each opened by a function of its ordinal number.
macro_rules! devices {
    ($platform:ident = $name:literal: $($rest:tt)*) => {
        crate::platform::devices!($platform = $name, $name: $($rest)*);
    };
    (
        $platform:ident = $name:literal, $type:literal:
        $count:literal of $device:ty, $open:expr $(, $setting:ident)*
    ) => {
        pub(crate) struct $platform;
        impl se_plugin::Platform for $platform {
            const NAME: &'static str = $name;
            const TYPE: &'static str = $type;
            $(const $setting: bool = false;)*
            type Device = $device;

            fn new() -> se_plugin::Result<Self> {
                Ok(Self)
            }
            fn device_count(&self) -> se_plugin::Result<usize> {
                Ok($count)
            }
            fn open(&self, ordinal: usize) -> se_plugin::Result<Self::Device> {
                let open: fn(usize) -> se_plugin::Result<Self::Device> = $open;
                open(ordinal)
            }
        }
    };
}

/// A platform with a graph pass and a profiler, or without.
macro_rules! platform {
    ($name:ident, graph: $graph:expr, profiler: $profiler:expr) => {
        crate::platform::devices!($name = "RUST_TEST": 1 of crate::platform::Observed, |_| {
            crate::platform::Observed::open()
        });
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

/// The sizes of a host whose structs have so many bytes more than this release's.
macro_rules! longer {
    ($sizes:ident { $($record:ident),* }, $more:expr) => {{
        let ours = $sizes::default();
        $sizes { $($record: ours.$record + $more,)* ..ours }
    }};
}

/// Loads hosts in which one struct has fewer bytes than the plugin needs: each error names the struct.
macro_rules! refuses_shorter {
    ($load:expr, $sizes:ident { $($record:ident: $needed:expr, $name:literal;)* }) => {$(
        for $record in 0..$needed {
            let error = $load($sizes { $record, ..$sizes::default() }).expect_err("no room");
            assert_eq!(error.code(), se_plugin::Code::InvalidArgument, "{error}");
            assert!(error.message().contains($name), "{}: {error}", $record);
        }
    )*};
}

pub(crate) use {devices, forward, forward_device, longer, platform, refuses_shorter};

platform!(HostPlatform, graph: None, profiler: Some(|| Box::new(&TIMELINE)));

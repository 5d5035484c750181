//! The platforms of these tests: devices on the host. Each test has its own graph pass and profiler.

use crate::abi::CountingAllocator;
use crate::switch::Switch;
use se_plugin::host::{FinishedTask, HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::profiler::Timeline;
use se_plugin::{AllocatorStats, HostAllocator};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_plugin_testing::device::{Host, TestDevice};

/// The tasks of the streams.
static TIMELINE: Timeline = Timeline::new("RUST_TEST");

/// The priorities of the streams that were created with options.
pub(crate) static PRIORITIES: Mutex<Vec<Option<i32>>> = Mutex::new(Vec::new());

/// The method at which a [`Switched`] platform or its device fails.
pub(crate) static SWITCH: Switch = Switch::new();
/// Copies that were not made yet.
pub(crate) static SOURCES: Mutex<Vec<HostSource>> = Mutex::new(Vec::new());
/// Host memory of the devices. Only tests that hold [`SWITCH`] alone may allocate from it: one of them counts it.
pub(crate) static MEMORY: CountingAllocator = CountingAllocator::new(|| SWITCH.trip("host memory"));

/// The number of [`Switched`] platforms that exist.
pub(crate) static PLATFORMS: AtomicUsize = AtomicUsize::new(0);

/// A platform whose devices fail where the kit's `Faulty` cannot: at methods that have no name in the header.
pub(crate) struct Switched(());

impl Drop for Switched {
    fn drop(&mut self) {
        PLATFORMS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Platform for Switched {
    const NAME: &'static str = "SWITCHED";
    const TYPE: &'static str = "SWITCHED";
    type Device = SwitchedDevice;

    fn new() -> Result<Self> {
        SWITCH.trip("new")?;
        PLATFORMS.fetch_add(1, Ordering::Relaxed);
        Ok(Self(()))
    }
    fn device_count(&self) -> Result<usize> {
        SWITCH.trip("device_count").map(|()| 1)
    }
    fn open(&self, _: usize) -> Result<SwitchedDevice> {
        SWITCH.trip("open")?;
        SwitchedDevice::open(|op| SWITCH.trip(op))
    }
}

/// Runs `body` with a device of [`Switched`] while no other test uses the switch. Then checks that all is freed.
pub(crate) fn with_switched(body: impl FnOnce(&TestDevice<'_>)) {
    let _alone = SWITCH.alone();
    let host = Host::load::<Switched>().expect("loaded");
    assert_eq!(host.device_count().expect("counted"), 1);
    body(&host.device(0).expect("a device"));
    assert_eq!((host.live(), host.violations()), (0, vec![]));
    assert_eq!(PLATFORMS.load(Ordering::Relaxed), 1);
    drop(host);
    assert_eq!(PLATFORMS.load(Ordering::Relaxed), 0);
}

/// A device for these tests. It records the priorities of its streams, reports what a [`HostDevice`] does not, and
/// fails if `trip` does.
pub(crate) struct SwitchedDevice {
    device: HostDevice,
    trip: fn(&str) -> Result<()>,
}

impl SwitchedDevice {
    pub(crate) fn open(trip: fn(&str) -> Result<()>) -> Result<Self> {
        let observer = |task: &FinishedTask| {
            let line = TIMELINE.line(0, format!("Stream {}", task.stream));
            TIMELINE.record(line, task.op, task.start, task.duration);
        };
        let device = HostDevice::new(HostMemory::new(64 << 20)?).with_observer(observer);
        Ok(Self { device, trip })
    }
}

/// Methods that call those of the ready-made part in a field.
macro_rules! forward {
    ($field:tt: $($method:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $method(&self, $($arg: $type),*) -> Result<$answer> {
            self.$field.$method($($arg),*)
        }
    )*};
}

/// Methods that return a fact about the device, unless they fail.
macro_rules! says {
    ($($method:ident -> $answer:ty: $what:expr;)*) => {$(
        fn $method(&self) -> Option<$answer> {
            (self.trip)(stringify!($method)).ok().map(|()| $what)
        }
    )*};
}

impl Device for SwitchedDevice {
    type Stream = SwitchedStream;
    type Event = WorkerEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        let memory = self.device.allocate(bytes)?;
        if (self.trip)("align").is_err() {
            self.device.deallocate(memory)?;
            return Ok(DevicePtr::new(memory.address() + 8).expect("not 0"));
        }
        Ok(memory)
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        (self.trip)("memory_usage").and_then(|()| self.device.memory_usage())
    }
    fn create_stream(&self) -> Result<SwitchedStream> {
        Ok(SwitchedStream(self.device.create_stream()?, self.trip))
    }
    fn create_stream_with_options(&self, options: &StreamOptions) -> Result<SwitchedStream> {
        PRIORITIES.lock()?.push(options.priority);
        self.create_stream()
    }
    forward! {
        device:
        deallocate(memory: DevicePtr) -> ();
        create_event() -> WorkerEvent;
        copy_to_device(target: DevicePtr, source: &[u8]) -> ();
        copy_to_host(target: HostBuf<'_>, source: DevicePtr) -> ();
        copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> ();
        synchronize() -> ();
    }
    says! {
        host_allocator -> &dyn HostAllocator: &MEMORY as &dyn HostAllocator;
        allocator_stats -> AllocatorStats: STATS;
        hardware_name -> String: String::from("a name");
        vendor -> String: String::from("NUL \0 in the middle");
        pci_bus_id -> String: String::from("0000:00:02.1");
        numa_node -> u16: 3;
        memory_bandwidth -> u64: u64::MAX;
        gflops -> f64: 2.5;
    }
}

const STATS: AllocatorStats = AllocatorStats {
    allocations: 1,
    in_use: 2,
    peak_in_use: 3,
    largest_allocation: 4,
    limit: Some(5),
    reserved: 6,
    peak_reserved: 7,
    reservable_limit: None,
    largest_free_block: u64::MAX,
};

pub(crate) struct SwitchedStream(WorkerStream, fn(&str) -> Result<()>);

impl Stream for SwitchedStream {
    type Event = WorkerEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        if (self.1)("keep the token").is_err() {
            SOURCES.lock()?.push(source);
            return Ok(());
        }
        self.0.copy_to_device(target, source)
    }
    fn wait_stream(&self, other: &Self) -> Result<()> {
        self.0.wait_stream(&other.0)
    }
    forward! {
        0:
        copy_to_host(target: HostTarget, source: DevicePtr) -> ();
        copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> ();
        fill(target: DevicePtr, pattern: Pattern, bytes: u64) -> ();
        record_event(event: &WorkerEvent) -> ();
        wait_event(event: &WorkerEvent) -> ();
        host_callback(callback: HostCallback) -> ();
        synchronize() -> ();
        status() -> ();
    }
}

/// A platform of this name with this many devices, each opened by a function of its ordinal number.
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
        crate::platform::devices!($name = "RUST_TEST": 1 of crate::platform::SwitchedDevice, |_| {
            crate::platform::SwitchedDevice::open(|_| Ok(()))
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

/// The sizes of a host whose structs have this many bytes more than this release's.
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

pub(crate) use {devices, longer, platform, refuses_shorter};

platform!(HostPlatform, graph: None, profiler: Some(|| Box::new(&TIMELINE)));

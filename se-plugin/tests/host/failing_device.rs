//! A device whose methods fail or panic on request.

use crate::abi::Counted;
use crate::switch::Switch;
use se_plugin::__private::Loads;
use se_plugin::host::{HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, HostAllocator};
use std::sync::{Mutex, PoisonError};
use tf_plugin_testing::device::{Host, Sizes, TestDevice};

/// What fails.
pub(crate) static SWITCH: Switch = Switch::new();
/// Copies that nobody has made yet.
pub(crate) static KEPT: Mutex<Vec<HostSource>> = Mutex::new(Vec::new());

pub(crate) fn fault(op: &'static str, panics: bool) {
    SWITCH.set(op, panics);
}

fn trip(op: &str) -> Result<()> {
    SWITCH.trip(op)
}

/// The platform.
pub(crate) struct Faulty;
pub(crate) struct FaultyDevice(HostDevice);
pub(crate) struct FaultyStream(WorkerStream);
pub(crate) struct FaultyEvent(WorkerEvent);

impl Platform for Faulty {
    const NAME: &'static str = "FAULTY";
    const TYPE: &'static str = "FAULTY";
    type Device = FaultyDevice;

    fn new() -> Result<Self> {
        trip("new").map(|()| Self)
    }
    fn device_count(&self) -> Result<usize> {
        trip("device_count").map(|()| 1)
    }
    fn open(&self, _: usize) -> Result<FaultyDevice> {
        trip("open")?;
        Ok(FaultyDevice(HostDevice::new(HostMemory::new(64 << 20)?)))
    }
}

impl Device for FaultyDevice {
    type Stream = FaultyStream;
    type Event = FaultyEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        trip("allocate")?;
        let memory = self.0.allocate(bytes)?;
        if trip("align").is_err() {
            self.0.deallocate(memory)?;
            return Ok(DevicePtr::new(memory.address() + 8).expect("not 0"));
        }
        Ok(memory)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        trip("deallocate").and_then(|()| self.0.deallocate(memory))
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        trip("memory_usage").and_then(|()| self.0.memory_usage())
    }
    fn create_stream(&self) -> Result<FaultyStream> {
        trip("create_stream").and_then(|()| self.0.create_stream()).map(FaultyStream)
    }
    fn create_event(&self) -> Result<FaultyEvent> {
        trip("create_event").and_then(|()| self.0.create_event()).map(FaultyEvent)
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        trip("sync_to_device").and_then(|()| self.0.copy_to_device(target, source))
    }
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        trip("sync_to_host").and_then(|()| self.0.copy_to_host(target, source))
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        trip("sync_on_device").and_then(|()| self.0.copy_on_device(target, source, bytes))
    }
    fn synchronize(&self) -> Result<()> {
        trip("synchronize").and_then(|()| self.0.synchronize())
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        trip("allocator_stats").ok().map(|()| STATS)
    }
    fn host_allocator(&self) -> Option<&dyn HostAllocator> {
        trip("host_allocator").ok().map(|()| &MEMORY as &dyn HostAllocator)
    }
    fn hardware_name(&self) -> Option<String> {
        trip("hardware_name").ok().map(|()| String::from("a name"))
    }
    fn vendor(&self) -> Option<String> {
        trip("vendor").ok().map(|()| String::from("NUL \0 in the middle"))
    }
    fn pci_bus_id(&self) -> Option<String> {
        trip("pci_bus_id").ok().map(|()| String::from("0000:00:02.1"))
    }
    fn numa_node(&self) -> Option<u16> {
        trip("numa_node").ok().map(|()| 3)
    }
    fn memory_bandwidth(&self) -> Option<u64> {
        trip("memory_bandwidth").ok().map(|()| u64::MAX)
    }
    fn gflops(&self) -> Option<f64> {
        trip("gflops").ok().map(|()| 2.5)
    }
}

pub(crate) static MEMORY: Counted = Counted::new(|| trip("host memory"));

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

impl Stream for FaultyStream {
    type Event = FaultyEvent;

    fn copy_to_device(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        if trip("keep the token").is_err() {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(source);
            return Ok(());
        }
        trip("copy_to_device").and_then(|()| self.0.copy_to_device(target, source))
    }
    fn copy_to_host(&self, target: HostTarget, source: DevicePtr) -> Result<()> {
        trip("copy_to_host").and_then(|()| self.0.copy_to_host(target, source))
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        trip("copy_on_device").and_then(|()| self.0.copy_on_device(target, source, bytes))
    }
    fn fill(&self, target: DevicePtr, pattern: Pattern, bytes: u64) -> Result<()> {
        trip("fill").and_then(|()| self.0.fill(target, pattern, bytes))
    }
    fn wait_stream(&self, other: &Self) -> Result<()> {
        trip("wait_stream").and_then(|()| self.0.wait_stream(&other.0))
    }
    fn record_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("record_event").and_then(|()| self.0.record_event(&event.0))
    }
    fn wait_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("wait_event").and_then(|()| self.0.wait_event(&event.0))
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        trip("host_callback").and_then(|()| self.0.host_callback(callback))
    }
    fn synchronize(&self) -> Result<()> {
        trip("stream_synchronize").and_then(|()| self.0.synchronize())
    }
    fn status(&self) -> Result<()> {
        trip("stream_status").and_then(|()| self.0.status())
    }
}

impl Event for FaultyEvent {
    fn status(&self) -> Result<EventStatus> {
        trip("event_status").and_then(|()| self.0.status())
    }
    fn wait(&self) -> Result<()> {
        trip("event_wait").and_then(|()| self.0.wait())
    }
}

/// A host that takes errors of copies, or does not.
pub(crate) fn load(takes_errors: bool) -> Host {
    let sizes = Sizes { takes_errors, ..Sizes::default() };
    Host::load_with::<Faulty>(sizes, &Loads::new()).unwrap()
}

/// A device of such a host, without a fault before; afterwards everything is given back.
pub(crate) fn with_device<R>(takes_errors: bool, body: impl FnOnce(&TestDevice<'_>) -> R) -> R {
    fault("", false);
    let host = load(takes_errors);
    assert_eq!(host.device_count().unwrap(), 1);
    let result = body(&host.device(0).unwrap());
    assert_eq!((host.live(), host.violations()), (0, vec![]));
    result
}

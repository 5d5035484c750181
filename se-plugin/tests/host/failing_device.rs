//! A device whose methods fail or panic on request.

use crate::abi::Counted;
use crate::platform::{forward, forward_device};
use crate::switch::Switch;
use se_plugin::__private::PlatformExport;
use se_plugin::host::{HostDevice, HostMemory, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, HostAllocator};
use std::sync::{Mutex, PoisonError};
use tf_plugin_testing::device::{Host, Sizes, TestDevice};

/// What fails.
pub(crate) static SWITCH: Switch = Switch::new();
/// Copies that nobody has made yet.
pub(crate) static KEPT: Mutex<Vec<HostSource>> = Mutex::new(Vec::new());

pub(crate) fn fault(op: &'static str, panics: bool) -> usize {
    SWITCH.set(op, panics)
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

/// Methods that say this of the device, unless they fail.
macro_rules! says {
    ($($method:ident -> $answer:ty: $what:expr;)*) => {$(
        fn $method(&self) -> Option<$answer> {
            trip(stringify!($method)).ok().map(|()| $what)
        }
    )*};
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
    fn create_stream(&self) -> Result<FaultyStream> {
        trip("create_stream").and_then(|()| self.0.create_stream()).map(FaultyStream)
    }
    fn create_event(&self) -> Result<FaultyEvent> {
        trip("create_event").and_then(|()| self.0.create_event()).map(FaultyEvent)
    }
    forward_device!(trip);
    fn host_allocator(&self) -> Option<&dyn HostAllocator> {
        trip("host_allocator").ok().map(|()| &MEMORY as &dyn HostAllocator)
    }
    says! {
        allocator_stats -> AllocatorStats: STATS;
        hardware_name -> String: String::from("a name");
        vendor -> String: String::from("NUL \0 in the middle");
        pci_bus_id -> String: String::from("0000:00:02.1");
        numa_node -> u16: 3;
        memory_bandwidth -> u64: u64::MAX;
        gflops -> f64: 2.5;
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
    fn wait_stream(&self, other: &Self) -> Result<()> {
        trip("wait_stream").and_then(|()| self.0.wait_stream(&other.0))
    }
    fn record_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("record_event").and_then(|()| self.0.record_event(&event.0))
    }
    fn wait_event(&self, event: &FaultyEvent) -> Result<()> {
        trip("wait_event").and_then(|()| self.0.wait_event(&event.0))
    }
    forward! {
        trip;
        "copy_to_host" copy_to_host(target: HostTarget, source: DevicePtr) -> ();
        "copy_on_device" copy_on_device(target: DevicePtr, source: DevicePtr, bytes: u64) -> ();
        "fill" fill(target: DevicePtr, pattern: Pattern, bytes: u64) -> ();
        "host_callback" host_callback(callback: HostCallback) -> ();
        "stream_synchronize" synchronize() -> ();
        "stream_status" status() -> ();
    }
}

impl Event for FaultyEvent {
    forward! {
        trip;
        "event_status" status() -> EventStatus;
        "event_wait" wait() -> ();
    }
}

/// A host that takes errors of copies, or does not.
pub(crate) fn load(takes_errors: bool) -> Host {
    let sizes = Sizes { takes_errors, ..Sizes::default() };
    Host::load_with::<Faulty>(sizes, &PlatformExport::new()).unwrap()
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

//! The platform and its devices.

use crate::config::{Config, TYPE};
use crate::timeline::{TIMELINE, Timelines};
use se_plugin::host::{FinishedTask, HostDevice, WorkerEvent, WorkerStream};
use se_plugin::prelude::*;
use se_plugin::{AllocatorStats, Counters};

/// The platform.
#[derive(Debug)]
pub struct RefPlatform {
    config: Config,
}

#[device_plugin(profiler = &TIMELINE)]
impl Platform for RefPlatform {
    const NAME: &'static str = TYPE;
    const TYPE: &'static str = TYPE;
    type Device = RefDevice;

    fn new() -> Result<Self> {
        Ok(Self { config: Config::from_environment()? })
    }
    fn device_count(&self) -> Result<usize> {
        Ok(self.config.devices)
    }
    fn open(&self, ordinal: usize) -> Result<RefDevice> {
        let counters = Counters::new(ordinal, self.config.counters.clone());
        let (counted, timelines) = (counters.clone(), Timelines::new(ordinal));
        let observer = move |task: &FinishedTask| {
            counted.count(task.op);
            timelines.record(task);
            // TensorFlow 2.22 fetches tensors without `synchronize`. If this fails, the next one reports it.
            if task.op == "copy_to_host" {
                let _ = counted.write();
            }
        };
        let host = HostDevice::new(self.config.memory()?).with_delay(self.config.delay(ordinal));
        Ok(RefDevice { host: host.with_observer(observer), counters })
    }
}

/// A device: a [`HostDevice`] with counters and a timeline of its work.
#[derive(Debug)]
pub struct RefDevice {
    host: HostDevice,
    counters: Counters,
}

impl Device for RefDevice {
    type Stream = WorkerStream;
    type Event = WorkerEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.host.allocate(bytes)
    }
    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        self.host.deallocate(memory)
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        self.host.memory_usage()
    }
    fn create_stream(&self) -> Result<WorkerStream> {
        self.host.create_stream()
    }
    fn create_event(&self) -> Result<WorkerEvent> {
        self.host.create_event()
    }
    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        self.host.copy_to_device(target, source)
    }
    fn copy_to_host(&self, target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.host.copy_to_host(target, source)
    }
    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.host.copy_on_device(target, source, bytes)
    }
    fn synchronize(&self) -> Result<()> {
        self.host.synchronize()?;
        self.counters.write()
    }
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        self.host.allocator_stats()
    }
    fn hardware_name(&self) -> Option<String> {
        Some(String::from("Reference device"))
    }
    fn vendor(&self) -> Option<String> {
        Some(String::from("se-plugin"))
    }
}

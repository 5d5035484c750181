//! A platform for unit tests that need the type only.

use crate::{
    Device, DevicePtr, Error, Event, EventStatus, HostBuf, HostCallback, HostSource, HostTarget,
    MemoryUsage, Pattern, Platform, Result, Stream,
};

pub(crate) struct Nothing;

fn nothing<T>() -> Result<T> {
    Err(Error::internal("this device does nothing"))
}

impl Platform for Nothing {
    const NAME: &'static str = "NOTHING";
    const TYPE: &'static str = "NOTHING";
    type Device = Self;

    fn new() -> Result<Self> {
        nothing()
    }
    fn device_count(&self) -> Result<usize> {
        nothing()
    }
    fn open(&self, _: usize) -> Result<Self> {
        nothing()
    }
}

impl Device for Nothing {
    type Stream = Self;
    type Event = Self;

    fn allocate(&self, _: u64) -> Result<DevicePtr> {
        nothing()
    }
    fn deallocate(&self, _: DevicePtr) -> Result<()> {
        nothing()
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        nothing()
    }
    fn create_stream(&self) -> Result<Self> {
        nothing()
    }
    fn create_event(&self) -> Result<Self> {
        nothing()
    }
    fn copy_to_device(&self, _: DevicePtr, _: &[u8]) -> Result<()> {
        nothing()
    }
    fn copy_to_host(&self, _: HostBuf<'_>, _: DevicePtr) -> Result<()> {
        nothing()
    }
    fn copy_on_device(&self, _: DevicePtr, _: DevicePtr, _: u64) -> Result<()> {
        nothing()
    }
    fn synchronize(&self) -> Result<()> {
        nothing()
    }
}

impl Stream for Nothing {
    type Event = Self;

    fn copy_to_device(&self, _: DevicePtr, _: HostSource) -> Result<()> {
        nothing()
    }
    fn copy_to_host(&self, _: HostTarget, _: DevicePtr) -> Result<()> {
        nothing()
    }
    fn copy_on_device(&self, _: DevicePtr, _: DevicePtr, _: u64) -> Result<()> {
        nothing()
    }
    fn fill(&self, _: DevicePtr, _: Pattern, _: u64) -> Result<()> {
        nothing()
    }
    fn wait_stream(&self, _: &Self) -> Result<()> {
        nothing()
    }
    fn record_event(&self, _: &Self) -> Result<()> {
        nothing()
    }
    fn wait_event(&self, _: &Self) -> Result<()> {
        nothing()
    }
    fn host_callback(&self, _: HostCallback) -> Result<()> {
        nothing()
    }
    fn synchronize(&self) -> Result<()> {
        nothing()
    }
}

impl Event for Nothing {
    fn status(&self) -> Result<EventStatus> {
        nothing()
    }
    fn wait(&self) -> Result<()> {
        nothing()
    }
}

//! A device for cases that are about something else.

use se_plugin::prelude::*;

/// What a platform has whose devices nobody opens.
#[macro_export]
macro_rules! no_devices {
    () => {
        type Device = $crate::device::D;

        fn new() -> se_plugin::Result<Self> {
            Ok(Self)
        }
        fn device_count(&self) -> se_plugin::Result<usize> {
            Ok(0)
        }
        fn open(&self, _: usize) -> se_plugin::Result<Self::Device> {
            Err(se_plugin::Error::unavailable("no driver"))
        }
    };
}

/// The platform, which is not exported.
#[derive(Debug)]
pub struct P;

impl Platform for P {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "MINE";
    crate::no_devices!();
}

/// The device.
#[derive(Debug)]
pub struct D;
/// Its streams.
#[derive(Debug)]
pub struct S;
/// Its events.
#[derive(Debug)]
pub struct E;

impl Device for D {
    type Stream = S;
    type Event = E;

    fn allocate(&self, _: u64) -> Result<DevicePtr> {
        Err(Error::resource_exhausted("no memory"))
    }
    fn deallocate(&self, _: DevicePtr) -> Result<()> {
        Ok(())
    }
    fn memory_usage(&self) -> Result<MemoryUsage> {
        Ok(MemoryUsage::default())
    }
    fn create_stream(&self) -> Result<S> {
        Ok(S)
    }
    fn create_event(&self) -> Result<E> {
        Ok(E)
    }
    fn copy_to_device(&self, _: DevicePtr, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn copy_to_host(&self, _: HostBuf<'_>, _: DevicePtr) -> Result<()> {
        Ok(())
    }
    fn copy_on_device(&self, _: DevicePtr, _: DevicePtr, _: u64) -> Result<()> {
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

impl Stream for S {
    type Event = E;

    fn copy_to_device(&self, _: DevicePtr, _: HostSource) -> Result<()> {
        Ok(())
    }
    fn copy_to_host(&self, _: HostTarget, _: DevicePtr) -> Result<()> {
        Ok(())
    }
    fn copy_on_device(&self, _: DevicePtr, _: DevicePtr, _: u64) -> Result<()> {
        Ok(())
    }
    fn fill(&self, _: DevicePtr, _: Pattern, _: u64) -> Result<()> {
        Ok(())
    }
    fn wait_stream(&self, _: &Self) -> Result<()> {
        Ok(())
    }
    fn record_event(&self, _: &E) -> Result<()> {
        Ok(())
    }
    fn wait_event(&self, _: &E) -> Result<()> {
        Ok(())
    }
    fn host_callback(&self, callback: HostCallback) -> Result<()> {
        callback.complete(Ok(()));
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

impl Event for E {
    fn status(&self) -> Result<EventStatus> {
        Ok(EventStatus::Complete)
    }
    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

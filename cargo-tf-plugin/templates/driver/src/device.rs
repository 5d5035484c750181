//! The device: the driver's memory and queues.

use crate::driver::{Driver, Position, Queue};
use crate::stream::{DeviceEvent, DeviceStream};
use se_plugin::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The platform, which counts and opens the devices.
pub struct TemplatePluginPlatform;

#[device_plugin]
impl Platform for TemplatePluginPlatform {
    const NAME: &'static str = "TEMPLATE_PLUGIN";
    const TYPE: &'static str = "TEMPLATE_PLUGIN";
    type Device = DriverDevice;

    fn new() -> Result<Self> {
        // Load the driver here. If that fails, the error is in the log, and TensorFlow has no such device.
        Ok(Self)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn open(&self, _ordinal: usize) -> Result<DriverDevice> {
        Ok(DriverDevice { driver: Arc::new(Driver::open()), queues: Mutex::default(), retired: Mutex::default() })
    }
}

/// An open device.
pub struct DriverDevice {
    driver: Arc<Driver>,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// Memory that TensorFlow has freed, and the positions after which no queue uses it. A callback may free memory, and cannot wait.
    retired: Mutex<Vec<(DevicePtr, Vec<Position>)>>,
}

impl DriverDevice {
    fn queues(&self) -> Result<MutexGuard<'_, Vec<Weak<Queue>>>> {
        self.driver.check_process()?;
        Ok(self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the ends of the work that was sent.
    fn ends(&self) -> Result<Vec<Position>> {
        let queues: Vec<_> = self.queues()?.iter().filter_map(Weak::upgrade).collect();
        queues.iter().map(|queue| queue.end()).collect()
    }

    /// Frees what no queue uses any more.
    fn reclaim(&self) -> Result<()> {
        self.driver.check_process()?;
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let is_done = |(_, positions): &mut (_, Vec<Position>)| {
            positions.iter().all(|position| position.is_done().unwrap_or(false))
        };
        retired.extract_if(.., is_done).try_for_each(|(memory, _)| self.driver.free(memory))
    }
}

impl Device for DriverDevice {
    type Stream = DeviceStream;
    type Event = DeviceEvent;

    fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        self.reclaim()?;
        match self.driver.allocate(bytes) {
            Err(error) if error.code() == Code::ResourceExhausted => {
                // What is in use now may be free then.
                self.synchronize()?;
                self.reclaim()?;
                self.driver.allocate(bytes)
            }
            allocated => allocated,
        }
    }

    fn deallocate(&self, memory: DevicePtr) -> Result<()> {
        // Work that was sent before may still use it.
        let ends = self.ends()?;
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push((memory, ends));
        self.reclaim()
    }

    fn memory_usage(&self) -> Result<MemoryUsage> {
        self.reclaim()?;
        let (free, total) = self.driver.memory()?;
        Ok(MemoryUsage { free, total })
    }

    fn create_stream(&self) -> Result<DeviceStream> {
        let queue = Arc::new(Queue::new(&self.driver)?);
        let mut queues = self.queues()?;
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Ok(DeviceStream(queue))
    }

    fn create_event(&self) -> Result<DeviceEvent> {
        Ok(DeviceEvent::default())
    }

    fn copy_to_device(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        self.driver.write(target, source)
    }

    fn copy_to_host(&self, mut target: HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.driver.read(&mut target, source)
    }

    fn copy_on_device(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.driver.copy(target, source, bytes)
    }

    fn synchronize(&self) -> Result<()> {
        self.ends()?.iter().try_for_each(Position::wait)
    }
}

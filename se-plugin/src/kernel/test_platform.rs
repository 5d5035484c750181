//! A platform for unit tests that need only a type.

use crate::host::HostDevice;
use crate::{Error, Platform, Result};
use core::sync::atomic::{AtomicBool, Ordering};

static CHANGED: AtomicBool = AtomicBool::new(false);

/// A platform that chooses a device type by its number: 0 panics, 1 is refused, and 3 changes.
pub(crate) struct TestPlatform<const KIND: u8 = 2>;

impl<const KIND: u8> Platform for TestPlatform<KIND> {
    const NAME: &'static str = "NOTHING";
    const TYPE: &'static str = "NOTHING";
    type Device = HostDevice;

    fn device_type() -> &'static str {
        match KIND {
            0 => panic!("no setting"),
            1 => "CPU",
            3 if CHANGED.swap(true, Ordering::Relaxed) => "LATER",
            3 => "FIRST",
            _ => "MINE",
        }
    }
    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(0)
    }
    fn open(&self, _: usize) -> Result<HostDevice> {
        Err(Error::internal("there is none"))
    }
}

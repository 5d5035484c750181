//! A platform for unit tests that need the type only.

use crate::host::{HostDevice, HostMemory};
use crate::{Platform, Result};

pub(crate) struct Nothing;

impl Platform for Nothing {
    const NAME: &'static str = "NOTHING";
    const TYPE: &'static str = "NOTHING";
    type Device = HostDevice;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _: usize) -> Result<HostDevice> {
        Ok(HostDevice::new(HostMemory::new(256)?))
    }
}

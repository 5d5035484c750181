//! A device for cases that are about something else.

use se_plugin::prelude::*;

/// A platform whose devices nobody opens.
#[macro_export]
macro_rules! no_devices {
    () => {
        type Device = se_plugin::host::HostDevice;

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

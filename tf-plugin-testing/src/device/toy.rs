// The platform of the examples in this crate's documentation, which include this file.
pub use se_plugin::prelude::*;

pub struct Toy;

impl Platform for Toy {
    const NAME: &'static str = "TOY";
    const TYPE: &'static str = "TOY";
    type Device = se_plugin::host::HostDevice;

    fn new() -> Result<Self> {
        Ok(Self)
    }
    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }
    fn open(&self, _: usize) -> Result<Self::Device> {
        Ok(Self::Device::new(se_plugin::host::HostMemory::new(1 << 20)?))
    }
}

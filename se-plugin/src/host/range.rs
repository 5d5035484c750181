//! Ranges of device memory.

use crate::kernel::DeviceTensor;
use crate::memory::DevicePtr;

/// A range of a device's memory, such as a tensor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    start: Option<DevicePtr>,
    bytes: u64,
}

impl DeviceRange {
    /// An empty range. Tensors without elements have no address.
    pub const EMPTY: Self = Self { start: None, bytes: 0 };

    /// Creates a range of `bytes` bytes from `start` on.
    #[must_use]
    pub const fn new(start: DevicePtr, bytes: u64) -> Self {
        Self { start: Some(start), bytes }
    }

    /// Returns the start, or `None` for an empty range without an address.
    #[must_use]
    pub const fn start(self) -> Option<DevicePtr> {
        self.start
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

impl From<&DeviceTensor> for DeviceRange {
    fn from(tensor: &DeviceTensor) -> Self {
        Self { start: tensor.ptr(), bytes: tensor.bytes() }
    }
}

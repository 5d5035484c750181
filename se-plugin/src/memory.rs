//! Addresses in a device's memory.

use core::fmt;
use core::num::NonZeroU64;

/// An address in a device's memory.
///
/// TensorFlow treats it as a number: it adds to it to divide an allocation, and never follows it. So it
/// need not be an address of this process, but allocations must not overlap. Only the device knows its
/// memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevicePtr(NonZeroU64);

/// Addresses from here up are sentinels for failed allocations. No program has such addresses on
/// the systems for which TensorFlow is made; they are the kernel's.
const REFUSED: u64 = 0xffff_f000_0000_0000;

impl DevicePtr {
    /// Creates the address `address`; `None` for 0.
    #[must_use]
    pub const fn new(address: u64) -> Option<Self> {
        match NonZeroU64::new(address) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }

    /// Returns the address as a number.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0.get()
    }

    /// Returns the distance from `base` in bytes; `None` if this address is lower.
    #[must_use]
    pub const fn offset_from(self, base: Self) -> Option<u64> {
        self.address().checked_sub(base.address())
    }

    /// Returns the `index`th sentinel for a refused request. Each is the start of a range of one page.
    pub(crate) const fn refused(index: u64) -> Self {
        // There are more ranges than a process requests; after the last, they are used again.
        match Self::new(REFUSED + (index % (1 << 24) + 1) * 4096) {
            Some(address) => address,
            None => unreachable!(),
        }
    }

    /// The alignment in bytes. TensorFlow divides regions at multiples of it, and its host kernels rely on that.
    pub(crate) const ALIGNMENT: u64 = 256;

    /// Returns whether a device may return this address for a request.
    pub(crate) const fn is_usable(self) -> bool {
        !self.is_refused() && self.address().is_multiple_of(Self::ALIGNMENT)
    }

    /// Returns whether this is a sentinel for a failed allocation.
    pub(crate) const fn is_refused(self) -> bool {
        self.address() >= REFUSED
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePtr({:#x})", self.address())
    }
}

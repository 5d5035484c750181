//! Memory for the requests that the host repeats forever.

use crate::device::Device;
use crate::memory::DevicePtr;
use crate::sync::{ForkMutex, lock_across_forks};
use tf_plugin_core::__private::boundary;

/// The size of a piece in bytes, which is the largest request that is served. The host requests less and less until
/// it gets memory, so larger requests come down to this, too.
const PIECE: u64 = 64 << 10;

/// The largest number of pieces.
const PIECES: u64 = 16;

/// The reserve is at most one `PART`th of the memory that is free when it is taken.
const PART: u64 = 64;

/// Memory set aside while there is some, in pieces of [`PIECE`] bytes.
///
/// The host keeps a region that it has got for a small tensor, and uses it for all later ones. If that were a sentinel
/// address, small tensors would still fail long after the device has memory again.
#[derive(Debug)]
pub(crate) struct Reserve {
    base: DevicePtr,
    /// Whether each piece is in use.
    given: ForkMutex<Vec<bool>>,
}

impl Reserve {
    /// Returns the size of the reserve for this much free memory, in bytes.
    pub(crate) fn part_of(free: u64) -> u64 {
        (free / PART / PIECE).min(PIECES) * PIECE
    }

    /// Takes the reserve from `device`, or returns `None` if that fails.
    pub(crate) fn take_from(device: &impl Device) -> Option<Self> {
        const OP: &str = "allocate";
        let taken = boundary::catch(OP, || {
            let bytes = Self::part_of(device.memory_usage()?.free);
            Ok(match bytes {
                0 => None,
                bytes => Some((device.allocate(bytes)?, bytes)),
            })
        });
        match taken {
            Ok(Some((base, bytes))) if base.is_usable() => Some(Self::new(base, bytes)),
            // The host's own requests will also get such an address, and that becomes an error of the device.
            Ok(_) => None,
            Err(error) => {
                log::debug!("no memory is set aside for small tensors: {error:#}");
                boundary::discard(OP, error);
                None
            }
        }
    }

    fn new(base: DevicePtr, bytes: u64) -> Self {
        Self { base, given: ForkMutex::new(vec![false; (bytes / PIECE) as usize]) }
    }

    /// Returns a piece for `bytes`, if one is left.
    pub(crate) fn allocate(&self, bytes: u64) -> Option<DevicePtr> {
        if bytes > PIECE {
            return None;
        }
        let mut given = lock_across_forks(&self.given);
        let at = given.iter().position(|is_given| !is_given)?;
        given[at] = true;
        DevicePtr::new(self.base.address() + at as u64 * PIECE)
    }

    /// Takes a piece back. Returns whether the address is one.
    pub(crate) fn deallocate(&self, memory: DevicePtr) -> bool {
        let offset = memory.offset_from(self.base).filter(|&offset| offset < PIECES * PIECE);
        // Nearly all addresses are outside of the pieces, and need no lock.
        let Some(offset) = offset else { return false };
        let mut given = lock_across_forks(&self.given);
        let Some(given) = given.get_mut((offset / PIECE) as usize) else { return false };
        *given = false;
        true
    }

    /// Returns the memory that the device has allocated for the reserve.
    pub(crate) fn memory(&self) -> DevicePtr {
        self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_given_once_until_they_come_back() {
        let base = DevicePtr::new(1 << 20).unwrap();
        let reserve = Reserve::new(base, 3 * PIECE);
        assert_eq!(reserve.allocate(PIECE + 1), None);
        let given: Vec<_> = std::iter::from_fn(|| reserve.allocate(PIECE)).collect();
        let offsets: Vec<_> = given.iter().map(|piece| piece.offset_from(base).unwrap()).collect();
        assert_eq!(offsets, [0, PIECE, 2 * PIECE]);
        assert!(reserve.deallocate(given[1]));
        assert_eq!(reserve.allocate(1), Some(given[1]));
        assert_eq!(reserve.allocate(1), None);
        for foreign in [(1 << 20) - 256, (1 << 20) + 3 * PIECE] {
            assert!(!reserve.deallocate(DevicePtr::new(foreign).unwrap()), "{foreign}");
        }
    }
}

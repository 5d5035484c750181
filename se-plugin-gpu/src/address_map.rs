//! Finds the buffer that contains an address.

use crate::backend::{Buffer, BufferSlice};
use se_plugin::{DevicePtr, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The device's allocations, by address.
#[derive(Default)]
pub(crate) struct AddressMap(Mutex<BTreeMap<u64, Arc<Buffer>>>);

impl AddressMap {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Buffer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a buffer.
    ///
    /// # Errors
    /// `INTERNAL` if the driver gave it the address 0.
    pub(crate) fn add(&self, buffer: Buffer) -> Result<DevicePtr> {
        let address = DevicePtr::new(buffer.address());
        let address =
            address.ok_or_else(|| Error::internal("the driver allocated at address 0"))?;
        self.lock().insert(buffer.address(), Arc::new(buffer));
        Ok(address)
    }

    /// Removes the buffer that starts at an address. Users of the buffer keep it alive.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if no buffer starts there.
    pub(crate) fn remove(&self, address: DevicePtr) -> Result<()> {
        // The buffer must not be freed under the lock.
        let buffer = self.lock().remove(&address.address());
        buffer.map(drop).ok_or_else(|| {
            Error::invalid_argument(format!("no allocation of this device starts at {address:?}"))
        })
    }

    /// Returns whether a buffer has an address that one of these buffers has.
    pub(crate) fn overlaps(&self, buffer: &Buffer) -> bool {
        let (first, end) = (buffer.address(), buffer.address() + buffer.bytes().max(1));
        let before = self.lock().range(..end).next_back().map(|(at, of)| at + of.bytes().max(1));
        before.is_some_and(|end| end > first)
    }

    /// Finds a range.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not within one allocation.
    pub(crate) fn find(&self, op: &str, address: DevicePtr, bytes: u64) -> Result<BufferSlice> {
        let at = address.address();
        let buffers = self.lock();
        if let Some((first, buffer)) = buffers.range(..=at).next_back() {
            let offset = at - first;
            if offset <= buffer.bytes() && bytes <= buffer.bytes() - offset {
                return Ok(BufferSlice { buffer: Arc::clone(buffer), offset });
            }
        }
        Err(Error::invalid_argument(format!(
            "`{op}` uses {bytes} bytes at {address:?}, which are not within an allocation of this device"
        )))
    }
}

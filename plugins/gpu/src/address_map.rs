//! Finds the block that contains an address.

use crate::backend::{Block, Place};
use se_plugin::{DevicePtr, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The device's allocations, by address.
#[derive(Default)]
pub(crate) struct Regions(Mutex<BTreeMap<u64, Arc<Block>>>);

impl Regions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Block>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a block.
    ///
    /// # Errors
    /// `INTERNAL` if the driver gave it the address 0.
    pub(crate) fn add(&self, block: Block) -> Result<DevicePtr> {
        let address = DevicePtr::new(block.address());
        let address =
            address.ok_or_else(|| Error::internal("the driver allocated at address 0"))?;
        self.lock().insert(block.address(), Arc::new(block));
        Ok(address)
    }

    /// Removes the block that starts at an address. Users of the block keep it alive.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if no block starts there.
    pub(crate) fn remove(&self, address: DevicePtr) -> Result<()> {
        // The block must not be freed under the lock.
        let block = self.lock().remove(&address.address());
        block.map(drop).ok_or_else(|| {
            Error::invalid_argument(format!("no allocation of this device starts at {address:?}"))
        })
    }

    /// Finds a range.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not within one allocation.
    pub(crate) fn find(&self, op: &str, address: DevicePtr, bytes: u64) -> Result<Place> {
        let at = address.address();
        let regions = self.lock();
        if let Some((first, block)) = regions.range(..=at).next_back() {
            let offset = at - first;
            if offset <= block.bytes() && bytes <= block.bytes() - offset {
                return Ok(Place { block: Arc::clone(block), offset });
            }
        }
        Err(Error::invalid_argument(format!(
            "`{op}` uses {bytes} bytes at {address:?}, which are not within an allocation of this device"
        )))
    }
}

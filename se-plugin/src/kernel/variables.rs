//! Variables.

use super::tensor::DeviceTensor;
use crate::abi::kernel::tensor::Tensor;
use crate::abi::kernel::variables::Lock;
use core::fmt;
use core::ops::Deref;
use tf_plugin_core::Result;

/// Variables that a kernel has locked, as their tensors in the order that was requested.
///
/// Work that is enqueued before this is dropped reads and changes the variables in the order of the locks.
pub struct Variables<'a> {
    // Before the lock, so that the memory has no other user once another thread has the lock.
    tensors: Vec<DeviceTensor>,
    _lock: Lock<'a>,
}

impl<'a> Variables<'a> {
    pub(super) fn new((tensors, lock): (Vec<Tensor>, Lock<'a>)) -> Result<Self> {
        let tensors = tensors.into_iter().map(DeviceTensor::new).collect::<Result<_>>()?;
        Ok(Self { tensors, _lock: lock })
    }
}

impl Deref for Variables<'_> {
    type Target = [DeviceTensor];

    fn deref(&self) -> &[DeviceTensor] {
        &self.tensors
    }
}

impl fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.tensors).finish()
    }
}

//! Tensors in device memory.

use crate::memory::DevicePtr;
use core::fmt;
use std::sync::Arc;
use tf_op_plugin::__private::abi::Tensor;
use tf_op_plugin::DType;
use tf_plugin_core::{Error, Result};

#[cold]
fn no_memory(ptr: Option<DevicePtr>) -> Error {
    match ptr {
        Some(_) => Error::resource_exhausted("the memory of the device is used up"),
        None => Error::internal("TensorFlow passed a tensor without memory"),
    }
}

/// Returns the address of the elements of a tensor in device memory, or `None` if there are none.
#[inline]
pub(super) fn device_ptr(tensor: &Tensor) -> Result<Option<DevicePtr>> {
    match tensor.bytes {
        0 => Ok(None),
        _ => match DevicePtr::new(tensor.data.addr() as u64) {
            Some(ptr) if !ptr.is_refused() => Ok(Some(ptr)),
            ptr => Err(no_memory(ptr)),
        },
    }
}

/// A tensor in device memory.
///
/// TensorFlow counts the references to its memory: while this value or a clone exists, the memory is not
/// reused. A kernel need not keep it until its work is done, since TensorFlow gives the memory only to later work of
/// the same stream (see [`Platform::USE_BFC_ALLOCATOR`](crate::Platform::USE_BFC_ALLOCATOR) for when it does not).
#[derive(Clone)]
pub struct DeviceTensor {
    pub(super) tensor: Arc<Tensor>,
    ptr: Option<DevicePtr>,
}

impl DeviceTensor {
    #[inline]
    pub(super) fn new(tensor: Tensor) -> Result<Self> {
        let ptr = device_ptr(&tensor)?;
        Ok(Self { tensor: Arc::new(tensor), ptr })
    }

    /// Returns the type of the elements.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape
    }

    /// Returns the number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tensor.elements
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.tensor.bytes as u64
    }

    /// Returns the address of the elements, row by row; `None` if there are none.
    #[must_use]
    #[inline]
    pub fn ptr(&self) -> Option<DevicePtr> {
        self.ptr
    }
}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTensor({} {:?} at {:?})", self.dtype(), self.shape(), self.ptr)
    }
}

//! Tensors in device memory.

use crate::abi::kernel::tensor::Tensor;
use crate::dtype::DType;
use crate::memory::DevicePtr;
use core::fmt;
use std::sync::Arc;
use tf_plugin_core::Result;

/// A tensor in device memory.
///
/// TensorFlow counts the references to its memory: while this value or a clone exists, the memory is not
/// reused. A kernel need not keep it until its work is done, since TensorFlow
/// gives memory to later work of the same stream only
/// (see [`Platform::USE_BFC_ALLOCATOR`](crate::Platform::USE_BFC_ALLOCATOR) for when it does not).
#[derive(Clone)]
pub struct DeviceTensor {
    tensor: Arc<Tensor>,
    ptr: Option<DevicePtr>,
}

impl DeviceTensor {
    #[inline]
    pub(crate) fn new(tensor: Tensor) -> Result<Self> {
        let ptr = tensor.device_ptr()?;
        Ok(Self { tensor: Arc::new(tensor), ptr })
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// The type of the elements.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// The length of each dimension; none for a scalar.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[i64] {
        self.tensor.shape()
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.tensor.elements()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.tensor.bytes() as u64
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

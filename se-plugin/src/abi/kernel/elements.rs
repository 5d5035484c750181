//! The elements of tensors in host memory.

use super::plain::Plain;
use super::tensor::Tensor;
use crate::dtype::DType;
use core::fmt;
use core::marker::PhantomData;
use tf_plugin_core::{Error, Result, ensure};

/// Whether a slice of `T`, which are elements of `dtype`, may be made of a host tensor's memory.
fn check<T: Plain>(tensor: &Tensor, dtype: DType, what: &dyn fmt::Display) -> Result<()> {
    ensure!(
        tensor.dtype() == dtype,
        Error::invalid_argument(format!("{what} is of {}, not of {dtype}", tensor.dtype()))
    );
    let size = tensor.elements().checked_mul(size_of::<T>());
    let fits = tensor.elements() == 0
        || size.is_some_and(|size| size <= tensor.bytes())
            && isize::try_from(tensor.bytes()).is_ok()
            && !tensor.data().is_null()
            && tensor.data().addr().is_multiple_of(align_of::<T>());
    ensure!(fits, Error::internal(format!("TensorFlow passed {what} in unsuitable memory")));
    Ok(())
}

/// The elements of a tensor in host memory, for reading.
pub(crate) struct Elements<T> {
    tensor: Tensor,
    elements: PhantomData<T>,
}

impl<T: Plain> Elements<T> {
    /// # Safety
    /// The tensor is in host memory, initialised, and not written to while this exists.
    pub(super) unsafe fn new(
        tensor: Tensor,
        dtype: DType,
        what: &dyn fmt::Display,
    ) -> Result<Self> {
        check::<T>(&tensor, dtype, what)?;
        let new = Self { tensor, elements: PhantomData };
        let bytes = match new.tensor.elements() {
            0 => &[],
            // SAFETY: `data` points to `bytes` initialised bytes of host memory, which nothing writes while the
            // new value holds the tensor.
            _ => unsafe { core::slice::from_raw_parts(new.tensor.data(), new.tensor.bytes()) },
        };
        ensure!(
            T::are_valid(bytes),
            Error::invalid_argument(format!("{what} has bytes that are not a valid {dtype}"))
        );
        Ok(new)
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self.tensor.elements() {
            0 => &[],
            // SAFETY: `check` has seen that memory, alignment and type are right, `new` that the bytes are
            // values, and nothing writes to them.
            len => unsafe { core::slice::from_raw_parts(self.tensor.data().cast(), len) },
        }
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}

/// The elements of an output in host memory, which begin as zeros.
pub(crate) struct ElementsMut<'a, T> {
    tensor: Tensor,
    elements: PhantomData<&'a mut T>,
}

impl<T: Plain> ElementsMut<'_, T> {
    /// # Safety
    /// The tensor is in host memory, which nothing else uses while this exists.
    pub(super) unsafe fn new(
        tensor: Tensor,
        dtype: DType,
        what: &dyn fmt::Display,
    ) -> Result<Self> {
        check::<T>(&tensor, dtype, what)?;
        if tensor.elements() > 0 {
            // SAFETY: `data` points to `bytes` bytes of host memory, which nothing else uses while the new
            // value holds the tensor.
            unsafe { tensor.data().write_bytes(0, tensor.bytes()) };
        }
        Ok(Self { tensor, elements: PhantomData })
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        match self.tensor.elements() {
            0 => &mut [],
            // SAFETY: `check` has seen that memory, alignment and type are right, `new` has filled it with
            // zeros, which are values, and nothing else uses it.
            len => unsafe { core::slice::from_raw_parts_mut(self.tensor.data().cast(), len) },
        }
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}

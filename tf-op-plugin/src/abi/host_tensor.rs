//! Tensors in host memory.

use super::tensor::Tensor;
use crate::kernel::Element;
use bytemuck::checked::CheckedCastError;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use tf_plugin_core::{Error, Result, ensure};

/// Checks that the elements of a tensor are of the type `T`, in memory that can be viewed as a slice.
fn check<T: Element>(tensor: &Tensor, what: &dyn fmt::Display) -> Result<()> {
    ensure!(
        tensor.dtype == T::DTYPE,
        Error::invalid_argument(format!("{what} is of {}, not of {}", tensor.dtype, T::DTYPE))
    );
    let len = tensor.elements.checked_mul(size_of::<T>());
    let fits = len.is_some_and(|len| len <= tensor.bytes)
        && isize::try_from(tensor.bytes).is_ok()
        && !tensor.data.is_null();
    if fits || tensor.elements == 0 { Ok(()) } else { Err(unsuitable(what)) }
}

#[cold]
fn unsuitable(what: &dyn fmt::Display) -> Error {
    Error::internal(format!("TensorFlow passed {what} in unsuitable memory"))
}

/// Returns the error for a tensor whose bytes are not elements.
#[cold]
fn not_elements<T: Element>(error: CheckedCastError, what: &dyn fmt::Display) -> Error {
    let text = || format!("{what} has bytes that are not a valid {}", T::DTYPE);
    match error {
        // `tf.io.decode_raw` can return such a `bool`.
        CheckedCastError::InvalidBitPattern => Error::invalid_argument(text()),
        CheckedCastError::PodCastError(_) => unsuitable(what),
    }
}

/// Checks that the bytes of a tensor are elements.
/// # Safety
/// [`check`] has accepted the tensor, which is in host memory, initialised, and not written to before this returns.
unsafe fn check_elements<T: Element>(tensor: &Tensor, what: &dyn fmt::Display) -> Result<()> {
    if tensor.elements == 0 {
        return Ok(());
    }
    let len = tensor.elements * size_of::<T>();
    // SAFETY: `check` has seen that `data` points to `len` bytes, which are initialised and which nothing writes meanwhile.
    let bytes = unsafe { core::slice::from_raw_parts(tensor.data, len) };
    match T::__cast(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(not_elements::<T>(error, what)),
    }
}

/// A tensor in host memory, for reading during a run.
///
/// It is not [`Send`], so an op or a kernel cannot keep one: its memory may be that of a NumPy array, which the Python program
/// can change after the run. Keep a copy of the elements.
pub struct HostTensor<T> {
    pub(super) tensor: Tensor,
    /// The pointer makes it not `Send`.
    elements: PhantomData<(T, *const ())>,
}

// SAFETY: a shared reference only reads the elements; there is no pointer.
unsafe impl<T: Sync> Sync for HostTensor<T> {}

impl<T: Element> HostTensor<T> {
    /// Wraps a tensor for reading.
    /// # Safety
    /// The tensor is in host memory, initialised, and not written to while this exists: TensorFlow's kernels write to no
    /// tensor that has another user, and Python programs may not change an array that a running op reads.
    pub unsafe fn new(tensor: Tensor, what: &dyn fmt::Display) -> Result<Self> {
        check::<T>(&tensor, what)?;
        // SAFETY: `check` has accepted the tensor, and this function requires the rest.
        unsafe { check_elements::<T>(&tensor, what)? };
        Ok(Self { tensor, elements: PhantomData })
    }

    /// Returns the elements, row by row.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match self.tensor.elements {
            0 => &[],
            // SAFETY: bytemuck has accepted the bytes of so many elements as a `[T]` in `new`, and nothing writes them while
            // `self` holds the tensor.
            len => unsafe { core::slice::from_raw_parts(self.tensor.data.cast(), len) },
        }
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape
    }
}

impl<T: Element> fmt::Debug for HostTensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostTensor({} {:?})", T::DTYPE, self.shape())
    }
}

/// An output in host memory, which is zero at first. Write it before the kernel returns.
pub struct HostTensorMut<'a, T> {
    tensor: Tensor,
    elements: PhantomData<&'a mut T>,
}

impl<T: Element> HostTensorMut<'_, T> {
    /// Wraps a tensor for writing.
    /// # Safety
    /// The tensor is in host memory, which nothing else uses while this exists.
    pub unsafe fn new(tensor: Tensor, what: &dyn fmt::Display) -> Result<Self> {
        check::<T>(&tensor, what)?;
        if tensor.elements > 0 {
            // SAFETY: `data` points to `bytes` bytes of host memory, which nothing else uses while the new
            // value holds the tensor.
            unsafe { tensor.data.write_bytes(0, tensor.bytes) };
        }
        // SAFETY: `check` has accepted the tensor, the bytes are zeros, and nothing else uses them.
        unsafe { check_elements::<T>(&tensor, what)? };
        Ok(Self { tensor, elements: PhantomData })
    }

    /// Wraps a tensor that has elements already.
    /// # Safety
    /// The tensor is in host memory, initialised, and nothing else uses it while this exists.
    pub(super) unsafe fn with_elements(tensor: Tensor, what: &dyn fmt::Display) -> Result<Self> {
        check::<T>(&tensor, what)?;
        // SAFETY: `check` has accepted the tensor, and this function requires the rest.
        unsafe { check_elements::<T>(&tensor, what)? };
        Ok(Self { tensor, elements: PhantomData })
    }

    /// Returns the elements, row by row.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self.tensor.elements {
            0 => &mut [],
            // SAFETY: bytemuck has accepted the bytes of so many elements as a `[T]` in `new`. Only the slices from here have
            // written `T`s there since, and `&mut self` is the only way to one while `self` holds the tensor.
            len => unsafe { core::slice::from_raw_parts_mut(self.tensor.data.cast(), len) },
        }
    }

    /// Returns the length of each dimension, of which a scalar has none.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.tensor.shape
    }
}

impl<T: Element> HostTensorMut<'_, T> {
    /// Wraps a new tensor for writing, with `f` of each element of another one of the same shape.
    /// # Safety
    /// The tensor is in host memory, which nothing else uses while this exists.
    pub(super) unsafe fn map_of(
        tensor: Tensor,
        source: &HostTensor<T>,
        what: &dyn fmt::Display,
        mut f: impl FnMut(T) -> T,
    ) -> Result<Self> {
        check::<T>(&tensor, what)?;
        let from = source.as_slice();
        if tensor.elements != from.len() {
            return Err(unsuitable(what));
        }
        if !from.is_empty() {
            let start = tensor.data.cast::<MaybeUninit<T>>();
            // SAFETY: `check` has seen that there is memory for so many elements, which nothing else uses.
            let to = unsafe { core::slice::from_raw_parts_mut(start, from.len()) };
            for (to, &from) in to.iter_mut().zip(from) {
                to.write(f(from));
            }
        }
        Ok(Self { tensor, elements: PhantomData })
    }

    /// Ends the writing.
    pub(super) fn into_tensor(self) -> HostTensor<T> {
        HostTensor { tensor: self.tensor, elements: PhantomData }
    }
}

impl<T: Element> fmt::Debug for HostTensorMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostTensorMut({} {:?})", T::DTYPE, self.shape())
    }
}

//! Tensors of strings of the host.

use super::status::{HostApi, Status};
use super::tensor::{Argument, Tensor, rank_of};
use super::tstring::{StringApi, StringIter};
use crate::dtype::DType;
use core::fmt;
use core::ptr::NonNull;
use tf_fs_sys::{TF_OpKernelContext, TF_TString};
use tf_plugin_core::{Error, Result, ensure};

/// A tensor of strings in host memory, for reading.
pub(crate) struct HostStrings {
    pub(super) tensor: Tensor,
    api: StringApi,
}

impl HostStrings {
    /// Wraps a tensor for reading.
    ///
    /// # Safety
    /// The tensor is in host memory, initialised, and not written to while this exists.
    pub(super) unsafe fn new(tensor: Tensor, what: &dyn fmt::Display) -> Result<Self> {
        ensure!(
            tensor.dtype == DType::String,
            Error::invalid_argument(format!("{what} is of {}, not of string", tensor.dtype))
        );
        let len = tensor.elements.checked_mul(size_of::<TF_TString>());
        let fits = len.is_some_and(|len| len <= tensor.bytes) && !tensor.data.is_null();
        ensure!(
            fits || tensor.elements == 0,
            Error::internal(format!("TensorFlow passed {what} in unsuitable memory"))
        );
        Ok(Self { tensor, api: StringApi::get()? })
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.tensor.shape
    }

    pub(crate) fn len(&self) -> usize {
        self.tensor.elements
    }

    /// Returns the bytes of a string, if there is one with this index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        if index >= self.tensor.elements {
            return None;
        }
        // SAFETY: `new` has seen that there are so many strings, which the host has initialised and does not change
        // while `self` holds the tensor.
        Some(unsafe { self.api.bytes(self.tensor.data.cast::<TF_TString>().add(index)) })
    }

    /// Returns the strings in their order.
    #[inline]
    pub(crate) fn iter(&self) -> StringIter<'_> {
        let api = (!self.api.has_known_layout()).then_some(self.api);
        // SAFETY: `new` has seen that there are so many strings, which the host has initialised and does not change while
        // `self` holds the tensor.
        unsafe { StringIter::new(self.tensor.data.cast(), self.tensor.elements, api) }
    }

    /// Returns the address of the first string.
    pub(crate) fn address(&self) -> *const u8 {
        self.tensor.data
    }
}

/// Returns whether the host takes strings of the plugin over as they are.
pub(super) fn takes_strings_over() -> Result<bool> {
    StringApi::get().map(StringApi::has_known_layout)
}

/// Creates an output of strings: copies of `strings`, for a host that does not take them over.
///
/// # Safety
/// `run` is a run of a CPU kernel that has not ended, whose output `index` exists, is of strings, and is not created yet.
pub(super) unsafe fn copied_output<'s>(
    run: NonNull<TF_OpKernelContext>,
    host: &HostApi,
    status: &Status,
    index: core::ffi::c_int,
    shape: &[i64],
    strings: impl ExactSizeIterator<Item = &'s [u8]>,
) -> Result<()> {
    let api = StringApi::get()?;
    let (rank, allocate) = (rank_of(shape)?, host.kernels.TF_AllocateOutput);
    let what = Argument("output", index.unsigned_abs() as usize);
    // SAFETY: a run that has not ended, an index in range, as many dimensions as are said and a status. The tensor is ours.
    let tensor = unsafe {
        let dtype = DType::String.as_raw();
        let raw = allocate(run.as_ptr(), index, dtype, shape.as_ptr(), rank, 0, status.as_ptr());
        status.check()?;
        Tensor::adopt(raw, host, &what)?
    };
    ensure!(
        tensor.dtype == DType::String && tensor.elements == strings.len(),
        Error::internal(format!("{} strings do not have the shape {shape:?}", strings.len()))
    );
    for (at, string) in strings.take(tensor.elements).enumerate() {
        // SAFETY: the host has allocated so many strings, which are empty and which nothing else uses yet.
        unsafe { api.write(tensor.data.cast::<TF_TString>().add(at), string) };
    }
    Ok(())
}

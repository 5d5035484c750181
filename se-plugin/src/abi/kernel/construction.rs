//! A node for which a kernel is made, as the host has it.

use super::elements::Elements;
use super::plain::Plain;
use super::status::{self, HostApi, Status, ask, text};
use super::tensor::Tensor;
use crate::abi::host_buf::lent;
use crate::dtype::DType;
use core::ffi::{CStr, c_char, c_int};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use std::borrow::Cow;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{BufferFunctions, TF_OpKernelConstruction};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result, ensure};

/// A node for which a kernel is made: its name and its attributes.
pub(crate) struct Construction<'a> {
    raw: NonNull<TF_OpKernelConstruction>,
    host: HostApi,
    status: Status,
    call: PhantomData<&'a mut TF_OpKernelConstruction>,
}

/// Attributes that are a number, and lists of them.
macro_rules! numbers {
    ($($one:ident, $list:ident: $number:ty = $get:ident, $get_list:ident;)*) => {$(
        pub(crate) fn $one(&self, name: &CStr) -> Result<$number> {
            let mut value = <$number>::default();
            // SAFETY: a construction that has not ended, a C string and a place for the result.
            unsafe { ask!(self.$get(name.as_ptr(), &raw mut value)) };
            Ok(value)
        }

        pub(crate) fn $list(&self, name: &CStr) -> Result<Vec<$number>> {
            let (count, _) = self.list_size(name)?;
            let mut values = vec![<$number>::default(); count as usize];
            // SAFETY: a construction that has not ended, a C string, and as many places for the results as are
            // said.
            unsafe { ask!(self.$get_list(name.as_ptr(), values.as_mut_ptr(), count)) };
            Ok(values)
        }
    )*};
}

impl Construction<'_> {
    /// # Safety
    /// `raw` is a construction of the host's, not ended while this exists.
    pub(super) unsafe fn new(raw: *mut TF_OpKernelConstruction) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow made a kernel without a construction"))?;
        let status = host.new_status()?;
        Ok(Self { raw, host, status, call: PhantomData })
    }

    pub(crate) fn name(&self) -> Cow<'_, str> {
        // SAFETY: a construction that has not ended, and with it the text.
        unsafe { text((self.host.kernels.TF_OpKernelConstruction_GetName)(self.raw.as_ptr())) }
    }

    /// Whether the node has an attribute.
    pub(crate) fn has(&self, name: &CStr) -> Result<bool> {
        // SAFETY: a construction that has not ended, and a C string.
        Ok(unsafe { ask!(self.TF_OpKernelConstruction_HasAttr(name.as_ptr())) })
    }

    /// The number of elements of a list, and the bytes of all strings in it.
    fn size(&self, name: &CStr) -> Result<(c_int, usize)> {
        let (mut list, mut total) = (-1, -1);
        // SAFETY: a construction that has not ended, a C string, and places for the results.
        unsafe {
            ask!(self.TF_OpKernelConstruction_GetAttrSize(
                name.as_ptr(),
                &raw mut list,
                &raw mut total
            ));
        }
        Ok((list, usize::try_from(total).unwrap_or(0)))
    }

    fn list_size(&self, name: &CStr) -> Result<(c_int, usize)> {
        let (list, total) = self.size(name)?;
        ensure!(list >= 0, Error::invalid_argument("it is not a list"));
        Ok((list, total))
    }

    numbers! {
        int64, int64_list: i64 =
            TF_OpKernelConstruction_GetAttrInt64, TF_OpKernelConstruction_GetAttrInt64List;
        int32, int32_list: i32 =
            TF_OpKernelConstruction_GetAttrInt32, TF_OpKernelConstruction_GetAttrInt32List;
        float, float_list: f32 =
            TF_OpKernelConstruction_GetAttrFloat, TF_OpKernelConstruction_GetAttrFloatList;
        boolean, boolean_list: u8 =
            TF_OpKernelConstruction_GetAttrBool, TF_OpKernelConstruction_GetAttrBoolList;
        dtype, dtype_list: u32 =
            TF_OpKernelConstruction_GetAttrType, TF_OpKernelConstruction_GetAttrTypeList;
    }

    pub(crate) fn string(&self, name: &CStr) -> Result<Vec<u8>> {
        let (list, total) = self.size(name)?;
        ensure!(list < 0, Error::invalid_argument("it is a list"));
        // One byte too many, so that the host gets an address even for an empty string.
        let mut bytes = vec![0_u8; total + 1];
        // SAFETY: a construction that has not ended, a C string, and `total` bytes for the result.
        unsafe {
            let place = bytes.as_mut_ptr().cast();
            ask!(self.TF_OpKernelConstruction_GetAttrString(name.as_ptr(), place, total));
        }
        bytes.truncate(total);
        Ok(bytes)
    }

    pub(crate) fn string_list(&self, name: &CStr) -> Result<Vec<Vec<u8>>> {
        let (count, total) = self.list_size(name)?;
        let mut storage = vec![0_u8; total + 1];
        let mut values: Vec<*mut c_char> = vec![ptr::null_mut(); count as usize];
        let mut lengths = vec![0_usize; count as usize];
        // SAFETY: a construction that has not ended, a C string, and as many places for the results as are
        // said. The values then point into the storage.
        unsafe {
            ask!(self.TF_OpKernelConstruction_GetAttrStringList(
                name.as_ptr(),
                values.as_mut_ptr(),
                lengths.as_mut_ptr(),
                count,
                storage.as_mut_ptr().cast(),
                total
            ));
        }
        let base = storage.as_ptr().addr();
        let strings = values.iter().zip(lengths).map(|(value, length)| {
            let start = value.addr().wrapping_sub(base);
            let bytes = match length {
                0 => Some(&[][..]),
                _ => storage.get(start..).and_then(|rest| rest.get(..length)),
            };
            let bytes =
                bytes.ok_or_else(|| Error::internal("TensorFlow passed strings out of range"))?;
            Ok(bytes.to_vec())
        });
        strings.collect()
    }

    pub(crate) fn tensor<T: Plain>(&self, name: &CStr, dtype: DType) -> Result<Elements<T>> {
        let what = &"the tensor";
        let mut raw = ptr::null_mut();
        // SAFETY: a construction that has not ended, a C string, and a place for the result. The
        // tensor is then ours; attributes are in host memory and never change.
        unsafe {
            ask!(self.TF_OpKernelConstruction_GetAttrTensor(name.as_ptr(), &raw mut raw));
            Elements::new(Tensor::adopt(raw, &self.host, what)?, dtype, what)
        }
    }

    /// Runs `body` with the node as the host serialises it.
    pub(crate) fn with_node<R>(&self, body: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
        // SAFETY: a construction that has not ended and a status. The buffer is then ours; its bytes are
        // used before it is deleted, also when `body` panics.
        unsafe {
            let get = self.host.kernels.TF_OpKernelConstruction_GetNodeDef;
            let buffer = get(self.raw.as_ptr(), self.status.as_ptr());
            let reported = self.status.check();
            if buffer.is_null() {
                reported?;
                return Err(Error::internal("TensorFlow passed no node"));
            }
            let content = (buffers.TF_GetBuffer)(buffer);
            let bytes = lent(content.data, content.length);
            let result = boundary::catch("kernel attributes", || {
                reported?;
                body(bytes?)
            });
            (buffers.TF_DeleteBuffer)(buffer);
            result
        }
    }
}

/// Tells the host that a kernel could not be made.
///
/// # Safety
/// `raw` is null or a construction that has not ended.
#[cold]
pub(super) unsafe fn fail(op: &'static str, raw: *mut TF_OpKernelConstruction, error: Error) {
    // SAFETY: `status::fail` calls this only for a `raw` that is not null, a construction that has not ended.
    // The host copies the status.
    let tell = |host: &HostApi, status| unsafe {
        (host.kernels.TF_OpKernelConstruction_Failure)(raw, status)
    };
    status::fail(op, !raw.is_null(), error, tell);
}

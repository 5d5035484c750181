//! A node for which a kernel is made.

use super::status::{self, HostApi, Status, text};
use super::tensor::{HostTensor, Tensor};
use crate::abi::host_buf::lent;
use crate::kernel::{Attribute, DType, Element, PartialShape};
use crate::wire::{Value, values};
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use std::borrow::Cow;
use std::ffi::CString;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{BufferFunctions, TF_OpKernelConstruction};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Code, Error, Result, ResultExt as _, ensure};

/// A node for which a kernel is made: its name and its attributes.
pub struct OpKernelConstruction<'a> {
    raw: NonNull<TF_OpKernelConstruction>,
    host: HostApi,
    status: Status,
    call: PhantomData<&'a mut TF_OpKernelConstruction>,
}

impl OpKernelConstruction<'_> {
    /// # Safety
    /// `raw` is a construction of the host's, not ended while this exists.
    pub(super) unsafe fn new(raw: *mut TF_OpKernelConstruction) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow made a kernel without a construction"))?;
        let status = Status::new(host.status)?;
        Ok(Self { raw, host, status, call: PhantomData })
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        // SAFETY: a construction that has not ended, and with it the text.
        unsafe { text((self.host.kernels.TF_OpKernelConstruction_GetName)(self.raw.as_ptr())) }
    }

    /// Whether the node has an attribute.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name with a NUL.
    pub fn has_attr(&self, name: &str) -> Result<bool> {
        let name = CString::new(name).map_err(Error::invalid_argument)?;
        let host = self.host.kernels;
        // SAFETY: a construction that has not ended, a C string and a status.
        let has = unsafe {
            let has = host.TF_OpKernelConstruction_HasAttr;
            has(self.raw.as_ptr(), name.as_ptr(), self.status.as_ptr())
        };
        self.status.check()?;
        Ok(has)
    }

    /// Reads an attribute: an `i64`, `i32`, `f32`, `bool`, `String` or [`DType`], a `Vec` of one of
    /// these, a [`PartialShape`], or a [`HostTensor`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, naming the attribute, if the node does not have it or it is of another type.
    pub fn attr<T: Attribute>(&self, name: &str) -> Result<T> {
        let read = CString::new(name)
            .map_err(Error::invalid_argument)
            .and_then(|name| T::read(self, &name));
        read.with_attribute(name)
    }

    /// The number of elements of a list, and the bytes of all strings in it.
    fn size(&self, name: &CStr) -> Result<(c_int, usize)> {
        let (mut list, mut total) = (-1, -1);
        // SAFETY: a construction that has not ended, a C string, places for the answers and a status.
        unsafe {
            (self.host.kernels.TF_OpKernelConstruction_GetAttrSize)(
                self.raw.as_ptr(),
                name.as_ptr(),
                &raw mut list,
                &raw mut total,
                self.status.as_ptr(),
            );
        }
        self.status.check()?;
        Ok((list, usize::try_from(total).unwrap_or(0)))
    }

    fn list_size(&self, name: &CStr) -> Result<(c_int, usize)> {
        let (list, total) = self.size(name)?;
        ensure!(list >= 0, Error::invalid_argument("it is not a list"));
        Ok((list, total))
    }

    /// Runs `body` with the node as the host serialises it.
    fn with_node<R>(&self, body: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
        let host = self.host.kernels;
        // SAFETY: a construction that has not ended and a status. The buffer is then ours; its bytes are
        // used before it is deleted, also when `body` panics.
        unsafe {
            let get = host.TF_OpKernelConstruction_GetNodeDef;
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

impl fmt::Debug for OpKernelConstruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelConstruction").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Names the attribute in an error.
trait WithAttribute<T> {
    fn with_attribute(self, name: &str) -> Result<T>;
}

impl<T> WithAttribute<T> for Result<T> {
    fn with_attribute(self, name: &str) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error).context(format!("attribute `{name}`")),
        }
    }
}

/// What an attribute can be read as.
pub trait Read: Sized {
    #[doc(hidden)]
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self>;
}

macro_rules! scalars {
    ($($value:ty: $raw:ty = $function:ident, $of:expr;)*) => {$(
        impl Read for $value {
            fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
                let mut value: $raw = Default::default();
                // SAFETY: a construction that has not ended, a C string, a place for the answer and a
                // status.
                unsafe {
                    (construction.host.kernels.$function)(
                        construction.raw.as_ptr(),
                        name.as_ptr(),
                        &raw mut value,
                        construction.status.as_ptr(),
                    );
                }
                construction.status.check()?;
                let of: fn($raw) -> Result<$value> = $of;
                of(value)
            }
        }
    )*};
}

scalars! {
    i64: i64 = TF_OpKernelConstruction_GetAttrInt64, Ok;
    i32: i32 = TF_OpKernelConstruction_GetAttrInt32, Ok;
    f32: f32 = TF_OpKernelConstruction_GetAttrFloat, Ok;
    bool: u8 = TF_OpKernelConstruction_GetAttrBool, |value| Ok(value != 0);
    DType: u32 = TF_OpKernelConstruction_GetAttrType, known;
}

macro_rules! lists {
    ($($value:ty: $raw:ty = $function:ident, $of:expr;)*) => {$(
        impl Read for Vec<$value> {
            fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
                let (count, _) = construction.list_size(name)?;
                let mut values = vec![<$raw>::default(); count as usize];
                // SAFETY: a construction that has not ended, a C string, as many places for the answers
                // as are said and a status.
                unsafe {
                    (construction.host.kernels.$function)(
                        construction.raw.as_ptr(),
                        name.as_ptr(),
                        values.as_mut_ptr(),
                        count,
                        construction.status.as_ptr(),
                    );
                }
                construction.status.check()?;
                let of: fn($raw) -> Result<$value> = $of;
                values.into_iter().map(of).collect()
            }
        }
    )*};
}

lists! {
    i64: i64 = TF_OpKernelConstruction_GetAttrInt64List, Ok;
    i32: i32 = TF_OpKernelConstruction_GetAttrInt32List, Ok;
    f32: f32 = TF_OpKernelConstruction_GetAttrFloatList, Ok;
    bool: u8 = TF_OpKernelConstruction_GetAttrBoolList, |value| Ok(value != 0);
    DType: u32 = TF_OpKernelConstruction_GetAttrTypeList, known;
}

fn known(raw: u32) -> Result<DType> {
    DType::from_raw(raw).ok_or_else(|| {
        Error::new(
            Code::Unimplemented,
            format!("this SDK does not know the type {raw} of elements"),
        )
    })
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(Error::invalid_argument)
}

impl Read for String {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        let (list, total) = construction.size(name)?;
        ensure!(list < 0, Error::invalid_argument("it is a list"));
        // One byte too many, so that the host gets an address even for an empty string.
        let mut bytes = vec![0_u8; total + 1];
        // SAFETY: a construction that has not ended, a C string, so many bytes for the answer and a status.
        unsafe {
            (construction.host.kernels.TF_OpKernelConstruction_GetAttrString)(
                construction.raw.as_ptr(),
                name.as_ptr(),
                bytes.as_mut_ptr().cast(),
                total,
                construction.status.as_ptr(),
            );
        }
        construction.status.check()?;
        bytes.truncate(total);
        utf8(bytes)
    }
}

impl Read for Vec<String> {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        let (count, total) = construction.list_size(name)?;
        let mut storage = vec![0_u8; total + 1];
        let mut values: Vec<*mut c_char> = vec![ptr::null_mut(); count as usize];
        let mut lengths = vec![0_usize; count as usize];
        // SAFETY: a construction that has not ended, a C string, as many places for the answers as are said
        // and a status. The values then point into the storage.
        unsafe {
            (construction.host.kernels.TF_OpKernelConstruction_GetAttrStringList)(
                construction.raw.as_ptr(),
                name.as_ptr(),
                values.as_mut_ptr(),
                lengths.as_mut_ptr(),
                count,
                storage.as_mut_ptr().cast(),
                total,
                construction.status.as_ptr(),
            );
        }
        construction.status.check()?;
        let base = storage.as_ptr().addr();
        values
            .iter()
            .zip(lengths)
            .map(|(value, length)| {
                let start = value.addr().wrapping_sub(base);
                let bytes = if length == 0 {
                    Some(&[][..])
                } else {
                    storage.get(start..).and_then(|rest| rest.get(..length))
                };
                utf8(
                    bytes
                        .ok_or_else(|| Error::internal("TensorFlow passed strings out of range"))?
                        .to_vec(),
                )
            })
            .collect()
    }
}

impl<T: Element> Read for HostTensor<T> {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: a construction that has not ended, a C string, a place for the answer and a status. The
        // tensor is then ours; attributes are in host memory and never change.
        unsafe {
            (construction.host.kernels.TF_OpKernelConstruction_GetAttrTensor)(
                construction.raw.as_ptr(),
                name.as_ptr(),
                &raw mut raw,
                construction.status.as_ptr(),
            );
            construction.status.check()?;
            let what = &"the tensor";
            HostTensor::new(Tensor::adopt(raw, &construction.host, what)?, what)
        }
    }
}

/// The host's own function for this is among those that 2.19 to 2.21 lack, so it is read from the node.
impl Read for PartialShape {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        construction.with_node(|node| shape_of(node, name.to_bytes()))
    }
}

/// The attribute of a `NodeDef` that is a shape.
fn shape_of(node: &[u8], name: &[u8]) -> Result<PartialShape> {
    for field in values(node) {
        let (5, Value::Bytes(entry)) = field? else { continue };
        let (mut key, mut value) = (&[][..], &[][..]);
        for field in values(entry) {
            match field? {
                (1, Value::Bytes(bytes)) => key = bytes,
                (2, Value::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        if key != name {
            continue;
        }
        for field in values(value) {
            if let (7, Value::Bytes(shape)) = field? {
                return PartialShape::of_proto(shape);
            }
        }
        return Err(Error::invalid_argument("it is not a shape"));
    }
    Err(Error::invalid_argument("the node does not have it"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_found_among_the_attributes() {
        // attr { key: "T" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 3 }
        // dim { size: -1 } } } }
        let mut node = vec![0x2a, 7, 0x0a, 1, b'T', 0x12, 2, 0x30, 1];
        let minus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let mut shape = vec![0x12, 2, 0x08, 3, 0x12, 11, 0x08];
        shape.extend(minus);
        let mut entry = vec![0x0a, 5];
        entry.extend(b"shape");
        entry.extend([0x12, shape.len() as u8 + 2, 0x3a, shape.len() as u8]);
        entry.extend(&shape);
        node.extend([0x2a, entry.len() as u8]);
        node.extend(&entry);
        let found = shape_of(&node, b"shape").unwrap();
        assert_eq!(found.dims(), Some(&[Some(3), None][..]));
        assert!(shape_of(&node, b"T").unwrap_err().to_string().contains("not a shape"));
        assert!(shape_of(&node, b"U").unwrap_err().to_string().contains("does not have"));
        assert!(shape_of(&node[..node.len() - 1], b"shape").is_err());
    }
}

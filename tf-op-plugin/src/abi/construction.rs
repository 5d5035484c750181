//! A node for which a kernel is created, and its attributes.

use super::host_tensor::HostTensor;
use super::status::{HostApi, Status, ask, text};
use super::tensor::Tensor;
use crate::kernel::{Attribute, Element};
use crate::node::Node;
use core::cell::OnceCell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use std::borrow::Cow;
use std::ffi::CString;
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{BufferFunctions, TF_OpKernelConstruction};
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::{Error, Result, ResultExt as _};

/// A node for which a kernel is created: its name and its attributes.
pub struct OpKernelConstruction<'a> {
    raw: NonNull<TF_OpKernelConstruction>,
    host: HostApi,
    status: Status,
    node: OnceCell<Vec<u8>>,
    call: PhantomData<&'a mut TF_OpKernelConstruction>,
}

impl OpKernelConstruction<'_> {
    /// # Safety
    /// `raw` is a construction of the host's, not ended while this exists.
    pub unsafe fn new(raw: *mut TF_OpKernelConstruction) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow made a kernel without a construction"))?;
        let status = Status::new()?;
        Ok(Self { raw, host, status, node: OnceCell::new(), call: PhantomData })
    }

    /// Returns the name of the node, such as `model/dense/MatMul`; [`op_name`](Self::op_name) is the op's.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        // SAFETY: a construction that has not ended, and with it the text.
        unsafe { text((self.host.kernels.TF_OpKernelConstruction_GetName)(self.raw.as_ptr())) }
    }

    /// Returns the name of the op, such as `MatMul`: one type can be the kernel of several ops.
    ///
    /// # Errors
    /// The host's, if it cannot serialise the node.
    pub fn op_name(&self) -> Result<String> {
        Ok(Node::decode(self.node()?)?.op().to_owned())
    }

    /// Returns whether the node has an attribute.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name with a NUL.
    pub fn has_attr(&self, name: &str) -> Result<bool> {
        let name = CString::new(name).map_err(Error::invalid_argument)?;
        // SAFETY: a construction that has not ended, and a C string.
        Ok(unsafe { ask!(self.host.kernels.TF_OpKernelConstruction_HasAttr(name.as_ptr())) })
    }

    /// Reads an attribute: an `i64`, `i32`, `f32`, `bool`, `String` or [`DType`](crate::DType), a `Vec` of one of
    /// these, a [`PartialShape`](crate::kernel::PartialShape), or a [`HostTensor`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, naming the attribute, if the node does not have it or it is of another type.
    pub fn attr<T: Attribute>(&self, name: &str) -> Result<T> {
        T::read(self, name).context(format_args!("attribute `{name}`"))
    }

    pub(crate) fn tensor<T: Element>(&self, name: &str) -> Result<HostTensor<T>> {
        let name = CString::new(name).map_err(Error::invalid_argument)?;
        let what = &"the tensor";
        let mut raw = ptr::null_mut();
        // SAFETY: a construction that has not ended, a C string, and a place for the result. The
        // tensor is then ours; attributes are in host memory and never change.
        unsafe {
            ask!(
                self.host
                    .kernels
                    .TF_OpKernelConstruction_GetAttrTensor(name.as_ptr(), &raw mut raw)
            );
            HostTensor::new(Tensor::adopt(raw, &self.host, what)?, what)
        }
    }

    /// Returns the node, a serialised `NodeDef`. It is cached: the host serialises it once.
    #[doc(hidden)]
    pub fn node(&self) -> Result<&[u8]> {
        if let Some(node) = self.node.get() {
            return Ok(node);
        }
        let buffers = BufferFunctions::get().map_err(Error::failed_precondition)?;
        // SAFETY: a construction that has not ended and a status. The buffer is then ours; its bytes are
        // copied before it is deleted.
        let node = unsafe {
            let get = self.host.kernels.TF_OpKernelConstruction_GetNodeDef;
            let buffer = get(self.raw.as_ptr(), self.status.as_ptr());
            let node = if buffer.is_null() {
                Err(Error::internal("TensorFlow passed no node"))
            } else {
                let content = (buffers.TF_GetBuffer)(buffer);
                let node = lent(content.data, content.length).map(<[u8]>::to_vec);
                (buffers.TF_DeleteBuffer)(buffer);
                node
            };
            self.status.check()?;
            node?
        };
        Ok(self.node.get_or_init(|| node))
    }
}

impl fmt::Debug for OpKernelConstruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelConstruction").field("name", &self.name()).finish_non_exhaustive()
    }
}

//! A node for which a kernel is made, and its attributes.

use super::element::Element;
use super::partial_shape::PartialShape;
use crate::abi::kernel::construction::Construction;
use crate::abi::kernel::host_tensor::HostTensor;
use crate::dtype::DType;
use crate::graph::Node;
use core::fmt;
use std::borrow::Cow;
use std::ffi::CString;
use tf_plugin_core::{Error, Result, ResultExt as _};

/// A node for which a kernel is made: its name and its attributes.
pub struct OpKernelConstruction<'a>(pub(crate) Construction<'a>);

impl OpKernelConstruction<'_> {
    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        self.0.name()
    }

    /// Whether the node has an attribute.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name with a NUL.
    pub fn has_attr(&self, name: &str) -> Result<bool> {
        self.0.has(&c_string(name)?)
    }

    /// Reads an attribute: an `i64`, `i32`, `f32`, `bool`, `String` or [`DType`], a `Vec` of one of
    /// these, a [`PartialShape`], or a [`HostTensor`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, naming the attribute, if the node does not have it or it is of another type.
    pub fn attr<T: Attribute>(&self, name: &str) -> Result<T> {
        match T::read(self, name) {
            Ok(value) => Ok(value),
            Err(error) => Err(error).context(format!("attribute `{name}`")),
        }
    }
}

impl fmt::Debug for OpKernelConstruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelConstruction").field("name", &self.name()).finish_non_exhaustive()
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(Error::invalid_argument)
}

/// A type of an attribute's value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an attribute type",
    note = "write `i64`, `i32`, `f32`, `bool`, `String`, `DType`, a `Vec` of one of these, `PartialShape` or \
            `HostTensor<f32>`"
)]
pub trait Attribute: read::Read {}

// One by one, and not for all of `Read`: the compiler shows them to who reads another type.
impl Attribute for i64 {}
impl Attribute for i32 {}
impl Attribute for f32 {}
impl Attribute for bool {}
impl Attribute for String {}
impl Attribute for DType {}
impl Attribute for Vec<i64> {}
impl Attribute for Vec<i32> {}
impl Attribute for Vec<f32> {}
impl Attribute for Vec<bool> {}
impl Attribute for Vec<String> {}
impl Attribute for Vec<DType> {}
impl Attribute for PartialShape {}
impl<T: Element> Attribute for HostTensor<T> {}

mod read {
    use super::*;

    /// What an attribute can be read as.
    pub trait Read: Sized {
        #[doc(hidden)]
        fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self>;
    }
}

use read::Read;

impl<T: crate::graph::Attribute> Read for T {
    fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self> {
        let node = Node::decode(construction.0.node()?)?;
        let value = node.raw_attr(name);
        T::decode(value.ok_or_else(|| Error::invalid_argument("the node does not have it"))?)
    }
}

impl<T: Element> Read for HostTensor<T> {
    fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self> {
        construction.0.tensor(&c_string(name)?)
    }
}

//! The types that attributes of a node can be read as.

use super::element::Element;
use super::partial_shape::PartialShape;
use crate::abi::construction::OpKernelConstruction;
use crate::abi::host_tensor::HostTensor;
use crate::dtype::DType;
use crate::node::Node;
use tf_plugin_core::{Error, Result};

/// A type of an attribute's value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an attribute type",
    note = "write `i64`, `i32`, `f32`, `bool`, `String`, `DType`, a `Vec` of one of these, `PartialShape` or \
            `HostTensor<f32>`"
)]
pub trait Attribute: read::Read {}

// One by one, and not for all of `Read`: for another type, the compiler lists these in its error.
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

    /// A type that an attribute can be read as.
    pub trait Read: Sized {
        #[doc(hidden)]
        fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self>;
    }
}

use read::Read;

impl<T: crate::node::Attribute> Read for T {
    fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self> {
        let node = Node::decode(construction.node()?)?;
        let value = node.raw_attr(name);
        T::decode(value.ok_or_else(|| Error::invalid_argument("the node does not have it"))?)
    }
}

impl<T: Element> Read for HostTensor<T> {
    fn read(construction: &OpKernelConstruction<'_>, name: &str) -> Result<Self> {
        construction.tensor(name)
    }
}

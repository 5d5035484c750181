//! A node for which a kernel is made, and its attributes.

use super::element::Element;
use super::partial_shape::PartialShape;
use super::tensor::HostTensor;
use crate::abi::kernel::construction::Construction;
use crate::dtype::DType;
use crate::wire::{Value, values};
use core::ffi::CStr;
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
        self.0.has(&CString::new(name).map_err(Error::invalid_argument)?)
    }

    /// Reads an attribute: an `i64`, `i32`, `f32`, `bool`, `String` or [`DType`], a `Vec` of one of
    /// these, a [`PartialShape`], or a [`HostTensor`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, naming the attribute, if the node does not have it or it is of another type.
    pub fn attr<T: Attribute>(&self, name: &str) -> Result<T> {
        let c_name = CString::new(name).map_err(Error::invalid_argument);
        let read = c_name.and_then(|name| T::read(self, &name));
        match read {
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

/// A type of an attribute's value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an attribute type",
    note = "write `i64`, `i32`, `f32`, `bool`, `String`, `DType`, a `Vec` of one of these, `PartialShape` or \
            `HostTensor<f32>`"
)]
pub trait Attribute: read::Read {}

// One by one, and not by the macro below: the compiler shows them to who reads another type.
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
        fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self>;
    }
}

use read::Read;

/// Types that an attribute is read as with a function, alone and in a list.
macro_rules! attributes {
    ($($value:ty: $one:ident, $list:ident, $of:expr;)*) => {$(
        impl Read for $value {
            fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
                construction.0.$one(name).and_then($of)
            }
        }
        impl Read for Vec<$value> {
            fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
                construction.0.$list(name)?.into_iter().map($of).collect()
            }
        }
    )*};
}

attributes! {
    i64: int64, int64_list, Ok;
    i32: int32, int32_list, Ok;
    f32: float, float_list, Ok;
    bool: boolean, boolean_list, |value| Ok(value != 0);
    DType: dtype, dtype_list, DType::known_or_error;
    String: string, string_list, |bytes| String::from_utf8(bytes).map_err(Error::invalid_argument);
}

impl<T: Element> Read for HostTensor<T> {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        construction.0.tensor(name, T::DTYPE).map(Self)
    }
}

/// The host's own function for this is among those that 2.19 to 2.21 lack, so it is read from the node.
impl Read for PartialShape {
    fn read(construction: &OpKernelConstruction<'_>, name: &CStr) -> Result<Self> {
        construction.0.with_node(|node| shape_of(node, name.to_bytes()))
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

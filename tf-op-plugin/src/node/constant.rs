//! Constant tensors: the attribute `value` of a `Const` node.

use super::attribute::{Attribute, private};
use crate::dtype::DType;
use crate::kernel::PartialShape;
use crate::wire::{Value, packed, put_bytes, put_message, put_varint, values};
use prost::encoding::WireType;
use tf_fs_sys::TF_DataType;
use tf_plugin_core::{Error, Result};

/// The field of `AttrValue` that holds a tensor.
const TENSOR: u32 = 8;
/// Fields of `TensorProto`.
const DTYPE: u32 = 1;
const SHAPE: u32 = 2;
const CONTENT: u32 = 4;
const FLOATS: u32 = 5;
const INTS: u32 = 7;
const LONGS: u32 = 10;
const BOOLS: u32 = 11;

/// The most elements of a constant that are read. The shapes, axes and factors that a pass looks at have few.
const MOST_ELEMENTS: usize = 4096;

/// A constant tensor of a graph: `node.attr::<Constant>("value")`. Those of int32, int64, float32 and bool can be read, and all written.
///
/// ```
/// use tf_op_plugin::DType;
/// use tf_op_plugin::node::{Constant, Node};
///
/// let mut axes = Node::new("axes", "Const");
/// axes.set_attr("dtype", DType::Int32).set_attr("value", Constant::of_ints(&[0, 1]));
/// assert_eq!(axes.attr::<Constant>("value")?.ints(), Some(vec![0, 1]));
/// # Ok::<(), tf_op_plugin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    dtype: DType,
    shape: Vec<i64>,
    /// The elements, as in memory.
    content: Vec<u8>,
}

impl Constant {
    /// Creates a constant of any type from its elements as they are in memory, little-endian. There are as many as the shape has.
    #[must_use]
    pub fn new(dtype: DType, shape: &[i64], content: &[u8]) -> Self {
        Self { dtype, shape: shape.to_vec(), content: content.to_vec() }
    }

    /// Creates a vector of int32.
    #[must_use]
    pub fn of_ints(elements: &[i32]) -> Self {
        let content: Vec<_> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        Self::new(DType::Int32, &[elements.len() as i64], &content)
    }

    /// Creates a scalar of float32.
    #[must_use]
    pub fn of_float(element: f32) -> Self {
        Self::new(DType::Float32, &[], &element.to_le_bytes())
    }

    /// Returns the size of each dimension.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the elements of a constant of int32 or int64.
    #[must_use]
    pub fn ints(&self) -> Option<Vec<i64>> {
        match self.dtype {
            DType::Int32 => {
                let (all, _) = self.content.as_chunks();
                Some(all.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect())
            }
            DType::Int64 => {
                let (all, _) = self.content.as_chunks();
                Some(all.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
            }
            _ => None,
        }
    }

    /// Returns the elements of a constant of float32.
    #[must_use]
    pub fn floats(&self) -> Option<Vec<f32>> {
        let (all, _) = self.content.as_chunks();
        let floats = || all.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        (self.dtype == DType::Float32).then(floats)
    }

    /// Returns the elements of a constant of bool.
    #[must_use]
    pub fn bools(&self) -> Option<Vec<bool>> {
        let bools = || self.content.iter().map(|&byte| byte != 0).collect();
        (self.dtype == DType::Bool).then(bools)
    }
}

#[cold]
fn wrong(what: &str) -> Error {
    Error::invalid_argument(format!("the value is not a valid tensor: {what}"))
}

impl private::Sealed for Constant {}

impl Attribute for Constant {
    fn decode(value: &[u8]) -> Result<Self> {
        let mut tensor = None;
        for field in values(value) {
            if let (TENSOR, Value::Bytes(message)) = field? {
                tensor = Some(message);
            }
        }
        let tensor = tensor.ok_or_else(|| wrong("it is an attribute of another kind"))?;
        let (mut dtype, mut shape, mut content) = (None, PartialShape::new([]), Vec::new());
        for field in values(tensor) {
            match field? {
                (DTYPE, Value::Varint(raw)) => {
                    dtype = TF_DataType::try_from(raw).ok().and_then(DType::from_raw);
                }
                (SHAPE, Value::Bytes(message)) => shape = PartialShape::of_proto(message)?,
                (CONTENT, Value::Bytes(bytes)) => content = bytes.to_vec(),
                (number, value) => put_elements(&mut content, number, value)?,
            }
        }
        let (Some(dtype), Some(shape)) = (dtype, shape.to_shape()) else {
            return Err(wrong("it has no type or no shape"));
        };
        let size = match dtype {
            DType::Int32 | DType::Float32 => 4,
            DType::Int64 => 8,
            DType::Bool => 1,
            other => return Err(wrong(&format!("a constant of {other:?} is not read"))),
        };
        let mut len = 1_usize;
        for &extent in &shape {
            let extent = usize::try_from(extent).map_err(|_| wrong("a negative size"))?;
            len = len.saturating_mul(extent);
        }
        if len > MOST_ELEMENTS {
            return Err(wrong(&format!("it has {len} elements and not at most {MOST_ELEMENTS}")));
        }
        // What is missing is as the last, or 0.
        let last = content.len().checked_sub(size).map(|first| content[first..].to_vec());
        let last = last.unwrap_or_else(|| vec![0; size]);
        while content.len() < len * size {
            content.extend_from_slice(&last);
        }
        if content.len() != len * size {
            return Err(wrong("it has more elements than its shape"));
        }
        Ok(Self { dtype, shape, content })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_message(out, TENSOR, |tensor| {
            put_varint(tensor, DTYPE, self.dtype.as_raw().into());
            let shape = PartialShape::new(self.shape.iter().copied().map(Some));
            put_bytes(tensor, SHAPE, &shape.to_proto());
            put_bytes(tensor, CONTENT, &self.content);
        });
    }
}

/// Appends the elements of a field, if it is one of the types that are read.
fn put_elements(content: &mut Vec<u8>, number: u32, value: Value<'_>) -> Result<()> {
    let wire = if number == FLOATS { WireType::ThirtyTwoBit } else { WireType::Varint };
    match value {
        Value::Bytes(list) if matches!(number, FLOATS | INTS | LONGS | BOOLS) => {
            packed(list, wire).try_for_each(|element| put_elements(content, number, element?))
        }
        Value::Fixed32(bytes) if number == FLOATS => {
            content.extend(bytes);
            Ok(())
        }
        Value::Varint(raw) if number == INTS => {
            content.extend((raw as i32).to_le_bytes());
            Ok(())
        }
        Value::Varint(raw) if number == BOOLS => {
            content.push(u8::from(raw != 0));
            Ok(())
        }
        Value::Varint(raw) if number == LONGS => {
            content.extend(raw.to_le_bytes());
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the bytes with those that TensorFlow's own Python writes.
    #[test]
    fn constants_are_read_in_each_form() {
        // tf.constant([0, 1, 2]): elements as in memory.
        let content =
            b"\x42\x16\x08\x03\x12\x04\x12\x02\x08\x03\x22\x0c\x00\0\0\0\x01\0\0\0\x02\0\0\0";
        let axes = Constant::decode(content).unwrap();
        assert_eq!((axes.ints(), axes.shape()), (Some(vec![0, 1, 2]), &[3][..]));
        assert_eq!(axes, Constant::of_ints(&[0, 1, 2]));
        let mut encoded = Vec::new();
        axes.encode(&mut encoded);
        assert_eq!(encoded, content);
        // tf.constant([3]) and tf.constant(1.5): elements as numbers.
        let one =
            Constant::decode(b"\x42\x0b\x08\x03\x12\x04\x12\x02\x08\x01\x3a\x01\x03").unwrap();
        assert_eq!(one.ints(), Some(vec![3]));
        let scalar = Constant::decode(b"\x42\x0a\x08\x01\x12\x00\x2a\x04\0\0\xc0\x3f").unwrap();
        assert_eq!(
            (scalar.floats(), scalar.ints(), scalar.shape().len()),
            (Some(vec![1.5]), None, 0)
        );
        assert_eq!(scalar, Constant::of_float(1.5));
        // tf.constant(True).
        let flag = Constant::decode(b"\x42\x07\x08\x0a\x12\x00\x5a\x01\x01").unwrap();
        assert_eq!((flag.bools(), flag.ints()), (Some(vec![true]), None));
        // One number for all, and none for zeros.
        let same =
            Constant::decode(b"\x42\x0b\x08\x09\x12\x04\x12\x02\x08\x03\x52\x01\x07").unwrap();
        assert_eq!(same.ints(), Some(vec![7; 3]));
        let zeros = Constant::decode(b"\x42\x08\x08\x01\x12\x04\x12\x02\x08\x02").unwrap();
        assert_eq!(zeros.floats(), Some(vec![0.0; 2]));
    }

    #[test]
    fn other_constants_are_errors() {
        for (bytes, expected) in [
            (&b"\x18\x01"[..], "another kind"),
            (b"\x42\x02\x12\x00", "no type"),
            (b"\x42\x04\x08\x13\x12\x00", "is not read"),
            (b"\x42\x0d\x08\x03\x12\x04\x12\x02\x08\x01\x3a\x03\x03\x04\x05", "more elements"),
            (b"\x42\x0c\x08\x03\x12\x08\x12\x06\x08\x80\x80\x80\x80\x10", "at most 4096"),
        ] {
            let error = Constant::decode(bytes).unwrap_err();
            assert!(error.message().contains(expected), "{error} / {expected}");
        }
    }
}

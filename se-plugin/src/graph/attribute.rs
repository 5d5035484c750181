//! The values of attributes.

use crate::kernel::{DType, PartialShape};
use crate::wire::{self, Value, put_bytes, put_message, put_varint, values};
use prost::encoding::{encode_varint, float};
use tf_fs_sys::TF_DataType;
use tf_plugin_core::{Error, Result};

/// The field of `AttrValue` that holds a list; the others have in a list the numbers that they have here.
const LIST: u32 = 1;

/// A type that an attribute can have: `i64`, `i32`, `f32`, `bool`, `String`, [`DType`], [`PartialShape`], and a `Vec`
/// of each.
///
/// Tensors, functions and placeholders are there as bytes: [`Node::raw_attr`](super::Node::raw_attr).
pub trait Attribute: Sized + private::Sealed {
    /// Reads a serialised `AttrValue`.
    #[doc(hidden)]
    fn decode(value: &[u8]) -> Result<Self>;
    /// Writes a serialised `AttrValue`.
    #[doc(hidden)]
    fn encode(&self, out: &mut Vec<u8>);
}

/// What an attribute can be, alone or in a list.
#[doc(hidden)]
pub trait Element: Sized {
    /// The field of `AttrValue` and of its list.
    const NUMBER: u32;
    /// For errors.
    const NAME: &'static str;
    /// Reads the value of a field.
    fn read(value: Value<'_>) -> Result<Self>;
    /// Appends the field.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads a packed list, for types that are packed.
    fn read_packed(_list: &[u8]) -> Option<Result<Vec<Self>>> {
        None
    }
    /// Appends the list.
    fn write_list(list: &[Self], out: &mut Vec<u8>) {
        for element in list {
            element.write(out);
        }
    }
}

mod private {
    pub trait Sealed {}
    impl<T: super::Element> Sealed for T {}
    impl<T: super::Element> Sealed for Vec<T> {}
}

#[cold]
fn wrong(expected: &str) -> Error {
    Error::invalid_argument(format!("the value is not a valid {expected}"))
}

#[cold]
fn other(expected: &str, found: u32) -> Error {
    let kinds = "unknown list string integer float boolean type shape tensor placeholder function";
    let found = kinds.split(' ').nth(found as usize).unwrap_or("unknown");
    wrong(&format!("{expected}, but of the kind {found}"))
}

/// The last of the fields of a `oneof`, which is the one that counts.
fn last(value: &[u8]) -> Result<Option<(u32, Value<'_>)>> {
    let mut found = None;
    for field in values(value) {
        let (number, value) = field?;
        if (LIST..=10).contains(&number) {
            found = Some((number, value));
        }
    }
    Ok(found)
}

impl<T: Element> Attribute for T {
    fn decode(value: &[u8]) -> Result<Self> {
        match last(value)? {
            Some((number, value)) if number == T::NUMBER => T::read(value),
            Some((number, _)) => Err(other(T::NAME, number)),
            None => Err(wrong(T::NAME)),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.write(out);
    }
}

impl<T: Element> Attribute for Vec<T> {
    fn decode(value: &[u8]) -> Result<Self> {
        let list = match last(value)? {
            Some((LIST, Value::Bytes(list))) => list,
            Some((number, _)) => return Err(other(&format!("list of {}", T::NAME), number)),
            None => return Err(wrong(&format!("list of {}", T::NAME))),
        };
        let mut elements = Vec::new();
        for field in values(list) {
            let (number, value) = field?;
            if number != T::NUMBER {
                return Err(other(&format!("list of {}", T::NAME), number));
            }
            let packed = match value {
                Value::Bytes(list) => T::read_packed(list),
                _ => None,
            };
            match packed {
                Some(list) => elements.extend(list?),
                None => elements.push(T::read(value)?),
            }
        }
        Ok(elements)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_message(out, LIST, |list| T::write_list(self, list));
    }
}

/// Types that are a varint, whose lists are packed.
macro_rules! varint {
    ($($type:ty = $number:literal, $name:literal, $to:expr, $from:expr;)*) => {$(
        impl Element for $type {
            const NUMBER: u32 = $number;
            const NAME: &'static str = $name;

            fn read(value: Value<'_>) -> Result<Self> {
                match value {
                    Value::Varint(value) => $from(value),
                    _ => Err(wrong(Self::NAME)),
                }
            }
            fn write(&self, out: &mut Vec<u8>) {
                put_varint(out, Self::NUMBER, $to(*self));
            }
            fn read_packed(list: &[u8]) -> Option<Result<Vec<Self>>> {
                Some(wire::packed(list).and_then(|list| list.into_iter().map($from).collect()))
            }
            fn write_list(list: &[Self], out: &mut Vec<u8>) {
                if list.is_empty() {
                    return;
                }
                put_message(out, Self::NUMBER, |out| {
                    list.iter().for_each(|element| encode_varint($to(*element), out));
                });
            }
        }
    )*};
}

varint! {
    i64 = 3, "integer", |value: i64| value as u64, |value: u64| Ok(value as i64);
    i32 = 3, "integer of 32 bits", |value: i32| value as u64, int32;
    bool = 5, "boolean", u64::from, |value: u64| Ok(value != 0);
    DType = 6, "type known to this SDK", |value: DType| value.as_raw().into(), dtype;
}

fn int32(raw: u64) -> Result<i32> {
    let value = raw as i64;
    i32::try_from(value).map_err(|_| wrong(&format!("{}: {value}", <i32 as Element>::NAME)))
}

fn dtype(raw: u64) -> Result<DType> {
    let dtype = TF_DataType::try_from(raw).ok().and_then(DType::from_raw);
    dtype.ok_or_else(|| wrong(&format!("{}: {raw}", <DType as Element>::NAME)))
}

impl Element for f32 {
    const NUMBER: u32 = 4;
    const NAME: &'static str = "float";

    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Fixed32(bytes) => Ok(Self::from_le_bytes(bytes)),
            _ => Err(wrong(Self::NAME)),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        float::encode(Self::NUMBER, self, out);
    }
    fn read_packed(list: &[u8]) -> Option<Result<Vec<Self>>> {
        let (floats, rest) = list.as_chunks();
        Some(match rest {
            [] => Ok(floats.iter().map(|&bytes| Self::from_le_bytes(bytes)).collect()),
            _ => Err(Error::data_loss("a malformed protocol buffer: a part of a float")),
        })
    }
    fn write_list(list: &[Self], out: &mut Vec<u8>) {
        float::encode_packed(Self::NUMBER, list, out);
    }
}

impl Element for String {
    const NUMBER: u32 = 2;
    const NAME: &'static str = "string of UTF-8";

    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Bytes(bytes) => Self::from_utf8(bytes.to_vec()).map_err(|_| wrong(Self::NAME)),
            _ => Err(wrong(Self::NAME)),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, Self::NUMBER, self.as_bytes());
    }
}

impl Element for PartialShape {
    const NUMBER: u32 = 7;
    const NAME: &'static str = "shape";

    fn read(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Bytes(shape) => Self::of_proto(shape),
            _ => Err(wrong(Self::NAME)),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        put_message(out, Self::NUMBER, |out| self.to_proto(out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    #[track_caller]
    fn round_trip<T: Attribute + PartialEq + Debug>(value: T, bytes: &[u8]) {
        let mut encoded = Vec::new();
        value.encode(&mut encoded);
        assert_eq!(encoded, bytes, "{value:?}");
        assert_eq!(T::decode(&encoded).unwrap(), value);
    }

    /// The bytes are those that TensorFlow's own Python writes.
    #[test]
    fn values_are_those_of_tensorflow() {
        round_trip(-1_i64, b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        round_trip(-1_i32, b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        round_trip(true, b"\x28\x01");
        round_trip(1.5_f32, b"\x25\x00\x00\xc0\x3f");
        round_trip(String::from("SAME"), b"\x12\x04SAME");
        round_trip(DType::Float32, b"\x30\x01");
        round_trip(vec![1_i64, 300], b"\x0a\x05\x1a\x03\x01\xac\x02");
        round_trip(vec![true, false], b"\x0a\x04\x2a\x02\x01\x00");
        round_trip(vec![1.5_f32], b"\x0a\x06\x22\x04\x00\x00\xc0\x3f");
        round_trip(Vec::<f32>::new(), b"\x0a\x00");
        round_trip(Vec::<i64>::new(), b"\x0a\x00");
        round_trip(vec![String::from("a"), String::new()], b"\x0a\x05\x12\x01a\x12\x00");
        round_trip(vec![DType::Float32, DType::Int64], b"\x0a\x04\x32\x02\x01\x09");
        round_trip(PartialShape::unknown(), b"\x3a\x02\x18\x01");
        round_trip(
            PartialShape::new([Some(2), None]),
            b"\x3a\x11\x12\x02\x08\x02\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        );
        round_trip(vec![PartialShape::new([])], b"\x0a\x02\x3a\x00");
    }

    #[test]
    fn empty_lists_are_empty() {
        assert_eq!(Vec::<i64>::decode(b"\x0a\x00").unwrap(), Vec::<i64>::new());
        assert_eq!(Vec::<String>::decode(b"\x0a\x00").unwrap(), [""; 0]);
    }

    #[test]
    fn lists_need_not_be_packed_and_the_last_value_counts() {
        assert_eq!(Vec::<i64>::decode(b"\x0a\x04\x18\x01\x18\x02").unwrap(), [1, 2]);
        assert_eq!(Vec::<f32>::decode(b"\x0a\x05\x25\x00\x00\xc0\x3f").unwrap(), [1.5]);
        assert!(bool::decode(b"\x18\x07\x28\x01").unwrap());
        assert_eq!(PartialShape::decode(b"\x3a\x02\x12\x00").unwrap().to_shape(), Some(vec![0]));
        assert_eq!(PartialShape::new([Some(2), None]).to_shape(), None);
    }

    #[test]
    fn other_types_are_errors() {
        for (error, expected) in [
            (i64::decode(b"\x28\x01").unwrap_err(), "not a valid integer, but of the kind boolean"),
            (i64::decode(b"").unwrap_err(), "not a valid integer"),
            (
                i32::decode(b"\x18\x80\x80\x80\x80\x08").unwrap_err(),
                "not a valid integer of 32 bits",
            ),
            (bool::decode(b"\x2a\x01x").unwrap_err(), "not a valid boolean"),
            (String::decode(b"\x12\x01\xff").unwrap_err(), "not a valid string of UTF-8"),
            (Vec::<i64>::decode(b"\x0a\x02\x28\x01").unwrap_err(), "not a valid list of integer"),
            (DType::decode(b"\x30\x7f").unwrap_err(), "not a valid type known to this SDK: 127"),
            (Vec::<i64>::decode(b"\x18\x01").unwrap_err(), "not a valid list of integer"),
            (Vec::<f32>::decode(b"\x0a\x05\x22\x03abc").unwrap_err(), "malformed"),
            (PartialShape::decode(b"\x3a\x02\x12\x05").unwrap_err(), "malformed"),
        ] {
            assert!(error.message().contains(expected), "{error} / {expected}");
        }
    }
}

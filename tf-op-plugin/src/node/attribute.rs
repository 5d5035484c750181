//! The values of attributes.

use crate::dtype::DType;
use crate::kernel::PartialShape;
use crate::wire::{Value, packed, put_message, put_sized, values};
use prost::encoding::{WireType, encode_key, encode_varint};
use tf_fs_sys::TF_DataType;
use tf_plugin_core::{Error, Result};

/// The field of `AttrValue` that holds a list. The other fields have the same numbers in a list.
const LIST: u32 = 1;

/// A type that an attribute can have: `i64`, `i32`, `f32`, `bool`, `String`, [`DType`], [`PartialShape`], a `Vec` of
/// each, and [`Constant`](super::Constant).
///
/// Functions, placeholders and other tensors are available as bytes: [`Node::raw_attr`](super::Node::raw_attr).
pub trait Attribute: Sized + private::Sealed {
    /// Reads a serialised `AttrValue`.
    #[doc(hidden)]
    fn decode(value: &[u8]) -> Result<Self>;
    /// Writes a serialised `AttrValue`.
    #[doc(hidden)]
    fn encode(&self, out: &mut Vec<u8>);
}

/// A type that an attribute can have, alone or in a list.
#[doc(hidden)]
pub trait Element: Sized {
    /// The field of `AttrValue` and of its list.
    const NUMBER: u32;
    /// The name in error texts.
    const NAME: &'static str;
    /// The wire type of the field. Lists of values that are not length-delimited are packed.
    const WIRE: WireType;
    /// Reads the value of the field.
    fn read(value: Value<'_>) -> Result<Self>;
    /// Appends the value, without the field's key.
    fn write(&self, out: &mut Vec<u8>);
}

pub(super) mod private {
    pub trait Sealed {}
    impl<T: super::Element> Sealed for T {}
    impl<T: super::Element> Sealed for Vec<T> {}
}

#[cold]
fn wrong(expected: &str) -> Error {
    Error::invalid_argument(format!("the value is not a valid {expected}"))
}

#[cold]
fn other(expected: &str, kind: u32) -> Error {
    let kinds = "unknown list string integer float boolean type shape tensor placeholder function";
    let kind = kinds.split(' ').nth(kind as usize).unwrap_or("unknown");
    wrong(&format!("{expected}, but of the kind {kind}"))
}

/// Returns the last of the fields of a `oneof`, which is the one that counts.
fn last(value: &[u8]) -> Result<Option<(u32, Value<'_>)>> {
    let mut last = None;
    for field in values(value) {
        let (number, value) = field?;
        if (LIST..=10).contains(&number) {
            last = Some((number, value));
        }
    }
    Ok(last)
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
        encode_key(T::NUMBER, T::WIRE, out);
        self.write(out);
    }
}

impl<T: Element> Attribute for Vec<T> {
    fn decode(value: &[u8]) -> Result<Self> {
        let name = || format!("list of {}", T::NAME);
        let list = match last(value)? {
            Some((LIST, Value::Bytes(list))) => list,
            Some((number, _)) => return Err(other(&name(), number)),
            None => return Err(wrong(&name())),
        };
        let mut elements = Vec::new();
        for field in values(list) {
            match field? {
                (number, _) if number != T::NUMBER => return Err(other(&name(), number)),
                (_, Value::Bytes(list)) if T::WIRE != WireType::LengthDelimited => {
                    for value in packed(list, T::WIRE) {
                        elements.push(T::read(value?)?);
                    }
                }
                (_, value) => elements.push(T::read(value)?),
            }
        }
        Ok(elements)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_message(out, LIST, |out| {
            if T::WIRE == WireType::LengthDelimited || self.is_empty() {
                return self.iter().for_each(|element| element.encode(out));
            }
            put_message(out, T::NUMBER, |out| self.iter().for_each(|element| element.write(out)));
        });
    }
}

/// Types by the field of `AttrValue`: its name in error texts, its kind of `Value` and its wire type, and how it is
/// read and written:
///
/// ```text
/// bool = 5, "boolean", Varint as Varint:
///     raw => Ok(raw != 0), |value, out| encode_varint(u64::from(*value), out);
/// ```
macro_rules! elements {
    ($(
        $type:ty = $number:literal, $name:literal, $kind:ident as $wire:ident:
            $raw:ident => $read:expr, |$value:ident, $out:ident| $write:expr;
    )*) => {$(
        impl Element for $type {
            const NUMBER: u32 = $number;
            const NAME: &'static str = $name;
            const WIRE: WireType = WireType::$wire;

            fn read(value: Value<'_>) -> Result<Self> {
                match value {
                    Value::$kind($raw) => $read,
                    _ => Err(wrong(Self::NAME)),
                }
            }
            fn write(&self, $out: &mut Vec<u8>) {
                let $value = self;
                $write
            }
        }
    )*};
}

elements! {
    String = 2, "string of UTF-8", Bytes as LengthDelimited:
        bytes => String::from_utf8(bytes.to_vec()).map_err(|_| wrong(Self::NAME)),
        |text, out| put_sized(out, text.as_bytes());
    i64 = 3, "integer", Varint as Varint:
        raw => Ok(raw as i64), |value, out| encode_varint(*value as u64, out);
    i32 = 3, "integer of 32 bits", Varint as Varint:
        raw => {
            let value = raw as i64;
            i32::try_from(value).map_err(|_| wrong(&format!("{}: {value}", Self::NAME)))
        },
        |value, out| encode_varint(*value as u64, out);
    f32 = 4, "float", Fixed32 as ThirtyTwoBit:
        bytes => Ok(f32::from_le_bytes(bytes)), |value, out| out.extend(value.to_le_bytes());
    bool = 5, "boolean", Varint as Varint:
        raw => Ok(raw != 0), |value, out| encode_varint(u64::from(*value), out);
    DType = 6, "type known to this SDK", Varint as Varint:
        raw => {
            let dtype = TF_DataType::try_from(raw).ok().and_then(DType::from_raw);
            dtype.ok_or_else(|| wrong(&format!("{}: {raw}", Self::NAME)))
        },
        |dtype, out| encode_varint(dtype.as_raw().into(), out);
    PartialShape = 7, "shape", Bytes as LengthDelimited:
        message => PartialShape::of_proto(message),
        |shape, out| put_sized(out, &shape.to_proto());
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

    /// Compares the bytes with those that TensorFlow's own Python writes.
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
        round_trip(Vec::<String>::new(), b"\x0a\x00");
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

//! Serialised protocol buffers, one field at a time: unknown fields keep their bytes.

use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};
use tf_plugin_core::{Error, Result};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Four bytes.
    Fixed32([u8; 4]),
    /// A string, bytes, a message or a packed list.
    Bytes(&'a [u8]),
    /// A value of a kind that is not read here.
    Other,
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The number.
    pub number: u32,
    /// The value.
    pub value: Value<'a>,
    /// All bytes of the field, including its key.
    pub raw: &'a [u8],
}

/// Returns the fields of a message, in their order. Ends after an error.
pub fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field<'_>>> {
    each(message, field)
}

/// Returns the numbers and values of the fields of a message.
pub fn values(message: &[u8]) -> impl Iterator<Item = Result<(u32, Value<'_>)>> {
    fields(message).map(|field| field.map(|field| (field.number, field.value)))
}

/// Returns the strings, bytes or messages in the fields with this number.
pub fn each_of(message: &[u8], number: u32) -> impl Iterator<Item = Result<&[u8]>> {
    values(message).filter_map(move |field| match field {
        Ok((found, Value::Bytes(bytes))) if found == number => Some(Ok(bytes)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// Returns the values of a packed list.
pub fn packed(list: &[u8], wire_type: WireType) -> impl Iterator<Item = Result<Value<'_>>> {
    each(list, move |rest| value(0, wire_type, rest))
}

/// Returns the values that `read` returns, until the end or the first error.
fn each<'a, T>(
    mut rest: &'a [u8],
    mut read: impl FnMut(&mut &'a [u8]) -> Result<T>,
) -> impl Iterator<Item = Result<T>> {
    std::iter::from_fn(move || {
        let one = (!rest.is_empty()).then(|| read(&mut rest));
        if let Some(Err(_)) = one {
            rest = &[];
        }
        one
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<Field<'a>> {
    let all = *rest;
    let (number, wire_type) = decode_key(rest).map_err(malformed)?;
    let value = value(number, wire_type, rest)?;
    Ok(Field { number, value, raw: &all[..all.len() - rest.len()] })
}

fn value<'a>(number: u32, wire_type: WireType, rest: &mut &'a [u8]) -> Result<Value<'a>> {
    match wire_type {
        WireType::Varint => Ok(Value::Varint(decode_varint(rest).map_err(malformed)?)),
        WireType::LengthDelimited => {
            let len = decode_varint(rest).map_err(malformed)?;
            let (bytes, after) = usize::try_from(len)
                .ok()
                .and_then(|len| rest.split_at_checked(len))
                .ok_or_else(|| truncated(len, rest.len()))?;
            *rest = after;
            Ok(Value::Bytes(bytes))
        }
        WireType::ThirtyTwoBit => {
            let (bytes, after) =
                rest.split_first_chunk().ok_or_else(|| truncated(4, rest.len()))?;
            *rest = after;
            Ok(Value::Fixed32(*bytes))
        }
        other => {
            skip_field(other, number, rest, DecodeContext::default()).map_err(malformed)?;
            Ok(Value::Other)
        }
    }
}

#[cold]
fn malformed(error: DecodeError) -> Error {
    Error::data_loss("a malformed protocol buffer").with_source(error)
}

#[cold]
fn truncated(needed: u64, found: usize) -> Error {
    Error::data_loss(format!(
        "a malformed protocol buffer: a value has {needed} bytes, of which {found} are there"
    ))
}

/// Returns the text of a field.
pub fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        Error::data_loss("a malformed protocol buffer: a string is not UTF-8").with_source(error)
    })
}

/// Appends a string, bytes or a message.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    put_sized(out, bytes);
}

/// Appends what [`put_bytes`] does, without the key of the field.
pub fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends what [`put_bytes`] does, or nothing without bytes: a reader takes a missing field as empty.
pub fn put_bytes_if_any(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_bytes(out, number, bytes);
    }
}

/// Appends a message that `write` writes.
pub fn put_message(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    write(&mut message);
    put_bytes(out, number, &message);
}

/// Appends an integer, a boolean or an enum.
pub fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_with_their_bytes() {
        let mut message = Vec::new();
        put_varint(&mut message, 1, 300);
        put_bytes(&mut message, 2, b"abc");
        prost::encoding::float::encode(3, &1.5, &mut message);
        prost::encoding::double::encode(1000, &2.5, &mut message);
        // A group, which only ancient messages have.
        message.extend_from_slice(&[0x2b, 0x08, 0x01, 0x2c]);
        let read: Vec<Field<'_>> = fields(&message).collect::<Result<_>>().unwrap();
        let values: Vec<_> = read.iter().map(|field| (field.number, field.value)).collect();
        let expected = [
            (1, Value::Varint(300)),
            (2, Value::Bytes(b"abc")),
            (3, Value::Fixed32(1.5_f32.to_le_bytes())),
            (1000, Value::Other),
            (5, Value::Other),
        ];
        assert_eq!(values, expected);
        assert_eq!(read.iter().flat_map(|field| field.raw).copied().collect::<Vec<_>>(), message);
    }

    #[test]
    fn garbage_is_an_error() {
        for garbage in [
            &[0xff_u8; 20][..],  // no end of a number
            &[0x0a, 0x05, b'a'], // shorter than it says
            &[0x0d, 1, 2],       // 4 bytes of which 2 are there
            &[0x00],             // no field 0
            &[0x0f],             // no such kind
            &[0x0c],             // the end of a group that has not begun
            &[0x0b, 0x08, 0x01], // a group without an end
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], // longer than memory
        ] {
            let result: Result<Vec<_>> = fields(garbage).collect();
            let error = result.expect_err("garbage");
            assert_eq!(
                fields(garbage).take(9).count(),
                1,
                "{garbage:?}: nothing follows the error"
            );
            assert_eq!(error.code(), tf_plugin_core::Code::DataLoss, "{garbage:?}: {error}");
        }
    }
}

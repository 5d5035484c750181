//! Shapes that are known in part.

use crate::wire::{Value, put_message, put_varint, values};
use tf_plugin_core::Result;

/// A shape whose number of dimensions, or some dimensions of which, may be unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialShape(Option<Vec<Option<i64>>>);

impl PartialShape {
    /// Creates a shape with these dimensions, `None` for each that is unknown.
    #[must_use]
    pub fn new(dims: impl IntoIterator<Item = Option<i64>>) -> Self {
        Self(Some(dims.into_iter().collect()))
    }

    /// Creates a shape whose number of dimensions is unknown.
    #[must_use]
    pub const fn unknown() -> Self {
        Self(None)
    }

    /// Returns the dimensions, each of which may be unknown, or `None` if their number is unknown.
    #[must_use]
    pub fn dims(&self) -> Option<&[Option<i64>]> {
        self.0.as_deref()
    }

    /// Returns the shape, if all of it is known.
    #[must_use]
    pub fn to_shape(&self) -> Option<Vec<i64>> {
        self.0.as_ref()?.iter().copied().collect()
    }

    /// Returns the serialised `TensorShapeProto`.
    #[doc(hidden)]
    #[must_use]
    pub fn to_proto(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            None => put_varint(&mut out, 3, 1),
            Some(dims) => dims.iter().for_each(|dim| {
                let dim = dim.unwrap_or(-1).cast_unsigned();
                put_message(&mut out, 2, |out| put_varint(out, 1, dim));
            }),
        }
        out
    }

    /// Reads a `TensorShapeProto`.
    #[doc(hidden)]
    pub fn of_proto(message: &[u8]) -> Result<Self> {
        let mut dims = Vec::new();
        for field in values(message) {
            match field? {
                (2, Value::Bytes(dim)) => {
                    let mut size = 0;
                    for field in values(dim) {
                        if let (1, Value::Varint(value)) = field? {
                            size = value.cast_signed();
                        }
                    }
                    dims.push((size >= 0).then_some(size));
                }
                (3, Value::Varint(1..)) => return Ok(Self(None)),
                _ => {}
            }
        }
        Ok(Self(Some(dims)))
    }
}

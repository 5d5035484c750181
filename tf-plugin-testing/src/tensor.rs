//! Tensors as values of tests.

use tf_fs_sys::{TF_DataType, TF_INT64, TF_STRING};

/// The elements of a tensor, in host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Elements of a fixed size, one after the other.
    Bytes(Vec<u8>),
    /// Strings.
    Strings(Vec<Vec<u8>>),
}

/// A tensor in host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The type of its elements: a constant of `tf_datatype.h`.
    pub data_type: TF_DataType,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// Its elements.
    pub content: Content,
}

impl Tensor {
    /// Creates a tensor of one string.
    pub fn string(text: impl AsRef<[u8]>) -> Self {
        let content = Content::Strings(vec![text.as_ref().to_vec()]);
        Self { data_type: TF_STRING, shape: Vec::new(), content }
    }

    /// Creates a vector of strings.
    pub fn strings(texts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let all: Vec<_> = texts.into_iter().map(|text| text.as_ref().to_vec()).collect();
        let shape = vec![all.len() as i64];
        Self { data_type: TF_STRING, shape, content: Content::Strings(all) }
    }

    /// Creates a tensor of elements of a fixed size.
    pub fn bytes(data_type: TF_DataType, shape: &[i64], content: Vec<u8>) -> Self {
        Self { data_type, shape: shape.to_vec(), content: Content::Bytes(content) }
    }

    /// Creates a tensor of one number.
    pub fn int64(value: i64) -> Self {
        Self::bytes(TF_INT64, &[], value.to_ne_bytes().to_vec())
    }
}

//! Tensors of Rust values.

use super::abi::elements;
use crate::tensor::{Content, Tensor};
use tf_fs_sys::TF_STRING;
use tf_op_plugin::{DType, Element, Error, Result, ensure};

/// A Rust type that [`Tensor`]s are made of, alone, in an array or in a `Vec`: a number, a `bool`, or a string, which may be any
/// bytes.
///
/// ```
/// use tf_plugin_testing::ops::Tensor;
///
/// let scalar = Tensor::from(1.5_f32);
/// let vector = Tensor::from(["a", "b"]);
/// let matrix = Tensor::from([[1_i64, 2], [3, 4]]);
/// let bytes = Tensor::from([b"\xff"]);
/// assert_eq!((scalar.shape, vector.shape, matrix.shape, bytes.shape), (vec![], vec![2], vec![2, 2], vec![1]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of a tensor",
    note = "write a number, a `bool`, `&str`, `String` or `&[u8]`, or an array or a `Vec` of these; \
            `Tensor::numbers` and `Tensor::texts` take a shape"
)]
pub trait Value: Sized {
    #[doc(hidden)]
    fn tensor(shape: Vec<i64>, values: Vec<Self>) -> Tensor;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn tensor(shape: Vec<i64>, values: Vec<Self>) -> Tensor {
                of_elements(shape, &values)
            }
        }
    )*};
}
numbers!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool);

macro_rules! strings {
    ($([$(const $length:ident)?] $type:ty;)*) => {$(
        impl$(<const $length: usize>)? Value for $type {
            fn tensor(shape: Vec<i64>, values: Vec<Self>) -> Tensor {
                let strings = values.iter().map(|value| AsRef::<[u8]>::as_ref(value).to_vec()).collect();
                Tensor { data_type: TF_STRING, shape, content: Content::Strings(strings) }
            }
        }
    )*};
}
strings! {
    [] &str;
    [] String;
    [] &String;
    [] &[u8];
    [const N] &[u8; N];
}

fn of_elements<T: Element>(shape: Vec<i64>, values: &[T]) -> Tensor {
    let content = Content::Bytes(elements::to_bytes(values));
    Tensor { data_type: T::DTYPE.as_raw(), shape, content }
}

impl<T: Value> From<T> for Tensor {
    fn from(value: T) -> Self {
        T::tensor(Vec::new(), vec![value])
    }
}

impl<T: Value> From<Vec<T>> for Tensor {
    fn from(values: Vec<T>) -> Self {
        T::tensor(vec![values.len() as i64], values)
    }
}

impl<T: Value, const N: usize> From<[T; N]> for Tensor {
    fn from(values: [T; N]) -> Self {
        Self::from(Vec::from(values))
    }
}

impl<T: Value, const N: usize, const M: usize> From<[[T; M]; N]> for Tensor {
    fn from(rows: [[T; M]; N]) -> Self {
        T::tensor(vec![N as i64, M as i64], rows.into_iter().flatten().collect())
    }
}

impl Tensor {
    /// Creates a tensor of numbers or booleans: also of 16-bit floats and complex numbers, if `tf-op-plugin` has them.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn numbers<T: Element>(
        shape: impl AsRef<[i64]>,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self> {
        let values: Vec<T> = values.into_iter().collect();
        check_len(shape.as_ref(), values.len())?;
        Ok(of_elements(shape.as_ref().to_vec(), &values))
    }

    /// Creates a tensor of strings of any bytes.
    ///
    /// # Errors
    /// `INTERNAL` if the shape has another number of elements.
    pub fn texts<S: AsRef<[u8]>>(
        shape: impl AsRef<[i64]>,
        texts: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let tensor = Self::strings(texts);
        let Content::Strings(strings) = &tensor.content else { return Ok(tensor) };
        check_len(shape.as_ref(), strings.len())?;
        Ok(Self { shape: shape.as_ref().to_vec(), ..tensor })
    }

    /// Returns the type of the elements, if the SDK knows it.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        DType::from_raw(self.data_type)
    }

    /// Returns the elements, row by row.
    ///
    /// # Errors
    /// `INTERNAL` if they are of another type.
    pub fn to_numbers<T: Element>(&self) -> Result<Vec<T>> {
        match &self.content {
            Content::Bytes(bytes) if self.data_type == T::DTYPE.as_raw() => {
                elements::from_bytes(bytes)
            }
            _ => Err(other_type(self, T::DTYPE)),
        }
    }

    /// Returns the strings, row by row, as bytes.
    ///
    /// # Errors
    /// `INTERNAL` if the elements are not strings.
    pub fn to_byte_strings(&self) -> Result<Vec<Vec<u8>>> {
        match &self.content {
            Content::Strings(strings) => Ok(strings.clone()),
            Content::Bytes(_) => Err(other_type(self, DType::String)),
        }
    }

    /// Returns the strings, row by row.
    ///
    /// # Errors
    /// `INTERNAL` if the elements are not strings, or a string is not UTF-8.
    pub fn to_texts(&self) -> Result<Vec<String>> {
        let strings = self.to_byte_strings()?.into_iter().enumerate();
        let text = |(index, string): (usize, Vec<u8>)| {
            String::from_utf8(string).map_err(|error| {
                Error::internal(format!("string {index} is not UTF-8, but {:?}", error.as_bytes()))
            })
        };
        strings.map(text).collect()
    }
}

fn check_len(shape: &[i64], len: usize) -> Result<()> {
    let wanted = shape.iter().try_fold(1_i64, |product, dim| product.checked_mul(*dim));
    ensure!(
        wanted == i64::try_from(len).ok() && shape.iter().all(|dim| *dim >= 0),
        Error::internal(format!("{len} elements do not have the shape {shape:?}"))
    );
    Ok(())
}

#[cold]
fn other_type(tensor: &Tensor, wanted: DType) -> Error {
    let found = tensor.dtype().map_or_else(|| tensor.data_type.to_string(), |one| one.to_string());
    Error::internal(format!("the tensor is of {found}, not of {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back() {
        let tensor = Tensor::from([[1.5_f32, 2.0], [3.0, f32::MAX]]);
        assert_eq!(tensor.shape, [2, 2]);
        assert_eq!(tensor.to_numbers::<f32>().unwrap(), [1.5, 2.0, 3.0, f32::MAX]);
        let error = tensor.to_numbers::<f64>().unwrap_err();
        assert_eq!(error.message(), "the tensor is of float32, not of float64");
        assert_eq!(Tensor::from(vec![true, false]).to_numbers::<bool>().unwrap(), [true, false]);
        assert!(Tensor::bytes(DType::Bool.as_raw(), &[1], vec![2]).to_numbers::<bool>().is_err());
        let strings = Tensor::from([&b"a\0"[..], b"\xff"]);
        assert_eq!(strings.to_byte_strings().unwrap(), [&b"a\0"[..], b"\xff"]);
        assert!(strings.to_texts().unwrap_err().message().contains("string 1 is not UTF-8"));
        assert!(Tensor::numbers([2, 2], [1_i64]).is_err());
        assert_eq!(Tensor::texts([1, 2], ["a", "b"]).unwrap().shape, [1, 2]);
    }
}

//! The outputs of an op.

use crate::tensor::Tensor;
use tf_op_plugin::{Element, Error, Result, ResultExt as _};

/// The outputs of an op, counted in tensors: a ragged output has two, and a list as many as it is long.
#[derive(Clone, Debug)]
pub struct Outputs {
    pub(super) names: Vec<String>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) reused: Vec<Option<usize>>,
}

impl Outputs {
    /// Returns the number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Returns whether there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Returns the names in the definition; those of a list have an index.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns a tensor.
    ///
    /// # Errors
    /// `INTERNAL` if there are not so many.
    pub fn tensor(&self, index: usize) -> Result<&Tensor> {
        self.tensors.get(index).ok_or_else(|| {
            Error::internal(format!("there is no output {index}: the op has {:?}", self.names))
        })
    }

    /// Returns the shape of a tensor.
    ///
    /// # Errors
    /// `INTERNAL` if there are not so many.
    pub fn shape(&self, index: usize) -> Result<&[i64]> {
        Ok(&self.tensor(index)?.shape)
    }

    /// Returns numbers or booleans, row by row.
    ///
    /// # Errors
    /// `INTERNAL` if there is no such tensor, or it is of another type.
    pub fn numbers<T: Element>(&self, index: usize) -> Result<Vec<T>> {
        self.tensor(index)?.to_numbers().context(self.named(index))
    }

    /// Returns strings, row by row.
    ///
    /// # Errors
    /// `INTERNAL` if there is no such tensor, it is of another type, or a string is not UTF-8.
    pub fn strings(&self, index: usize) -> Result<Vec<String>> {
        self.tensor(index)?.to_texts().context(self.named(index))
    }

    /// Returns strings of any bytes, row by row.
    ///
    /// # Errors
    /// `INTERNAL` if there is no such tensor, or it is of another type.
    pub fn byte_strings(&self, index: usize) -> Result<Vec<Vec<u8>>> {
        self.tensor(index)?.to_byte_strings().context(self.named(index))
    }

    /// Returns the input whose memory a tensor is in, counted in tensors, when nothing else used that input: so it is with
    /// `context.reuse`, and with an input that is returned as it is.
    #[must_use]
    pub fn reused_input(&self, index: usize) -> Option<usize> {
        self.reused.get(index).copied().flatten()
    }

    fn named(&self, index: usize) -> String {
        format!("output `{}`", self.names[index])
    }
}

//! Inputs in host memory.

use super::context::OpKernelContext;
use crate::platform::Platform;
use tf_op_plugin::__private::abi::Argument;
use tf_op_plugin::DType;
use tf_op_plugin::kernel::{Element, HostTensor};
use tf_plugin_core::{Error, Result};

impl<P: Platform> OpKernelContext<'_, P> {
    /// Returns an input in host memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such input, it is in device memory, or it has another type.
    pub fn host_input<T: Element>(&self, index: usize) -> Result<HostTensor<T>> {
        let tensor = self.input_in(index, true)?;
        // SAFETY: in host memory; TensorFlow writes to no tensor that has another user.
        unsafe { HostTensor::new(tensor, &Argument("input", index)) }
    }

    /// Returns the only element of an input in host memory.
    ///
    /// # Errors
    /// As for [`host_input`](Self::host_input), and `INVALID_ARGUMENT` if there is not exactly one element.
    pub fn host_scalar<T: Element>(&self, index: usize) -> Result<T> {
        let tensor = self.host_input::<T>(index)?;
        match tensor.as_slice() {
            [only] => Ok(*only),
            _ => Err(Error::invalid_argument(format!(
                "input {index} has the shape {:?} and should have one element",
                tensor.shape()
            ))),
        }
    }

    /// Returns the elements of an int32 or int64 input in host memory.
    ///
    /// # Errors
    /// As for [`host_input`](Self::host_input).
    pub fn host_integers(&self, index: usize) -> Result<Vec<i64>> {
        match self.input_dtype(index)? {
            DType::Int32 => {
                let tensor = self.host_input::<i32>(index)?;
                Ok(tensor.as_slice().iter().map(|&element| element.into()).collect())
            }
            _ => Ok(self.host_input::<i64>(index)?.as_slice().to_vec()),
        }
    }
}

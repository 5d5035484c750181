//! One run of a kernel.

use super::element::Element;
use super::tensor::DeviceTensor;
use super::variables::Variables;
use crate::abi::kernel::host_tensor::{HostTensor, HostTensorMut};
use crate::abi::kernel::run::Run;
use crate::device::Device;
use crate::dtype::DType;
use crate::platform::Platform;
use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::ffi::CString;
use tf_plugin_core::{Error, Result, ensure};

/// One run of a kernel: its inputs, its outputs and the stream that its work belongs into.
///
/// A kernel checks its inputs, makes its outputs, enqueues its work into [`stream`](Self::stream) and
/// returns, without waiting. What is in host memory is read and written before it returns.
///
/// Every output is to be made, by [`output`](Self::output) or one of its like: TensorFlow would take one
/// that is not for an empty tensor, so the SDK makes an error of it.
pub struct OpKernelContext<'a, P: Platform> {
    run: Run<'a, P::Device>,
    /// Which outputs were made.
    made: RefCell<SmallVec<[bool; 16]>>,
}

impl<'a, P: Platform> OpKernelContext<'a, P> {
    pub(crate) fn new(run: Run<'a, P::Device>) -> Self {
        let made = RefCell::new(smallvec![false; run.outputs()]);
        Self { run, made }
    }

    /// The stream into which the kernel's work belongs.
    #[must_use]
    pub fn stream(&self) -> &<P::Device as Device>::Stream {
        self.run.stream()
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &P::Device {
        self.run.device()
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        self.run.name()
    }

    /// The number of inputs.
    #[must_use]
    pub fn input_count(&self) -> usize {
        self.run.inputs()
    }

    /// The number of outputs.
    #[must_use]
    pub fn output_count(&self) -> usize {
        self.run.outputs()
    }

    /// The type of an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input, `UNIMPLEMENTED` for a type that this SDK does not know.
    pub fn input_dtype(&self, index: usize) -> Result<DType> {
        self.run.input_dtype(index)
    }

    /// The type that an output is to have.
    ///
    /// # Errors
    /// As for [`input_dtype`](Self::input_dtype).
    pub fn output_dtype(&self, index: usize) -> Result<DType> {
        self.run.output_dtype(index)
    }

    /// Whether an input is in host memory: what `host_memory` of [`#[kernel]`](macro@crate::kernel) says.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input.
    pub fn input_is_on_host(&self, index: usize) -> Result<bool> {
        self.run.input_is_on_host(index)
    }

    /// The indices of the inputs that have a name: several for a list.
    ///
    /// # Errors
    /// If the operation has no input of that name.
    pub fn input_range(&self, name: &str) -> Result<Range<usize>> {
        self.run.input_range(&CString::new(name).map_err(Error::invalid_argument)?)
    }

    /// An input in device memory.
    ///
    /// It is no longer possible then to [forward](Self::forward_or_output) the input, as long as the value
    /// exists.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input, or if it is in host memory; `RESOURCE_EXHAUSTED` if there
    /// was no memory left for it.
    pub fn input(&self, index: usize) -> Result<DeviceTensor> {
        DeviceTensor::new(self.run.input(index)?)
    }

    /// An input in host memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input, if it is in device memory, or if it has another type.
    pub fn host_input<T: Element>(&self, index: usize) -> Result<HostTensor<T>> {
        self.run.host_input(index)
    }

    /// The only element of an input in host memory.
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

    /// The elements of an input in host memory that is of int32 or int64.
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

    /// Creates an output that does not exist yet.
    fn make<T>(&self, index: usize, make: impl FnOnce() -> Result<T>) -> Result<T> {
        ensure!(
            self.made.borrow().get(index) != Some(&true),
            Error::internal(format!("output {index} was made already"))
        );
        let output = make()?;
        // `make` has checked that there is such an output.
        self.made.borrow_mut()[index] = true;
        Ok(output)
    }

    /// Creates an output in device memory, with memory that holds anything.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory left; `INVALID_ARGUMENT` for an impossible shape, without
    /// such an output, or if it is in host memory; `INTERNAL` if it was made already.
    pub fn output(&self, index: usize, shape: &[i64]) -> Result<DeviceTensor> {
        DeviceTensor::new(self.make(index, || self.run.output(index, shape))?)
    }

    /// Creates an output of the memory of the first candidate among the inputs that nothing else uses, or of
    /// new memory. Answers the output, and the input whose memory it has.
    ///
    /// The kernel's own values count as users: request the candidates with [`input`](Self::input)
    /// afterwards.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub fn forward_or_output(
        &self,
        candidates: &[usize],
        index: usize,
        shape: &[i64],
    ) -> Result<(DeviceTensor, Option<usize>)> {
        let make = || self.run.forward_or_output(candidates, index, shape);
        let (tensor, forwarded) = self.make(index, make)?;
        Ok((DeviceTensor::new(tensor)?, forwarded))
    }

    /// Sets a tensor as an output: an input that is passed on, or a [temporary](Self::temporary) one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an output, if it is in host memory or has another type; `INTERNAL` if
    /// it was made already.
    pub fn set_output(&self, index: usize, tensor: &DeviceTensor) -> Result<()> {
        self.make(index, || self.run.set_output(index, tensor.tensor()))
    }

    /// Creates an output in host memory.
    ///
    /// # Errors
    /// As for [`output`](Self::output), but it is `INVALID_ARGUMENT` if the output is in device memory; also
    /// if it has another type.
    pub fn host_output<T: Element>(
        &self,
        index: usize,
        shape: &[i64],
    ) -> Result<HostTensorMut<'_, T>> {
        self.make(index, || self.run.host_output(index, shape))
    }

    /// Creates a tensor in device memory that is not an output, with memory that holds anything.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory left, `INVALID_ARGUMENT` for an impossible shape or a type
    /// that is not plain bytes.
    pub fn temporary(&self, dtype: DType, shape: &[i64]) -> Result<DeviceTensor> {
        DeviceTensor::new(self.run.temporary(dtype, shape)?)
    }

    /// Locks the variables whose handles are the given inputs, for reading and changing in place, until the
    /// answer is dropped: after the work is enqueued.
    ///
    /// Only for kernels that are registered with `variables`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if TensorFlow does not export what this needs (2.19 to 2.21); `FAILED_PRECONDITION`
    /// for a variable without a value; those of a missing variable.
    pub fn variables(&self, inputs: &[usize]) -> Result<Variables<'_>> {
        Variables::new(self.run.lock_variables(inputs)?)
    }

    /// Adds the inputs, which are variants such as TensorLists, to output 0: `AddN` of variants. TensorFlow takes them
    /// apart, and `add` enqueues each sum of two tensors in them to a third. All three have one type and one shape. Tensors
    /// that only one variant has are shared, without a call of `add`. It must fail for types that it does not support.
    ///
    /// Of several variants each sum has memory of its own until this returns: of three lists of tensors that is as much as
    /// two lists.
    ///
    /// Only for kernels that are registered with `variants`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if TensorFlow does not export what this needs (2.19 to 2.21), or for tensors whose elements are not
    /// plain bytes, such as variants; `INVALID_ARGUMENT` if an input is not a variant in device memory, or two tensors differ in
    /// type or shape; `INTERNAL` if output 0 was made already; those of TensorFlow, such as for lists of different lengths, and
    /// those of `add`.
    pub fn add_variants(
        &self,
        mut add: impl FnMut(&DeviceTensor, &DeviceTensor, &DeviceTensor) -> Result<()>,
    ) -> Result<()> {
        for tensors in self.make(0, || self.run.add_variants())? {
            let [a, b, sum] = tensors.map(DeviceTensor::new);
            let (a, b, sum) = (a?, b?, sum?);
            for other in [&b, &sum] {
                ensure!(
                    a.dtype() == other.dtype() && a.shape() == other.shape(),
                    Error::invalid_argument(format!(
                        "tensors in variants must have the same type, size and shape to be added: {} {:?} != {} {:?}",
                        a.dtype(),
                        a.shape(),
                        other.dtype(),
                        other.shape()
                    ))
                );
            }
            add(&a, &b, &sum)?;
        }
        Ok(())
    }

    /// Makes output 0 a variant like input 0, such as a TensorList, with zeros in it: `ZerosLike` of a variant. TensorFlow
    /// takes it apart, and `fill` enqueues zeros to the second tensor, which has the first's type and shape. An error of
    /// TensorFlow's, for an input that is not a scalar, is the op's, and this returns `Ok`.
    ///
    /// Only for kernels that are registered with `variants`.
    ///
    /// # Errors
    /// As for [`add_variants`](Self::add_variants).
    pub fn zeros_like_variant(
        &self,
        mut fill: impl FnMut(&DeviceTensor, &DeviceTensor) -> Result<()>,
    ) -> Result<()> {
        for tensors in self.make(0, || self.run.variant_like())? {
            let [like, zeros] = tensors.map(DeviceTensor::new);
            fill(&like?, &zeros?)?;
        }
        Ok(())
    }

    /// All outputs must be there in the end.
    pub(crate) fn check_outputs(&self) -> Result<()> {
        let made = self.made.borrow();
        match made.iter().position(|made| !made) {
            None => Ok(()),
            Some(index) => Err(Error::internal(format!(
                "the kernel made no output {index} of {}; call `output`, or one of its like, for each",
                made.len()
            ))),
        }
    }
}

impl<P: Platform> fmt::Debug for OpKernelContext<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelContext").field("name", &self.name()).finish_non_exhaustive()
    }
}

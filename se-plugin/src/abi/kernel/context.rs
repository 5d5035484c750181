//! One run of a kernel.

use super::status::{self, HostApi, Status, text};
use super::tensor::{Argument, DeviceTensor, HostTensor, HostTensorMut, Tensor, elements_of};
use super::variables::Variables;
use crate::abi::state::{StreamState, weak};
use crate::abi::work::Running;
use crate::device::Device;
use crate::kernel::{DType, Element};
use crate::platform::Platform;
use crate::stream::Stream as _;
use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::{self, NonNull};
use std::borrow::Cow;
use std::ffi::CString;
use std::sync::OnceLock;
use tf_fs_sys::{
    SP_Stream, TF_InputRange_Args, TF_InputRange_Args_STRUCT_SIZE, TF_OpKernelContext,
};
use tf_plugin_core::{Code, Error, Result, ensure};

/// One run of a kernel: its inputs, its outputs and the stream that its work belongs into.
///
/// A kernel checks its inputs, makes its outputs, enqueues its work into [`stream`](Self::stream) and
/// returns, without waiting. What is in host memory is read and written before it returns.
///
/// Every output is to be made, by [`output`](Self::output) or one of its like: TensorFlow would take one
/// that is not for an empty tensor, so the SDK makes an error of it.
pub struct OpKernelContext<'a, P: Platform> {
    pub(super) raw: NonNull<TF_OpKernelContext>,
    pub(super) host: HostApi,
    pub(super) status: Status,
    stream: &'a StreamState<P::Device>,
    node: Node,
    /// The author's in it.
    author: &'a <P::Device as Device>::Stream,
    outputs: Outputs,
    _running: Running<'a, StreamState<P::Device>>,
    call: PhantomData<&'a ()>,
}

/// What is the same in all runs of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    inputs: usize,
    outputs: usize,
    /// Whether each of the first 64 is in host memory.
    host_inputs: u64,
    host_outputs: u64,
}

impl Node {
    /// # Safety
    /// `raw` is a run that has not ended.
    #[cold]
    unsafe fn of(
        raw: NonNull<TF_OpKernelContext>,
        host: &HostApi,
        status: &Status,
    ) -> Result<Self> {
        let (kernels, run, answer) = (host.kernels, raw.as_ptr(), status.as_ptr());
        // SAFETY: `run` is a run of a kernel that has not ended.
        let counts = unsafe { [(kernels.TF_NumInputs)(run), (kernels.TF_NumOutputs)(run)] };
        let [inputs, outputs] = counts.map(|count| usize::try_from(count).unwrap_or(0));
        let mut node = Self { inputs, outputs, host_inputs: 0, host_outputs: 0 };
        for (count, bits, is_on_host) in [
            (counts[0], &mut node.host_inputs, kernels.TF_IsHostMemoryInput),
            (counts[1], &mut node.host_outputs, kernels.TF_IsHostMemoryOutput),
        ] {
            for index in 0..count.min(64) {
                // SAFETY: `run` is a run that has not ended, `index` is below its number of inputs or outputs,
                // and `answer` is a status of ours.
                *bits |= u64::from(unsafe { is_on_host(run, index, answer) }) << index;
                status.check()?;
            }
        }
        Ok(node)
    }
}

/// Which outputs were set.
#[derive(Default)]
struct Outputs {
    first: Cell<u64>,
    /// From the 64th on.
    rest: RefCell<Vec<usize>>,
}

impl Outputs {
    fn has(&self, index: usize) -> bool {
        match index {
            0..64 => self.first.get() >> index & 1 == 1,
            _ => self.rest.borrow().contains(&index),
        }
    }

    fn add(&self, index: usize) {
        match index {
            0..64 => self.first.set(self.first.get() | 1 << index),
            _ => self.rest.borrow_mut().push(index),
        }
    }
}

/// The stream of a run.
///
/// # Safety
/// `raw` is a run of a kernel that is registered for the devices of `D`.
pub(super) unsafe fn stream_of(
    raw: NonNull<TF_OpKernelContext>,
    host: &HostApi,
    status: &Status,
) -> Result<SP_Stream> {
    // SAFETY: `raw` is a run that has not ended, and `status` is ours.
    let stream = unsafe { (host.kernels.TF_GetStream)(raw.as_ptr(), status.as_ptr()) };
    status.check()?;
    Ok(stream)
}

#[cold]
fn in_host_memory(what: &str, index: usize, fix: &str) -> Error {
    Error::invalid_argument(format!("{what} {index} is in host memory; {fix}"))
}

#[cold]
fn in_device_memory(what: &str, index: usize) -> Error {
    Error::invalid_argument(format!(
        "{what} {index} is in device memory; name it in `host_memory(...)` of `#[kernel]`"
    ))
}

#[cold]
fn no_stream() -> Error {
    Error::failed_precondition("the device has no stream, because none could be made")
}

impl<'a, P: Platform> OpKernelContext<'a, P> {
    /// # Safety
    /// `raw` is a run, not ended during `'a`, of a kernel that is registered for `P`'s devices alone, whose
    /// handles are those that the callbacks for `P` have made.
    pub(super) unsafe fn new(raw: *mut TF_OpKernelContext, node: &OnceLock<Node>) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow ran a kernel without a context"))?;
        let status = Status::new(host.status)?;
        // SAFETY: `raw` is a run that has not ended. Its stream is from `create_stream` for `P::Device`, the
        // only devices that the kernel is registered for, and outlives the run.
        let (handle, stream) = unsafe {
            let handle = stream_of(raw, &host, &status)?.cast::<StreamState<P::Device>>();
            let handle = NonNull::new(handle).ok_or_else(no_stream)?;
            (handle, handle.as_ref())
        };
        // What failed work would have written is not there to compute with.
        stream.device.health.check()?;
        let author = stream.author()?;
        author.status()?;
        let node = match node.get() {
            Some(node) => *node,
            None => {
                // SAFETY: `raw` is a run that has not ended.
                let found = unsafe { Node::of(raw, &host, &status)? };
                *node.get_or_init(|| found)
            }
        };
        // SAFETY: `handle` is a live stream's, which an `Arc<StreamState<P::Device>>` owns.
        let running = Running::on(stream, || unsafe { weak(handle) });
        let outputs = Outputs::default();
        Ok(Self {
            raw,
            host,
            status,
            stream,
            node,
            author,
            outputs,
            _running: running,
            call: PhantomData,
        })
    }

    /// The stream into which the kernel's work belongs.
    #[must_use]
    pub fn stream(&self) -> &<P::Device as Device>::Stream {
        self.author
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &P::Device {
        &self.stream.device.device
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        // SAFETY: a run that has not ended; the text is the kernel's, which outlives it.
        unsafe { text((self.host.kernels.TF_GetOpKernelName)(self.raw.as_ptr())) }
    }

    /// The number of inputs.
    #[must_use]
    pub fn input_count(&self) -> usize {
        self.node.inputs
    }

    /// The number of outputs.
    #[must_use]
    pub fn output_count(&self) -> usize {
        self.node.outputs
    }

    /// An index in the range that the host aborts beyond.
    #[inline]
    fn input_index(&self, index: usize) -> Result<c_int> {
        if index < self.node.inputs { Ok(index as c_int) } else { Err(self.beyond("input", index)) }
    }

    #[inline]
    fn output_index(&self, index: usize) -> Result<c_int> {
        if index < self.node.outputs {
            Ok(index as c_int)
        } else {
            Err(self.beyond("output", index))
        }
    }

    #[cold]
    fn beyond(&self, what: &str, index: usize) -> Error {
        let count = if what == "input" { self.node.inputs } else { self.node.outputs };
        Error::invalid_argument(format!("there is no {what} {index}: the node has {count}"))
    }

    /// The type of an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input, `UNIMPLEMENTED` for a type that this SDK does not know.
    pub fn input_dtype(&self, index: usize) -> Result<DType> {
        let at = self.input_index(index)?;
        // SAFETY: a run that has not ended, an index in range.
        known(unsafe { (self.host.kernels.TF_InputDatatype)(self.raw.as_ptr(), at) })
    }

    /// The type that an output is to have.
    ///
    /// # Errors
    /// As for [`input_dtype`](Self::input_dtype).
    pub fn output_dtype(&self, index: usize) -> Result<DType> {
        let at = self.output_index(index)?;
        // SAFETY: a run that has not ended, an index in range.
        known(unsafe { (self.host.kernels.TF_ExpectedOutputDataType)(self.raw.as_ptr(), at) })
    }

    /// Whether an input is in host memory: what `host_memory` of [`#[kernel]`](macro@crate::kernel) says.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input.
    pub fn input_is_on_host(&self, index: usize) -> Result<bool> {
        let (at, status) = (self.input_index(index)?, self.status.as_ptr());
        if index < 64 {
            return Ok(self.node.host_inputs >> index & 1 == 1);
        }
        // SAFETY: a run that has not ended and a status.
        let is = unsafe { (self.host.kernels.TF_IsHostMemoryInput)(self.raw.as_ptr(), at, status) };
        self.status.check()?;
        Ok(is)
    }

    fn output_is_on_host(&self, index: usize) -> Result<bool> {
        let (at, status) = (self.output_index(index)?, self.status.as_ptr());
        if index < 64 {
            return Ok(self.node.host_outputs >> index & 1 == 1);
        }
        // SAFETY: a run that has not ended and a status.
        let is =
            unsafe { (self.host.kernels.TF_IsHostMemoryOutput)(self.raw.as_ptr(), at, status) };
        self.status.check()?;
        Ok(is)
    }

    /// The indices of the inputs that have a name: several for a list.
    ///
    /// # Errors
    /// If the operation has no input of that name.
    pub fn input_range(&self, name: &str) -> Result<Range<usize>> {
        let c_name = CString::new(name).map_err(Error::invalid_argument)?;
        let mut range = TF_InputRange_Args {
            struct_size: TF_InputRange_Args_STRUCT_SIZE,
            status: self.status.as_ptr(),
            ..TF_InputRange_Args::default()
        };
        // SAFETY: a run that has not ended, a C string, a struct of the caller's with its size and a status.
        unsafe {
            (self.host.kernels.TF_InputRange)(self.raw.as_ptr(), c_name.as_ptr(), &raw mut range);
        }
        self.status.check()?;
        let bound = |bound: c_int| usize::try_from(bound).map_err(Error::internal);
        Ok(bound(range.start)?..bound(range.stop)?)
    }

    fn tensor(&self, index: usize) -> Result<Tensor> {
        let at = self.input_index(index)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a run that has not ended, a place for the answer and a status. The tensor is then ours.
        unsafe {
            let get = self.host.kernels.TF_GetInput;
            get(self.raw.as_ptr(), at, &raw mut raw, self.status.as_ptr());
            self.status.check()?;
            Tensor::adopt(raw, &self.host, &Argument("input", index))
        }
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
        if self.input_is_on_host(index)? {
            return Err(in_host_memory("input", index, "read it with `host_input`"));
        }
        DeviceTensor::new(self.tensor(index)?)
    }

    /// An input in host memory.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an input, if it is in device memory, or if it has another type.
    pub fn host_input<T: Element>(&self, index: usize) -> Result<HostTensor<T>> {
        ensure!(self.input_is_on_host(index)?, in_device_memory("input", index));
        let tensor = self.tensor(index)?;
        // SAFETY: in host memory; TensorFlow writes to no tensor that has another user.
        unsafe { HostTensor::new(tensor, &Argument("input", index)) }
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

    /// An output that is still to be made, as an index.
    fn open_output(&self, index: usize, on_host: bool) -> Result<c_int> {
        let at = self.output_index(index)?;
        ensure!(
            !self.outputs.has(index),
            Error::internal(format!("output {index} was made already"))
        );
        if self.output_is_on_host(index)? != on_host {
            return Err(match on_host {
                true => in_device_memory("output", index),
                false => in_host_memory("output", index, "make it with `host_output`"),
            });
        }
        Ok(at)
    }

    fn allocate(&self, index: usize, shape: &[i64], on_host: bool) -> Result<Tensor> {
        let at = self.open_output(index, on_host)?;
        elements_of(shape)?;
        let rank = c_int::try_from(shape.len()).map_err(Error::invalid_argument)?;
        // SAFETY: a run that has not ended, as many dimensions as are said and a status. The host takes
        // neither type nor length from the caller. The tensor is then ours.
        let tensor = unsafe {
            let raw = (self.host.kernels.TF_AllocateOutput)(
                self.raw.as_ptr(),
                at,
                self.output_dtype(index)?.as_raw(),
                shape.as_ptr(),
                rank,
                0,
                self.status.as_ptr(),
            );
            let reported = self.status.check();
            let tensor = Tensor::adopt(raw, &self.host, &Argument("output", index));
            reported.and(tensor)?
        };
        self.outputs.add(index);
        Ok(tensor)
    }

    /// Makes an output in device memory, with memory that holds anything.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory left; `INVALID_ARGUMENT` for an impossible shape, without
    /// such an output, or if it is in host memory; `INTERNAL` if it was made already.
    pub fn output(&self, index: usize, shape: &[i64]) -> Result<DeviceTensor> {
        DeviceTensor::new(self.allocate(index, shape, false)?)
    }

    /// Makes an output of the memory of the first candidate among the inputs that nobody else uses, or of
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
        let at = self.open_output(index, false)?;
        elements_of(shape)?;
        let rank = c_int::try_from(shape.len()).map_err(Error::invalid_argument)?;
        let inputs: Result<Vec<c_int>> =
            candidates.iter().map(|&input| self.input_index(input)).collect();
        let inputs = inputs?;
        let count = c_int::try_from(inputs.len()).map_err(Error::invalid_argument)?;
        let mut forwarded = -1;
        // SAFETY: a run that has not ended, as many candidates and dimensions as are said, a place for the
        // answer and a status. The tensor is then ours.
        let tensor = unsafe {
            let raw = (self.host.kernels.TF_ForwardInputOrAllocateOutput)(
                self.raw.as_ptr(),
                inputs.as_ptr(),
                count,
                at,
                shape.as_ptr(),
                rank,
                &raw mut forwarded,
                self.status.as_ptr(),
            );
            let reported = self.status.check();
            let tensor = Tensor::adopt(raw, &self.host, &Argument("output", index));
            reported.and(tensor)?
        };
        self.outputs.add(index);
        Ok((DeviceTensor::new(tensor)?, usize::try_from(forwarded).ok()))
    }

    /// Makes a tensor an output: an input that is passed on, or a [temporary](Self::temporary) one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without such an output, if it is in host memory or has another type; `INTERNAL` if
    /// it was made already.
    pub fn set_output(&self, index: usize, tensor: &DeviceTensor) -> Result<()> {
        let at = self.open_output(index, false)?;
        let dtype = self.output_dtype(index)?;
        ensure!(
            tensor.dtype() == dtype,
            Error::invalid_argument(format!(
                "output {index} is to be of {dtype}, and the tensor is of {}",
                tensor.dtype()
            ))
        );
        // SAFETY: a run that has not ended, a tensor that stays ours and a status.
        unsafe {
            let tensor = tensor.tensor().as_ptr();
            (self.host.kernels.TF_SetOutput)(self.raw.as_ptr(), at, tensor, self.status.as_ptr());
        }
        self.status.check()?;
        self.outputs.add(index);
        Ok(())
    }

    /// Makes an output in host memory.
    ///
    /// # Errors
    /// As for [`output`](Self::output), but it is `INVALID_ARGUMENT` if the output is in device memory; also
    /// if it has another type.
    pub fn host_output<T: Element>(
        &self,
        index: usize,
        shape: &[i64],
    ) -> Result<HostTensorMut<'_, T>> {
        let tensor = self.allocate(index, shape, true)?;
        // SAFETY: new memory of the host's, which nobody sees before the kernel returns.
        unsafe { HostTensorMut::new(tensor, &Argument("output", index)) }
    }

    /// Makes a tensor in device memory that is not an output, with memory that holds anything.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory left, `INVALID_ARGUMENT` for an impossible shape or a type
    /// that is not plain bytes.
    pub fn temporary(&self, dtype: DType, shape: &[i64]) -> Result<DeviceTensor> {
        ensure!(
            dtype.size().is_some(),
            Error::invalid_argument(format!("a device has no tensors of {dtype}"))
        );
        elements_of(shape)?;
        let rank = c_int::try_from(shape.len()).map_err(Error::invalid_argument)?;
        // SAFETY: a run that has not ended, as many dimensions as are said and a status; null represents
        // device memory. The tensor is then ours.
        let tensor = unsafe {
            let raw = (self.host.kernels.TF_AllocateTemp)(
                self.raw.as_ptr(),
                dtype.as_raw(),
                shape.as_ptr(),
                rank,
                ptr::null_mut(),
                self.status.as_ptr(),
            );
            let reported = self.status.check();
            let tensor = Tensor::adopt(raw, &self.host, &"memory for a temporary tensor");
            reported.and(tensor)?
        };
        DeviceTensor::new(tensor)
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
        let handles: Result<Vec<c_int>> =
            inputs.iter().map(|&input| self.input_index(input)).collect();
        Variables::lock(self, &handles?)
    }

    /// All outputs must be there in the end.
    pub(super) fn check_outputs(&self) -> Result<()> {
        let count = self.output_count();
        match (0..count).find(|&index| !self.outputs.has(index)) {
            None => Ok(()),
            Some(index) => Err(Error::internal(format!(
                "the kernel made no output {index} of {count}; call `output`, or one of its like, for each"
            ))),
        }
    }
}

impl<P: Platform> fmt::Debug for OpKernelContext<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelContext").field("name", &self.name()).finish_non_exhaustive()
    }
}

fn known(raw: tf_fs_sys::TF_DataType) -> Result<DType> {
    DType::from_raw(raw).ok_or_else(|| {
        Error::new(
            Code::Unimplemented,
            format!("this SDK does not know the type {raw} of elements"),
        )
    })
}

/// Tells the host that a run has failed.
///
/// # Safety
/// `raw` is null or a run that has not ended.
#[cold]
pub(super) unsafe fn fail(op: &'static str, raw: *mut TF_OpKernelContext, error: Error) {
    // SAFETY: `status::fail` calls this only for a `raw` that is not null, a run that has not ended. The host
    // copies the status.
    let tell =
        |host: &HostApi, status| unsafe { (host.kernels.TF_OpKernelContext_Failure)(raw, status) };
    status::fail(op, !raw.is_null(), error, tell);
}

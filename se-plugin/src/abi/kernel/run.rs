//! One run of a kernel, as the host has it.

use super::host_tensor::{HostTensor, HostTensorMut};
use super::status::{self, HostApi, Status, ask, text};
use super::tensor::{Argument, Tensor, elements_of};
use crate::abi::state::{StreamState, weak};
use crate::abi::work::Running;
use crate::device::Device;
use crate::dtype::DType;
use crate::kernel::Element;
use crate::stream::Stream as _;
use core::ffi::c_int;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::{self, NonNull};
use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::OnceLock;
use tf_fs_sys::{
    SP_Stream, TF_InputRange_Args, TF_InputRange_Args_STRUCT_SIZE, TF_OpKernelContext, TF_Tensor,
};
use tf_plugin_core::{Error, Result, ensure};

/// One run of a kernel on a device of type `D`: its inputs, its outputs and the stream.
pub(crate) struct Run<'a, D: Device> {
    pub(super) raw: NonNull<TF_OpKernelContext>,
    pub(super) host: HostApi,
    pub(super) status: Status,
    stream: &'a StreamState<D>,
    node: &'a Node,
    /// The author's in it.
    author: &'a D::Stream,
    _running: Running<'a, StreamState<D>>,
    call: PhantomData<&'a ()>,
}

/// What is the same in all runs of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Whether each is in host memory.
    inputs: Vec<bool>,
    outputs: Vec<bool>,
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
        let mut node = Self::default();
        for (count, on_host, is_on_host) in [
            (counts[0], &mut node.inputs, kernels.TF_IsHostMemoryInput),
            (counts[1], &mut node.outputs, kernels.TF_IsHostMemoryOutput),
        ] {
            for index in 0..count {
                // SAFETY: `run` is a run that has not ended, `index` is below its number of inputs or outputs,
                // and `answer` is a status of ours.
                on_host.push(unsafe { is_on_host(run, index, answer) });
                status.check()?;
            }
        }
        Ok(node)
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
fn no_stream() -> Error {
    Error::failed_precondition("the device has no stream, because none could be made")
}

#[cold]
fn in_host_memory(what: &Argument, fix: &str) -> Error {
    Error::invalid_argument(format!("{what} is in host memory; {fix}"))
}

#[cold]
fn in_device_memory(what: &Argument) -> Error {
    Error::invalid_argument(format!(
        "{what} is in device memory; name it in `host_memory(...)` of `#[kernel]`"
    ))
}

#[cold]
fn beyond(what: &str, index: usize, count: usize) -> Error {
    Error::invalid_argument(format!("there is no {what} {index}: the node has {count}"))
}

/// The number of dimensions of a shape that a tensor can have: the host aborts on others.
fn rank_of(shape: &[i64]) -> Result<c_int> {
    elements_of(shape)?;
    c_int::try_from(shape.len()).map_err(Error::invalid_argument)
}

impl<'a, D: Device> Run<'a, D> {
    /// # Safety
    /// `raw` is a run, not ended during `'a`, of a kernel that is registered for devices of a platform with `D` alone, whose
    /// handles are those that the callbacks for `D` have made.
    pub(super) unsafe fn new(
        raw: *mut TF_OpKernelContext,
        node: &'a OnceLock<Node>,
    ) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow ran a kernel without a context"))?;
        let status = host.new_status()?;
        // SAFETY: `raw` is a run that has not ended. Its stream is from `create_stream` for `D`, the
        // only devices that the kernel is registered for, and outlives the run.
        let (handle, stream) = unsafe {
            let handle = stream_of(raw, &host, &status)?.cast::<StreamState<D>>();
            let handle = NonNull::new(handle).ok_or_else(no_stream)?;
            (handle, handle.as_ref())
        };
        // What failed work would have written is not there to compute with.
        stream.device.health.check()?;
        let author = stream.author()?;
        author.status()?;
        let node = match node.get() {
            Some(node) => node,
            None => {
                // SAFETY: `raw` is a run that has not ended.
                let found = unsafe { Node::of(raw, &host, &status)? };
                node.get_or_init(|| found)
            }
        };
        // SAFETY: `handle` is a live stream's, which an `Arc<StreamState<D>>` owns.
        let running = Running::on(stream, || unsafe { weak(handle) });
        Ok(Self { raw, host, status, stream, node, author, _running: running, call: PhantomData })
    }

    pub(crate) fn stream(&self) -> &D::Stream {
        self.author
    }

    pub(crate) fn device(&self) -> &D {
        &self.stream.device.device
    }

    pub(crate) fn name(&self) -> Cow<'_, str> {
        // SAFETY: a run that has not ended; the text is the kernel's, which outlives it.
        unsafe { text((self.host.kernels.TF_GetOpKernelName)(self.raw.as_ptr())) }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    pub(crate) fn outputs(&self) -> usize {
        self.node.outputs.len()
    }

    /// An index in the range that the host aborts beyond.
    #[inline]
    pub(super) fn input_index(&self, index: usize) -> Result<c_int> {
        let count = self.inputs();
        if index < count { Ok(index as c_int) } else { Err(beyond("input", index, count)) }
    }

    #[inline]
    fn output_index(&self, index: usize) -> Result<c_int> {
        let count = self.outputs();
        if index < count { Ok(index as c_int) } else { Err(beyond("output", index, count)) }
    }

    pub(crate) fn input_dtype(&self, index: usize) -> Result<DType> {
        let at = self.input_index(index)?;
        // SAFETY: a run that has not ended, an index in range.
        let raw = unsafe { (self.host.kernels.TF_InputDatatype)(self.raw.as_ptr(), at) };
        DType::known_or_error(raw)
    }

    pub(crate) fn output_dtype(&self, index: usize) -> Result<DType> {
        let at = self.output_index(index)?;
        // SAFETY: a run that has not ended, an index in range.
        let raw = unsafe { (self.host.kernels.TF_ExpectedOutputDataType)(self.raw.as_ptr(), at) };
        DType::known_or_error(raw)
    }

    pub(crate) fn input_is_on_host(&self, index: usize) -> Result<bool> {
        self.input_index(index)?;
        Ok(self.node.inputs[index])
    }

    fn output_is_on_host(&self, index: usize) -> Result<bool> {
        self.output_index(index)?;
        Ok(self.node.outputs[index])
    }

    /// The indices of the inputs that have a name.
    pub(crate) fn input_range(&self, name: &CStr) -> Result<Range<usize>> {
        let mut range = TF_InputRange_Args {
            struct_size: TF_InputRange_Args_STRUCT_SIZE,
            status: self.status.as_ptr(),
            ..TF_InputRange_Args::default()
        };
        // SAFETY: a run that has not ended, a C string, a struct of the caller's with its size and a status.
        unsafe {
            (self.host.kernels.TF_InputRange)(self.raw.as_ptr(), name.as_ptr(), &raw mut range);
        }
        self.status.check()?;
        let bound = |bound: c_int| usize::try_from(bound).map_err(Error::internal);
        Ok(bound(range.start)?..bound(range.stop)?)
    }

    fn tensor(&self, index: usize) -> Result<Tensor> {
        let at = self.input_index(index)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a run that has not ended, an index in range, and a place for the result. The tensor is then ours.
        unsafe {
            ask!(self.TF_GetInput(at, &raw mut raw));
            Tensor::adopt(raw, &self.host, &Argument("input", index))
        }
    }

    /// An input in device memory.
    pub(crate) fn input(&self, index: usize) -> Result<Tensor> {
        if self.input_is_on_host(index)? {
            return Err(in_host_memory(&Argument("input", index), "read it with `host_input`"));
        }
        self.tensor(index)
    }

    /// An input in host memory.
    pub(crate) fn host_input<T: Element>(&self, index: usize) -> Result<HostTensor<T>> {
        let what = Argument("input", index);
        ensure!(self.input_is_on_host(index)?, in_device_memory(&what));
        let tensor = self.tensor(index)?;
        // SAFETY: in host memory; TensorFlow writes to no tensor that has another user.
        unsafe { HostTensor::new(tensor, &what) }
    }

    /// The index of an output that is in the memory that the caller names.
    fn output_in(&self, index: usize, on_host: bool) -> Result<c_int> {
        let at = self.output_index(index)?;
        if self.output_is_on_host(index)? != on_host {
            let what = Argument("output", index);
            return Err(match on_host {
                true => in_device_memory(&what),
                false => in_host_memory(&what, "make it with `host_output`"),
            });
        }
        Ok(at)
    }

    /// A tensor that the host has just made, unless it reports an error.
    ///
    /// # Safety
    /// As for [`Tensor::adopt`].
    unsafe fn made(&self, raw: *mut TF_Tensor, what: &dyn core::fmt::Display) -> Result<Tensor> {
        let reported = self.status.check();
        // SAFETY: `raw` is null or a tensor that nothing else deletes, as this function requires.
        let tensor = unsafe { Tensor::adopt(raw, &self.host, what) };
        reported.and(tensor)
    }

    fn allocate(&self, index: usize, shape: &[i64], on_host: bool) -> Result<Tensor> {
        let at = self.output_in(index, on_host)?;
        let (rank, dtype) = (rank_of(shape)?, self.output_dtype(index)?.as_raw());
        let (raw, status) = (self.raw.as_ptr(), self.status.as_ptr());
        let allocate = self.host.kernels.TF_AllocateOutput;
        // SAFETY: a run that has not ended, as many dimensions as are said and a status. The host takes
        // neither type nor length from the caller. The tensor is then ours.
        unsafe {
            let tensor = allocate(raw, at, dtype, shape.as_ptr(), rank, 0, status);
            self.made(tensor, &Argument("output", index))
        }
    }

    /// Creates an output in device memory.
    pub(crate) fn output(&self, index: usize, shape: &[i64]) -> Result<Tensor> {
        self.allocate(index, shape, false)
    }

    /// Creates an output in host memory.
    pub(crate) fn host_output<T: Element>(
        &self,
        index: usize,
        shape: &[i64],
    ) -> Result<HostTensorMut<'_, T>> {
        // Before there is memory: the host gives the output the op's type, and leaks the tensor of a second attempt.
        let own = self.output_dtype(index)?;
        ensure!(
            own == T::DTYPE,
            Error::invalid_argument(format!("output {index} is of {own}, not of {}", T::DTYPE))
        );
        let tensor = self.allocate(index, shape, true)?;
        // SAFETY: new memory of the host's, which nothing sees before the kernel returns.
        unsafe { HostTensorMut::new(tensor, &Argument("output", index)) }
    }

    /// Creates an output of the memory of one of the candidates, or of new memory. Returns it, and the input.
    pub(crate) fn forward_or_output(
        &self,
        candidates: &[usize],
        index: usize,
        shape: &[i64],
    ) -> Result<(Tensor, Option<usize>)> {
        let (at, rank) = (self.output_in(index, false)?, rank_of(shape)?);
        let inputs = self.input_indices(candidates)?;
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
            self.made(raw, &Argument("output", index))?
        };
        Ok((tensor, usize::try_from(forwarded).ok()))
    }

    /// The indices of inputs, as the host has them.
    pub(super) fn input_indices(&self, inputs: &[usize]) -> Result<Vec<c_int>> {
        inputs.iter().map(|&input| self.input_index(input)).collect()
    }

    /// Sets a tensor as an output.
    pub(crate) fn set_output(&self, index: usize, tensor: &Tensor) -> Result<()> {
        let at = self.output_in(index, false)?;
        let dtype = self.output_dtype(index)?;
        ensure!(
            tensor.dtype() == dtype,
            Error::invalid_argument(format!(
                "output {index} is to be of {dtype}, and the tensor is of {}",
                tensor.dtype()
            ))
        );
        // SAFETY: a run that has not ended, an index in range, and a tensor that stays ours.
        unsafe { ask!(self.TF_SetOutput(at, tensor.as_ptr())) };
        Ok(())
    }

    /// Creates a tensor in device memory that is not an output.
    pub(crate) fn temporary(&self, dtype: DType, shape: &[i64]) -> Result<Tensor> {
        ensure!(
            dtype.size().is_some(),
            Error::invalid_argument(format!("a device has no tensors of {dtype}"))
        );
        let rank = rank_of(shape)?;
        let (raw, status) = (self.raw.as_ptr(), self.status.as_ptr());
        let allocate = self.host.kernels.TF_AllocateTemp;
        // SAFETY: a run that has not ended, as many dimensions as are said and a status; null represents
        // device memory. The tensor is then ours.
        unsafe {
            let dtype = dtype.as_raw();
            let tensor = allocate(raw, dtype, shape.as_ptr(), rank, ptr::null_mut(), status);
            self.made(tensor, &"memory for a temporary tensor")
        }
    }
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

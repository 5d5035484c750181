//! One run of a kernel.

use super::session;
use super::tensor::DeviceTensor;
use crate::abi::device_type::device_type;
use crate::abi::state::{StreamState, weak};
use crate::abi::work::Running;
use crate::device::Device;
use crate::kernel::{AnyPlatform, Element};
use crate::platform::Platform;
use crate::stream::Stream as _;
use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use core::ops::Range;
use core::ptr::{self, NonNull};
use once_cell::race::OnceBox;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::ffi::CString;
use tf_fs_sys::{
    SP_Stream, TF_InputRange_Args, TF_InputRange_Args_STRUCT_SIZE, TF_OpKernelContext, TF_Tensor,
};
use tf_op_plugin::__private::abi::{Argument, HostApi, Status, Tensor, rank_of, text};
use tf_op_plugin::__private::ask;
use tf_op_plugin::DType;
use tf_op_plugin::kernel::HostTensorMut;
use tf_plugin_core::{Error, Result, ensure};

/// One run of a kernel: its inputs, its outputs and the stream for its work.
///
/// A kernel checks its inputs, creates its outputs, enqueues its work into [`stream`](Self::stream) and
/// returns, without waiting. Tensors in host memory are read and written before it returns. Every output must
/// be created, with [`output`](Self::output) or a similar method: TensorFlow would take a missing one for an
/// empty tensor, so the SDK returns an error.
// The layout is that of the fields, whose types depend on the platform's device alone: `any_platform` relies on that.
#[repr(C)]
pub struct OpKernelContext<'a, P: Platform> {
    pub(super) raw: NonNull<TF_OpKernelContext>,
    pub(super) host: HostApi,
    pub(super) status: Status,
    stream: &'a StreamState<P::Device>,
    node: &'a Node,
    /// The author's stream in `stream`.
    author: &'a <P::Device as Device>::Stream,
    _running: Running<'a, StreamState<P::Device>>,
    /// Returns the type of the platform's devices.
    pub(super) device_type: fn() -> &'static str,
    /// Whether each output was created.
    created: RefCell<SmallVec<[bool; 16]>>,
}

/// The facts that are the same in all runs of a kernel: whether each input and output is in host memory.
#[derive(Debug, Default)]
pub(crate) struct Node {
    inputs: Vec<bool>,
    outputs: Vec<bool>,
}

impl Node {
    /// Queries the host.
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

/// Checks an index, as the host aborts on one out of range. Returns it, and whether the tensor is in host memory.
#[inline]
fn find(what: &str, on_host: &[bool], index: usize) -> Result<(c_int, bool)> {
    match on_host.get(index) {
        Some(&is_on_host) => Ok((index as c_int, is_on_host)),
        None => Err(beyond(what, index, on_host.len())),
    }
}

#[cold]
fn beyond(what: &str, index: usize, count: usize) -> Error {
    Error::invalid_argument(format!("there is no {what} {index}: the node has {count}"))
}

/// Refuses a tensor that is not in the memory that the caller expects; `fix` says what to do if it is in host memory.
#[inline]
fn check_memory(what: &Argument, is_on_host: bool, expected: bool, fix: &str) -> Result<()> {
    if is_on_host == expected { Ok(()) } else { Err(in_other_memory(what, is_on_host, fix)) }
}

#[cold]
fn in_other_memory(what: &Argument, is_on_host: bool, fix: &str) -> Error {
    Error::invalid_argument(if is_on_host {
        format!("{what} is in host memory; {fix}")
    } else {
        format!("{what} is in device memory; name it in `host_memory(...)` of `#[kernel]`")
    })
}

/// Returns the stream of a run.
///
/// # Safety
/// `raw` is a run of a kernel that has not ended.
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

impl<'a, P: Platform> OpKernelContext<'a, P> {
    /// Wraps a run of a kernel.
    /// # Safety
    /// `raw` is a run, not ended during `'a`, of a kernel that is registered for the devices of `P` alone, whose handles are
    /// those that the callbacks for `P::Device` have made.
    pub(super) unsafe fn new(
        raw: *mut TF_OpKernelContext,
        node: &'a OnceBox<Node>,
    ) -> Result<Self> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow ran a kernel without a context"))?;
        let status = Status::new()?;
        // SAFETY: `raw` is a run that has not ended. Its stream is from `create_stream` for `P::Device`, the
        // only devices that the kernel is registered for, and outlives the run.
        let (handle, stream) = unsafe {
            let handle = stream_of(raw, &host, &status)?.cast::<StreamState<P::Device>>();
            let handle = NonNull::new(handle).ok_or_else(|| {
                Error::failed_precondition("the device has no stream, because none could be made")
            })?;
            (handle, handle.as_ref())
        };
        // SAFETY: `raw` is a run that has not ended.
        unsafe { session::check::<P>(raw, &host, &status)? };
        // After a failure, the results of earlier work may be missing.
        stream.device.health.check()?;
        let author = stream.author()?;
        author.status()?;
        let node = match node.get() {
            Some(node) => node,
            None => {
                // SAFETY: `raw` is a run that has not ended.
                let facts = unsafe { Node::of(raw, &host, &status)? };
                node.get_or_init(|| Box::new(facts))
            }
        };
        // SAFETY: `handle` is a live stream's, which an `Arc<StreamState<P::Device>>` owns.
        let running = Running::on(stream, || unsafe { weak(handle) });
        let created = RefCell::new(smallvec![false; node.outputs.len()]);
        let device_type = device_type::<P>;
        Ok(Self {
            raw,
            host,
            status,
            stream,
            node,
            author,
            _running: running,
            device_type,
            created,
        })
    }

    /// Returns the same run without its platform, for code that is compiled once for all platforms with these devices:
    /// the kernels of a [library](mod@crate::kernel#kernels-of-a-library).
    #[must_use]
    pub fn any_platform(&self) -> &OpKernelContext<'a, AnyPlatform<P::Device>> {
        let run = core::ptr::from_ref(self).cast::<OpKernelContext<'a, AnyPlatform<P::Device>>>();
        // SAFETY: both types have the same fields in the same order, of types that name the device and not the platform, and
        // `repr(C)` lays out equal fields equally. The result borrows from `self`.
        unsafe { &*run }
    }

    /// Returns the stream for the kernel's work.
    #[must_use]
    pub fn stream(&self) -> &<P::Device as Device>::Stream {
        self.author
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &P::Device {
        &self.stream.device.device
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        // SAFETY: a run that has not ended; the text is the kernel's, which outlives it.
        unsafe { text((self.host.kernels.TF_GetOpKernelName)(self.raw.as_ptr())) }
    }

    /// Returns the number of inputs.
    #[must_use]
    pub fn input_count(&self) -> usize {
        self.node.inputs.len()
    }

    /// Returns the number of outputs.
    #[must_use]
    pub fn output_count(&self) -> usize {
        self.node.outputs.len()
    }

    #[inline]
    fn find_input(&self, index: usize) -> Result<(c_int, bool)> {
        find("input", &self.node.inputs, index)
    }

    #[inline]
    fn find_output(&self, index: usize) -> Result<(c_int, bool)> {
        find("output", &self.node.outputs, index)
    }

    /// Converts the indices of inputs to the host's type.
    pub(super) fn input_indices(&self, inputs: &[usize]) -> Result<Vec<c_int>> {
        inputs.iter().map(|&input| Ok(self.find_input(input)?.0)).collect()
    }

    /// Returns the type of an input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such input, `UNIMPLEMENTED` for a type that this SDK does not know.
    pub fn input_dtype(&self, index: usize) -> Result<DType> {
        let (at, _) = self.find_input(index)?;
        // SAFETY: a run that has not ended, an index in range.
        let raw = unsafe { (self.host.kernels.TF_InputDatatype)(self.raw.as_ptr(), at) };
        DType::known_or_error(raw)
    }

    /// Returns the type that an output must have.
    ///
    /// # Errors
    /// As for [`input_dtype`](Self::input_dtype).
    pub fn output_dtype(&self, index: usize) -> Result<DType> {
        let (at, _) = self.find_output(index)?;
        // SAFETY: a run that has not ended, an index in range.
        let raw = unsafe { (self.host.kernels.TF_ExpectedOutputDataType)(self.raw.as_ptr(), at) };
        DType::known_or_error(raw)
    }

    /// Returns whether an input is in host memory, as `host_memory` of [`#[kernel]`](macro@crate::kernel) says.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such input.
    pub fn input_is_on_host(&self, index: usize) -> Result<bool> {
        Ok(self.find_input(index)?.1)
    }

    /// Returns the indices of the inputs with this name: several for a list.
    ///
    /// # Errors
    /// If the operation has no input with this name.
    pub fn input_range(&self, name: &str) -> Result<Range<usize>> {
        let name = CString::new(name).map_err(Error::invalid_argument)?;
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

    /// Returns an input that must be in the memory that the caller names.
    pub(super) fn input_in(&self, index: usize, on_host: bool) -> Result<Tensor> {
        let ((at, is_on_host), what) = (self.find_input(index)?, Argument("input", index));
        check_memory(&what, is_on_host, on_host, "read it with `host_input`")?;
        let mut raw = ptr::null_mut();
        // SAFETY: a run that has not ended, an index in range, and a place for the result. The tensor is then ours.
        unsafe {
            ask!(self.host.kernels.TF_GetInput(at, &raw mut raw));
            Tensor::adopt(raw, &self.host, &what)
        }
    }

    /// Returns an input in device memory.
    ///
    /// The input cannot be [forwarded](Self::forward_or_output) while the returned value exists.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such input, or it is in host memory; `RESOURCE_EXHAUSTED` if there
    /// was no memory left for it.
    pub fn input(&self, index: usize) -> Result<DeviceTensor> {
        DeviceTensor::new(self.input_in(index, false)?)
    }

    /// Returns the index of an output, which must be in the memory that the caller names.
    pub(super) fn output_in(&self, index: usize, on_host: bool) -> Result<c_int> {
        let ((at, is_on_host), what) = (self.find_output(index)?, Argument("output", index));
        check_memory(&what, is_on_host, on_host, "make it with `host_output`")?;
        Ok(at)
    }

    /// Takes over a tensor that the host has just created, unless it reports an error.
    ///
    /// # Safety
    /// As for [`Tensor::adopt`].
    pub(super) unsafe fn adopt(
        &self,
        raw: *mut TF_Tensor,
        what: &dyn fmt::Display,
    ) -> Result<Tensor> {
        let reported = self.status.check();
        // SAFETY: `raw` is null or a tensor that nothing else deletes, as this function requires.
        let tensor = unsafe { Tensor::adopt(raw, &self.host, what) };
        reported.and(tensor)
    }

    /// Creates an output that does not exist yet.
    pub(super) fn make<T>(&self, index: usize, make: impl FnOnce() -> Result<T>) -> Result<T> {
        ensure!(
            self.created.borrow().get(index) != Some(&true),
            Error::internal(format!("output {index} was made already"))
        );
        let output = make()?;
        // `make` has checked that there is such an output.
        self.created.borrow_mut()[index] = true;
        Ok(output)
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
            self.adopt(tensor, &Argument("output", index))
        }
    }

    /// Creates an output in device memory, with arbitrary content.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory for it; `INVALID_ARGUMENT` for an impossible shape, if there
    /// is no such output, or if it is in host memory; `INTERNAL` if it was created before.
    pub fn output(&self, index: usize, shape: &[i64]) -> Result<DeviceTensor> {
        DeviceTensor::new(self.make(index, || self.allocate(index, shape, false))?)
    }

    /// Creates an output in host memory.
    ///
    /// # Errors
    /// As for [`output`](Self::output), except that it is `INVALID_ARGUMENT` if the output is in device memory,
    /// or has another type.
    pub fn host_output<T: Element>(
        &self,
        index: usize,
        shape: &[i64],
    ) -> Result<HostTensorMut<'_, T>> {
        self.make(index, || {
            // Checked before the allocation: the host uses the op's type, and leaks the tensor of a second attempt.
            let dtype = self.output_dtype(index)?;
            ensure!(
                dtype == T::DTYPE,
                Error::invalid_argument(format!(
                    "output {index} is of {dtype}, not of {}",
                    T::DTYPE
                ))
            );
            let tensor = self.allocate(index, shape, true)?;
            // SAFETY: new memory of the host's, which nothing sees before the kernel returns.
            unsafe { HostTensorMut::new(tensor, &Argument("output", index)) }
        })
    }

    /// Creates an output in the memory of the first candidate among the inputs that nothing else uses, or in
    /// new memory. Returns the output, and the input whose memory it has.
    ///
    /// The kernel's own values count as users: get the candidates with [`input`](Self::input) afterwards.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub fn forward_or_output(
        &self,
        candidates: &[usize],
        index: usize,
        shape: &[i64],
    ) -> Result<(DeviceTensor, Option<usize>)> {
        let mut forwarded = -1;
        let tensor = self.make(index, || {
            let (at, rank) = (self.output_in(index, false)?, rank_of(shape)?);
            let inputs = self.input_indices(candidates)?;
            let count = c_int::try_from(inputs.len()).map_err(Error::invalid_argument)?;
            // SAFETY: a run that has not ended, as many candidates and dimensions as are said, a place for the
            // answer and a status. The tensor is then ours.
            unsafe {
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
                self.adopt(raw, &Argument("output", index))
            }
        })?;
        Ok((DeviceTensor::new(tensor)?, usize::try_from(forwarded).ok()))
    }

    /// Sets a tensor as an output: an input that is passed on, or a [temporary](Self::temporary) one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such output, it is in host memory or has another type; `INTERNAL` if
    /// it was created before.
    pub fn set_output(&self, index: usize, tensor: &DeviceTensor) -> Result<()> {
        self.make(index, || {
            let at = self.output_in(index, false)?;
            let (dtype, actual) = (self.output_dtype(index)?, tensor.dtype());
            ensure!(
                actual == dtype,
                Error::invalid_argument(format!(
                    "output {index} is to be of {dtype}, and the tensor is of {actual}"
                ))
            );
            // SAFETY: a run that has not ended, an index in range, and a tensor that stays ours.
            unsafe { ask!(self.host.kernels.TF_SetOutput(at, tensor.tensor.as_ptr())) };
            Ok(())
        })
    }

    /// Creates a tensor in device memory that is not an output, with arbitrary content.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if there is no memory for it, `INVALID_ARGUMENT` for an impossible shape or a
    /// type that is not plain bytes.
    pub fn temporary(&self, dtype: DType, shape: &[i64]) -> Result<DeviceTensor> {
        ensure!(
            dtype.size().is_some(),
            Error::invalid_argument(format!("a device has no tensors of {dtype}"))
        );
        let rank = rank_of(shape)?;
        let (raw, status) = (self.raw.as_ptr(), self.status.as_ptr());
        let allocate = self.host.kernels.TF_AllocateTemp;
        // SAFETY: a run that has not ended, as many dimensions as are said and a status; null represents
        // device memory. The tensor is then ours.
        let tensor = unsafe {
            let dtype = dtype.as_raw();
            let tensor = allocate(raw, dtype, shape.as_ptr(), rank, ptr::null_mut(), status);
            self.adopt(tensor, &"memory for a temporary tensor")?
        };
        DeviceTensor::new(tensor)
    }

    /// Checks at the end of the run that the kernel has created all outputs.
    pub(super) fn check_outputs(&self) -> Result<()> {
        let created = self.created.borrow();
        match created.iter().position(|created| !created) {
            None => Ok(()),
            Some(index) => Err(Error::internal(format!(
                "the kernel made no output {index} of {}; call `output`, or one of its like, for each",
                created.len()
            ))),
        }
    }
}

impl<P: Platform> fmt::Debug for OpKernelContext<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernelContext").field("name", &self.name()).finish_non_exhaustive()
    }
}

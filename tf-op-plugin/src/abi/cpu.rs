//! Runs of ops on the CPU.

use super::aligned_vec::AlignedVec;
use super::host_strings::{self, HostStrings};
use super::host_tensor::{HostTensor, HostTensorMut};
use super::memory::Released;
use super::session_config::session_config;
use super::status::{HostApi, SpareStatus, Status, ask, text};
use super::string_vec::StringVec;
use super::tensor::{Argument, Tensor, missing, rank_of};
use super::trampoline::Target;
use crate::dtype::DType;
use crate::kernel::Element;
use crate::parallel::default_threads;
use crate::wire::{Value, values};
use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use once_cell::race::OnceNonZeroUsize;
use smallvec::SmallVec;
use std::borrow::Cow;
use tf_fs_sys::TF_OpKernelContext;
use tf_plugin_core::{Error, Result, ensure};

/// The CPU, as a target of kernels.
#[derive(Debug)]
pub(crate) struct Cpu;

/// A run of a kernel on the CPU.
pub(crate) struct Run<'a> {
    raw: NonNull<TF_OpKernelContext>,
    host: HostApi,
    /// Of `facts`, which get it back.
    status: ManuallyDrop<Status>,
    facts: &'a NodeFacts,
    /// What no other run of the process has.
    identity: u64,
    /// Whether each output was created; those behind the last one were not.
    created: RefCell<SmallVec<[bool; 16]>>,
    run: PhantomData<&'a mut TF_OpKernelContext>,
}

/// What runs of a node share.
#[derive(Debug, Default)]
pub(crate) struct NodeFacts {
    /// The number of threads that a run may use.
    threads: OnceNonZeroUsize,
    status: SpareStatus,
}

/// An output for the elements of an input.
enum Forwarded<T: Element> {
    /// The input's memory.
    InPlace(HostTensorMut<'static, T>),
    /// New memory, and the input.
    New(Tensor, HostTensor<T>),
}

impl Target for Cpu {
    type Context<'a> = Run<'a>;
    type Facts = NodeFacts;

    fn device_type() -> &'static str {
        "CPU"
    }

    unsafe fn context<'a>(raw: *mut TF_OpKernelContext, facts: &'a NodeFacts) -> Result<Run<'a>> {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::internal("TensorFlow ran a kernel without a context"))?;
        Ok(Run {
            raw,
            host,
            status: ManuallyDrop::new(facts.status.take()?),
            facts,
            identity: next_identity(),
            created: RefCell::default(),
            run: PhantomData,
        })
    }

    fn finish(_: &Run<'_>) -> Result<()> {
        // `Outputs` writes all of them.
        Ok(())
    }

    fn node_name<'c>(run: &'c Run<'_>) -> Cow<'c, str> {
        run.node_name()
    }
}

fn next_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Run<'_> {
    /// Returns the identity of the run, by which it knows its tensors.
    pub(crate) const fn identity(&self) -> u64 {
        self.identity
    }

    pub(crate) fn node_name(&self) -> Cow<'_, str> {
        // SAFETY: a run that has not ended; the text is the kernel's, which outlives it.
        unsafe { text((self.host.kernels.TF_GetOpKernelName)(self.raw.as_ptr())) }
    }

    /// Returns the number of inputs.
    pub(crate) fn input_count(&self) -> usize {
        // SAFETY: a run that has not ended.
        let count = unsafe { (self.host.kernels.TF_NumInputs)(self.raw.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Returns the number of outputs.
    pub(crate) fn output_count(&self) -> usize {
        // SAFETY: a run that has not ended.
        let count = unsafe { (self.host.kernels.TF_NumOutputs)(self.raw.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    fn tensor(&self, index: usize) -> Result<Tensor> {
        let at = c_int::try_from(index).map_err(Error::invalid_argument)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a run that has not ended, and a place for the result; the host checks the index. The tensor is then ours.
        unsafe {
            ask!(self.host.kernels.TF_GetInput(at, &raw mut raw));
            Tensor::adopt(raw, &self.host, &Argument("input", index))
        }
    }

    /// Returns an input of numbers.
    pub(crate) fn input<T: Element>(&self, index: usize) -> Result<HostTensor<T>> {
        let tensor = self.tensor(index)?;
        // SAFETY: a kernel on the CPU has its inputs in host memory. TensorFlow writes to no tensor that has another user. An
        // eager input may share the memory of a NumPy array: Python programs may not change that while an op runs, and after
        // the run an op has no `HostTensor`, which is not `Send`.
        unsafe { HostTensor::new(tensor, &Argument("input", index)) }
    }

    /// Returns an input of strings.
    pub(crate) fn strings(&self, index: usize) -> Result<HostStrings> {
        let tensor = self.tensor(index)?;
        // SAFETY: a kernel on the CPU has its inputs in host memory. TensorFlow writes to no tensor that has another user, and
        // copies strings that come from Python.
        unsafe { HostStrings::new(tensor, &Argument("input", index)) }
    }

    /// Checks that an output is of a type and was not created, as the host aborts or leaks otherwise.
    fn output(&self, index: usize, dtype: DType) -> Result<c_int> {
        ensure!(
            self.created.borrow().get(index) != Some(&true),
            Error::internal(format!(
                "output {index} exists already; return the tensor that `reuse` has made of it"
            ))
        );
        ensure!(
            index < self.output_count(),
            Error::internal(format!(
                "the node has no output {index}, only {}",
                self.output_count()
            ))
        );
        let at = c_int::try_from(index).map_err(Error::invalid_argument)?;
        // SAFETY: a run that has not ended, an index in range.
        let raw = unsafe { (self.host.kernels.TF_ExpectedOutputDataType)(self.raw.as_ptr(), at) };
        let expected = DType::known_or_error(raw)?;
        ensure!(
            expected == dtype,
            Error::internal(format!("output {index} is of {expected}, not of {dtype}"))
        );
        Ok(at)
    }

    /// Notes that an output exists.
    fn note_created(&self, index: usize) {
        let mut created = self.created.borrow_mut();
        if created.len() <= index {
            created.resize(index + 1, false);
        }
        created[index] = true;
    }

    /// Sets an output that [`output`](Self::output) has checked.
    fn set(&self, index: usize, at: c_int, tensor: &Tensor) -> Result<()> {
        // SAFETY: a run that has not ended, an index in range of an output that does not exist yet, and a tensor of the output's
        // type, which stays ours.
        unsafe { ask!(self.host.kernels.TF_SetOutput(at, tensor.as_ptr())) };
        self.note_created(index);
        Ok(())
    }

    /// Makes a tensor of the host's an output.
    pub(crate) fn pass<T: Element>(&self, index: usize, tensor: &HostTensor<T>) -> Result<()> {
        self.set(index, self.output(index, T::DTYPE)?, &tensor.tensor)
    }

    /// Makes a tensor of strings of the host's an output.
    pub(crate) fn pass_strings(&self, index: usize, strings: &HostStrings) -> Result<()> {
        self.set(index, self.output(index, DType::String)?, &strings.tensor)
    }

    /// Makes elements an output; the host takes their memory over.
    pub(crate) fn set_output<T: Element>(
        &self,
        index: usize,
        shape: &[i64],
        elements: AlignedVec<T>,
    ) -> Result<()> {
        let at = self.output(index, T::DTYPE)?;
        let rank = rank_of(shape)?;
        let (memory, len) = elements.into_memory();
        let memory = memory.into_released(len * size_of::<T>());
        // SAFETY: `len` elements of this type are initialised, as many as the shape has.
        unsafe { self.set_released(index, at, T::DTYPE, (shape, rank), memory) }
    }

    /// Makes strings an output; the host takes their memory over.
    pub(crate) fn set_strings(
        &self,
        index: usize,
        shape: &[i64],
        strings: StringVec,
    ) -> Result<()> {
        let at = self.output(index, DType::String)?;
        if host_strings::takes_strings_over()? {
            let rank = rank_of(shape)?;
            // SAFETY: strings with the layout that the host has, as many as the shape has.
            return unsafe {
                self.set_released(index, at, DType::String, (shape, rank), strings.into_released())
            };
        }
        let (host, status, strings) = (&self.host, &self.status, strings.iter());
        // Also if it fails: the host may have allocated the output.
        self.note_created(index);
        // SAFETY: a run that has not ended, and an output of strings that `output` has seen not to exist.
        unsafe { host_strings::copied_output(self.raw, host, status, at, shape, strings) }
    }

    /// Makes memory an output; the host takes it over.
    ///
    /// # Safety
    /// The index, in both forms, is that of an output of this type that does not exist yet. The memory has elements of it, as
    /// many as the shape has, in as many dimensions as are said.
    unsafe fn set_released(
        &self,
        index: usize,
        at: c_int,
        dtype: DType,
        (shape, rank): (&[i64], c_int),
        memory: Released,
    ) -> Result<()> {
        let Released { start, bytes, release, argument } = memory;
        let (tensors, shape) = (self.host.tensors, shape.as_ptr());
        // SAFETY: the caller vouches for the shape and the elements; the host calls `release` once. The tensor is then ours,
        // and the host's output shares its memory. A run that has not ended, an index in range.
        unsafe {
            let new = tensors.TF_NewTensor;
            let raw = new(dtype.as_raw(), shape, rank, start, bytes, Some(release), argument);
            if raw.is_null() {
                return Err(missing(&Argument("output", index)));
            }
            (self.host.kernels.TF_SetOutput)(self.raw.as_ptr(), at, raw, self.status.as_ptr());
            (tensors.TF_DeleteTensor)(raw);
        }
        self.status.check()?;
        self.note_created(index);
        Ok(())
    }

    /// Creates an output with the elements of an input of this run, in its memory if nothing else uses that, and else in new
    /// memory.
    pub(crate) fn forward<T: Element>(
        &self,
        input: usize,
        tensor: HostTensor<T>,
        output: usize,
        change: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<HostTensor<T>> {
        let mut made = match self.forwarded(input, tensor, output)? {
            Forwarded::InPlace(made) => made,
            // SAFETY: new memory of the host's, which nothing else uses.
            Forwarded::New(made, source) => unsafe {
                HostTensorMut::map_of(made, &source, &Argument("output", output), |element| {
                    element
                })?
            },
        };
        change(made.as_mut_slice())?;
        Ok(made.into_tensor())
    }

    /// Creates an output with `f` of each element of an input, where [`Self::forward`] does.
    pub(crate) fn forward_map<T: Element>(
        &self,
        input: usize,
        tensor: HostTensor<T>,
        output: usize,
        mut f: impl FnMut(T) -> T,
    ) -> Result<HostTensor<T>> {
        let made = match self.forwarded(input, tensor, output)? {
            Forwarded::InPlace(mut made) => {
                made.as_mut_slice().iter_mut().for_each(|element| *element = f(*element));
                made
            }
            // SAFETY: new memory of the host's, which nothing else uses.
            Forwarded::New(made, source) => unsafe {
                HostTensorMut::map_of(made, &source, &Argument("output", output), f)?
            },
        };
        Ok(made.into_tensor())
    }

    fn forwarded<T: Element>(
        &self,
        input: usize,
        tensor: HostTensor<T>,
        output: usize,
    ) -> Result<Forwarded<T>> {
        let at = self.output(output, T::DTYPE)?;
        ensure!(
            input < self.input_count(),
            Error::internal(format!("the node has no input {input}"))
        );
        let from = c_int::try_from(input).map_err(Error::invalid_argument)?;
        let (shape, rank) = (tensor.tensor.shape.clone(), rank_of(&tensor.tensor.shape)?);
        // The host forwards no memory that a `TF_Tensor` of the kernel refers to.
        drop(tensor);
        let what = Argument("output", output);
        let mut forwarded = -1;
        // SAFETY: a run that has not ended, one candidate, which is an input of it, an output that `output` has seen not to exist,
        // as many dimensions as are said, a place for the answer and a status. The tensor is then ours.
        let made = unsafe {
            let raw = (self.host.kernels.TF_ForwardInputOrAllocateOutput)(
                self.raw.as_ptr(),
                &raw const from,
                1,
                at,
                shape.as_ptr(),
                rank,
                &raw mut forwarded,
                self.status.as_ptr(),
            );
            self.status.check()?;
            self.note_created(output);
            Tensor::adopt(raw, &self.host, &what)?
        };
        if forwarded < 0 {
            return Ok(Forwarded::New(made, self.input(input)?));
        }
        // SAFETY: the input's memory, which is initialised and which nothing else uses, as the host has forwarded it.
        unsafe { HostTensorMut::with_elements(made, &what).map(Forwarded::InPlace) }
    }

    /// Returns the number of threads that a run may use: the session's `intra_op_parallelism_threads`.
    pub(crate) fn threads(&self) -> usize {
        let threads = self.facts.threads.get_or_init(|| {
            // SAFETY: a run that has not ended.
            let config = unsafe { session_config(self.raw, &self.host, &self.status) };
            let count = config.ok().and_then(|config| intra_op_threads(&config));
            count.or_else(|| NonZeroUsize::new(default_threads())).unwrap_or(NonZeroUsize::MIN)
        });
        threads.get()
    }
}

/// Returns `intra_op_parallelism_threads` of a `ConfigProto`: 0 and negative numbers stand for the default.
fn intra_op_threads(config: &[u8]) -> Option<NonZeroUsize> {
    let field = values(config).filter_map(Result::ok).find_map(|field| match field {
        // An `int32`, of which a negative one has 64 bits.
        (2, Value::Varint(count)) => Some(count as i32),
        _ => None,
    });
    NonZeroUsize::new(usize::try_from(field?).ok()?)
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the field after this.
        self.facts.status.put(unsafe { ManuallyDrop::take(&mut self.status) });
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("node", &self.node_name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::put_varint;

    #[test]
    fn the_session_limits_threads_by_a_positive_number() {
        let of = |count: i32| {
            let mut config = Vec::new();
            put_varint(&mut config, 2, i64::from(count).cast_unsigned());
            intra_op_threads(&config).map(NonZeroUsize::get)
        };
        assert_eq!(of(3), Some(3));
        assert_eq!(of(0), None);
        assert_eq!(of(-1), None);
        assert_eq!(intra_op_threads(&[]), None);
    }
}

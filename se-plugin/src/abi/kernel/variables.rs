//! Variables of the host.

use super::context::{OpKernelContext, stream_of};
use super::tensor::{DeviceTensor, device_ptr};
use crate::abi::state::{StreamState, borrow};
use crate::platform::Platform;
use crate::stream::Stream as _;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    KernelExperimentalFunctions, TF_CopyTensorFn, TF_OpKernelContext, TF_Tensor,
    TF_VariableInputLockHolder,
};
use tf_op_plugin::__private::abi::Tensor;
use tf_op_plugin::__private::abi::{HostApi, Status, fail, not_exported};
use tf_op_plugin::DType;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result, ensure};

/// Returns whether TensorFlow exports the functions for changing variables in place. 2.19 to 2.21 do not.
#[must_use]
pub fn host_has_variables() -> bool {
    KernelExperimentalFunctions::get().is_ok_and(|host| {
        host.TF_MaybeLockVariableInputMutexesInOrder.is_some()
            && host.TF_GetInputTensorFromVariable.is_some()
            && host.TF_ReleaseVariableInputLockHolder.is_some()
    })
}

/// The tensors of the variables that a kernel has locked, in the order of the request.
///
/// Work that is enqueued before this is dropped reads and changes the variables in the order of the locks.
pub struct Variables<'a> {
    // Dropped before the lock, so that the memory has no other user once another thread has the lock.
    tensors: Vec<DeviceTensor>,
    _lock: Lock<'a>,
}

impl Deref for Variables<'_> {
    type Target = [DeviceTensor];

    fn deref(&self) -> &[DeviceTensor] {
        &self.tensors
    }
}

impl fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.tensors).finish()
    }
}

/// A lock of variables, released on drop.
struct Lock<'a> {
    holder: NonNull<TF_VariableInputLockHolder>,
    release: unsafe extern "C" fn(*mut TF_VariableInputLockHolder),
    /// A lock is released on the thread that has taken it.
    context: PhantomData<(&'a (), *mut ())>,
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: the host's, released once.
        unsafe { (self.release)(self.holder.as_ptr()) }
    }
}

impl<P: Platform> OpKernelContext<'_, P> {
    /// Locks the variables whose handles are the given inputs, to read and change them in place. Drop the
    /// result, and with it the lock, after the work is enqueued.
    ///
    /// Only for kernels that are registered with `variables`.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if TensorFlow does not export what this needs (2.19 to 2.21); `FAILED_PRECONDITION`
    /// for a variable without a value; TensorFlow's error for a missing variable.
    pub fn variables(&self, inputs: &[usize]) -> Result<Variables<'_>> {
        let host = KernelExperimentalFunctions::get().map_err(Error::failed_precondition)?;
        let (Some(lock), Some(get), Some(release)) = (
            host.TF_MaybeLockVariableInputMutexesInOrder,
            host.TF_GetInputTensorFromVariable,
            host.TF_ReleaseVariableInputLockHolder,
        ) else {
            return Err(not_exported("variables"));
        };
        for &input in inputs {
            // TensorFlow aborts on another type, and does not check that the handle is in host memory.
            let dtype = self.input_dtype(input)?;
            ensure!(
                dtype == DType::Resource && self.input_is_on_host(input)?,
                Error::invalid_argument(format!(
                    "input {input} of {dtype} is not a variable's handle in host memory; name the handles, \
                     and each of them in `host_memory(...)` of `#[kernel]`"
                ))
            );
        }
        let inputs = self.input_indices(inputs)?;
        let (raw, status) = (self.raw.as_ptr(), self.status.as_ptr());
        let copy: TF_CopyTensorFn = Some(copy::<P>);
        let mut holder = ptr::null_mut();
        // SAFETY: a run that has not ended, as many indices in range as are said, a place for the result
        // and a status.
        unsafe {
            let (inputs, count) = (inputs.as_ptr(), inputs.len());
            lock(raw, true, false, inputs, count, copy, &raw mut holder, status);
        }
        let lock =
            NonNull::new(holder).map(|holder| Lock { holder, release, context: PhantomData });
        self.status.check()?;
        let lock = lock.ok_or_else(not_there)?;
        let mut tensors = Vec::with_capacity(inputs.len());
        for &input in &inputs {
            let mut tensor = ptr::null_mut();
            // SAFETY: `raw`, `copy` and `status` are those of the call that took the locks, which `lock` still
            // holds. The host sets `tensor` to one that we own.
            let tensor = unsafe {
                get(raw, input, true, false, false, copy, &raw mut tensor, status);
                self.status.check()?;
                ensure!(!tensor.is_null(), not_there());
                Tensor::adopt(tensor, &self.host, &format_args!("the variable of input {input}"))?
            };
            tensors.push(DeviceTensor::new(tensor)?);
        }
        Ok(Variables { tensors, _lock: lock })
    }
}

/// Returns the error for a missing variable. The host has set its own in the context, which stays the first.
#[cold]
fn not_there() -> Error {
    Error::failed_precondition("there is no such variable")
}

/// Copies a variable that another thread reads, before it is changed. The host gives up both tensors.
unsafe extern "C" fn copy<P: Platform>(
    raw: *mut TF_OpKernelContext,
    source: *mut TF_Tensor,
    target: *mut TF_Tensor,
) {
    const OP: &str = "the copy of a variable";
    let copied = boundary::catch(OP, || {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let status = Status::new()?;
        let raw =
            NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow passed no context"))?;
        // SAFETY: a run of a kernel for devices of `P`, and two tensors that are ours.
        let (source, target, stream) = unsafe {
            let source = Tensor::adopt(source, &host, &"a variable");
            let target = Tensor::adopt(target, &host, &"memory for a variable");
            let handle = stream_of(raw, &host, &status)?;
            let stream = borrow::<StreamState<P::Device>, _>(handle).ok_or_else(not_there)?;
            (source?, target?, stream)
        };
        ensure!(
            source.bytes == target.bytes,
            Error::internal("TensorFlow copies between variables of different sizes")
        );
        match (device_ptr(&source)?, device_ptr(&target)?) {
            (Some(from), Some(to)) => {
                stream.author()?.copy_on_device(to, from, source.bytes as u64)
            }
            _ => Ok(()),
        }
    });
    if let Err(error) = copied {
        // SAFETY: the run has not ended.
        unsafe { fail(OP, raw, |host| host.TF_OpKernelContext_Failure, error) };
    }
}

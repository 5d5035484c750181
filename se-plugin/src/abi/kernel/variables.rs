//! Variables.

use super::context::{OpKernelContext, fail, stream_of};
use super::status::{HostApi, Status};
use super::tensor::{DeviceTensor, Tensor};
use crate::abi::state::{StreamState, borrow};
use crate::kernel::DType;
use crate::platform::Platform;
use crate::stream::Stream as _;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use tf_fs_sys::host::Table as _;
use tf_fs_sys::{
    KernelExperimentalFunctions, TF_CopyTensorFn, TF_OpKernelContext, TF_Status, TF_Tensor,
    TF_VariableInputLockHolder,
};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Code, Error, Result, ensure};

type Lock = unsafe extern "C" fn(
    *mut TF_OpKernelContext,
    bool,
    bool,
    *const c_int,
    usize,
    TF_CopyTensorFn,
    *mut *mut TF_VariableInputLockHolder,
    *mut TF_Status,
);
type Get = unsafe extern "C" fn(
    *mut TF_OpKernelContext,
    c_int,
    bool,
    bool,
    bool,
    TF_CopyTensorFn,
    *mut *mut TF_Tensor,
    *mut TF_Status,
);
type Release = unsafe extern "C" fn(*mut TF_VariableInputLockHolder);

/// The host's functions for variables.
struct Functions {
    lock: Lock,
    get: Get,
    release: Release,
}

impl Functions {
    fn get() -> Option<Self> {
        let table = KernelExperimentalFunctions::get().ok()?;
        Some(Self {
            lock: table.TF_MaybeLockVariableInputMutexesInOrder?,
            get: table.TF_GetInputTensorFromVariable?,
            release: table.TF_ReleaseVariableInputLockHolder?,
        })
    }
}

/// Whether TensorFlow exports what kernels need to change variables in place. 2.19 to 2.21 do not.
#[must_use]
pub fn host_has_variables() -> bool {
    Functions::get().is_some()
}

/// Variables that a kernel has locked, as their tensors in the order that was requested.
///
/// What is enqueued before this is dropped sees and changes the variables in the order of the locks.
pub struct Variables<'a> {
    // Before the lock, so that the memory has no other user once somebody else has the lock.
    tensors: Vec<DeviceTensor>,
    _lock: Held,
    /// A lock is released on the thread that has taken it.
    context: PhantomData<(&'a (), *mut ())>,
}

/// A lock, released on drop.
struct Held {
    holder: NonNull<TF_VariableInputLockHolder>,
    release: Release,
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the host's, released once.
        unsafe { (self.release)(self.holder.as_ptr()) }
    }
}

impl<'a> Variables<'a> {
    pub(super) fn lock<P: Platform>(
        context: &'a OpKernelContext<'_, P>,
        inputs: &[c_int],
    ) -> Result<Self> {
        let functions = Functions::get().ok_or_else(|| {
            Error::new(
                Code::Unimplemented,
                "this TensorFlow does not export its functions for variables; register the kernel with \
                 `variables`, so that it is left out here",
            )
        })?;
        for &input in inputs {
            // TensorFlow aborts on another type, and reads a handle where it is not.
            let index = usize::try_from(input).map_err(Error::internal)?;
            let dtype = context.input_dtype(index)?;
            ensure!(
                dtype == DType::Resource && context.input_is_on_host(index)?,
                Error::invalid_argument(format!(
                    "input {index} of {dtype} is not a variable's handle in host memory; name the handles, \
                     and each of them in `host_memory(...)` of `#[kernel]`"
                ))
            );
        }
        let (raw, status) = (context.raw.as_ptr(), context.status.as_ptr());
        let copy: TF_CopyTensorFn = Some(copy::<P>);
        let mut holder = ptr::null_mut();
        // SAFETY: a run that has not ended, as many indices in range as are said, a place for the answer
        // and a status.
        unsafe {
            let (inputs, count) = (inputs.as_ptr(), inputs.len());
            (functions.lock)(raw, true, false, inputs, count, copy, &raw mut holder, status);
        }
        let lock = NonNull::new(holder).map(|holder| Held { holder, release: functions.release });
        context.status.check()?;
        let lock = lock.ok_or_else(not_there)?;
        let mut tensors = Vec::with_capacity(inputs.len());
        for &input in inputs {
            let mut tensor = ptr::null_mut();
            // SAFETY: `raw`, `copy` and `status` are those of the call that took the locks, which `lock` still
            // holds. The host sets `tensor` to one that we own.
            let tensor = unsafe {
                (functions.get)(raw, input, true, false, false, copy, &raw mut tensor, status);
                context.status.check()?;
                ensure!(!tensor.is_null(), not_there());
                Tensor::adopt(
                    tensor,
                    &context.host,
                    &format_args!("the variable of input {input}"),
                )?
            };
            tensors.push(DeviceTensor::new(tensor)?);
        }
        Ok(Self { tensors, _lock: lock, context: PhantomData })
    }
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

/// The host then has an error of its own in the context, which stays the first.
#[cold]
fn not_there() -> Error {
    Error::failed_precondition("there is no such variable")
}

/// Copies a variable that somebody else reads, before it is changed. The host gives both tensors away.
unsafe extern "C" fn copy<P: Platform>(
    raw: *mut TF_OpKernelContext,
    source: *mut TF_Tensor,
    target: *mut TF_Tensor,
) {
    const OP: &str = "the copy of a variable";
    let copied = boundary::catch(OP, || {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let status = Status::new(host.status)?;
        let raw =
            NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow passed no context"))?;
        // SAFETY: a run of a kernel for `P`'s devices, and two tensors that are ours.
        let (source, target, stream) = unsafe {
            let source = Tensor::adopt(source, &host, &"a variable");
            let target = Tensor::adopt(target, &host, &"memory for a variable");
            let handle = stream_of(raw, &host, &status)?;
            let stream = borrow::<StreamState<P::Device>, _>(handle).ok_or_else(not_there)?;
            (DeviceTensor::new(source?)?, DeviceTensor::new(target?)?, stream)
        };
        ensure!(
            source.bytes() == target.bytes(),
            Error::internal("TensorFlow copies between variables of different sizes")
        );
        match (source.ptr(), target.ptr()) {
            (Some(from), Some(to)) => stream.author()?.copy_on_device(to, from, source.bytes()),
            _ => Ok(()),
        }
    });
    if let Err(error) = copied {
        // SAFETY: the run has not ended.
        unsafe { fail(OP, raw, error) };
    }
}

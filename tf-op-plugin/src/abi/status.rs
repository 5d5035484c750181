//! The tables of the host that kernels use, and a status for calls into them.

use core::ffi::CStr;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use tf_fs_sys::host::{MissingSymbol, Table as _};
use tf_fs_sys::{
    KernelFunctions, StatusFunctions, TF_Code, TF_OK, TF_Status, TF_StringView, TensorFunctions,
};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::__private::boundary::lent;
use tf_plugin_core::{Code, Error, Result};

/// The functions of the host that kernels require.
#[derive(Clone, Copy, Debug)]
pub struct HostApi {
    /// `kernels.h`.
    pub kernels: &'static KernelFunctions,
    /// `tf_tensor.h`.
    pub tensors: &'static TensorFunctions,
}

impl HostApi {
    /// Binds the functions.
    ///
    /// # Errors
    /// If the process does not have one of them.
    pub fn get() -> Result<Self, MissingSymbol> {
        Ok(Self { kernels: KernelFunctions::get()?, tensors: TensorFunctions::get()? })
    }
}

/// Calls a function of the host with the pointer in `$of`, these arguments and the status of `$of`. Returns its result
/// or its error. An unsafe operation: the arguments must be those that the function requires.
#[doc(hidden)]
#[macro_export]
macro_rules! __tf_op_plugin_ask {
    ($of:ident $(.$path:ident)+ ($($argument:expr),*)) => {{
        let answer = ($of$(.$path)+)($of.raw.as_ptr(), $($argument,)* $of.status.as_ptr());
        $of.status.check()?;
        answer
    }};
}
pub(crate) use crate::__tf_op_plugin_ask as ask;

/// A status for calls into the host.
#[derive(Debug)]
pub struct Status {
    raw: NonNull<TF_Status>,
    host: &'static StatusFunctions,
}

// SAFETY: a status belongs to no thread, and one without `Sync` is used by one at a time.
unsafe impl Send for Status {}

impl Status {
    /// Creates a status.
    ///
    /// # Errors
    /// If the process has no TensorFlow.
    pub fn new() -> Result<Self> {
        let host = StatusFunctions::get().map_err(Error::failed_precondition)?;
        // SAFETY: the function takes nothing.
        let raw = NonNull::new(unsafe { (host.TF_NewStatus)() });
        let raw = raw.ok_or_else(|| Error::resource_exhausted("TensorFlow made no status"))?;
        Ok(Self { raw, host })
    }

    /// Returns the host's status, which stays this value's.
    #[must_use]
    pub fn as_ptr(&self) -> *mut TF_Status {
        self.raw.as_ptr()
    }

    /// Returns the error that the last call has reported, if any, and resets the status to OK.
    #[inline]
    pub fn check(&self) -> Result<()> {
        // SAFETY: a status of the host that lives.
        match unsafe { (self.host.TF_GetCode)(self.as_ptr()) } {
            TF_OK => Ok(()),
            code => Err(self.take(code)),
        }
    }

    #[cold]
    fn take(&self, code: TF_Code) -> Error {
        let code = Code::from_raw(code).unwrap_or(Code::Unknown);
        // SAFETY: a status of the host that lives, whose text is copied before it changes.
        unsafe {
            let message = CStr::from_ptr((self.host.TF_Message)(self.as_ptr()));
            let error = Error::new(code, message.to_string_lossy().into_owned());
            (self.host.TF_SetStatus)(self.as_ptr(), TF_OK, c"".as_ptr());
            error
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: made by `TF_NewStatus`, and deleted once.
        unsafe { (self.host.TF_DeleteStatus)(self.as_ptr()) }
    }
}

/// A status that no call uses: to make and delete one in each run takes 200 instructions.
///
/// Nothing waits for it. A run that finds none, as another one has it, makes its own.
#[derive(Debug, Default)]
pub(crate) struct SpareStatus(AtomicPtr<TF_Status>);

impl SpareStatus {
    /// Takes the status, or creates one.
    ///
    /// # Errors
    /// If the process has no TensorFlow.
    pub(crate) fn take(&self) -> Result<Status> {
        match NonNull::new(self.0.swap(ptr::null_mut(), Ordering::Acquire)) {
            Some(raw) => {
                let host = StatusFunctions::get().map_err(Error::failed_precondition)?;
                Ok(Status { raw, host })
            }
            None => Status::new(),
        }
    }

    /// Keeps a status for the next run.
    pub(crate) fn put(&self, status: Status) {
        // One with an error would make the next call fail.
        if status.check().is_ok() {
            self.replace(ManuallyDrop::new(status).as_ptr());
        }
    }

    /// Keeps a status, or none, and deletes the one before.
    fn replace(&self, raw: *mut TF_Status) {
        if let Some(raw) = NonNull::new(self.0.swap(raw, Ordering::AcqRel))
            && let Ok(host) = StatusFunctions::get()
        {
            drop(Status { raw, host });
        }
    }
}

impl Drop for SpareStatus {
    fn drop(&mut self) {
        self.replace(ptr::null_mut());
    }
}

/// Reports an error to the host by the function that `pick` returns. Logs it if `raw` is null or functions are missing.
///
/// # Safety
/// `raw` is null, or a construction or a run that has not ended; what `pick` returns may be called with it and any status.
#[cold]
pub unsafe fn fail<T>(
    op: &'static str,
    raw: *mut T,
    pick: fn(&KernelFunctions) -> unsafe extern "C" fn(*mut T, *mut TF_Status),
    error: Error,
) {
    let told = HostApi::get().map_err(Error::failed_precondition);
    match told.and_then(|host| Ok((host, Status::new()?))) {
        Ok((host, status)) if !raw.is_null() => {
            // SAFETY: a status of the host that lives, which the host copies, and a construction or a run that has not
            // ended, with the function that reports failures of such a one.
            unsafe {
                boundary::write_error(op, status.as_ptr(), error);
                pick(host.kernels)(raw, status.as_ptr());
            }
        }
        _ => boundary::log_failed(op, " and TensorFlow has no way to receive the error", error),
    }
}

/// Returns the error for a TensorFlow that lacks the functions that an option of `#[kernel]` needs.
#[cold]
pub fn not_exported(option: &str) -> Error {
    let text = format!(
        "this TensorFlow does not export its functions for {option}; register the kernel with `{option}`, so that it \
         is left out here"
    );
    Error::new(Code::Unimplemented, text)
}

/// Returns the text that the host lends.
///
/// # Safety
/// What `view` points to can be read for `'a`.
pub unsafe fn text<'a>(view: TF_StringView) -> std::borrow::Cow<'a, str> {
    // SAFETY: `view` points to `len` bytes that stay readable for `'a`.
    String::from_utf8_lossy(unsafe { lent(view.data.cast(), view.len) }.unwrap_or_default())
}

//! Callbacks into the host.

use super::pending_copies::dropped;
use crate::health::Health;
use core::ffi::c_void;
use core::fmt;
use tf_fs_sys::TF_Status;
use tf_op_plugin::__private::abi::Status;
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Code, Result};

const OP: &str = "host_callback";

type HostFunction = unsafe extern "C" fn(*mut c_void, *mut TF_Status);
type RustFunction = Box<dyn FnOnce(Result<()>) -> Result<()> + Send>;

/// A call that a stream makes after the work before it, by [`complete`](Self::complete). The type ensures that
/// it is made exactly once: dropping it completes it with an error.
///
/// [`Stream::host_callback`](crate::Stream::host_callback) says when, and on which threads.
pub struct HostCallback {
    /// `None` once completed.
    function: Option<Function>,
    health: Option<Health>,
}

enum Function {
    Host { function: HostFunction, argument: Argument },
    Rust(RustFunction),
}

/// The argument of the host's function.
struct Argument(*mut c_void);

// SAFETY: the header has the callback called on another thread than the caller's.
unsafe impl Send for Argument {}

impl HostCallback {
    /// Creates a callback that calls a Rust function with the outcome of the work before it, and logs its error.
    #[must_use]
    pub fn new(function: impl FnOnce(Result<()>) -> Result<()> + Send + 'static) -> Self {
        Self { function: Some(Function::Rust(Box::new(function))), health: None }
    }

    /// Creates a callback that calls a function of the host.
    /// # Safety
    /// `function` can be called once with `argument`, on any thread.
    pub(super) unsafe fn of_host(
        function: HostFunction,
        argument: *mut c_void,
        health: Health,
    ) -> Self {
        let function = Function::Host { function, argument: Argument(argument) };
        Self { function: Some(function), health: Some(health) }
    }

    /// Makes the call with the outcome of the work before it, on this thread, and returns when it has ended. It may block,
    /// and may call the device: hold no lock.
    pub fn complete(mut self, outcome: Result<()>) {
        self.run(outcome);
    }

    fn run(&mut self, outcome: Result<()>) {
        let Some(function) = self.function.take() else { return };
        let result = match function {
            Function::Rust(function) => boundary::catch(OP, || function(outcome)),
            // SAFETY: taken, so this is the one call.
            Function::Host { function, argument } => unsafe { call(function, argument, outcome) },
        };
        match (&result, &self.health) {
            (Ok(()), _) => {}
            (Err(error), Some(health)) => health.note(OP, error),
            (Err(error), None) => {
                boundary::log_error(&format_args!("a callback failed: {error:#}"));
            }
        }
    }
}

/// Calls the host's function with a status that holds `outcome`, and returns the function's own result.
/// # Safety
/// `function` can be called once with `argument`.
unsafe fn call(function: HostFunction, argument: Argument, outcome: Result<()>) -> Result<()> {
    // Without a status the host would crash; leaking its argument is better.
    let status = Status::new()?;
    let failed = outcome.is_err();
    // SAFETY: a status of the host that lives; `function` and `argument` came from the host together.
    unsafe {
        if let Err(error) = outcome {
            boundary::write_error(OP, status.as_ptr(), error);
        }
        function(argument.0, status.as_ptr());
    }
    // The status may still hold `outcome`, an error that the token of that work has reported.
    if failed { Ok(()) } else { status.check() }
}

impl Drop for HostCallback {
    fn drop(&mut self) {
        if self.function.is_some() {
            let error = dropped("a `HostCallback`").with_code(Code::Cancelled);
            if let Some(health) = &self.health {
                health.note(OP, &error);
            }
            self.run(Err(error));
        }
    }
}

impl fmt::Debug for HostCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCallback").field("completed", &self.function.is_none()).finish()
    }
}

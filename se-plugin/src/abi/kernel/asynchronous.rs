//! One run of an asynchronous kernel.

use super::context::{Context, Node, fail, stream_of};
use super::status::{HostApi, Status};
use crate::abi::pending::dropped;
use crate::abi::state::{StreamState, share};
use crate::platform::Platform;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use tf_fs_plugin::{Error, Result};
use tf_fs_sys::TF_OpKernelContext;

/// What the host's thread waits for.
#[derive(Debug, Default)]
pub(super) struct Signal {
    done: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn set(&self) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(super) fn wait(&self) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.changed.wait_while(done, |done| !*done);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A run that is still to be ended, which happens exactly once.
pub(super) struct Pending {
    op: &'static str,
    raw: *mut TF_OpKernelContext,
    /// `None` once ended.
    done: Option<Arc<Signal>>,
}

impl Pending {
    /// # Safety
    /// `raw` is null or a run that does not end before the signal is set.
    pub(super) unsafe fn new(
        op: &'static str,
        raw: *mut TF_OpKernelContext,
        done: Arc<Signal>,
    ) -> Self {
        Self { op, raw, done: Some(done) }
    }

    pub(super) fn finish(mut self, outcome: Result<()>) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Result<()>) {
        let Some(done) = self.done.take() else { return };
        if let Err(error) = outcome {
            // SAFETY: as `new` was promised: the signal is not set yet.
            unsafe { fail(self.op, self.raw, error) };
        }
        done.set();
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.done.is_some() {
            let error = if std::thread::panicking() {
                Error::internal(format!("`{}` panicked; the log says where", self.op))
            } else {
                dropped("the context of an asynchronous kernel")
            };
            self.end(Err(error));
        }
    }
}

/// One run of an [asynchronous kernel](crate::kernel::AsyncKernel), with all that a [`Context`] has: it can
/// be sent to another thread and lives until it is [completed](Self::complete). One that is dropped is
/// completed with an error.
pub struct AsyncContext<P: Platform> {
    /// `None` once completed. Behind it the stream that it borrows.
    prepared: Option<Prepared<P>>,
    pending: Option<Pending>,
}

/// The context, and what it borrows.
pub(super) struct Prepared<P: Platform> {
    context: Context<'static, P>,
    _stream: Arc<StreamState<P::Device>>,
}

// SAFETY: a run belongs to no thread. The one that TensorFlow has called on waits and touches nothing until
// the run is ended, and a value without `Sync` is used by one thread at a time; the stream and the platform
// are `Send` and `Sync`.
unsafe impl<P: Platform> Send for AsyncContext<P> {}

impl<P: Platform> AsyncContext<P> {
    /// # Safety
    /// As for [`Context::new`]; the run lasts until [`Pending`] ends it.
    pub(super) unsafe fn prepare(
        raw: *mut TF_OpKernelContext,
        node: &OnceLock<Node>,
    ) -> Result<Prepared<P>> {
        // SAFETY: as the caller promises; the stream is kept as long as the context, and longer.
        unsafe {
            let context = Context::<'static, P>::new(raw, node)?;
            let host: HostApi = context.host;
            let status = Status::new(host.status)?;
            let run = NonNull::new(raw).ok_or_else(|| Error::internal("there is no context"))?;
            let stream = share::<StreamState<P::Device>, _>(stream_of(run, &host, &status)?)
                .ok_or_else(|| Error::internal("there is no stream"))?;
            debug_assert!(core::ptr::eq(context.stream_state(), &*stream));
            Ok(Prepared { context, _stream: stream })
        }
    }

    pub(super) fn new(prepared: Prepared<P>, pending: Pending) -> Self {
        Self { prepared: Some(prepared), pending: Some(pending) }
    }

    /// Ends the run, with its outcome.
    pub fn complete(mut self, outcome: Result<()>) {
        let prepared = self.prepared.take();
        let outcome = outcome.and_then(|()| match &prepared {
            Some(prepared) => prepared.context.check_outputs(),
            None => Ok(()),
        });
        // The host frees the run once it is told.
        drop(prepared);
        if let Some(pending) = self.pending.take() {
            pending.finish(outcome);
        }
    }
}

impl<P: Platform> Deref for AsyncContext<P> {
    type Target = Context<'static, P>;

    fn deref(&self) -> &Self::Target {
        match &self.prepared {
            Some(prepared) => &prepared.context,
            // `complete` takes it, and with it the value.
            None => unreachable!(),
        }
    }
}

impl<P: Platform> Drop for AsyncContext<P> {
    fn drop(&mut self) {
        drop(self.prepared.take());
        drop(self.pending.take());
    }
}

impl<P: Platform> fmt::Debug for AsyncContext<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncContext").finish_non_exhaustive()
    }
}

//! The guard around every slot: nothing unwinds into C, and a status is always written.

use super::failure_log::log_error;
use super::panic::{Panic, discard};
use super::status::{self, SlotStatus};
use crate::error::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tf_fs_sys::TF_Status;

/// The result of a slot: a value, and the content of its status.
pub struct SlotResult<R> {
    /// The value that the slot returns.
    pub value: R,
    /// The content of its status.
    pub status: SlotStatus,
}

/// Runs the body of a slot. An error or a panic is written to the status, and the slot then returns
/// `fallback`.
///
/// Without a status nothing runs: the host would take any outcome for success.
///
/// # Safety
/// `status` must be null or a status of the host.
#[inline]
pub unsafe fn guard<R>(
    op: &'static str,
    status: *mut TF_Status,
    fallback: R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    // SAFETY: `status` is null or a status of the host.
    unsafe {
        guard_slot_result(op, status, fallback, || {
            Ok(SlotResult { value: body()?, status: SlotStatus::Ok })
        })
    }
}

/// Runs the body of a slot as [`guard`] does, where an error may come with a value of its own.
///
/// # Safety
/// `status` must be null or a status of the host.
#[inline]
pub unsafe fn guard_slot_result<R>(
    op: &'static str,
    status: *mut TF_Status,
    fallback: R,
    body: impl FnOnce() -> Result<SlotResult<R>>,
) -> R {
    if status.is_null() {
        return without_status(op, fallback);
    }
    // An error is written where it arises, so that a success does not pass anything large on.
    let run = || match body() {
        Ok(SlotResult { value, status: outcome }) => {
            // SAFETY: `status` is not null, so it is a status of the host.
            unsafe { status::write(op, status, outcome) };
            Some(value)
        }
        Err(error) => {
            // SAFETY: `status` is not null, so it is a status of the host.
            unsafe { status::write_error(op, status, error) };
            None
        }
    };
    // The closure's captures are arguments from the host and shared references to the author's
    // state, which guards itself with locks that a panic poisons.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => value.unwrap_or(fallback),
        Err(payload) => {
            // SAFETY: `status` is not null, so it is a status of the host.
            unsafe { status::write_panic(op, status, payload) };
            fallback
        }
    }
}

/// Runs the body of a slot that has no status. An error or a panic is logged, and the slot then
/// returns `fallback`.
#[inline]
pub fn guard_logged<R>(
    op: &'static str,
    fallback: impl FnOnce() -> R,
    body: impl FnOnce() -> Result<R>,
) -> R {
    let run = || match body() {
        Ok(value) => Some(value),
        Err(error) => {
            log_failed(op, " and TensorFlow has no way to receive the error", error);
            None
        }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Some(value)) => value,
        Ok(None) => fallback(),
        Err(payload) => {
            panicked_quietly(op, payload);
            fallback()
        }
    }
}

/// Logs an error that nobody receives, and its `outcome`.
#[cold]
#[inline(never)]
pub fn log_failed(op: &'static str, outcome: &str, error: Error) {
    log_error(&format_args!("`{op}` failed{outcome}: {error:#}"));
    discard(op, error);
}

#[cold]
#[inline(never)]
fn panicked_quietly(op: &'static str, payload: Box<dyn Any + Send>) {
    log_error(&Panic::take(op, payload));
}

/// Runs the author's code outside of a slot, or where the slot does not return its failure
/// unchanged. A panic becomes an error.
#[inline]
pub fn catch<R>(op: &'static str, body: impl FnOnce() -> Result<R>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(panicked(op, payload)),
    }
}

#[cold]
#[inline(never)]
fn panicked(op: &'static str, payload: Box<dyn Any + Send>) -> Error {
    match payload.downcast::<Error>() {
        Ok(error) => *error,
        Err(payload) => Error::internal(Panic::take(op, payload)),
    }
}

/// Unwinds to the next [`catch`], which returns the error: for functions that cannot return one, such as those of a growing
/// buffer. Nothing is printed.
#[cold]
#[inline(never)]
pub fn raise(error: Error) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

#[cold]
#[inline(never)]
fn without_status<R>(op: &'static str, fallback: R) -> R {
    log_error(&format_args!("`{op}` was called without a status and did nothing"));
    fallback
}

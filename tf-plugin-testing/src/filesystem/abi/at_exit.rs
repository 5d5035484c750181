//! Values that are dropped when the process exits, since statics are not.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Keeps a value until the process exits, and drops it then, the last first.
pub(in crate::filesystem) fn drop_at_exit(value: impl Send + 'static) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: a function that never unwinds and that is there as long as this program. If there is
        // no memory to note it, nothing is torn down.
        unsafe { libc::atexit(drop_all) };
    });
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(value));
}

extern "C" fn drop_all() {
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
    for value in kept.into_iter().rev() {
        // The process ends anyway; the hook has printed the panic.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

//! Errors that no status reports.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// What [`log_error`] logs in this thread, while a test collects it.
    static LOGGED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Returns the errors that `body` logs in this thread because no status reports them. For hosts of tests.
pub fn logged_by(body: impl FnOnce()) -> Vec<String> {
    let before = LOGGED.replace(Some(Vec::new()));
    body();
    LOGGED.replace(before).unwrap_or_default()
}

/// Logs an error that no status can report. A logger of the author's may panic, and so may the
/// formatting of what failed.
#[cold]
#[inline(never)]
pub fn log_error(what: &dyn core::fmt::Display) {
    crate::logging::init();
    let log = || {
        log::error!("{what}");
        // A thread that ends has none.
        let _ = LOGGED.try_with(|logged| {
            if let Some(logged) = &mut *logged.borrow_mut() {
                logged.push(what.to_string());
            }
        });
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(log)) {
        // Leaked, because its destructor may panic, too.
        core::mem::forget(payload);
    }
}

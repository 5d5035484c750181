//! The functions of `grappler.h`, of which each host has some.

use std::sync::{Mutex, PoisonError};
use tf_fs_sys::GrapplerFunctions;
use tf_fs_sys::host::Table as _;

/// Changes functions for the plugins of this process; those of other hosts stay.
///
/// # Safety
/// The functions that `change` sets keep the promises of the table's fields.
pub(crate) unsafe fn change(change: impl FnOnce(&mut GrapplerFunctions)) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // All functions are optional, so there always is a table.
    let Ok(before) = GrapplerFunctions::get() else { return };
    let mut table = *before;
    change(&mut table);
    // SAFETY: the functions that were there keep the promises, and those that are new by this function's condition.
    unsafe { GrapplerFunctions::install(Box::leak(Box::new(table))) };
}

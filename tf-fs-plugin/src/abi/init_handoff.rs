//! A filesystem that a test created, on its way to `init`, which takes it on the same thread.

use super::registration::Registration;
use crate::filesystem::Filesystem;
use core::any::Any;
use core::cell::RefCell;

type Given = (Box<dyn Any>, &'static Registration);

thread_local! {
    static GIVEN: RefCell<Option<Given>> = const { RefCell::new(None) };
}

/// Runs `register`, during which `take` returns `filesystem`.
pub fn with_handoff<F: Filesystem, R>(
    filesystem: F,
    registration: &'static Registration,
    register: impl FnOnce() -> R,
) -> R {
    GIVEN.set(Some((Box::new(filesystem), registration)));
    let result = register();
    // A refused registration has not taken it.
    drop(GIVEN.take());
    result
}

pub(super) fn take<F: Filesystem>() -> Option<(F, &'static Registration)> {
    let (filesystem, registration) = GIVEN.take()?;
    Some((*filesystem.downcast().ok()?, registration))
}

//! A filesystem that a test made, on its way to the `init` that takes it, which runs on the same thread.

use super::registration::Registration;
use crate::filesystem::Filesystem;
use core::any::Any;
use core::cell::RefCell;

type Given = (Box<dyn Any>, &'static Registration);

thread_local! {
    static GIVEN: RefCell<Option<Given>> = const { RefCell::new(None) };
}

/// Runs `register`, during which `take` gives `filesystem` out.
pub fn with_given<F: Filesystem, R>(
    filesystem: F,
    registration: &'static Registration,
    register: impl FnOnce() -> R,
) -> R {
    GIVEN.set(Some((Box::new(filesystem), registration)));
    let result = register();
    // What a registration that was refused has left.
    drop(GIVEN.take());
    result
}

pub(super) fn take<F: Filesystem>() -> Option<(F, &'static Registration)> {
    let (filesystem, registration) = GIVEN.take()?;
    Some((*filesystem.downcast().ok()?, registration))
}

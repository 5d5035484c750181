//! The loads of the plugin: TensorFlow may load it several times.

use core::fmt::{self, Display};
use core::sync::atomic::AtomicUsize;
use std::sync::OnceLock;
use tf_fs_sys::TF_Status;
use tf_plugin_core::__private::boundary::{self, guard, log_error};
use tf_plugin_core::Result;

/// Returns the name that the `load`th repetition registers in place of `name`. It adds only capital letters and `_`.
pub(super) fn name_of_load(name: &str, load: usize) -> String {
    let mut text = String::from(name);
    if load > 0 {
        text.push_str("_DUP_");
        let mut rest = load;
        while rest > 0 {
            text.push(char::from(b'A' + (rest % 26) as u8));
            rest /= 26;
        }
    }
    text
}

/// Implements `op`, a function that TensorFlow looks up by its name. TensorFlow aborts on an error, so the log says
/// what cannot be registered.
///
/// # Safety
/// `status` is null or a status of the host.
pub(super) unsafe fn initialize(
    op: &'static str,
    what: &dyn Display,
    status: *mut TF_Status,
    register: impl FnOnce() -> Result<()>,
) {
    boundary::watch_panics();
    // Called on load: in a child that another thread forks during the first call, the next one would wait forever.
    boundary::fork::watch();
    let body = || {
        tf_plugin_core::logging::init();
        register().inspect_err(|error| {
            log_error(&format_args!("{what} cannot be registered: {error:#}"));
        })
    };
    // SAFETY: `status` is null or a status of the host.
    unsafe { guard(op, status, (), body) };
}

/// An object of the plugin's author, which is created once: for the plugin's static.
pub struct Export<T: ?Sized> {
    /// How often the plugin was loaded.
    pub(super) loads: AtomicUsize,
    make: Option<fn() -> Box<T>>,
    /// `None` if it could not be created.
    object: OnceLock<Option<Box<T>>>,
}

impl<T: ?Sized> Export<T> {
    /// Creates the export of a plugin that is not loaded yet. `make` creates the object, if there is one.
    #[must_use]
    pub const fn new(make: Option<fn() -> Box<T>>) -> Self {
        Self { loads: AtomicUsize::new(0), make, object: OnceLock::new() }
    }

    /// Returns the object, which the first call creates. `None` without `make`, or if it panics, which is logged.
    pub(super) fn get(&self, op: &'static str, what: &str) -> Option<&T> {
        let object = self.object.get_or_init(|| {
            let make = self.make?;
            boundary::catch(op, || Ok(make()))
                .inspect_err(|error| {
                    log_error(&format_args!("{what} cannot be made and does not run: {error:#}"));
                })
                .ok()
        });
        object.as_deref()
    }
}

impl<T: ?Sized> fmt::Debug for Export<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").field("loads", &self.loads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::name_of_load;

    #[test]
    fn repeated_loads_have_names_of_their_own() {
        let names: Vec<String> = (0..1000).map(|load| name_of_load("MY_X", load)).collect();
        assert_eq!(names[..3], ["MY_X", "MY_X_DUP_B", "MY_X_DUP_C"]);
        let mut different = names.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len());
        assert!(
            names.iter().flat_map(|name| name.bytes()).all(|b| b.is_ascii_uppercase() || b == b'_')
        );
    }
}

//! Binding the functions that the host process provides, at run time.
//!
//! A plugin that names `TF_SetStatus` as an undefined symbol does not load in TensorFlow 2.12 to
//! 2.18, which opens its own libraries with `RTLD_LOCAL`; one that names TensorFlow's libraries as
//! needed cannot be repaired into a wheel. So nothing is imported: each header's functions form a
//! table ([`StatusFunctions`](crate::status::StatusFunctions) …) that is filled on first use with
//! `dlsym`, from TensorFlow's libraries if this process has loaded them, then from all globally
//! visible symbols.
//!
//! A table has required functions, whose absence makes [`Table::get`] fail with a
//! [`MissingSymbol`] that names the function, and optional ones, which are `Option`s because some
//! TensorFlow versions do not have them. Tests put their own table in place with
//! [`Table::install`].

use core::ffi::{CStr, c_void};
use core::fmt;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::boxed::Box;

/// The libraries that may hold the host's functions, in the order of search. They are opened with
/// `RTLD_NOLOAD`: only libraries that the process has loaded already are searched.
pub const LIBRARIES: &[&CStr] = &[
    c"libtensorflow_framework.so.2",
    c"libtensorflow_cc.so.2",
    c"libtensorflow.so.2",
    c"libtensorflow_framework.so.3",
    c"libtensorflow_cc.so.3",
    c"libtensorflow_framework.2.dylib",
    c"libtensorflow_cc.2.dylib",
];

/// A function that this plugin needs and that no library of the process provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSymbol {
    /// The function's C name.
    pub name: &'static str,
}

impl fmt::Display for MissingSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the function `{}` is in no library of this process; load the plugin from TensorFlow 2.12 or newer",
            self.name
        )
    }
}

impl core::error::Error for MissingSymbol {}

/// Where a bound table is kept. Only this module accesses it, so its content can be relied on.
#[doc(hidden)]
#[derive(Debug)]
pub struct Cell<T>(AtomicPtr<T>);

impl<T> Cell<T> {
    pub(crate) const fn empty() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }
}

/// A table of host functions, which `host_functions!` declares.
pub trait Table: Copy + 'static {
    /// Looks every function up, without caching.
    ///
    /// # Errors
    /// [`MissingSymbol`] with the first required function that was not found.
    fn bind() -> Result<Self, MissingSymbol>;

    #[doc(hidden)]
    fn cell() -> &'static Cell<Self>;

    /// Returns the table, bound on the first call that succeeds. A failure is not cached: a later
    /// call, made after TensorFlow was loaded, may succeed.
    ///
    /// # Errors
    /// [`MissingSymbol`] as from [`Table::bind`].
    #[inline]
    fn get() -> Result<&'static Self, MissingSymbol> {
        let table = Self::cell().0.load(Ordering::Acquire);
        if table.is_null() {
            return bind_once();
        }
        // SAFETY: the cell only ever holds null or a pointer to a leaked or 'static table.
        Ok(unsafe { &*table })
    }

    /// Replaces the table that is bound now, for this process and all threads. For tests and for
    /// hosts that are not TensorFlow.
    ///
    /// # Safety
    /// Each function of `table` must keep the promises that its field documents, for as long as the
    /// table is installed.
    unsafe fn install(table: &'static Self) {
        Self::cell().0.store(core::ptr::from_ref(table).cast_mut(), Ordering::Release);
    }
}

#[cold]
fn bind_once<T: Table>() -> Result<&'static T, MissingSymbol> {
    let fresh = Box::into_raw(Box::new(T::bind()?));
    match T::cell().0.compare_exchange(
        core::ptr::null_mut(),
        fresh,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        // SAFETY: `fresh` came from `Box::into_raw`, is now published and never freed.
        Ok(_) => Ok(unsafe { &*fresh }),
        Err(winner) => {
            // SAFETY: `fresh` was not published, so this is its only owner; `winner` is non-null and,
            // like every pointer in the cell, points to a table that is never freed.
            unsafe {
                drop(Box::from_raw(fresh));
                Ok(&*winner)
            }
        }
    }
}

/// Returns the major and minor version of the TensorFlow in this process; `None` if there is none, or it does not tell.
#[must_use]
pub fn release() -> Option<(u32, u32)> {
    let version = crate::registration::RegistrationFunctions::get().ok()?.TF_Version?;
    // SAFETY: the function returns a static C string.
    let version = unsafe { CStr::from_ptr(version()) };
    major_minor(version.to_str().ok()?)
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the address of a function in the host's libraries or the global symbols, or `None`.
#[must_use]
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    LIBRARIES
        .iter()
        .filter_map(|library| {
            // SAFETY: a NUL-terminated name; RTLD_NOLOAD opens nothing that is not loaded, so no
            // initialiser runs. The reference it takes keeps the host loaded, which is wanted.
            let handle =
                unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
            (!handle.is_null()).then_some(handle)
        })
        .chain(core::iter::once(libc::RTLD_DEFAULT))
        .find_map(|handle| {
            // SAFETY: a handle from `dlopen` (or RTLD_DEFAULT) and a NUL-terminated name.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        })
}

/// Returns the name of a status code without its prefix; `None` for a number that is not one.
#[must_use]
pub fn code_name(code: crate::TF_Code) -> Option<&'static str> {
    // In the order of their numbers.
    const NAMES: &str = "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED \
                         RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE \
                         DATA_LOSS UNAUTHENTICATED";
    NAMES.split(' ').nth(code as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::StatusFunctions;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(major_minor("2.9.1"), Some((2, 9)));
        assert!(major_minor("2.17.0-rc1") >= Some((2, 17)));
        assert!(major_minor("2.9.0") < Some((2, 17)) && major_minor("3.0.0") > Some((2, 17)));
        assert_eq!(major_minor("nightly"), None);
    }

    #[test]
    fn a_visible_symbol_is_found_and_an_absent_one_is_not() {
        assert!(symbol(c"malloc").is_some());
        assert!(symbol(c"TF_NoSuchFunction").is_none());
    }

    #[test]
    fn a_process_without_tensorflow_gets_an_error_that_names_the_function() {
        let missing = StatusFunctions::get().expect_err("no TensorFlow in unit tests");
        assert_eq!(missing.name, "TF_NewStatus");
        use std::string::ToString;
        assert!(missing.to_string().contains("`TF_NewStatus`"), "{missing}");
    }
}

//! The state behind the host's `void*` of a filesystem, and how slots access it.

use super::registration::Registration;
use super::tokens::Tokens;
use crate::filesystem::Filesystem;
use crate::operations::Operations;
use crate::uri::Uri;
use core::ffi::{CStr, c_char};
use tf_fs_sys::TF_Filesystem;
use tf_plugin_core::sync::Mutex;
use tf_plugin_core::{Code, Error, Result};

/// A path or another name from the host: a C string.
pub(super) type Path = *const c_char;

/// Defines slots with a status. Each runs its body with the state of the filesystem that it gets,
/// and returns the value after `or` with an error.
macro_rules! slots {
    ($(
        $(#[$doc:meta])*
        fn $op:ident($filesystem:ident: $state:ident $(, $arg:ident: $type:ty)*) $(-> $ret:ty, or $failed:literal)? $body:block
    )*) => {$(
        $(#[$doc])*
        unsafe extern "C" fn $op<F: Filesystem>(
            $filesystem: *const TF_Filesystem,
            $($arg: $type,)*
            status: *mut TF_Status,
        ) $(-> $ret)? {
            // SAFETY: the host passes a filesystem of this table, a status, and between them what the header says, valid
            // during the call: C strings, places to fill, and arrays with their lengths.
            unsafe {
                guard(stringify!($op), status, ($($failed)?), || {
                    let $state = State::<F>::of($filesystem)?;
                    $body
                })
            }
        }
    )*};
}
pub(super) use slots;

/// The author's filesystem with the state that the SDK keeps for it.
pub(super) struct State<F: Filesystem> {
    pub(super) filesystem: F,
    pub(super) registration: &'static Registration,
    pub(super) tokens: Mutex<Tokens<F::Transaction>>,
    /// `scheme:///`, for which TensorFlow passes `/`.
    root: Vec<u8>,
}

impl<F: Filesystem> State<F> {
    pub(super) fn new(filesystem: F, registration: &'static Registration) -> Self {
        Self {
            filesystem,
            registration,
            tokens: Mutex::default(),
            root: format!("{}:///", registration.scheme()).into_bytes(),
        }
    }

    /// Returns the state behind a filesystem of the host.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` before `init` or after `cleanup`.
    ///
    /// # Safety
    /// `filesystem` must be null or valid, and initialised by `init::<F, _>` or zeroed; it must stay
    /// so for `'a`.
    #[inline]
    pub(super) unsafe fn of<'a>(filesystem: *const TF_Filesystem) -> Result<&'a Self> {
        // SAFETY: `filesystem` is null or valid, and its `plugin_filesystem` is null or a live `Self`: only
        // `cleanup` frees it, after it has set the pointer to null.
        unsafe { filesystem.as_ref().and_then(|fs| fs.plugin_filesystem.cast::<Self>().as_ref()) }
            .ok_or_else(not_initialised)
    }

    /// Runs an operation on the path that the host passes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null, `FAILED_PRECONDITION` for another filesystem's scheme, and those
    /// of `op`.
    ///
    /// # Safety
    /// `path` must be null or a C string.
    #[inline]
    pub(super) unsafe fn with_uri<R>(
        &self,
        path: *const c_char,
        op: impl FnOnce(Uri<'_>) -> Result<R>,
    ) -> Result<R> {
        // SAFETY: `path` is null or a C string.
        let path = unsafe { bytes(path) }?;
        if F::PROVIDED.contains(Operations::TRANSLATE_NAME) {
            // The author decides what a canonical name is.
            return op(Uri::new(path));
        }
        let path = if path == b"/" { &self.root } else { path };
        let mut uri = match Uri::with_prefix(path, self.prefix()) {
            Some(uri) => uri,
            None => {
                let uri = Uri::new(path);
                self.check_scheme(uri)?;
                uri
            }
        };
        let clean;
        if !uri.is_canonical() {
            clean = uri.clean();
            uri = Uri::new(&clean);
        }
        op(uri)
    }

    /// Returns `scheme://`.
    #[inline]
    pub(super) fn prefix(&self) -> &[u8] {
        &self.root[..self.root.len() - 1]
    }

    /// Runs an operation on the two paths that the host passes.
    ///
    /// # Errors
    /// Those of [`with_uri`](Self::with_uri).
    ///
    /// # Safety
    /// Both paths must be null or C strings.
    pub(super) unsafe fn with_uris<R>(
        &self,
        src: *const c_char,
        dst: *const c_char,
        op: impl FnOnce(Uri<'_>, Uri<'_>) -> Result<R>,
    ) -> Result<R> {
        // SAFETY: `src` and `dst` are null or C strings.
        unsafe { self.with_uri(src, |src| self.with_uri(dst, |dst| op(src, dst))) }
    }

    /// Checks that a name belongs to this filesystem; one without a scheme does.
    #[cold]
    pub(super) fn check_scheme(&self, uri: Uri<'_>) -> Result<()> {
        let (scheme, own) = (uri.scheme(), self.registration.scheme());
        if scheme == own || scheme.is_empty() {
            return Ok(());
        }
        Err(Error::failed_precondition(format_args!(
            "{uri}: this filesystem serves `{own}://`, not `{scheme}://`"
        )))
    }
}

/// Returns the bytes of a C string.
///
/// # Errors
/// `INVALID_ARGUMENT` for null.
///
/// # Safety
/// `string` must be null or a C string that lives for `'a`.
#[inline]
pub(super) unsafe fn bytes<'a>(string: *const c_char) -> Result<&'a [u8]> {
    if string.is_null() {
        return Err(null_argument());
    }
    // SAFETY: `string` is not null, so it is a C string, and lives for `'a`.
    Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
}

/// Returns the place that the host passes for a result.
///
/// # Errors
/// `INVALID_ARGUMENT` for null.
///
/// # Safety
/// `place` must be null or valid for reads and writes for `'a`, and nothing else may use it.
pub(super) unsafe fn place<'a, T>(place: *mut T) -> Result<&'a mut T> {
    // SAFETY: `place` is null, or valid for reads and writes for `'a` and used by nothing else.
    unsafe { place.as_mut() }.ok_or_else(null_argument)
}

#[cold]
fn not_initialised() -> Error {
    Error::failed_precondition(
        "the filesystem or file is not open: it failed to open or was cleaned up",
    )
}

#[cold]
pub(super) fn null_argument() -> Error {
    Error::new(Code::InvalidArgument, "unexpected null pointer")
}

/// Returns the state behind an open file or region.
///
/// # Errors
/// `FAILED_PRECONDITION` if it failed to open or was cleaned up.
///
/// # Safety
/// `state` must be null or valid for `'a`.
#[inline]
pub(super) unsafe fn opened<'a, T>(state: *mut core::ffi::c_void) -> Result<&'a T> {
    // SAFETY: `state` is null or points to a `T` that lives for `'a`.
    unsafe { state.cast::<T>().as_ref() }.ok_or_else(not_initialised)
}

/// Takes the state out of the host's field, leaving null, and drops it.
///
/// # Safety
/// `field` must hold null or what `Box::<T>::into_raw` gave, with no reference to it left.
pub(super) unsafe fn drop_state<T>(field: &mut *mut core::ffi::c_void) {
    let state = core::mem::replace(field, core::ptr::null_mut()).cast::<T>();
    if !state.is_null() {
        // SAFETY: not null, so `state` is from `Box::<T>::into_raw`; the host's field is null now and no
        // reference is left.
        drop(unsafe { Box::from_raw(state) });
    }
}

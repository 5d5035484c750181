//! Libraries, and the status that all calls of a table share.

pub(super) mod device;
pub(super) mod filesystem;

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::NonNull;

use tf_fs_sys::host::Table as _;
use tf_fs_sys::{StatusFunctions, TF_Code, TF_OK, TF_Status, Versioned};

/// A library that is never closed, as in TensorFlow.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Opens a plugin.
    pub fn open(path: &Path) -> Result<Self, String> {
        Self::open_with(path, libc::RTLD_LOCAL)
    }

    /// Opens a library whose functions are visible to all libraries that are opened later, such as TensorFlow's.
    pub fn open_for_all(path: &Path) -> Result<Self, String> {
        Self::open_with(path, libc::RTLD_GLOBAL)
    }

    fn open_with(path: &Path, mode: c_int) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: `name` is a C string. The initialisers of the library run, as in every process that uses it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | mode) };
        NonNull::new(handle).map(|handle| Self { handle }).ok_or_else(|| {
            // SAFETY: the text is null or a C string until this thread's next call of the linker, and is copied.
            let problem = unsafe { text(libc::dlerror()) };
            problem.unwrap_or_else(|| format!("cannot open {}", path.display()))
        })
    }

    /// Returns the address of a function.
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the library stays open, and `name` is a C string.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// Copies a C string; returns `None` for null.
///
/// # Safety
/// `text` is null or a C string.
#[doc(hidden)]
pub unsafe fn text(text: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: not null, so a C string by this function's contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Creates a struct of the host that contains its size.
#[doc(hidden)]
pub fn sized<T: Versioned>() -> T {
    let mut record = T::default();
    // SAFETY: the first field of a `Versioned` struct is `struct_size`, a `usize`.
    unsafe { (&raw mut record).cast::<usize>().write(T::STRUCT_SIZE) };
    record
}

/// A status that all calls share, so that plugins are measured and not the allocator.
#[derive(Debug)]
pub struct Status {
    functions: &'static StatusFunctions,
    raw: *mut TF_Status,
    code: Cell<TF_Code>,
}

impl Status {
    fn new() -> Result<Self, String> {
        let functions = StatusFunctions::get().map_err(|missing| missing.to_string())?;
        // SAFETY: the function takes nothing.
        let raw = unsafe { (functions.TF_NewStatus)() };
        Ok(Self { functions, raw, code: Cell::new(TF_OK) })
    }

    /// Calls a function with the status, which is set to OK before.
    fn call(&self, call: impl FnOnce(*mut TF_Status)) -> CallResult<'_> {
        if self.code.get() != TF_OK {
            // SAFETY: `raw` lives as long as `self`, and the message is a C string.
            unsafe { (self.functions.TF_SetStatus)(self.raw, TF_OK, c"".as_ptr()) };
        }
        call(self.raw);
        // SAFETY: `raw` lives as long as `self`.
        self.code.set(unsafe { (self.functions.TF_GetCode)(self.raw) });
        if self.code.get() == TF_OK { Ok(()) } else { Err(CallError::Status(self)) }
    }

    /// Returns the code after the last call.
    pub fn code(&self) -> TF_Code {
        self.code.get()
    }

    /// Returns the message after the last call.
    pub fn message(&self) -> String {
        // SAFETY: `raw` lives as long as `self`; its message is null or a C string until it changes, and is copied.
        unsafe { text((self.functions.TF_Message)(self.raw)) }.unwrap_or_default()
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: `raw` is this value's, and no call uses it after this one.
        unsafe { (self.functions.TF_DeleteStatus)(self.raw) };
    }
}

/// The result of a call.
pub type CallResult<'h, T = ()> = Result<T, CallError<'h>>;

/// Why a call has failed.
#[derive(Debug)]
pub enum CallError<'h> {
    /// The plugin has left this slot of this table empty.
    Missing(&'static str, &'static str),
    /// The status, until the next call.
    Status(&'h Status),
    /// The slot returned an invalid value.
    Wrong(String),
}

impl fmt::Display for CallError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(table, slot) => write!(f, "`{slot}` of {table} is null"),
            Self::Status(status) => match status.message() {
                message if message.is_empty() => f.write_str(&code_name(status.code())),
                message => write!(f, "{}: {message}", code_name(status.code())),
            },
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

/// Returns the name of a status code.
pub fn code_name(code: TF_Code) -> String {
    let name = tf_fs_sys::host::code_name(code);
    name.map_or_else(|| format!("code {code}"), str::to_owned)
}

//! Texts for the values that the plugin and the host pass to each other. The pointers are the host's or the plugin's.

use std::ffi::{CStr, c_char, c_void};

use tf_fs_sys::host::Table as _;
use tf_fs_sys::*;

use super::object_names::PATHS;
use crate::call::{Call, clean};

/// Formats a C string; `null` for a null pointer.
///
/// # Safety
/// Null, or a C string.
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return "null".to_owned();
    }
    // SAFETY: not null, so a C string.
    clean(&unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

fn code(code: TF_Code) -> String {
    let name = tf_fs_sys::host::code_name(code);
    name.map_or_else(|| format!("code {code}"), str::to_owned)
}

/// Formats a status, unless it is OK.
///
/// # Safety
/// Null, or a status.
pub(super) unsafe fn error(status: *const TF_Status) -> Option<String> {
    if status.is_null() {
        return None;
    }
    let functions = StatusFunctions::get().ok()?;
    // SAFETY: not null, so a status; its message is a C string until the status changes, after this call.
    let (number, message) = unsafe {
        let number = (functions.TF_GetCode)(status);
        if number == TF_OK {
            return None;
        }
        (number, text((functions.TF_Message)(status)))
    };
    Some(if message.is_empty() || message == "null" {
        code(number)
    } else {
        format!("{}: {message}", code(number))
    })
}

impl Call {
    /// Adds the status that the plugin has set.
    ///
    /// # Safety
    /// Null, or a status.
    pub(super) unsafe fn status(&mut self, status: *const TF_Status) {
        self.has_status = true;
        // SAFETY: `status` is null or a status.
        if let Some(reason) = unsafe { error(status) } {
            self.failed(reason);
        }
    }

    /// Adds requested memory.
    pub(super) fn memory_of(&mut self, address: *mut c_void, size: u64) {
        if address.is_null() && size > 0 {
            self.failed("no memory".to_owned());
        } else {
            self.address(address);
            self.bytes += size;
        }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// Adds a path as an argument.
    ///
    /// # Safety
    /// Null, or a C string.
    pub(super) unsafe fn path(&mut self, path: *const c_char) {
        if self.is_written {
            // SAFETY: `path` is null or a C string.
            self.argument(format_args!("{}", unsafe { text(path) }));
        }
    }

    /// Adds the path of a file object as an argument.
    pub(super) fn file<T>(&mut self, file: *const T) {
        if self.is_written {
            let path = PATHS.get(file.addr()).unwrap_or_else(|| format!("file {file:p}"));
            self.argument(format_args!("{path}"));
        }
    }

    /// Remembers the path that a file object was opened with.
    ///
    /// # Safety
    /// Null, or a C string.
    pub(super) unsafe fn opened<T>(&self, file: *const T, path: *const c_char) {
        if self.is_written && self.is_ok() {
            // SAFETY: `path` is null or a C string.
            PATHS.set(file.addr(), unsafe { text(path) });
        }
    }

    /// Adds the number of a device as an argument.
    pub(super) fn device(&mut self, device: Option<&SP_Device>) {
        if let Some(device) = device {
            self.argument(format_args!(":{}", device.ordinal));
        }
    }

    /// Adds a handle as an argument.
    pub(super) fn handle<T>(&mut self, name: &str, handle: *const T) {
        self.argument(format_args!("{name} {handle:p}"));
    }

    /// Adds the handle that was created, if the host has a place for it.
    pub(super) fn created<T>(&mut self, name: &str, created: Option<&*mut T>) {
        // If nothing was created, the host may have left the place uninitialised.
        if let Some(created) = created.filter(|_| self.is_ok()) {
            self.value(format_args!("{name} {:p}", *created));
        }
    }

    /// Adds a returned address.
    pub(super) fn address(&mut self, address: *const c_void) {
        self.value(format_args!("{address:p}"));
    }

    /// Adds a returned `TF_Bool` or `bool`.
    pub(super) fn truth(&mut self, truth: bool) {
        self.value(format_args!("{truth}"));
    }
}

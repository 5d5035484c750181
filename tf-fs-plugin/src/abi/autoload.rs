//! Registering at `import tensorflow`, without a line of Python.
//!
//! TensorFlow opens each shared library in `site-packages/tensorflow-plugins/`, and the one that
//! `TF_PLUGGABLE_DEVICE_LIBRARY_PATH` names, and calls its `TF_InitKernel`. It does not call
//! `TF_InitPlugin`. So `TF_InitKernel` passes the plugin's own file to
//! `TF_RegisterFilesystemPlugin`, which opens the same library and calls `TF_InitPlugin`.

use crate::logging;
use core::ffi::{CStr, c_void};
use std::panic::catch_unwind;
use std::sync::Once;
use tf_fs_sys::host::{MissingSymbol, Table};
use tf_fs_sys::registration::RegistrationFunctions;
use tf_fs_sys::{StatusFunctions, TF_OK};
use tf_plugin_core::__private::boundary::{Panic, log_error};
use tf_plugin_core::Code;

/// Turns automatic registration off for all plugins made with this SDK: `0`, `false`, `no` or `off`.
const SWITCH: &str = "TF_FS_PLUGIN_AUTOLOAD";

/// Registers the plugin: the body of `TF_InitKernel`. Runs once per process, however often
/// TensorFlow calls it. It never fails, so that `import tensorflow` continues.
pub fn autoload() {
    static ONCE: Once = Once::new();
    let result = catch_unwind(|| {
        ONCE.call_once(|| {
            let off = std::env::var(SWITCH).is_ok_and(|value| is_off(&value));
            if !off && let Err(missing) = register() {
                log_error(&format_args!("the filesystem plugin is not registered: {missing}"));
            }
        });
    });
    if let Err(payload) = result {
        log_error(&Panic::take("TF_InitKernel", payload));
    }
}

fn is_off(value: &str) -> bool {
    ["0", "false", "no", "off"].iter().any(|off| value.trim().eq_ignore_ascii_case(off))
}

fn register() -> Result<(), MissingSymbol> {
    let host = StatusFunctions::get()?;
    let registration = RegistrationFunctions::get()?;
    // Any address in this library works, except that of an exported function, which another library
    // can replace.
    let switch = core::ptr::from_ref(SWITCH).cast::<c_void>();
    // SAFETY: `Dl_info` is pointers, for which zeros are a value; `dladdr` takes any address and
    // fills the struct if it returns non-zero.
    let info = unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        (libc::dladdr(switch, &raw mut info) != 0).then_some(info)
    };
    let Some(path) = info.map(|info| info.dli_fname).filter(|path| !path.is_null()) else {
        log_error(&"the filesystem plugin is not registered: the system does not know its file");
        return Ok(());
    };
    // SAFETY: `path` is a C string of the dynamic linker that lives as long as the library, which
    // TensorFlow never closes. The status is made and deleted here, and its message is copied before.
    unsafe {
        let status = (host.TF_NewStatus)();
        (registration.TF_RegisterFilesystemPlugin)(path, status);
        let code = (host.TF_GetCode)(status);
        if code != TF_OK {
            logging::init();
            let message = CStr::from_ptr((host.TF_Message)(status)).to_string_lossy();
            let path = CStr::from_ptr(path).to_string_lossy();
            if Code::from_raw(code) == Some(Code::AlreadyExists) {
                log::warn!(
                    "{path}: another filesystem plugin was first: {message}; remove one of the two, or set {SWITCH}=0"
                );
            } else {
                log::error!("{path}: the filesystem plugin is not registered: {message}");
            }
        }
        (host.TF_DeleteStatus)(status);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_switch_understands_the_usual_words() {
        for off in ["0", "false", "No", " OFF "] {
            assert!(super::is_off(off), "{off}");
        }
        for on in ["", "1", "true", "yes"] {
            assert!(!super::is_off(on), "{on}");
        }
    }
}

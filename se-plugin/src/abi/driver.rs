//! Loads the libraries of drivers.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use libloading::os::unix as dl;
use std::path::Path;
use tf_plugin_core::{Error, Result};

/// The library of a driver, loaded so that it does not use symbols of TensorFlow. It stays loaded until the process ends.
///
/// TensorFlow's libraries export their copies of LLVM, protobuf and other libraries to the whole process. A driver
/// that links another version of one of these, such as Mesa's or PoCL's, would call TensorFlow's copy and crash, often
/// in the first compilation of a kernel. This type opens the driver with `RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND`: the
/// driver prefers its own dependencies.
///
/// # Loaders
/// The loaders of Vulkan and OpenCL open the drivers themselves, without this flag. Open each driver first: the loader
/// then gets the same library. The files of the drivers are in `/usr/share/vulkan/icd.d/*.json` or
/// `/etc/OpenCL/vendors/*.icd`. A library that something else has loaded earlier keeps its symbols.
///
/// # Limits
/// - C libraries other than glibc do not have `RTLD_DEEPBIND`, and sanitizers end the process if it is used. There
///   the driver is opened without it.
/// - A replacement of `malloc` in LD_PRELOAD does not apply to the driver's own calls of `malloc`.
///
/// # Examples
/// ```
/// use se_plugin::driver::Library;
///
/// # fn open() -> se_plugin::Result<()> {
/// // SAFETY: any process may load OpenCL's loader.
/// let opencl = unsafe { Library::open("libOpenCL.so.1") }?;
/// let get_platforms = opencl.symbol(c"clGetPlatformIDs")?; // to be cast to the type of the function
/// # let _ = get_platforms;
/// # Ok(())
/// # }
/// # let _ = open();
/// ```
pub struct Library {
    library: ManuallyDrop<dl::Library>,
    file: Box<Path>,
}

/// Prefers the symbols of the library and its dependencies. Only glibc has it.
#[cfg(target_env = "gnu")]
const DEEPBIND: i32 = libc::RTLD_DEEPBIND;
#[cfg(not(target_env = "gnu"))]
const DEEPBIND: i32 = 0;

/// Returns whether the process has a sanitizer, whose `dlopen` ends the process on `RTLD_DEEPBIND`.
fn is_sanitized() -> bool {
    let process = dl::Library::this();
    [c"__asan_init", c"__hwasan_init", c"__msan_init", c"__tsan_init"].iter().any(|symbol| {
        // SAFETY: the symbol is not used, so its type does not matter.
        unsafe { process.get::<*const c_void>(symbol.to_bytes_with_nul()) }.is_ok()
    })
}

impl Library {
    /// Opens a file, or the library of this name in the dynamic linker's directories.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` with the dynamic linker's reason, if the library or one of its dependencies cannot be loaded.
    ///
    /// # Safety
    /// The library's initialisers are sound in this process, as those of an installed driver are.
    pub unsafe fn open(file: impl AsRef<Path>) -> Result<Self> {
        let file = file.as_ref();
        let deepbind = if is_sanitized() { 0 } else { DEEPBIND };
        // SAFETY: the caller vouches for the initialisers; terminators never run, as the library stays.
        let library =
            unsafe { dl::Library::open(Some(file), dl::RTLD_NOW | dl::RTLD_LOCAL | deepbind) };
        let library = library.map_err(|error| refused(file, &error))?;
        Ok(Self { library: ManuallyDrop::new(library), file: file.into() })
    }

    /// Returns the address of a function or variable.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if the library and its dependencies do not export it.
    pub fn symbol(&self, name: &CStr) -> Result<NonNull<c_void>> {
        // SAFETY: an address alone is not used, and is valid for as long as the library, which stays.
        let address = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) };
        address.ok().and_then(|symbol| NonNull::new(symbol.into_raw())).ok_or_else(|| {
            Error::failed_precondition(format!(
                "the driver `{}` does not export `{}`; update the driver",
                self.file.display(),
                name.to_string_lossy()
            ))
        })
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.file).finish()
    }
}

/// Describes a failed `dlopen`.
#[cold]
fn refused(file: &Path, error: &libloading::Error) -> Error {
    let shown = file.display().to_string();
    // The error itself says only `dlopen failed`.
    let reason = std::error::Error::source(error).map_or(error.to_string(), ToString::to_string);
    let help = match reason.contains("No such file") {
        // The dynamic linker does not search for a path.
        true if reason.starts_with(&shown) && shown.contains('/') => {
            "install the driver, or correct the path"
        }
        true if reason.starts_with(&shown) => {
            "install the driver, or add the directory of the file to LD_LIBRARY_PATH"
        }
        true => "install the library that the driver needs",
        false => "install the driver for this system; `ldd` shows the libraries that it needs",
    };
    Error::failed_precondition(format!("cannot load the driver `{shown}`: {reason}; {help}"))
}

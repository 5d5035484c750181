//! The functions of TensorFlow's C library.

use core::ffi::{CStr, c_char};
use core::ptr;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tf_fs_sys::device_registration::DeviceRegistrationFunctions;
use tf_fs_sys::host::{LIBRARIES, MissingSymbol, Table};
use tf_fs_sys::registration::RegistrationFunctions;
use tf_fs_sys::tstring::StringFunctions;
use tf_fs_sys::{
    DeviceListFunctions, EagerFunctions, EnvFunctions, StatusFunctions, TF_DeviceList, TF_Status,
    TensorFunctions,
};
use tf_plugin_core::{Code, Error, Result};

/// TensorFlow's C library, loaded into this process for good.
///
/// The tables are bound for this value alone: those of the process may belong to the in-process host.
#[derive(Debug)]
pub struct TensorFlow {
    pub(super) status: StatusFunctions,
    pub(super) registration: RegistrationFunctions,
    pub(super) devices: DeviceRegistrationFunctions,
    pub(super) env: EnvFunctions,
    pub(super) lists: DeviceListFunctions,
    pub(super) eager: EagerFunctions,
    pub(super) tensors: TensorFunctions,
    pub(super) strings: StringFunctions,
}

/// An object of the library, which is freed with the value.
pub struct Owned<'t, T> {
    pub(super) tensorflow: &'t TensorFlow,
    pub(super) pointer: *mut T,
    pub(super) free: unsafe extern "C" fn(*mut T),
}

impl<T> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is this value's, from a function of the library, whose type `free` is for. What was made of
        // it borrows it or has a share of its own.
        unsafe { (self.free)(self.pointer) };
    }
}

/// A device of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its whole name, such as `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub name: String,
    /// Its type, such as `CPU`.
    pub kind: String,
}

pub(super) fn text(text: &(impl AsRef<OsStr> + ?Sized)) -> Result<CString> {
    let text = text.as_ref();
    let failed = |_| Error::invalid_argument(format!("{text:?} has a NUL, which ends a name in C"));
    CString::new(text.as_bytes()).map_err(failed)
}

pub(super) fn number(number: usize) -> i32 {
    i32::try_from(number).expect("there are not so many")
}

/// Calls a function of one of the tables with a status. Evaluates to what it returns, or to the status's error.
macro_rules! call {
    ($tensorflow:expr, $table:ident.$function:ident($($argument:expr),*)) => {{
        let tensorflow: &TensorFlow = $tensorflow;
        // SAFETY: arguments as the header wants them, which live until the call is over, and a status.
        tensorflow.check(|status| unsafe { (tensorflow.$table.$function)($($argument,)* status) })
    }};
}
pub(super) use call;

impl TensorFlow {
    /// Loads the libraries in `directory` as the dynamic linker does for a program that is linked against them:
    /// visible for everything loaded later, and functions looked up on their first call.
    ///
    /// # Errors
    /// Returns a text that says what is missing.
    pub fn load(directory: &Path) -> core::result::Result<&'static Self, String> {
        let mut loaded = false;
        for library in LIBRARIES {
            let path = directory.join(library.to_str().unwrap_or_default());
            if !path.is_file() {
                continue;
            }
            let name = text(&path).map_err(|error| error.to_string())?;
            // SAFETY: a NUL-terminated name. TensorFlow's initialisers run, as in any program that uses it.
            let handle =
                unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
            if handle.is_null() {
                // SAFETY: `dlopen` has just failed in this thread, so this is not null, but a C string until the
                // next call of the linker's functions.
                let problem = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy();
                return Err(format!("{} cannot be loaded: {problem}", path.display()));
            }
            loaded = true;
        }
        if !loaded {
            return Err(format!(
                "{} has no library of TensorFlow, such as libtensorflow_cc.so.2",
                directory.display()
            ));
        }
        let missing = |missing: MissingSymbol| format!("{}: {missing}", directory.display());
        let tensorflow = Self {
            status: StatusFunctions::bind().map_err(missing)?,
            registration: RegistrationFunctions::bind().map_err(missing)?,
            devices: DeviceRegistrationFunctions::bind().map_err(missing)?,
            env: EnvFunctions::bind().map_err(missing)?,
            lists: DeviceListFunctions::bind().map_err(missing)?,
            eager: EagerFunctions::bind().map_err(missing)?,
            tensors: TensorFunctions::bind().map_err(missing)?,
            strings: StringFunctions::bind().map_err(missing)?,
        };
        // The threads of TensorFlow never end.
        Ok(Box::leak(Box::new(tensorflow)))
    }

    /// Runs a function that takes a status, and turns the status into a result.
    pub(super) fn check<T>(&self, call: impl FnOnce(*mut TF_Status) -> T) -> Result<T> {
        // SAFETY: the status is made, read and deleted here; its message is copied before.
        unsafe {
            let status = (self.status.TF_NewStatus)();
            let answer = call(status);
            let code = Code::from_raw((self.status.TF_GetCode)(status));
            let result = match code {
                None => Ok(answer),
                Some(code) => {
                    let message = CStr::from_ptr((self.status.TF_Message)(status));
                    Err(Error::new(code, message.to_string_lossy().into_owned()))
                }
            };
            (self.status.TF_DeleteStatus)(status);
            result
        }
    }

    /// Registers a filesystem plugin.
    pub fn register_filesystem(&self, library: &Path) -> Result<()> {
        let library = text(library)?;
        call!(self, registration.TF_RegisterFilesystemPlugin(library.as_ptr()))
    }

    /// Loads a device plugin.
    ///
    /// # Errors
    /// Fails with TensorFlow's error. For some errors TensorFlow ends the process.
    pub fn load_device(&self, library: &Path) -> Result<()> {
        let library = text(library)?;
        let handle = call!(self, devices.TF_LoadPluggableDeviceLibrary(library.as_ptr()))?;
        // SAFETY: the handle is the caller's; the library stays loaded.
        unsafe { (self.devices.TF_DeletePluggableDeviceLibraryHandle)(handle) };
        Ok(())
    }

    /// Returns the devices of a list, and frees the list.
    ///
    /// # Safety
    /// The list must be the caller's, and not be used afterwards.
    pub(super) unsafe fn listed(&self, list: *mut TF_DeviceList) -> Result<Vec<Device>> {
        let name = |text: *const c_char| {
            if text.is_null() {
                return String::new();
            }
            // SAFETY: a C string of the list, which is freed below.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        let one = |index| -> Result<Device> {
            let found = name(call!(self, lists.TF_DeviceListName(list, index))?);
            let kind = name(call!(self, lists.TF_DeviceListType(list, index))?);
            Ok(Device { name: found, kind })
        };
        // SAFETY: `list` is a list of TensorFlow's, which is freed when the names are copied.
        unsafe {
            let count = (self.lists.TF_DeviceListCount)(list);
            let devices = (0..count).map(one).collect();
            (self.lists.TF_DeleteDeviceList)(list);
            devices
        }
    }
}

/// Returns a pointer to an array, which is null if the array is empty.
pub(super) fn start<T>(array: &[T]) -> *const T {
    if array.is_empty() { ptr::null() } else { array.as_ptr() }
}

//! The functions, looked up in the libraries.

use super::{Failure, Result, TF_OK};
use core::ffi::{CStr, c_char, c_int, c_void};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::Path;
use tf_fs_sys::{TF_Code, TF_FileStatistics, TF_Status};

pub(super) type Status = TF_Status;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque! {
    /// `TF_WritableFileHandle` of env.h.
    WritableFileHandle
    /// `TF_StringStream` of env.h.
    StringStream
    /// `TF_Tensor` of tf_tensor.h.
    Tensor
    /// `TFE_ContextOptions` of eager/c_api.h.
    ContextOptions
    /// `TFE_Context` of eager/c_api.h.
    EagerContext
    /// `TFE_Op` of eager/c_api.h.
    Op
    /// `TFE_TensorHandle` of eager/c_api.h.
    TensorHandle
}

/// `TF_TString` of tf_tstring.h: a string in a tensor.
#[repr(C, align(8))]
pub(super) struct TString([u8; 24]);

/// `TF_DataType` of tf_datatype.h.
pub(super) const TF_STRING: c_int = 7;

/// Opens a library as Python opens its extension modules.
pub(super) fn open(path: &Path) -> core::result::Result<Library, libloading::Error> {
    // SAFETY: TensorFlow's initialisers run, as in any process that uses it.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
}

macro_rules! functions {
    ($($name:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// The host's functions by their names in C.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Functions {
            /// Looks all up. The libraries stay open for good: TensorFlow's threads never end.
            pub(super) fn bind(
                libraries: Vec<Library>,
            ) -> core::result::Result<Self, libloading::Error> {
                let functions = Self {
                    // SAFETY: the type is the one that the header declares for this name.
                    $($name: unsafe { find(&libraries, concat!(stringify!($name), "\0")) }?,)*
                };
                core::mem::forget(libraries);
                Ok(functions)
            }
        }
    };
}

/// # Safety
/// `T` must be the type of the function `name`.
unsafe fn find<T: Copy>(
    libraries: &[Library],
    name: &str,
) -> core::result::Result<T, libloading::Error> {
    let mut error = None;
    for library in libraries {
        // SAFETY: `T` is the type of the function `name`, as the caller's declaration in the header says.
        match unsafe { library.get::<T>(name.as_bytes()) } {
            Ok(symbol) => return Ok(*symbol),
            Err(missing) => error = Some(missing),
        }
    }
    Err(error.expect("there is a library"))
}

functions! {
    // tf_status.h
    TF_NewStatus() -> *mut Status;
    TF_DeleteStatus(*mut Status);
    TF_GetCode(*const Status) -> TF_Code;
    TF_Message(*const Status) -> *const c_char;
    // c_api.h
    TF_RegisterFilesystemPlugin(*const c_char, *mut Status);
    // env.h
    TF_CreateDir(*const c_char, *mut Status);
    TF_DeleteDir(*const c_char, *mut Status);
    TF_DeleteRecursively(*const c_char, *mut i64, *mut i64, *mut Status);
    TF_FileStat(*const c_char, *mut TF_FileStatistics, *mut Status);
    TF_NewWritableFile(*const c_char, *mut *mut WritableFileHandle, *mut Status);
    TF_CloseWritableFile(*mut WritableFileHandle, *mut Status);
    TF_SyncWritableFile(*mut WritableFileHandle, *mut Status);
    TF_FlushWritableFile(*mut WritableFileHandle, *mut Status);
    TF_AppendWritableFile(*mut WritableFileHandle, *const c_char, usize, *mut Status);
    TF_DeleteFile(*const c_char, *mut Status);
    TF_StringStreamNext(*mut StringStream, *mut *const c_char) -> bool;
    TF_StringStreamDone(*mut StringStream);
    TF_GetChildren(*const c_char, *mut Status) -> *mut StringStream;
    // tf_tensor.h, tf_tstring.h
    TF_AllocateTensor(c_int, *const i64, c_int, usize) -> *mut Tensor;
    TF_DeleteTensor(*mut Tensor);
    TF_TensorElementCount(*const Tensor) -> i64;
    TF_TensorData(*const Tensor) -> *mut c_void;
    TF_StringInit(*mut TString);
    TF_StringAssignView(*mut TString, *const c_char, usize);
    TF_StringGetDataPointer(*const TString) -> *const c_char;
    TF_StringGetSize(*const TString) -> usize;
    // eager/c_api.h
    TFE_NewContextOptions() -> *mut ContextOptions;
    TFE_DeleteContextOptions(*mut ContextOptions);
    TFE_NewContext(*const ContextOptions, *mut Status) -> *mut EagerContext;
    TFE_NewOp(*mut EagerContext, *const c_char, *mut Status) -> *mut Op;
    TFE_DeleteOp(*mut Op);
    TFE_OpAddInput(*mut Op, *mut TensorHandle, *mut Status);
    TFE_Execute(*mut Op, *mut *mut TensorHandle, *mut c_int, *mut Status);
    TFE_NewTensorHandle(*const Tensor, *mut Status) -> *mut TensorHandle;
    TFE_DeleteTensorHandle(*mut TensorHandle);
    TFE_TensorHandleResolve(*mut TensorHandle, *mut Status) -> *mut Tensor;
}

impl Functions {
    /// Runs a function that takes a status, and turns the status into a result.
    pub(super) fn check<T>(&self, call: impl FnOnce(*mut Status) -> T) -> Result<T> {
        // SAFETY: the status is made, read and deleted here; its message is copied before.
        unsafe {
            let status = (self.TF_NewStatus)();
            let answer = call(status);
            let code = (self.TF_GetCode)(status);
            let message = CStr::from_ptr((self.TF_Message)(status)).to_bytes().to_vec();
            (self.TF_DeleteStatus)(status);
            if code == TF_OK { Ok(answer) } else { Err(Failure { code, message }) }
        }
    }
}

//! Loads the TensorFlow libraries that it is given, binds every table of `tf-fs-sys`, makes a few calls and
//! prints each function with `present` or `absent`. A separate program, because a process can have one
//! TensorFlow only.

#![expect(unsafe_code, reason = "loads libraries and calls their functions")]

use std::error::Error;
use std::ffi::{CStr, c_char};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tf_fs_sys::device_registration::DeviceRegistrationFunctions;
use tf_fs_sys::host::Table;
use tf_fs_sys::registration::RegistrationFunctions;
use tf_fs_sys::tstring::StringFunctions;
use tf_fs_sys::{
    BufferFunctions, DataTypeFunctions, DeviceListFunctions, EagerFunctions, EnvFunctions,
    GrapplerFunctions, KernelExperimentalFunctions, KernelFunctions, LoggingFunctions, OpFunctions,
    RegisteredKernelsFunctions, StatusFunctions, TF_FLOAT, TF_INFO, TF_OK, TF_STRING, TF_TString,
    TensorFunctions,
};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1) {
        // SAFETY: TensorFlow's initialisers run, as in any process that uses it.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }?;
        // TensorFlow's threads never end.
        std::mem::forget(library);
    }
    print::<StatusFunctions>()?;
    print::<RegistrationFunctions>()?;
    print::<DataTypeFunctions>()?;
    print::<BufferFunctions>()?;
    print::<TensorFunctions>()?;
    print::<StringFunctions>()?;
    print::<KernelFunctions>()?;
    print::<KernelExperimentalFunctions>()?;
    print::<OpFunctions>()?;
    print::<GrapplerFunctions>()?;
    print::<LoggingFunctions>()?;
    print::<EnvFunctions>()?;
    print::<DeviceListFunctions>()?;
    print::<DeviceRegistrationFunctions>()?;
    print::<EagerFunctions>()?;
    print::<RegisteredKernelsFunctions>()?;
    call()
}

/// Binds a table and prints what it has.
fn print<T: Table + std::fmt::Debug>() -> Result<(), Box<dyn Error>> {
    // The table's own `Debug` names the functions; those of a struct with a field a line.
    for line in format!("{:#?}", T::get()?).lines() {
        if let Some((name, value)) = line.trim().split_once(": ") {
            println!("{name} {}", if value == "None," { "absent" } else { "present" });
        }
    }
    Ok(())
}

/// Calls functions whose arguments or results go other ways than in a register: structs by value, callbacks,
/// variable arguments.
fn call() -> Result<(), Box<dyn Error>> {
    let (buffers, tensors) = (BufferFunctions::get()?, TensorFunctions::get()?);
    let strings = StringFunctions::get()?;
    let data_types = DataTypeFunctions::get()?;
    let text = c"twenty-three bytes or more";
    let bytes = text.to_bytes();
    // SAFETY: each pointer comes from a function of TensorFlow or from a live variable, as the documentation of
    // the function requires; each new object is freed once.
    unsafe {
        assert_eq!((data_types.TF_DataTypeSize)(TF_FLOAT), 4);
        assert_eq!((data_types.TF_DataTypeSize)(TF_STRING), 0);

        let buffer = (buffers.TF_NewBufferFromString)(bytes.as_ptr().cast(), bytes.len());
        let fields = (buffers.TF_GetBuffer)(buffer);
        assert_eq!(std::slice::from_raw_parts(fields.data.cast::<u8>(), fields.length), bytes);
        assert!(fields.data_deallocator.is_some());
        (buffers.TF_DeleteBuffer)(buffer);

        let tensor = (tensors.TF_AllocateTensor)(TF_FLOAT, [2, 3].as_ptr(), 2, 24);
        assert_eq!((tensors.TF_TensorByteSize)(tensor), 24);
        assert_eq!((tensors.TF_Dim)(tensor, 1), 3);
        assert!((tensors.TF_TensorIsAligned)(tensor));
        (tensors.TF_DeleteTensor)(tensor);

        let statuses = StatusFunctions::get()?;
        let status = (statuses.TF_NewStatus)();
        let kernels = RegisteredKernelsFunctions::get()?;
        let list = (kernels.TF_GetRegisteredKernelsForOp)(c"MatMul".as_ptr(), status);
        assert_eq!((statuses.TF_GetCode)(status), TF_OK);
        let fields = (buffers.TF_GetBuffer)(list);
        let list_bytes = std::slice::from_raw_parts(fields.data.cast::<u8>(), fields.length);
        assert!(list_bytes.windows(5).any(|bytes| bytes == b"\x12\x03CPU"));
        (buffers.TF_DeleteBuffer)(list);
        (statuses.TF_DeleteStatus)(status);

        if let (Some(init), Some(copy), Some(data), Some(size), Some(free)) = (
            strings.TF_StringInit,
            strings.TF_StringCopy,
            strings.TF_StringGetDataPointer,
            strings.TF_StringGetSize,
            strings.TF_StringDealloc,
        ) {
            let mut string = std::mem::MaybeUninit::<TF_TString>::uninit();
            init(string.as_mut_ptr());
            copy(string.as_mut_ptr(), text.as_ptr(), bytes.len());
            let (start, length) = (data(string.as_ptr()), size(string.as_ptr()));
            assert_eq!(std::slice::from_raw_parts(start.cast::<u8>(), length), bytes);
            free(string.as_mut_ptr());
        }

        if let Some(log) = LoggingFunctions::get()?.TF_Log {
            const FORMAT: &CStr = c"%s, %d and %.1f";
            let text: *const c_char = text.as_ptr();
            log(TF_INFO, FORMAT.as_ptr(), text, 2_i32, 0.5_f64);
        }
    }
    Ok(())
}

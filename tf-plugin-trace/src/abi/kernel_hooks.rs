//! Wrappers of TensorFlow's functions with which plugins register kernels, and with which kernels fail.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tf_fs_sys::host;

use super::format::{error, text};
use super::kernel;
use super::object_names::FAILURES;
use super::process::set_up;
use super::symbols::{is_traced, lookup};
use super::tables::too_many;

type Builder =
    unsafe extern "C-unwind" fn(*const c_char, *const c_char, usize, usize, usize) -> *mut c_void;

/// TensorFlow's functions that begin a kernel's registration, and those with which a kernel fails.
const NAMES: [&CStr; 4] = [
    c"TF_NewKernelBuilder",
    c"TF_NewAsyncKernelBuilder",
    c"TF_OpKernelContext_Failure",
    c"TF_OpKernelConstruction_Failure",
];
static GENUINE: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Finds TensorFlow's own function, in any of its libraries.
fn genuine(which: usize) -> Option<usize> {
    let known = GENUINE[which].load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let function = host::LIBRARIES.iter().find_map(|library| {
        // SAFETY: C strings; nothing is opened that is not open already, and stays so.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            if handle.is_null() { None } else { lookup(handle, NAMES[which]) }
        }
    })?;
    GENUINE[which].store(function, Ordering::Relaxed);
    Some(function)
}

/// Returns what `dlsym` returns for these functions: this library's, if TensorFlow has been loaded.
///
/// # Safety
/// A handle for `dlsym`.
pub(super) unsafe fn hook(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    let which = NAMES.iter().position(|other| *other == name)?;
    // SAFETY: `handle` is one that `dlsym` takes.
    unsafe { lookup(handle, name)? };
    Some(match (genuine(which), which) {
        // Only this library has it.
        (None, _) => ptr::null_mut(),
        (Some(_), 0) => new_builder::<0> as *mut c_void,
        (Some(_), 1) => new_builder::<1> as *mut c_void,
        (Some(_), 2) => failure::<2> as *mut c_void,
        (Some(_), _) => failure::<3> as *mut c_void,
    })
}

/// Replaces `TF_OpKernelContext_Failure` or `TF_OpKernelConstruction_Failure`, by the index in `NAMES`.
///
/// # Safety
/// As TensorFlow's.
pub unsafe extern "C-unwind" fn failure<const WHICH: usize>(
    context: *mut c_void,
    status: *mut c_void,
) {
    // SAFETY: TensorFlow passes a status, or null.
    if let Some(reason) = unsafe { error(status.cast()) } {
        FAILURES.set(context.addr(), reason);
    }
    if let Some(genuine) = genuine(WHICH) {
        type Failure = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);
        // SAFETY: TensorFlow's function, and the caller's arguments.
        unsafe { transmute::<usize, Failure>(genuine)(context, status) }
    }
}

/// Replaces `TF_NewKernelBuilder` or `TF_NewAsyncKernelBuilder`, by the index in `NAMES`.
///
/// # Safety
/// As TensorFlow's.
pub unsafe extern "C-unwind" fn new_builder<const WHICH: usize>(
    op: *const c_char,
    device: *const c_char,
    create: usize,
    compute: usize,
    delete: usize,
) -> *mut c_void {
    let Some(genuine) = genuine(WHICH) else { return ptr::null_mut() };
    // SAFETY: TensorFlow's function.
    let genuine = unsafe { transmute::<usize, Builder>(genuine) };
    let functions = [create, compute, delete];
    let mut passed = functions;
    // TensorFlow's own kernels begin here, too.
    if compute != 0 && is_traced(compute) {
        set_up();
        // SAFETY: TensorFlow passes C strings.
        let subject = unsafe { format!("{} {}", text(device), text(op)) };
        match kernel::wrap(&subject, functions, WHICH == 1) {
            Some(wrapped) => passed = wrapped,
            None => too_many("kernels", &subject),
        }
    }
    let [create, compute, delete] = passed;
    // SAFETY: the caller's arguments, or wrappers of the same types.
    unsafe { genuine(op, device, create, compute, delete) }
}

//! The `dlsym` in front of the system's: a lookup of a traced function returns its wrapper.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{entry, kernel};
use crate::settings::Settings;

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// What `dlsym` does: it returns `answer`, or goes on as the function `then` if there is one.
#[repr(C)]
#[derive(Debug)]
pub struct Looked {
    answer: *mut c_void,
    then: *mut c_void,
}

/// The body of `dlsym`. It is called wherever a process looks for a symbol, also before anything is set up.
///
/// # Safety
/// As `dlsym`.
pub unsafe extern "C" fn look(handle: *mut c_void, name: *const c_char) -> Looked {
    // SAFETY: a C string, by the caller's word.
    let answer = unsafe { wrapper(handle, name) };
    match answer {
        Some(answer) => Looked { answer, then: ptr::null_mut() },
        None => Looked { answer: ptr::null_mut(), then: real() },
    }
}

/// The system's `dlsym`.
fn real() -> *mut c_void {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // The versions that glibc has had it with: since 2.34, and before on either machine.
    let found = [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"].into_iter().find_map(|version| {
        // SAFETY: C strings; the next library behind this one.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        (!found.is_null()).then_some(found)
    });
    let Some(found) = found else {
        crate::output::say("error: this system's `dlsym` is not found; run without `--trace`\n");
        // Nothing of this process would work.
        std::process::abort();
    };
    REAL.store(found, Ordering::Relaxed);
    found
}

/// Asks the system, on behalf of this library.
pub(super) unsafe fn ask(handle: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the system's `dlsym`, a handle by the caller's word and a C string.
    let found = unsafe {
        let dlsym = transmute::<*mut c_void, Dlsym>(real());
        dlsym(handle, name.as_ptr())
    };
    (!found.is_null()).then(|| found.expose_provenance())
}

unsafe fn wrapper(handle: *mut c_void, name: *const c_char) -> Option<*mut c_void> {
    if name.is_null() || handle == libc::RTLD_NEXT {
        return None;
    }
    // SAFETY: a C string, by the caller's word.
    let name = unsafe { CStr::from_ptr(name) };
    let bytes = name.to_bytes();
    if !(bytes.starts_with(b"TF_") || bytes.starts_with(b"SE_")) {
        return None;
    }
    // SAFETY: the handle is the caller's.
    unsafe {
        if let Some(at) = entry::position(name) {
            let found = ask(handle, name)?;
            return is_traced(found).then(|| entry::wrapper(at, found)).flatten();
        }
        kernel::builder(handle, name)
    }
}

/// Whether a function lies in the plugin's file.
pub(super) fn is_traced(function: usize) -> bool {
    static BASE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: `Dl_info` is pointers, for which zeros are a value; `dladdr` takes any address and returns a C
    // string that lives as long as the library, which is never closed.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let function = ptr::with_exposed_provenance(function);
        if libc::dladdr(function, &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let base = BASE.load(Ordering::Relaxed);
        if !base.is_null() {
            return base == info.dli_fbase;
        }
        let Some(library) = &Settings::get().library else { return false };
        let Ok(file) = CStr::from_ptr(info.dli_fname).to_str() else { return false };
        let is_it = Path::new(file).canonicalize().is_ok_and(|file| file == *library);
        if is_it {
            BASE.store(info.dli_fbase, Ordering::Relaxed);
        }
        is_it
    }
}

/// Exports what the library for `LD_PRELOAD` is made for: `dlsym`, and the functions of TensorFlow's by which plugins
/// register kernels and kernels fail. Once in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export {
    () => {
        /// Called when the library is loaded.
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEGIN: extern "C" fn() = $crate::abi::begin;

        /// In front of the system's. Its own frame is gone when the system's begins, which looks at who has called it.
        ///
        /// # Safety
        /// As the system's.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn dlsym(
            handle: *mut ::core::ffi::c_void,
            name: *const ::core::ffi::c_char,
        ) -> *mut ::core::ffi::c_void {
            ::core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "sub rsp, 8",
                "call {look}",
                "add rsp, 8",
                "pop rsi",
                "pop rdi",
                "test rdx, rdx",
                "jnz 2f",
                "ret",
                "2:",
                "jmp rdx",
                look = sym $crate::abi::look,
            )
        }

        /// In front of the system's. Its own frame is gone when the system's begins, which looks at who has called it.
        ///
        /// # Safety
        /// As the system's.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn dlsym(
            handle: *mut ::core::ffi::c_void,
            name: *const ::core::ffi::c_char,
        ) -> *mut ::core::ffi::c_void {
            ::core::arch::naked_asm!(
                "stp x29, x30, [sp, #-32]!",
                "stp x0, x1, [sp, #16]",
                "bl {look}",
                "cbz x1, 2f",
                "mov x16, x1",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #32",
                "br x16",
                "2:",
                "ldp x29, x30, [sp], #32",
                "ret",
                look = sym $crate::abi::look,
            )
        }

        /// In front of TensorFlow's, for plugins that are linked with it.
        ///
        /// # Safety
        /// As TensorFlow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn TF_NewKernelBuilder(
            op: *const ::core::ffi::c_char,
            device: *const ::core::ffi::c_char,
            create: usize,
            compute: usize,
            delete: usize,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the arguments are those of the caller.
            unsafe { $crate::abi::new_kernel_builder(op, device, create, compute, delete) }
        }

        /// In front of TensorFlow's, for plugins that are linked with it.
        ///
        /// # Safety
        /// As TensorFlow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn TF_NewAsyncKernelBuilder(
            op: *const ::core::ffi::c_char,
            device: *const ::core::ffi::c_char,
            create: usize,
            compute: usize,
            delete: usize,
        ) -> *mut ::core::ffi::c_void {
            // SAFETY: the arguments are those of the caller.
            unsafe { $crate::abi::new_async_kernel_builder(op, device, create, compute, delete) }
        }

        /// In front of TensorFlow's, for plugins that are linked with it.
        ///
        /// # Safety
        /// As TensorFlow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn TF_OpKernelContext_Failure(
            context: *mut ::core::ffi::c_void,
            status: *mut ::core::ffi::c_void,
        ) {
            // SAFETY: the arguments are those of the caller.
            unsafe { $crate::abi::context_failure(context, status) }
        }

        /// In front of TensorFlow's, for plugins that are linked with it.
        ///
        /// # Safety
        /// As TensorFlow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn TF_OpKernelConstruction_Failure(
            context: *mut ::core::ffi::c_void,
            status: *mut ::core::ffi::c_void,
        ) {
            // SAFETY: the arguments are those of the caller.
            unsafe { $crate::abi::construction_failure(context, status) }
        }
    };
}

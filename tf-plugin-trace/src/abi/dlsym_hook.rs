//! The `dlsym` that replaces the system's: a lookup of a traced function returns its wrapper.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use super::symbols::{is_traced, lookup, system_dlsym};
use super::{entry_points, kernel_hooks, process};

/// What `dlsym` does: it returns `address`, or continues as the function `then` if that is not null.
#[repr(C)]
#[derive(Debug)]
pub struct HookResult {
    address: *mut c_void,
    then: *mut c_void,
}

/// Does the work of `dlsym`. It is called wherever a process looks up a symbol, even before anything is set up.
///
/// # Safety
/// As `dlsym`.
pub unsafe extern "C" fn dlsym_hook(handle: *mut c_void, name: *const c_char) -> HookResult {
    // SAFETY: `name` is null or a C string: `dlsym` takes nothing else.
    let address = unsafe { wrapper(handle, name) };
    match address {
        Some(address) => HookResult { address, then: ptr::null_mut() },
        None => HookResult { address: ptr::null_mut(), then: system_dlsym() },
    }
}

unsafe fn wrapper(handle: *mut c_void, name: *const c_char) -> Option<*mut c_void> {
    if name.is_null() || handle == libc::RTLD_NEXT {
        return None;
    }
    // SAFETY: not null, so a C string: `dlsym` takes nothing else.
    let name = unsafe { CStr::from_ptr(name) };
    let bytes = name.to_bytes();
    if !(bytes.starts_with(b"TF_") || bytes.starts_with(b"SE_")) {
        return None;
    }
    // SAFETY: the handle is the caller's.
    unsafe {
        if let Some(at) = entry_points::position(name) {
            let function = lookup(handle, name)?;
            let wrapper = is_traced(function).then(|| entry_points::wrapper(at, function));
            if wrapper.is_some() {
                process::set_up();
            }
            return wrapper;
        }
        kernel_hooks::hook(handle, name)
    }
}

/// Exports what a library for `LD_PRELOAD` needs: `dlsym`, and TensorFlow's functions with which
/// plugins register kernels and kernels fail. Use it once in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export {
    () => {
        use ::core::ffi::{c_char, c_void};

        /// Called when the library is loaded.
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEGIN: extern "C" fn() = $crate::abi::begin;

        /// Replaces the system's. Its stack frame is gone when the system's begins, which checks who has called it.
        ///
        /// # Safety
        /// As the system's.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn dlsym(
            handle: *mut c_void,
            name: *const c_char,
        ) -> *mut c_void {
            #[cfg(target_arch = "x86_64")]
            ::core::arch::naked_asm!(
                "push rdi", "push rsi", "sub rsp, 8",
                "call {hook}",
                "add rsp, 8", "pop rsi", "pop rdi",
                "test rdx, rdx", "jnz 2f", "ret", "2:", "jmp rdx",
                hook = sym $crate::abi::dlsym_hook,
            );
            #[cfg(target_arch = "aarch64")]
            ::core::arch::naked_asm!(
                "stp x29, x30, [sp, #-32]!", "stp x0, x1, [sp, #16]",
                "bl {hook}",
                "cbz x1, 2f",
                "mov x16, x1", "ldp x0, x1, [sp, #16]", "ldp x29, x30, [sp], #32", "br x16",
                "2:", "ldp x29, x30, [sp], #32", "ret",
                hook = sym $crate::abi::dlsym_hook,
            );
        }

        $crate::__in_front_of_tensorflow! {
            (op: *const c_char, device: *const c_char, create: usize, compute: usize, delete: usize) -> *mut c_void:
            TF_NewKernelBuilder = new_builder::<0>;
            TF_NewAsyncKernelBuilder = new_builder::<1>;
        }
        $crate::__in_front_of_tensorflow! {
            (context: *mut c_void, status: *mut c_void) -> ():
            TF_OpKernelContext_Failure = failure::<2>;
            TF_OpKernelConstruction_Failure = failure::<3>;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __in_front_of_tensorflow {
    ($arguments:tt -> $result:ty: $($name:ident = $hook:ident::<$which:literal>;)*) => {
        $($crate::__in_front_of_tensorflow! { @one $name $hook $which $arguments $result })*
    };
    (@one $name:ident $hook:ident $which:literal ($($argument:ident: $type:ty),*) $result:ty) => {
        /// Replaces TensorFlow's, for plugins that are linked with it.
        ///
        /// # Safety
        /// As TensorFlow's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the arguments are those of the caller.
            unsafe { $crate::abi::$hook::<$which>($($argument),*) }
        }
    };
}

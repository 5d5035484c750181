//! The wrappers of a kernel's functions.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;

use tf_fs_sys::host::Table as _;
use tf_fs_sys::*;

use super::call_guard::CallGuard;
use super::object_names::FAILURES;
use super::slots::Slots;
use crate::call::{Call, clean};
use crate::totals::Slot;

const MEMBERS: &[&str] = &["create", "compute", "delete"];
const CREATE: usize = 0;
pub(super) const COMPUTE: usize = 1;
const DELETE: usize = 2;

/// Rows of 64 slots: enough for the ops of a TensorFlow, each with some types.
const ROWS: usize = 32;
pub(super) static SLOTS: Slots<{ ROWS * 64 }> = Slots::new(MEMBERS);

/// The object that TensorFlow gets in place of a kernel of the plugin. Only `create` has to know its slot without it.
struct Kernel {
    slot: usize,
    plugin_kernel: *mut c_void,
}

type Create = unsafe extern "C-unwind" fn(*mut TF_OpKernelConstruction) -> *mut c_void;
type Compute = unsafe extern "C-unwind" fn(*mut c_void, *mut TF_OpKernelContext);
type ComputeAsync = unsafe extern "C-unwind" fn(
    *mut c_void,
    *mut TF_OpKernelContext,
    *mut TF_AsyncOpKernelDoneCallback,
);
type Delete = unsafe extern "C-unwind" fn(*mut c_void);
unsafe extern "C-unwind" fn create<const ROW: usize, const COLUMN: usize>(
    construction: *mut TF_OpKernelConstruction,
) -> *mut c_void {
    // SAFETY: the argument is the host's.
    unsafe { create_of(ROW * 64 + COLUMN, construction) }
}

unsafe fn create_of(slot: usize, construction: *mut TF_OpKernelConstruction) -> *mut c_void {
    let known = SLOTS.get(slot);
    let mut plugin_kernel = ptr::null_mut();
    // TensorFlow does not call a null function.
    if known.functions[CREATE] != 0 {
        let guard = guard(known, CREATE, construction.addr());
        // SAFETY: the plugin's function, as it has given it to TensorFlow, and the host's argument.
        plugin_kernel =
            unsafe { transmute::<usize, Create>(known.functions[CREATE])(construction) };
        guard.returned(|call| {
            if let Ok(functions) = KernelFunctions::get().map_err(drop).and_then(|functions| {
                if call.is_written && !construction.is_null() { Ok(functions) } else { Err(()) }
            }) {
                // SAFETY: `construction` is the host's and not null; it lends the name for the length of the
                // call.
                let name = unsafe {
                    let name = (functions.TF_OpKernelConstruction_GetName)(construction);
                    (!name.data.is_null())
                        .then(|| std::slice::from_raw_parts(name.data.cast::<u8>(), name.len))
                };
                let name = name.unwrap_or_default();
                call.argument(format_args!("{}", clean(&String::from_utf8_lossy(name))));
            }
            call.address(plugin_kernel);
            outcome(call, construction.addr());
        });
    }
    Box::into_raw(Box::new(Kernel { slot, plugin_kernel })).cast()
}

unsafe extern "C-unwind" fn compute(kernel: *mut c_void, context: *mut TF_OpKernelContext) {
    // SAFETY: what `create` has made; TensorFlow deletes it after the last call.
    let kernel = unsafe { &*kernel.cast::<Kernel>() };
    let known = SLOTS.get(kernel.slot);
    let guard = guard(known, COMPUTE, context.addr());
    // SAFETY: the plugin's function, as it has given it to TensorFlow.
    unsafe { transmute::<usize, Compute>(known.functions[COMPUTE])(kernel.plugin_kernel, context) };
    guard.returned(|call| {
        call.handle("kernel", kernel.plugin_kernel);
        outcome(call, context.addr());
    });
}

unsafe extern "C-unwind" fn compute_async(
    kernel: *mut c_void,
    context: *mut TF_OpKernelContext,
    done: *mut TF_AsyncOpKernelDoneCallback,
) {
    // SAFETY: as in `compute`; but `done` may run before the function returns, and the kernel may be deleted then.
    let (slot, plugin_kernel) = unsafe {
        let kernel = &*kernel.cast::<Kernel>();
        (kernel.slot, kernel.plugin_kernel)
    };
    let known = SLOTS.get(slot);
    let guard = guard(known, COMPUTE, context.addr());
    // SAFETY: as in `compute`.
    unsafe {
        transmute::<usize, ComputeAsync>(known.functions[COMPUTE])(plugin_kernel, context, done)
    };
    guard.returned(|call| {
        call.handle("kernel", plugin_kernel);
        outcome(call, context.addr());
    });
}

unsafe extern "C-unwind" fn delete(kernel: *mut c_void) {
    // SAFETY: what `create` has made, for the last time.
    let kernel = unsafe { Box::from_raw(kernel.cast::<Kernel>()) };
    let known = SLOTS.get(kernel.slot);
    if known.functions[DELETE] != 0 {
        let guard = CallGuard::new(known, DELETE);
        // SAFETY: the plugin's function, as it has given it to TensorFlow.
        unsafe { transmute::<usize, Delete>(known.functions[DELETE])(kernel.plugin_kernel) };
        guard.returned(|call| call.handle("kernel", kernel.plugin_kernel));
    }
}

/// Returns the `create` of a slot.
fn create_at(slot: usize) -> Create {
    macro_rules! row {
        ($($column:literal)*) => { [$(create::<ROW, $column>),*] };
    }
    const fn row<const ROW: usize>() -> [Create; 64] {
        row!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38
             39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
    }
    macro_rules! rows {
        ($($row:literal)*) => { [$(row::<$row>()),*] };
    }
    static ALL: [[Create; 64]; ROWS] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    ALL[slot / 64][slot % 64]
}

/// Begins a call of a kernel with this context.
fn guard(slot: &Slot, member: usize, context: usize) -> CallGuard<'_> {
    // A failure of an earlier context with the same address.
    FAILURES.forget(context);
    CallGuard::new(slot, member)
}

/// Adds why a kernel's call has failed, if it has: in this thread, or in one of the plugin.
fn outcome(call: &mut Call, context: usize) {
    call.has_status = true;
    if let Some(failed) = FAILURES.take(context) {
        call.failed(failed);
    }
}

/// Wraps a kernel's functions; returns `None` if there are too many kernels.
pub(super) fn wrap(subject: &str, functions: [usize; 3], is_async: bool) -> Option<[usize; 3]> {
    let slot = SLOTS.claim(subject, &functions)?;
    let compute =
        if is_async { compute_async as ComputeAsync as usize } else { compute as Compute as usize };
    Some([create_at(slot) as usize, compute, delete as Delete as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_that_of_its_context_whichever_thread_reports_it() {
        let new = || Call { is_written: true, ..Call::default() };
        let other = std::thread::spawn(|| FAILURES.set(0x1230, "INTERNAL: late".to_owned()));
        other.join().expect("a thread");
        let mut call = new();
        outcome(&mut call, 0x4560);
        assert_eq!(call.result(), "OK");
        outcome(&mut call, 0x1230);
        assert_eq!(call.result(), "INTERNAL: late");
        let mut call = new();
        outcome(&mut call, 0x1230);
        assert_eq!(call.result(), "OK", "it was reported before");
    }
}

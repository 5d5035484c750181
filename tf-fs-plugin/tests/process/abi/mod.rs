//! The functions of `tf_status.h`, as a plugin calls them.

#[path = "../../host/abi/hand_made.rs"]
#[allow(dead_code, reason = "the tests of the host use the rest")]
pub(crate) mod hand_made;

use core::ffi::{CStr, c_char, c_int, c_void};
use tf_fs_sys::host::Table;
use tf_fs_sys::{StatusFunctions, TF_Code, TF_Status};

fn functions() -> &'static StatusFunctions {
    StatusFunctions::get().expect("a host was made")
}

fn text(string: *const c_char) -> String {
    // SAFETY: every caller passes a C string of the host that lives still.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

pub(crate) fn new_status() -> *mut TF_Status {
    // SAFETY: takes nothing.
    unsafe { (functions().TF_NewStatus)() }
}

pub(crate) fn delete(status: *mut TF_Status) {
    // SAFETY: a status of this host, which checks it.
    unsafe { (functions().TF_DeleteStatus)(status) }
}

pub(crate) fn delete_null() {
    // SAFETY: null is allowed.
    unsafe { (functions().TF_DeleteStatus)(core::ptr::null_mut()) }
}

pub(crate) fn set(
    status: *mut TF_Status,
    code: TF_Code,
    message: &CStr,
    payloads: &[(&CStr, &CStr)],
) {
    // SAFETY: a status of this host, which checks it, and C strings.
    unsafe {
        (functions().TF_SetStatus)(status, code, message.as_ptr());
        for (key, value) in payloads {
            functions().TF_SetPayload.expect("the host has it")(
                status,
                key.as_ptr(),
                value.as_ptr(),
            );
        }
    }
}

pub(crate) fn set_from_io_error(status: *mut TF_Status, error: c_int, context: &CStr) {
    // SAFETY: `status` is a status of the host, and `context` a C string.
    unsafe {
        functions().TF_SetStatusFromIOError.expect("the host has it")(
            status,
            error,
            context.as_ptr(),
        )
    }
}

pub(crate) fn content(status: *mut TF_Status) -> (TF_Code, String) {
    // SAFETY: `status` is a status of the host; its message lives until the status changes.
    unsafe { ((functions().TF_GetCode)(status), text((functions().TF_Message)(status))) }
}

pub(crate) fn payloads(status: *mut TF_Status) -> Vec<(String, String)> {
    unsafe extern "C" fn visit(key: *const c_char, value: *const c_char, capture: *mut c_void) {
        // SAFETY: what `payloads` passed.
        let list = unsafe { &mut *capture.cast::<Vec<(String, String)>>() };
        list.push((text(key), text(value)));
    }
    let mut list: Vec<(String, String)> = Vec::new();
    let for_each = functions().TF_ForEachPayload.expect("the in-process host has it");
    // SAFETY: a status of this host, and a list that outlives the call.
    unsafe { for_each(status, Some(visit), (&raw mut list).cast()) };
    list
}

/// Reads memory that was freed: a mistake, for tools that must find it.
pub(crate) fn use_after_free() {
    let freed = Box::into_raw(Box::new(7_u8));
    // SAFETY: there is none for the read; it is the mistake.
    unsafe {
        drop(Box::from_raw(freed));
        std::hint::black_box(freed.read_volatile());
    }
}

//! The functions that a library of ops exports, and those of other libraries in the process.

use crate::op::describe;
use core::ffi::{CStr, c_char};
use libloading::os::unix::Library;
use once_cell::race::OnceBox;
use std::ffi::CString;
use tf_plugin_core::__private::boundary::catch;

/// Returns the description of the library's ops as a C string, which lasts as long as the library; null if it cannot be made.
pub fn description() -> *const c_char {
    static TEXT: OnceBox<Option<CString>> = OnceBox::new();
    let text = TEXT.get_or_init(|| {
        let text = catch("the description of ops", || Ok(CString::new(describe()).ok()));
        Box::new(text.ok().flatten())
    });
    text.as_ref().map_or(core::ptr::null(), |text| text.as_ptr())
}

/// Returns the path of the library that this code is in.
pub(crate) fn own_path() -> Option<String> {
    let mut found = libc::Dl_info {
        dli_fname: core::ptr::null(),
        dli_fbase: core::ptr::null_mut(),
        dli_sname: core::ptr::null(),
        dli_saddr: core::ptr::null_mut(),
    };
    let here = own_path as fn() -> Option<String> as *const core::ffi::c_void;
    // SAFETY: an address of this library's code, and a place for the result. The name lasts as long as the library.
    unsafe {
        let is_found = libc::dladdr(here, &raw mut found) != 0 && !found.dli_fname.is_null();
        is_found.then(|| CStr::from_ptr(found.dli_fname).to_string_lossy().into_owned())
    }
}

/// Returns the path of another library of this SDK's in the process that has registered an op.
pub(crate) fn owner_of(op: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths: Vec<&str> = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]))
        .filter(|path| path.contains(".so"))
        .collect();
    paths.dedup();
    let own = own_path();
    paths.retain(|path| own.as_deref() != Some(path));
    let names = format!("\"name\":\"{op}\"");
    paths.into_iter().find(|path| describes(path, &names)).map(String::from)
}

/// Returns whether a library in the process is one of this SDK's whose description contains a text.
fn describes(path: &str, text: &str) -> bool {
    // SAFETY: the flag loads nothing, so that no code of the library runs. The function's type is that of `op_plugin!`, which
    // alone defines the name; it returns null or a C string that lasts as long as the library, which is kept meanwhile.
    unsafe {
        let Ok(library) = Library::open(Some(path), libc::RTLD_NOLOAD | libc::RTLD_LAZY) else {
            return false;
        };
        let Ok(ops) = library.get::<extern "C" fn() -> *const c_char>(b"tf_plugin_ops\0") else {
            return false;
        };
        let description = ops();
        !description.is_null() && CStr::from_ptr(description).to_string_lossy().contains(text)
    }
}

//! `TF_InitProfiler`, and the callbacks of the profiler.

use super::device_type::device_type;
use super::exports::{Exported, ProfilerExport};
use super::loads::{initialize, name_of_load};
use super::versions::{Versioned as _, check_major_version, field, fill, read_at_least};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;
use std::ffi::CString;
use tf_fs_sys::{
    TF_ProfilerRegistrationParams, TF_Status, TP_MAJOR, TP_MINOR, TP_PATCH, TP_Profiler,
    TP_ProfilerFns,
};
use tf_plugin_core::__private::boundary::{guard, log_error};
use tf_plugin_core::{Error, Result};

/// Implements `TF_InitProfiler`.
///
/// TensorFlow aborts on an error from here, so the only error is that there is no room for the tables. A host with
/// another major version gets a profiler that collects nothing. `load` is the number of loads before this one, or
/// `None` to count on from the last.
///
/// # Safety
/// `params` is null, or points to a struct of which `struct_size` bytes can be read and written, and so do
/// the pointers in it; `status` is null or a status of the host.
pub unsafe fn init_profiler<P: Exported>(
    params: *mut TF_ProfilerRegistrationParams,
    status: *mut TF_Status,
    load: Option<usize>,
) {
    let load = load.unwrap_or_else(|| P::profiler().export.loads.fetch_add(1, Ordering::AcqRel));
    // SAFETY: `params` and `status` are those that the host passed to `TF_InitProfiler`.
    unsafe {
        initialize(
            "TF_InitProfiler",
            &format_args!("the profiler of {}", device_type::<P>()),
            status,
            || register::<P>(params, load),
        )
    };
}

/// Registers the profiler.
/// # Safety
/// As for [`init_profiler`].
unsafe fn register<P: Exported>(
    params: *mut TF_ProfilerRegistrationParams,
    load: usize,
) -> Result<()> {
    let export = P::profiler();
    // SAFETY: `params` is null or covers `struct_size` readable bytes.
    let host = unsafe { read_at_least(params, TF_ProfilerRegistrationParams::STRUCT_SIZE) };
    let host = host?;
    let version = check_major_version(
        "profiler",
        [TP_MAJOR, TP_MINOR, TP_PATCH],
        [host.major_version, host.minor_version, host.patch_version],
    );
    if let Err(refusal) = &version {
        log_error(&format_args!("the profiler of {} does not run: {refusal}", device_type::<P>()));
    }
    // The events of a repeated load would be in the trace twice.
    let runs = load == 0 && version.is_ok() && export.profiler().is_some();
    let ext =
        if runs { ptr::from_ref(export).cast_mut().cast::<c_void>() } else { ptr::null_mut() };
    // The host keeps the pointer forever.
    let device_type =
        CString::new(name_of_load(device_type::<P>(), load)).map_err(Error::internal)?;
    let fns = TP_ProfilerFns {
        start: Some(start),
        stop: Some(stop),
        collect_data_xspace: Some(collect_data_xspace),
        ..TP_ProfilerFns::default()
    };
    // SAFETY: the host's `profiler` and `profiler_fns` are null or cover `struct_size` readable and writable
    // bytes; `params` covers all fields, as `read_at_least` has seen.
    unsafe {
        read_at_least(host.profiler, TP_Profiler::STRUCT_SIZE)?;
        read_at_least(host.profiler_fns, TP_ProfilerFns::STRUCT_SIZE)?;
        let device_type = device_type.into_raw().cast_const();
        let profiler = TP_Profiler { ext, device_type, ..TP_Profiler::default() };
        fill(host.profiler, &profiler)?;
        fill(host.profiler_fns, &fns)?;
        (*params).destroy_profiler = Some(destroy);
        (*params).destroy_profiler_fns = Some(destroy);
    }
    Ok(())
}

/// Destroys nothing: the host calls this for both structs while it loads the plugin, and uses copies of them later.
unsafe extern "C" fn destroy<T>(_: *mut T) {}

/// Returns the export behind a struct of the host's, or `None` for one that does nothing.
///
/// # Safety
/// `profiler` is null, was filled by [`register`], or is a copy of such a struct.
unsafe fn export(profiler: *const TP_Profiler) -> Option<&'static ProfilerExport> {
    // SAFETY: `profiler` is null, or `register` filled it: `ext` is null or points to a static
    // `ProfilerExport`.
    unsafe { field!(profiler => TP_Profiler.ext)?.cast::<ProfilerExport>().as_ref() }
}

unsafe extern "C" fn start(profiler: *const TP_Profiler, status: *mut TF_Status) {
    // SAFETY: the host passes the profiler and a status.
    unsafe {
        guard("start", status, (), || match export(profiler) {
            Some(export) => {
                drop(export.take_collected());
                export.with(|profiler| profiler.start())
            }
            None => Ok(()),
        });
    }
}

unsafe extern "C" fn stop(profiler: *const TP_Profiler, status: *mut TF_Status) {
    // SAFETY: the host passes the profiler and a status.
    unsafe {
        guard("stop", status, (), || match export(profiler) {
            Some(export) => export.with(|profiler| profiler.stop()),
            None => Ok(()),
        });
    }
}

unsafe extern "C" fn collect_data_xspace(
    profiler: *const TP_Profiler,
    buffer: *mut u8,
    size_in_bytes: *mut usize,
    status: *mut TF_Status,
) {
    let body = || {
        if size_in_bytes.is_null() {
            return Err(Error::invalid_argument(
                "TensorFlow passed no place for the size of the profile",
            ));
        }
        // SAFETY: the host passes the profiler.
        let export = unsafe { export(profiler) };
        if buffer.is_null() {
            // SAFETY: a number of the host's, which is not initialised. 0 is there while the author's code
            // runs, so also after an error or a panic.
            unsafe { size_in_bytes.write(0) };
            let size = export.map_or(Ok(0), ProfilerExport::collect)?;
            // SAFETY: `size_in_bytes` is the host's place for the number, valid for a write.
            unsafe { size_in_bytes.write(size) };
            return Ok(());
        }
        // SAFETY: the size of the host's buffer.
        let room = unsafe { size_in_bytes.read() };
        let bytes = export.map(ProfilerExport::take_collected).unwrap_or_default();
        // Fewer bytes than the host has room for are an error, too: it parses the whole buffer.
        if bytes.len() != room {
            return Err(Error::failed_precondition(format!(
                "the profile has {} bytes and TensorFlow takes {room}; request the size first",
                bytes.len()
            )));
        }
        // SAFETY: a buffer of the host's with so many bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
        Ok(())
    };
    // SAFETY: the host passes a status.
    unsafe { guard("collect_data_xspace", status, (), body) };
}

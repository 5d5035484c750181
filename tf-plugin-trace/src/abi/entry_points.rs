//! The entry points of plugins.

use std::ffi::{CStr, c_char, c_void};

use tf_fs_sys::*;

use super::device::{optimizer, platform, profiler, profiling, registration, size};
use super::filesystem;
use super::format::text;
use super::tables::tables;
use crate::call::Call;

/// The entry points as a table. The host looks up each of them separately, so each has its own slot.
#[allow(non_snake_case, reason = "the names are the functions'")]
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct EntryPoints {
    TF_InitPlugin: Option<TF_InitPluginFn>,
    SE_InitPlugin: Option<SE_InitPluginFn>,
    TF_InitKernel: Option<TF_InitKernelFn>,
    TF_InitGraph: Option<TF_InitGraphFn>,
    TF_InitProfiler: Option<TF_InitProfilerFn>,
}

/// Adds the device type that an entry point has set.
///
/// # Safety
/// It is null, or a C string of the plugin's that is not changed meanwhile.
unsafe fn named(call: &mut Call, device_type: *const c_char) -> String {
    // SAFETY: null, or a string of the plugin's.
    let name = unsafe { text(device_type) };
    call.value(format_args!("{name}"));
    name
}

// The tracer wraps what a plugin has written into the structs: the host reads it after the entry point has returned.
tables! {
    /// A table for each of [`EntryPoints`] that the host has looked up: at most five.
    points: EntryPoints, 16 {
        fn TF_InitPlugin(info: *mut TF_FilesystemPluginInfo) => |call| {
            if let Some(info) = info.as_ref() {
                call.count(info.num_schemes.try_into().unwrap_or(i64::MAX), "scheme", "schemes");
                // The host does not read the others.
                if info.plugin_memory_allocate.is_some() && info.plugin_memory_free.is_some() {
                    filesystem::wrap(info);
                }
            }
        };
        fn SE_InitPlugin(params: *mut SE_PlatformRegistrationParams, status: *mut TF_Status),
            before had = params.as_ref().map(|given| (given.struct_size, size(given.platform_fns)))
            => |call| {
                if let (Some((params_size, functions)), true) = (had, call.is_ok()) {
                    let (table, named_by) = ((*params).platform_fns, (*params).platform.as_ref());
                    let name = named_by.map(|platform| named(call, platform.r#type)).unwrap_or_default();
                    platform::wrap(table, functions.min(size(table)), &name);
                    registration::wrap(params, params_size.min((*params).struct_size), &name);
                }
            };
        fn TF_InitKernel();
        fn TF_InitGraph(params: *mut TP_OptimizerRegistrationParams, status: *mut TF_Status),
            before had = params.as_ref().map(|given| size(given.optimizer)) => |call| {
                if let (Some(had), true) = (had, call.is_ok()) {
                    let (table, name) = ((*params).optimizer, named(call, (*params).device_type));
                    optimizer::wrap(table, had.min(size(table)), &name);
                }
            };
        fn TF_InitProfiler(params: *mut TF_ProfilerRegistrationParams, status: *mut TF_Status),
            before had = params.as_ref().map(|given| (given.struct_size, size(given.profiler_fns)))
            => |call| {
                if let (Some((params_size, functions)), true) = (had, call.is_ok()) {
                    let (table, named_by) = ((*params).profiler_fns, (*params).profiler.as_ref());
                    let name = named_by.map(|profiler| named(call, profiler.device_type)).unwrap_or_default();
                    profiler::wrap(table, functions.min(size(table)), &name);
                    profiling::wrap(params, params_size.min((*params).struct_size), &name);
                }
            };
    }
}

/// Returns the index of the entry point with this name.
pub(super) fn position(name: &CStr) -> Option<usize> {
    points::MEMBERS.iter().position(|other| other.as_bytes() == name.to_bytes())
}

/// Returns the wrapper of an entry point of the plugin.
pub(super) fn wrapper(at: usize, function: usize) -> *mut c_void {
    let mut table = [0; points::MEMBERS.len()];
    table[at] = function;
    // SAFETY: `EntryPoints` is so many functions that may be absent, each as large as an address and 0 if it is, and this
    // table is this function's own.
    unsafe { points::wrap((&raw mut table).cast(), size_of_val(&table), "") };
    table[at] as *mut c_void
}

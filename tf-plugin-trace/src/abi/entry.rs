//! The entry points of plugins.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tf_fs_sys::*;

use super::begun::Begun;
use super::device::{optimizer, platform, profiler, profiling, registration, size};
use super::filesystem;
use super::words::text;
use crate::totals::{Count, Slot};

const NAMES: &[&str] =
    &["TF_InitPlugin", "SE_InitPlugin", "TF_InitKernel", "TF_InitGraph", "TF_InitProfiler"];

/// The plugin's own.
static FUNCTIONS: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

pub(super) fn slot() -> &'static Slot {
    static SLOT: OnceLock<Slot> = OnceLock::new();
    SLOT.get_or_init(|| Slot {
        subject: String::new(),
        functions: Vec::new(),
        members: NAMES,
        counts: NAMES.iter().map(|_| Count::default()).collect(),
    })
}

/// Which entry point has this name.
pub(super) fn position(name: &CStr) -> Option<usize> {
    NAMES.iter().position(|other| other.as_bytes() == name.to_bytes())
}

/// The wrapper of the plugin's entry point; nothing if another one is wrapped.
pub(super) fn wrapper(at: usize, function: usize) -> Option<*mut c_void> {
    let order = (Ordering::AcqRel, Ordering::Acquire);
    match FUNCTIONS[at].compare_exchange(0, function, order.0, order.1) {
        Err(other) if other != function => return None,
        _ => {}
    }
    Some(match at {
        0 => init_plugin as *mut c_void,
        1 => init_device as *mut c_void,
        2 => init_kernel as *mut c_void,
        3 => init_graph as *mut c_void,
        _ => init_profiler as *mut c_void,
    })
}

/// The function that was found, as what its header says it is.
macro_rules! call {
    ($at:literal: fn($($type:ty),*), $($argument:expr),*) => {{
        let begun = Begun::new(slot(), $at);
        // SAFETY: the plugin's function of this name, which has this type; exceptions pass. The arguments are the
        // host's.
        unsafe {
            let function = FUNCTIONS[$at].load(Ordering::Acquire);
            transmute::<usize, unsafe extern "C-unwind" fn($($type),*)>(function)($($argument),*);
        }
        begun
    }};
}

unsafe extern "C-unwind" fn init_plugin(info: *mut TF_FilesystemPluginInfo) {
    let begun = call!(0: fn(*mut TF_FilesystemPluginInfo), info);
    begun.returned(|call| {
        // SAFETY: the host's struct, as the plugin has filled it.
        if let Some(info) = unsafe { info.as_ref() } {
            call.count(info.num_schemes.try_into().unwrap_or(i64::MAX), "scheme", "schemes");
            // What the host does not read is not looked at.
            if info.plugin_memory_allocate.is_some() && info.plugin_memory_free.is_some() {
                // SAFETY: `info` is the host's struct with the tables that the plugin allocated, which the host
                // has not read yet.
                unsafe { filesystem::wrap(info) };
            }
        }
    });
}

unsafe extern "C-unwind" fn init_device(
    params: *mut SE_PlatformRegistrationParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host's structs, with their sizes.
    let had = unsafe { params.as_ref().map(|given| (given.struct_size, size(given.platform_fns))) };
    let begun = call!(1: fn(*mut SE_PlatformRegistrationParams, *mut TF_Status), params, status);
    begun.returned(|call| {
        // SAFETY: the host's structs, as the plugin has filled them.
        unsafe {
            call.status(status);
            if let (Some((own, functions)), true) = (had, call.fine()) {
                let (table, name) = ((*params).platform_fns, (*params).platform.as_ref());
                let name = name.map(|platform| text(platform.r#type)).unwrap_or_default();
                call.value(format_args!("{name}"));
                platform::wrap(table, functions.min(size(table)), &name);
                registration::wrap(params, own.min((*params).struct_size), &name);
            }
        }
    });
}

unsafe extern "C-unwind" fn init_kernel() {
    call!(2: fn(),).returned(|_| ());
}

unsafe extern "C-unwind" fn init_graph(
    params: *mut TP_OptimizerRegistrationParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host's structs, with their sizes.
    let had = unsafe { params.as_ref().map(|given| size(given.optimizer)) };
    let begun = call!(3: fn(*mut TP_OptimizerRegistrationParams, *mut TF_Status), params, status);
    begun.returned(|call| {
        // SAFETY: the host's structs, as the plugin has filled them.
        unsafe {
            call.status(status);
            if let (Some(had), true) = (had, call.fine()) {
                let (table, name) = ((*params).optimizer, text((*params).device_type));
                call.value(format_args!("{name}"));
                optimizer::wrap(table, had.min(size(table)), &name);
            }
        }
    });
}

unsafe extern "C-unwind" fn init_profiler(
    params: *mut TF_ProfilerRegistrationParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host's structs, with their sizes.
    let had = unsafe { params.as_ref().map(|given| (given.struct_size, size(given.profiler_fns))) };
    let begun = call!(4: fn(*mut TF_ProfilerRegistrationParams, *mut TF_Status), params, status);
    begun.returned(|call| {
        // SAFETY: the host's structs, as the plugin has filled them.
        unsafe {
            call.status(status);
            if let (Some((own, functions)), true) = (had, call.fine()) {
                let (table, name) = ((*params).profiler_fns, (*params).profiler.as_ref());
                let name = name.map(|profiler| text(profiler.device_type)).unwrap_or_default();
                call.value(format_args!("{name}"));
                profiler::wrap(table, functions.min(size(table)), &name);
                profiling::wrap(params, own.min((*params).struct_size), &name);
            }
        }
    });
}

//! The entry points of plugins.

use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};
use std::{env, fs, process};

use tf_fs_sys::*;

use super::device::{optimizer, platform, profiler, profiling, registration, size};
use super::tables::Begun;
use super::words::{refusal, text};
use super::{device, filesystem, kernel};
use crate::output;
use crate::settings::{PROCESS, Settings};
use crate::totals::{self, Count, Slot};

const NAMES: &[&str] =
    &["TF_InitPlugin", "SE_InitPlugin", "TF_InitKernel", "TF_InitGraph", "TF_InitProfiler"];

/// The plugin's own.
static FUNCTIONS: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

fn slot() -> &'static Slot {
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
    set_up();
    Some(match at {
        0 => init_plugin as *mut c_void,
        1 => init_device as *mut c_void,
        2 => init_kernel as *mut c_void,
        3 => init_graph as *mut c_void,
        _ => init_profiler as *mut c_void,
    })
}

/// All that is counted.
fn slots() -> impl Iterator<Item = &'static Slot> {
    let filesystems = filesystem::operations::SLOTS
        .used()
        .chain(filesystem::readers::SLOTS.used())
        .chain(filesystem::writers::SLOTS.used())
        .chain(filesystem::regions::SLOTS.used());
    let devices = registration::SLOTS
        .used()
        .chain(platform::SLOTS.used())
        .chain(device::device::SLOTS.used())
        .chain(device::executor::SLOTS.used())
        .chain(device::stream_options::SLOTS.used())
        .chain(device::timer::SLOTS.used())
        .chain(optimizer::SLOTS.used())
        .chain(profiling::SLOTS.used())
        .chain(profiler::SLOTS.used());
    [slot()].into_iter().chain(filesystems).chain(devices).chain(kernel::SLOTS.used())
}

/// Whether this process has loaded the plugin.
static LOADED: AtomicBool = AtomicBool::new(false);

/// What a process does that has a plugin to trace.
pub(super) fn set_up() {
    extern "C" fn end() {
        let settings = Settings::get();
        let plugin = settings.library.as_deref().and_then(|library| library.file_name());
        let plugin = plugin.unwrap_or_default().to_string_lossy();
        let is_program = settings.process == process::id();
        if let Some(table) = totals::table(slots(), &plugin, process::id(), is_program) {
            output::say(&table);
        }
    }
    extern "C" fn forked() {
        totals::clear(slots());
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        LOADED.store(true, Ordering::Relaxed);
        if let Some(mark) = &Settings::get().loaded {
            // Without it the program says more than is true, which is not a reason to stop it.
            let _ = fs::write(mark, "");
        }
        // SAFETY: functions that live as long as the process, since a preloaded library is never closed.
        unsafe {
            libc::atexit(end);
            libc::pthread_atfork(None, None, Some(forked));
        }
    });
}

/// What every process does first that this library is loaded into: the program says at its end if nobody has loaded
/// the plugin.
pub extern "C" fn begin() {
    extern "C" fn end() {
        let settings = Settings::get();
        let Some(mark) = &settings.loaded else { return };
        // A child that was forked has it, too.
        if settings.process != process::id()
            || fs::remove_file(mark).is_ok()
            || LOADED.load(Ordering::Relaxed)
        {
            return;
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let library = settings.library.as_deref().unwrap_or(Path::new("the plugin"));
        output::say(&missing(library, &maps));
    }
    // The environment is requested as little as possible: this runs in everything that the program starts.
    if env::var(PROCESS).is_ok_and(|program| program == process::id().to_string()) {
        // SAFETY: a function that lives as long as the process.
        unsafe { libc::atexit(end) };
    }
}

/// That there was no call because nobody has requested the plugin, and why that may be.
fn missing(library: &Path, maps: &str) -> String {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    let why = if maps.lines().any(|line| line.ends_with(&*library.to_string_lossy())) {
        "it was opened, but TensorFlow has asked it for nothing: call \
         `tf.experimental.register_filesystem_plugin`, or `tf.load_op_library`, with its path"
    } else if maps.contains("/libtensorflow_framework.so") {
        "TensorFlow was imported and has not loaded this file: the program may change \
         TF_PLUGGABLE_DEVICE_LIBRARY_PATH, or use another copy of the plugin. `cargo tf-plugin doctor` lists \
         what TensorFlow loads; `--library` traces that file"
    } else {
        "the program has not imported TensorFlow, nor has one that it has started and waited for: put \
         `import tensorflow` into it; and is its Python the one behind `python`, beside TensorFlow?"
    };
    format!("\nno calls: {name} was not loaded by the program or what it has started\n  {why}\n")
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
    let had = unsafe {
        params
            .as_ref()
            .map(|given| (given.struct_size, size(given.platform_fns), size(given.platform)))
    };
    let begun = call!(1: fn(*mut SE_PlatformRegistrationParams, *mut TF_Status), params, status);
    begun.returned(|call| {
        // SAFETY: the host's structs, as the plugin has filled them.
        unsafe {
            call.status(status);
            let Some((own, functions, _)) = had else { return };
            if refusal(status).is_some() {
                return;
            }
            let (table, name) = ((*params).platform_fns, (*params).platform.as_ref());
            let name = name.map(|platform| text(platform.r#type)).unwrap_or_default();
            call.value(format_args!("{name}"));
            platform::wrap(table, functions.min(size(table)), &name);
            registration::wrap(params, own.min((*params).struct_size), &name);
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
            if let (Some(had), None) = (had, refusal(status)) {
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
            if let (Some((own, functions)), None) = (had, refusal(status)) {
                let (table, name) = ((*params).profiler_fns, (*params).profiler.as_ref());
                let name = name.map(|profiler| text(profiler.device_type)).unwrap_or_default();
                call.value(format_args!("{name}"));
                profiler::wrap(table, functions.min(size(table)), &name);
                profiling::wrap(params, own.min((*params).struct_size), &name);
            }
        }
    });
}

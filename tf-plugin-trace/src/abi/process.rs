//! The work of this library in each process: at its start, after a fork, and at its end.

use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, process};

use super::system::write_stderr;
use super::{device, entry_points, filesystem, kernel};
use crate::settings::{PROCESS, Settings};
use crate::totals::{self, Slot};

/// Returns everything that is counted.
fn slots() -> impl Iterator<Item = &'static Slot> {
    entry_points::used().chain(filesystem::used()).chain(device::used()).chain(kernel::SLOTS.used())
}

static LOADED: AtomicBool = AtomicBool::new(false);

/// Sets up a process that has a plugin to trace.
pub(super) fn set_up() {
    extern "C" fn end() {
        let settings = Settings::get();
        let plugin = settings.library.as_deref().and_then(|library| library.file_name());
        let plugin = plugin.unwrap_or_default().to_string_lossy();
        let is_program = settings.process == process::id();
        if let Some(table) = totals::table(slots(), &plugin, process::id(), is_program) {
            write_stderr(&table);
        }
    }
    extern "C" fn forked() {
        totals::clear(slots());
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        LOADED.store(true, Ordering::Relaxed);
        if let Some(mark) = &Settings::get().loaded {
            // Without the file, the program may report wrongly that nobody loaded the plugin. It still goes on.
            let _ = fs::write(mark, "");
        }
        // SAFETY: functions that live as long as the process, since a preloaded library is never closed.
        unsafe {
            libc::atexit(end);
            libc::pthread_atfork(None, None, Some(forked));
        }
    });
}

/// Runs first in every process that this library is loaded into. The program reports at its end if
/// no process has loaded the plugin.
pub extern "C" fn begin() {
    extern "C" fn end() {
        let settings = Settings::get();
        let Some(mark) = &settings.loaded else { return };
        // A forked child runs this, too.
        if settings.process != process::id()
            || fs::remove_file(mark).is_ok()
            || LOADED.load(Ordering::Relaxed)
        {
            return;
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let library = settings.library.as_deref().unwrap_or(Path::new("the plugin"));
        write_stderr(&missing(library, &maps));
    }
    // The environment is read as little as possible: this runs in every process that the program starts.
    if env::var(PROCESS).is_ok_and(|program| program == process::id().to_string()) {
        // SAFETY: a function that lives as long as the process.
        unsafe { libc::atexit(end) };
    }
}

/// Says that there was no call because the plugin was not used, and why that may be.
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

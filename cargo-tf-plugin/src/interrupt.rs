//! Ctrl-C and the other signals that end a command, while something has to be ended or removed first.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The state that the signal handlers read and write.
struct State {
    /// Whether a signal ends the process, as it does without handlers.
    idle: Arc<AtomicBool>,
    /// The signal that was received; 0 if there was none.
    caught: Arc<AtomicUsize>,
    holders: Mutex<usize>,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Returns the signals that end a command, except those that its parent has set to be ignored, as
/// `nohup` and the `&` of scripts do.
pub(crate) fn signals() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0)
}

/// Returns the ignored signals: one bit each, the lowest for signal 1. Only Linux has this file.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

fn state() -> &'static State {
    STATE.get_or_init(|| {
        let state = State {
            idle: Arc::new(AtomicBool::new(true)),
            caught: Arc::default(),
            holders: Mutex::default(),
        };
        for signal in signals() {
            let (idle, caught) = (Arc::clone(&state.idle), Arc::clone(&state.caught));
            // If this fails, the process just ends.
            let _ = signal_hook::flag::register_conditional_default(signal, idle).and_then(|_| {
                let number = usize::try_from(signal).unwrap_or_default();
                signal_hook::flag::register_usize(signal, caught, number)
            });
        }
        state
    })
}

/// While it exists, signals are held back. When the last one is dropped, a signal ends the process.
#[derive(Debug)]
pub(crate) struct Held(());

impl Held {
    pub(crate) fn new() -> Self {
        let state = state();
        let mut holders = state.holders.lock().unwrap_or_else(PoisonError::into_inner);
        *holders += 1;
        state.idle.store(false, Ordering::SeqCst);
        Self(())
    }

    /// Returns whether a signal was received: the caller then stops.
    pub(crate) fn is_wanted_back(&self) -> bool {
        self.signal().is_some()
    }

    /// Returns the signal that was received.
    pub(crate) fn signal(&self) -> Option<i32> {
        i32::try_from(state().caught.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let state = state();
        let mut holders = state.holders.lock().unwrap_or_else(PoisonError::into_inner);
        *holders -= 1;
        if *holders > 0 {
            return;
        }
        state.idle.store(true, Ordering::SeqCst);
        if let Some(signal) = self.signal() {
            // This does not return; if it did, the process would ignore the signal.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

//! Says which cases run if the process ends before they do.
//!
//! A driver that crashes ends all tests of the program. libtest has then printed the name of none: it prints one when the
//! test is done.

use core::ffi::{c_int, c_void};
use core::iter;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::Once;

/// Cases that run. Of more than these at a time, the others are not named.
static RUNNING: [Place; 64] = [const { Place::empty() }; 64];

/// The name of a case. A handler of a signal reads it, so there is no lock.
struct Place {
    is_taken: AtomicBool,
    /// Up to a zero.
    name: [AtomicU8; 80],
}

impl Place {
    const fn empty() -> Self {
        Self { is_taken: AtomicBool::new(false), name: [const { AtomicU8::new(0) }; 80] }
    }
}

/// The signals of mistakes, by which a process ends.
const SIGNALS: [(c_int, &str); 6] = [
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGSYS, "SIGSYS"),
];

/// The previous handler of each signal.
static mut BEFORE: [MaybeUninit<libc::sigaction>; SIGNALS.len()] =
    [const { MaybeUninit::uninit() }; SIGNALS.len()];

/// A case that runs, until this is dropped.
pub(crate) struct Running(Option<&'static Place>);

impl Running {
    /// Notes that the case of this name runs.
    pub(crate) fn new(name: &str) -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(watch);
        let free = |place: &&'static Place| !place.is_taken.swap(true, Ordering::AcqRel);
        let place = RUNNING.iter().find(free);
        if let Some(place) = place {
            // The last place stays 0.
            let name = name.bytes().chain(iter::repeat(0));
            for (to, byte) in place.name[..place.name.len() - 1].iter().zip(name) {
                to.store(byte, Ordering::Relaxed);
            }
        }
        Self(place)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.name[0].store(0, Ordering::Relaxed);
            place.is_taken.store(false, Ordering::Release);
        }
    }
}

fn watch() {
    // SAFETY: an action of zeros is one; the handler calls only what a handler may. `BEFORE` is written here alone, each
    // place before its handler is there: `Once` lets one thread through.
    unsafe {
        libc::atexit(exits);
        for (at, (signal, _)) in SIGNALS.iter().enumerate() {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            libc::sigaction(*signal, ptr::null(), before.as_mut_ptr());
            (&raw mut BEFORE[at]).write(before);
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = dies as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(*signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Says what runs, and lets what handled the signal before handle it.
extern "C" fn dies(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let Some(at) = SIGNALS.iter().position(|(known, _)| *known == signal) else { return };
    say(&[SIGNALS[at].1, " ends the process"]);
    // SAFETY: `watch` has written the place before this handler was there; both functions may be called in a handler, and
    // the system passes `info`.
    unsafe {
        let before = (&raw const BEFORE[at]).cast::<libc::sigaction>();
        libc::sigaction(signal, before, ptr::null_mut());
        // An instruction that failed fails again after this. A signal that was sent does not come again.
        if info.is_null() || (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
}

extern "C" fn exits() {
    say(&["a call of `exit` ends the process"]);
}

/// Writes which cases run to stderr, after `what`. Calls only what a signal's handler may.
fn say(what: &[&str]) {
    let mut count = 0;
    for place in &RUNNING {
        let mut name = [0; 80];
        for (to, byte) in name.iter_mut().zip(&place.name) {
            *to = byte.load(Ordering::Relaxed);
        }
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        match count {
            0 => {
                write(b"\nerror: ");
                what.iter().for_each(|text| write(text.as_bytes()));
                write(b" while this case runs: ");
            }
            _ => write(b", or this one: "),
        }
        write(name);
        count += 1;
    }
    if count > 0 {
        write(b"\nhelp: run it alone, in a debugger if necessary: `cargo test NAME`\n");
    }
}

fn write(text: &[u8]) {
    // SAFETY: so many bytes, which the function reads. There is nothing to do about an error.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

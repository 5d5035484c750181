//! System calls of a process.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::c_int;

pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let [seconds, nanoseconds] =
        [time.tv_sec, time.tv_nsec].map(|number| u64::try_from(number).unwrap_or_default());
    seconds * 1_000_000_000 + nanoseconds
}

/// Returns the calling thread's identifier, which the kernel and debuggers use.
pub(crate) fn thread() -> u32 {
    // SAFETY: no arguments; it cannot fail. The function of that name is newer than some glibc.
    unsafe { libc::syscall(libc::SYS_gettid) }.try_into().unwrap_or_default()
}

pub(crate) fn thread_name() -> String {
    let mut name = [0_u8; 17];
    // SAFETY: room for the 16 bytes that it writes, and a NUL behind.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    CStr::from_bytes_until_nul(&name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Returns `errno`, which belongs to the plugin and the host.
pub(super) fn errno() -> c_int {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(errno: c_int) {
    // SAFETY: `__errno_location` returns the calling thread's own place, valid for a write.
    unsafe { *libc::__errno_location() = errno }
}

/// Writes to standard error, in one piece if the system does. Takes no lock, unlike `std::io::stderr`.
pub(crate) fn write_stderr(text: &str) {
    let mut text = text.as_bytes();
    while !text.is_empty() {
        // SAFETY: as many bytes as there are.
        let written = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => text = &text[written.min(text.len())..],
            _ if errno() == libc::EINTR => {}
            // There is no way to report it, and the program must not be affected.
            _ => return,
        }
    }
}

/// A file that processes append to. It is opened once and never closed.
pub(crate) struct Sink(AtomicPtr<Kept>);

/// A file and its identity: a program may close all files that it does not know, and open others with their numbers.
struct Kept {
    file: File,
    identity: (u64, u64),
}

impl Sink {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Appends a text in one piece. Ignores errors: they cannot be reported, and the program must not be affected.
    pub(crate) fn append(&self, path: &OsStr, text: &[u8]) {
        let seen = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below.
        let kept = unsafe { seen.as_ref() };
        if let Some(kept) = kept.filter(|kept| identity(&kept.file) == Some(kept.identity)) {
            let _ = (&kept.file).write_all(text);
            return;
        }
        let Ok(mut file) = File::options().append(true).create(true).open(path) else { return };
        let _ = file.write_all(text);
        if let Some(identity) = identity(&file) {
            let kept = Box::into_raw(Box::new(Kept { file, identity }));
            if self.0.compare_exchange(seen, kept, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                // SAFETY: this thread's own box: another thread's is kept.
                drop(unsafe { Box::from_raw(kept) });
            }
        }
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    let known = file.metadata().ok()?;
    Some((known.dev(), known.ino()))
}

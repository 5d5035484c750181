//! What a process asks its system.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use libc::c_int;

pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a struct to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let [seconds, nanoseconds] =
        [time.tv_sec, time.tv_nsec].map(|number| u64::try_from(number).unwrap_or_default());
    seconds * 1_000_000_000 + nanoseconds
}

/// The calling thread's identifier, as the kernel and debuggers know it.
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

/// `errno`, which belongs to the plugin and the host.
pub(super) fn errno() -> c_int {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(errno: c_int) {
    // SAFETY: `__errno_location` returns the calling thread's own place, valid for a write.
    unsafe { *libc::__errno_location() = errno }
}

/// Writes to standard error, in one piece if the system does.
pub(crate) fn write_error(text: &[u8]) {
    write(libc::STDERR_FILENO, text);
}

fn write(file: c_int, mut text: &[u8]) {
    while !text.is_empty() {
        // SAFETY: as many bytes as there are.
        let written = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => text = &text[written.min(text.len())..],
            _ if errno() == libc::EINTR => {}
            // There is nobody to tell, and the program is not to suffer from it.
            _ => return,
        }
    }
}

/// A file that processes append to.
pub(crate) struct Sink {
    file: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

impl Sink {
    pub(crate) const fn new() -> Self {
        Self { file: AtomicI32::new(-1), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Appends a text in one piece.
    pub(crate) fn append(&self, path: &OsStr, text: &[u8]) {
        let known = self.file.load(Relaxed);
        // A program may close all files that it does not know and open others under their numbers.
        let is_it = |file| {
            identity(file)
                .is_some_and(|id| id == (self.device.load(Relaxed), self.inode.load(Relaxed)))
        };
        let file = if known >= 0 && is_it(known) {
            known
        } else {
            let Ok(path) = CString::new(path.as_bytes()) else { return };
            // SAFETY: a C string.
            let file = unsafe {
                let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
                libc::open(path.as_ptr(), flags, 0o666 as libc::c_uint)
            };
            let Some((device, inode)) = identity(file) else { return };
            self.device.store(device, Relaxed);
            self.inode.store(inode, Relaxed);
            if self.file.compare_exchange(known, file, Relaxed, Relaxed).is_err() {
                // Another thread was first; both are the same file.
                write(file, text);
                // SAFETY: opened above, and nobody else's.
                unsafe { libc::close(file) };
                return;
            }
            file
        };
        write(file, text);
    }
}

fn identity(file: c_int) -> Option<(u64, u64)> {
    let mut known = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a struct to fill, for which zeros are a value.
    let (fine, known) =
        unsafe { (libc::fstat(file, known.as_mut_ptr()) == 0, known.assume_init()) };
    fine.then_some((known.st_dev, known.st_ino))
}

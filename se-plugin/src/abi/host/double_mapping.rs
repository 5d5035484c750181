//! Memory that is mapped twice.

use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use tf_plugin_core::{Error, ProcessOrigin, Result, ResultExt as _};

/// Memory that is mapped at two places: a view, whose address others get and where it cannot be read or
/// written if it is guarded, and an alias, where it can.
#[derive(Debug)]
pub(crate) struct Mapping {
    view: MappedView,
    alias: MappedView,
}

/// One of the two mappings.
#[derive(Debug)]
struct MappedView {
    address: NonNull<u8>,
    len: usize,
    /// The process that has mapped it. Its forks do not inherit it: see `new`.
    origin: ProcessOrigin,
}

// SAFETY: the range belongs to no thread; who may use which part of it when is the ledger's to say.
unsafe impl Send for MappedView {}
// SAFETY: the range belongs to no thread, and the ledger decides who may access which part of it.
unsafe impl Sync for MappedView {}

impl Mapping {
    /// Maps `len` bytes, not 0. Pages that were never written use no memory. Unless it is `guarded`, the
    /// memory can be read and written at both places.
    pub(super) fn new(len: usize, guarded: bool) -> Result<Self> {
        let text = || format!("mapping {len} bytes of memory for a device");
        // SAFETY: the name is a C string, and the descriptor is a new one that nothing else owns.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"device memory".as_ptr(), libc::MFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error()).context(text());
            }
            File::from_raw_fd(descriptor)
        };
        file.set_len(len as u64).context(text())?;
        let usable = libc::PROT_READ | libc::PROT_WRITE;
        let view = MappedView::new(&file, len, if guarded { libc::PROT_NONE } else { usable });
        let view = view.context(text())?;
        // The file is closed after this, so that nothing can truncate it; the mappings keep the memory.
        Ok(Self { view, alias: MappedView::new(&file, len, usable).context(text())? })
    }

    /// Returns the address of the view.
    pub(crate) fn view(&self) -> u64 {
        self.view.address.addr().get() as u64
    }

    /// Checks that this process has the memory.
    /// Fails with `FAILED_PRECONDITION` in a forked process, which does not inherit it.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.alias.origin.is_current() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "the device belongs to the process that opened it, and this one is a fork of it; start \
             processes that use devices with `spawn`",
        ))
    }

    /// Returns the address of the `len` bytes at `offset`.
    ///
    /// # Panics
    /// If the range is not within the memory, or the process is a fork.
    pub(super) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.alias.len), "the range is within the mapping");
        assert!(self.alias.origin.is_current(), "the process is the one that has the memory");
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.alias.address.add(offset) }
    }
}

impl MappedView {
    fn new(file: &File, len: usize, protection: c_int) -> io::Result<Self> {
        // SAFETY: a new mapping, wherever the system likes.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(at) = NonNull::new(address.cast()) else {
            return Err(io::Error::other("the system has mapped the memory at address 0"));
        };
        let place = Self { address: at, len, origin: ProcessOrigin::current() };
        // A fork would share the memory but not the ledger, so it does not inherit the memory.
        // SAFETY: the mapping from above.
        match unsafe { libc::madvise(address, len, libc::MADV_DONTFORK) } {
            0 => Ok(place),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for MappedView {
    fn drop(&mut self) {
        // In a fork, something else may be mapped there by now.
        if self.origin.is_current() {
            // SAFETY: mapped in `new`; each borrow of the memory holds a reference to the mapping.
            unsafe { libc::munmap(self.address.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use crate::device::{AllocatorStats, Device as _};
    use crate::host::{HostDevice, HostMemory, WorkerEvent};
    use crate::memory::DevicePtr;
    use crate::stream::{Event as _, Stream as _};
    use core::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Arc, mpsc};
    use tf_plugin_testing::__private::in_a_child;

    /// The number that `getpid` returns; 0 for the true one.
    static PRETENDED: AtomicI32 = AtomicI32::new(0);

    /// Replaces the function of the C library in this program: `std::process::id` calls it.
    // SAFETY: it has the signature of the C library's, and returns what the kernel says or a number of a test's.
    #[unsafe(no_mangle)]
    extern "C" fn getpid() -> libc::pid_t {
        match PRETENDED.load(Ordering::Relaxed) {
            // SAFETY: a system call without arguments that has no effect.
            0 => unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t },
            number => number,
        }
    }

    /// Asserts that `work` returns true in a child that sees this process's ID as its own. A real fork may get that ID
    /// after the end of its parent.
    #[track_caller]
    fn holds_in_a_child_of_the_same_number(name: &str, work: impl FnOnce() -> bool) {
        let parent = std::process::id().cast_signed();
        let status = in_a_child(10, || {
            let child = std::process::id().cast_signed();
            PRETENDED.store(parent, Ordering::Relaxed);
            let is_recycled = child != parent && std::process::id().cast_signed() == parent;
            i32::from(!(is_recycled && work()))
        });
        assert!(status.success(), "{name}: {status}");
    }

    #[test]
    fn a_child_gets_an_error_instead_of_waiting_for_its_parents_locks() {
        let device = HostDevice::new(HostMemory::new(1 << 20).unwrap());
        let memory = device.memory().clone();
        let at = memory.allocate(8).unwrap();
        let is_refused = |result: Result<()>| {
            result.is_err_and(|error| error.code() == Code::FailedPrecondition)
        };
        let [stream, other] = [(); 2].map(|()| device.create_stream().unwrap());
        let (event, new) = (WorkerEvent::new(), WorkerEvent::new());
        let (go, gate) = mpsc::channel();
        let wait = move |[]: [&[u8]; 0], []: [&mut [u8]; 0]| gate.recv().map_err(Error::internal);
        stream.launch("slow", [], [], wait).unwrap();
        stream.record_event(&event).unwrap();
        let core = Arc::clone(stream.core());
        let held = (memory.hold(), core.hold());
        type Case<'a> = (&'a str, &'a dyn Fn() -> bool);
        let cases: [Case<'_>; 19] = [
            ("allocate", &|| is_refused(memory.allocate(8).map(drop))),
            ("deallocate", &|| is_refused(memory.deallocate(at))),
            ("write", &|| is_refused(memory.write("write", at, &[0; 8]))),
            ("copy", &|| is_refused(memory.copy("copy", at, at, 8))),
            ("usage", &|| memory.usage().total == 0),
            ("stats", &|| memory.stats() == AllocatorStats::default()),
            ("memory_usage", &|| is_refused(device.memory_usage().map(drop))),
            ("allocator_stats", &|| device.allocator_stats().is_none()),
            ("a new memory", &|| HostMemory::new(1 << 20).is_ok()),
            ("a copy from no memory", &|| {
                let (memory, nowhere) = (HostMemory::new(1 << 20).unwrap(), DevicePtr::new(8));
                let copied = memory.copy("copy", memory.allocate(8).unwrap(), nowhere.unwrap(), 8);
                copied.is_err_and(|error| error.code() == Code::InvalidArgument)
            }),
            ("synchronize", &|| is_refused(device.synchronize())),
            ("synchronize a stream", &|| is_refused(stream.synchronize())),
            ("status of a stream", &|| is_refused(stream.status())),
            ("record_event", &|| is_refused(stream.record_event(&new))),
            ("wait_stream", &|| is_refused(other.wait_stream(&stream))),
            ("wait_event", &|| is_refused(other.wait_event(&event))),
            ("status of an event", &|| is_refused(event.status().map(drop))),
            ("wait for an event", &|| is_refused(event.wait())),
            ("an event that was never recorded", &|| new.wait().is_ok()),
        ];
        for (name, work) in cases {
            holds_in_a_child_of_the_same_number(name, work);
        }
        let mut dropped = Some(stream);
        holds_in_a_child_of_the_same_number("drop", || dropped.take().is_some());
        drop(held);
        go.send(()).unwrap();
        memory.deallocate(at).unwrap();
    }

    #[test]
    fn a_child_does_not_unmap_what_is_not_its_own() {
        let mut mapping = Some(Mapping::new(4096, false).unwrap());
        holds_in_a_child_of_the_same_number("another mapping", || {
            let place = mapping.as_ref().unwrap().view.address.as_ptr();
            // Its parent's memory is not there; something of the child's is mapped at the same place.
            // SAFETY: a new mapping where nothing is mapped: the parent's is not inherited.
            let memory = unsafe {
                libc::mmap(
                    place.cast(),
                    4096,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                    -1,
                    0,
                )
            };
            if memory != place.cast() {
                return false;
            }
            drop(mapping.take());
            // SAFETY: queries whether the page is mapped, and writes nothing.
            unsafe { libc::msync(memory, 4096, libc::MS_ASYNC) == 0 }
        });
    }
}

//! Frees memory in a separate thread: while a kernel hangs, `cuMemFree` and `cuMemFreeHost` may
//! wait for it, and nobody else must.

use super::{Device, failed};
use cudarc::driver::result;
use cudarc::driver::sys::CUresult;
use se_plugin_gpu::backend::{Allocation, BackendResult};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an allocation waits for memory that will be freed.
const PATIENCE: Duration = Duration::from_secs(10);

enum Job {
    Free(Allocation<()>),
    /// Sends a reply once all jobs before it are done.
    Answer(Sender<()>),
}

/// The thread that frees memory. It ends with the process.
pub(super) struct DeferredFree(Mutex<Sender<Job>>);

impl DeferredFree {
    pub(super) fn new(device: &Arc<Device>) -> BackendResult<Self> {
        let (sender, jobs) = channel();
        let device = Arc::clone(device);
        let work = move || {
            // The thread has no other context, and without one nothing can be freed.
            if device.enter_for_good().is_err() {
                return;
            }
            for job in jobs {
                match job {
                    // SAFETY: nothing uses the memory, as the caller of `free` says.
                    Job::Free(memory) => unsafe { free(memory) },
                    Job::Answer(sender) => drop(sender.send(())),
                }
            }
        };
        let thread = thread::Builder::new().name(String::from("gpu frees")).spawn(work);
        thread.map_err(|error| super::broken("start a thread", error.to_string()))?;
        Ok(Self(Mutex::new(sender)))
    }

    /// Frees memory, later.
    ///
    /// # Safety
    /// As for `Backend::free`.
    pub(super) unsafe fn free(&self, memory: Allocation<()>) {
        self.send(Job::Free(memory));
    }

    /// Waits until all memory that should be freed is free, unless a kernel hangs.
    pub(super) fn wait(&self) {
        let (sender, answer) = channel();
        self.send(Job::Answer(sender));
        // Without a reply the allocation fails as before.
        let _ = answer.recv_timeout(PATIENCE);
    }

    fn send(&self, job: Job) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // This fails once the thread has ended: the memory stays allocated.
        let _ = sender.send(job);
    }
}

/// # Safety
/// `allocate` made the memory, nothing uses it, and the context is that of this thread.
unsafe fn free(memory: Allocation<()>) {
    // The error is one of earlier work, which is reported where that is waited for.
    let _ = match memory.host {
        // SAFETY: it is memory of the GPU that `allocate` made, and nothing uses it.
        None => unsafe { result::free_sync(memory.address) },
        // SAFETY: it is memory of the host that `allocate` made, and nothing uses it.
        Some(host) => unsafe { result::free_host(host.as_ptr().cast()) },
    };
}

/// Allocates memory of the GPU. If there is not enough, tries again after pending memory is freed.
pub(super) fn allocate(frees: &DeferredFree, bytes: u64) -> BackendResult<u64> {
    // SAFETY: what is in the memory is not read before it is written, except by those who allocate it.
    let allocate = || unsafe { result::malloc_sync(bytes as usize) };
    let allocated = allocate().or_else(|error| match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            frees.wait();
            allocate()
        }
        _ => Err(error),
    });
    allocated.map_err(|error| failed(format_args!("allocate {bytes} bytes"), error))
}

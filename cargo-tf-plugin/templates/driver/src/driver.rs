//! The driver.
//!
//! This one is a stand-in that runs on every machine. Its memory is the host's, and a queue is a thread. For a real device, open
//! the driver's library with `se_plugin::driver::Library`, and call its functions in the bodies here: each names the function of
//! CUDA that does the same.

use se_plugin::prelude::*;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

/// The memory of the device in bytes.
const MEMORY: u64 = 1 << 30;

/// The alignment that TensorFlow requires of addresses.
const ALIGNMENT: usize = 256;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open device.
pub(crate) struct Driver {
    /// The sizes of the allocations, by address.
    allocations: Mutex<HashMap<u64, Layout>>,
    /// A fork has the memory of this process but neither its threads nor its driver.
    process: u32,
}

impl Driver {
    /// Opens the device (`cuInit`, `cuDevicePrimaryCtxRetain`).
    pub(crate) fn open() -> Self {
        Self { allocations: Mutex::default(), process: process::id() }
    }

    /// Fails in a fork, before a lock is taken that a thread of the parent may have held.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == process::id() {
            return Ok(());
        }
        Err(Error::failed_precondition(
            "this process is a fork of the one that opened the device; start processes with `spawn`",
        ))
    }

    /// Returns how many bytes are free, and how many there are (`cuMemGetInfo`).
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.check_process()?;
        let used: u64 = lock(&self.allocations).values().map(|layout| layout.size() as u64).sum();
        Ok((MEMORY.saturating_sub(used), MEMORY))
    }

    /// Allocates memory (`cuMemAlloc`).
    pub(crate) fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        let (free, _) = self.memory()?;
        let full = || Error::resource_exhausted(format!("cannot allocate {bytes} bytes, {free} are free"));
        ensure!(bytes <= free, full());
        let layout = Layout::from_size_align(bytes.max(1) as usize, ALIGNMENT).map_err(|_| full())?;
        // SAFETY: the layout has at least one byte.
        let address = unsafe { alloc_zeroed(layout) }.expose_provenance() as u64;
        let memory = DevicePtr::new(address).ok_or_else(full)?;
        lock(&self.allocations).insert(address, layout);
        Ok(memory)
    }

    /// Frees memory (`cuMemFree`), which no queue uses any more.
    pub(crate) fn free(&self, memory: DevicePtr) -> Result<()> {
        self.check_process()?;
        let Some(layout) = lock(&self.allocations).remove(&memory.address()) else {
            return Err(Error::invalid_argument(format!("{memory:?} is not allocated")));
        };
        // SAFETY: `allocate` returned it with this layout, it was in the table until now, and no queue uses it.
        unsafe { dealloc(pointer(memory), layout) };
        Ok(())
    }

    /// Copies from the host before it returns (`cuMemcpyHtoD`).
    pub(crate) fn write(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        self.check(target, source.len() as u64)?;
        // SAFETY: the range was checked, and TensorFlow keeps it allocated.
        unsafe { source.as_ptr().copy_to(pointer(target), source.len()) };
        Ok(())
    }

    /// Copies to the host before it returns (`cuMemcpyDtoH`).
    pub(crate) fn read(&self, target: &mut HostBuf<'_>, source: DevicePtr) -> Result<()> {
        self.check(source, target.len() as u64)?;
        // SAFETY: the range was checked, and TensorFlow keeps it allocated.
        unsafe { pointer(source).copy_to(target.as_mut_ptr(), target.len()) };
        Ok(())
    }

    /// Copies within the device before it returns (`cuMemcpyDtoD`).
    pub(crate) fn copy(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.check(target, bytes)?;
        self.check(source, bytes)?;
        // SAFETY: both ranges were checked, and TensorFlow keeps them allocated.
        unsafe { pointer(source).copy_to(pointer(target), bytes as usize) };
        Ok(())
    }

    /// Fails if a range is not within an allocation: the device would write over other memory.
    fn check(&self, memory: DevicePtr, bytes: u64) -> Result<()> {
        self.check_process()?;
        let end = memory.address().checked_add(bytes);
        let holds = |(&start, layout): (&u64, &Layout)| {
            start <= memory.address() && end.is_some_and(|end| end <= start + layout.size() as u64)
        };
        ensure!(
            lock(&self.allocations).iter().any(holds),
            Error::invalid_argument(format!("{bytes} bytes at {memory:?} are not allocated"))
        );
        Ok(())
    }
}

fn pointer(memory: DevicePtr) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(memory.address() as usize)
}

/// The end of the work that a queue had at some time (`CUevent`).
#[derive(Clone)]
pub(crate) struct Position {
    queue: Arc<Shared>,
    number: u64,
}

impl Position {
    pub(crate) fn is_done(&self) -> bool {
        *lock(&self.queue.done) >= self.number
    }

    /// Waits until the work is done (`cuEventSynchronize`).
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` in a fork, and on the queue's own thread, which would wait forever.
    pub(crate) fn wait(&self) -> Result<()> {
        self.queue.driver.check_process()?;
        if self.is_done() {
            return Ok(());
        }
        let is_own = *lock(&self.queue.thread) == Some(thread::current().id());
        ensure!(
            !is_own,
            Error::failed_precondition("a callback waits for its own stream, which waits for it")
        );
        self.wait_here();
        Ok(())
    }

    fn wait_here(&self) {
        let waiting = self.queue.progress.wait_while(lock(&self.queue.done), |done| *done < self.number);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// What a queue shares with its thread and its positions.
struct Shared {
    driver: Arc<Driver>,
    /// How many tasks are done.
    done: Mutex<u64>,
    progress: Condvar,
    thread: Mutex<Option<ThreadId>>,
}

type Task = Box<dyn FnOnce() + Send>;

/// A program for the device (`CUfunction`). Its arguments are numbers and addresses.
///
/// # Safety
/// The arguments are what the program takes, and its memory is allocated. See `programs.rs`.
pub(crate) type Program = unsafe fn(&[u64]);

/// A queue of work, which runs in order (`CUstream`).
pub(crate) struct Queue {
    shared: Arc<Shared>,
    /// How many tasks were sent, and where to send them; `None` once the queue is closed.
    sender: Mutex<(u64, Option<Sender<Task>>)>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// Creates a queue (`cuStreamCreate`).
    pub(crate) fn new(driver: &Arc<Driver>) -> Result<Self> {
        driver.check_process()?;
        let (driver, thread) = (Arc::clone(driver), Mutex::default());
        let shared =
            Arc::new(Shared { driver, done: Mutex::default(), progress: Condvar::new(), thread });
        let (sender, tasks) = channel();
        let of_thread = Arc::clone(&shared);
        let work = move || work(&of_thread, &tasks);
        let worker = thread::Builder::new().name("device queue".into()).spawn(work)?;
        *lock(&shared.thread) = Some(worker.thread().id());
        let (sender, worker) = (Mutex::new((0, Some(sender))), Mutex::new(Some(worker)));
        Ok(Self { shared, sender, worker })
    }

    /// Enqueues a call of the host (`cuLaunchHostFunc`).
    pub(crate) fn call(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        self.shared.driver.check_process()?;
        let mut sender = lock(&self.sender);
        sender.0 += 1;
        let sent = sender.1.as_ref().map(|sender| sender.send(Box::new(task)));
        // The thread receives until the queue is closed.
        sent.and_then(std::result::Result::ok).ok_or_else(|| Error::internal("the queue is closed"))
    }

    /// Returns the end of the work until now (`cuEventRecord`).
    pub(crate) fn end(&self) -> Position {
        let is_here = self.shared.driver.check_process().is_ok();
        let number = if is_here { lock(&self.sender).0 } else { 0 };
        Position { queue: Arc::clone(&self.shared), number }
    }

    /// Makes later work wait for other work (`cuStreamWaitEvent`).
    pub(crate) fn wait_for(&self, position: Position) -> Result<()> {
        if Arc::ptr_eq(&position.queue, &self.shared) {
            // It is done before anyway.
            return Ok(());
        }
        self.call(move || position.wait_here())
    }

    /// Enqueues a copy from the host (`cuMemcpyHtoDAsync`).
    pub(crate) fn copy_from_host(&self, target: DevicePtr, source: HostSource) -> Result<()> {
        let bytes = source.len();
        self.shared.driver.check(target, bytes as u64)?;
        self.call(move || {
            // SAFETY: the range was checked; TensorFlow keeps it allocated, and `source` readable until it is complete.
            unsafe { source.as_ptr().copy_to(pointer(target), bytes) };
            source.complete(Ok(()));
        })
    }

    /// Enqueues a copy to the host (`cuMemcpyDtoHAsync`).
    pub(crate) fn copy_to_host(&self, mut target: HostTarget, source: DevicePtr) -> Result<()> {
        let bytes = target.len();
        self.shared.driver.check(source, bytes as u64)?;
        self.call(move || {
            // SAFETY: the range was checked; TensorFlow keeps it allocated, and `target` writable until it is complete.
            unsafe { pointer(source).copy_to(target.as_mut_ptr(), bytes) };
            target.complete(Ok(()));
        })
    }

    /// Enqueues a copy within the device (`cuMemcpyDtoDAsync`).
    pub(crate) fn copy(&self, target: DevicePtr, source: DevicePtr, bytes: u64) -> Result<()> {
        self.shared.driver.check(target, bytes)?;
        self.shared.driver.check(source, bytes)?;
        // SAFETY: both ranges were checked, and TensorFlow keeps them allocated.
        self.call(move || unsafe { pointer(source).copy_to(pointer(target), bytes as usize) })
    }

    /// Enqueues a fill with four bytes again and again (`cuMemsetD32Async`).
    pub(crate) fn fill(&self, target: DevicePtr, pattern: [u8; 4], bytes: u64) -> Result<()> {
        self.shared.driver.check(target, bytes)?;
        self.call(move || {
            // SAFETY: the range was checked, TensorFlow keeps it allocated, and nothing else of the host uses it.
            let target = unsafe { std::slice::from_raw_parts_mut(pointer(target), bytes as usize) };
            for (byte, value) in target.iter_mut().zip(pattern.into_iter().cycle()) {
                *byte = value;
            }
        })
    }

    /// Enqueues a program (`cuLaunchKernel`).
    ///
    /// # Safety
    /// The arguments are what the program takes, and its memory stays allocated until it is done.
    pub(crate) unsafe fn launch(&self, program: Program, arguments: Vec<u64>) -> Result<()> {
        // SAFETY: the caller promises the same.
        self.call(move || unsafe { program(&arguments) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // A fork has no thread to wait for, and its locks may be taken for good.
        if self.shared.driver.check_process().is_err() {
            return;
        }
        // The thread ends after the work that was sent.
        lock(&self.sender).1 = None;
        if let Some(worker) = lock(&self.worker).take()
            && worker.thread().id() != thread::current().id()
        {
            let _ = worker.join();
        }
    }
}

/// Runs the tasks of a queue.
fn work(shared: &Shared, tasks: &Receiver<Task>) {
    for task in tasks {
        task();
        *lock(&shared.done) += 1;
        shared.progress.notify_all();
    }
}

//! The driver.
//!
//! This one is a stand-in that runs on every machine. Its memory is the host's, and a queue is a thread. For a real device, open
//! the driver's library with `se_plugin::driver::Library`, and call its functions in the bodies here: each names the function of
//! CUDA that does the same.

use se_plugin::prelude::*;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

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
    /// Returns whether the work is done.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` in a fork.
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.queue.driver.check_process()?;
        Ok(lock(&self.queue.progress).done >= self.number)
    }

    /// Waits until the work is done (`cuEventSynchronize`).
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` in a fork, and on the thread of a queue, which might wait for itself; the first failure of the queue.
    pub(crate) fn wait(&self) -> Result<()> {
        if !self.is_done()? {
            ensure!(
                !IS_QUEUE.get(),
                Error::failed_precondition("a callback waits for a stream, which may wait for the callback")
            );
            self.wait_here();
        }
        self.queue.check()
    }

    fn wait_here(&self) {
        let progress = lock(&self.queue.progress);
        let waiting = self.queue.changed.wait_while(progress, |progress| progress.done < self.number);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

thread_local! {
    /// Whether this thread is a queue's.
    static IS_QUEUE: Cell<bool> = const { Cell::new(false) };
}

/// What a queue shares with its thread and its positions.
struct Shared {
    driver: Arc<Driver>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// How many tasks are done.
    done: u64,
    /// The first failure. Later tasks still run: a driver would refuse them.
    failure: Option<String>,
}

impl Shared {
    /// Returns the first failure of the tasks.
    fn check(&self) -> Result<()> {
        match &lock(&self.progress).failure {
            Some(failure) => Err(Error::internal(failure.clone())),
            None => Ok(()),
        }
    }
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
    /// How many tasks were sent, and where to send them; `None` once the queue is closed. A fork must not drop it: that takes a lock.
    sender: ManuallyDrop<Mutex<(u64, Option<Sender<Task>>)>>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// Creates a queue (`cuStreamCreate`).
    pub(crate) fn new(driver: &Arc<Driver>) -> Result<Self> {
        driver.check_process()?;
        let (driver, progress) = (Arc::clone(driver), Mutex::default());
        let shared = Arc::new(Shared { driver, progress, changed: Condvar::new() });
        let (sender, tasks) = channel();
        let of_thread = Arc::clone(&shared);
        let work = move || work(&of_thread, &tasks);
        let worker = thread::Builder::new().name("device queue".into()).spawn(work)?;
        let sender = ManuallyDrop::new(Mutex::new((0, Some(sender))));
        Ok(Self { shared, sender, worker: Mutex::new(Some(worker)) })
    }

    /// Enqueues a call of the host (`cuLaunchHostFunc`).
    pub(crate) fn call(&self, task: impl FnOnce() + Send + 'static) -> Result<()> {
        self.shared.driver.check_process()?;
        let mut sender = lock(&self.sender);
        let sent = sender.1.as_ref().map(|sender| sender.send(Box::new(task)));
        // The thread receives until the queue is closed.
        ensure!(matches!(sent, Some(Ok(()))), Error::internal("the queue is closed"));
        sender.0 += 1;
        Ok(())
    }

    /// Returns the first failure of the work.
    pub(crate) fn status(&self) -> Result<()> {
        self.shared.driver.check_process()?;
        self.shared.check()
    }

    /// Returns the end of the work until now (`cuEventRecord`).
    pub(crate) fn end(&self) -> Result<Position> {
        self.shared.driver.check_process()?;
        Ok(Position { queue: Arc::clone(&self.shared), number: lock(&self.sender).0 })
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
        drop(lock(&self.sender).1.take());
        if let Some(worker) = lock(&self.worker).take()
            && worker.thread().id() != thread::current().id()
        {
            let _ = worker.join();
        }
    }
}

/// Runs the tasks of a queue. One that panics is a failure, and no end: others wait for the queue.
fn work(shared: &Shared, tasks: &Receiver<Task>) {
    IS_QUEUE.set(true);
    for task in tasks {
        let outcome = catch_unwind(AssertUnwindSafe(task));
        let mut progress = lock(&shared.progress);
        if outcome.is_err() {
            progress.failure.get_or_insert_with(|| String::from("a program of the device has panicked"));
        }
        progress.done += 1;
        drop(progress);
        shared.changed.notify_all();
    }
}

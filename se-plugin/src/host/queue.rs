//! The queue of a worker stream, and its thread.

use super::delay::Delay;
use super::memory::HostMemory;
use super::observer::{FinishedTask, Observer};
use super::range::DeviceRange;
use crate::abi::host::borrow_table::Borrow;
use crate::health::Health;
use crate::profiler;
use crate::sync::lock;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};
use tf_plugin_core::__private::boundary;
use tf_plugin_core::{Error, Result};

/// The state that the thread, events and other streams share.
pub(crate) struct StreamCore {
    pub(super) memory: HostMemory,
    pub(super) health: Health,
    delay: Delay,
    number: u64,
    observer: Option<Arc<dyn Observer>>,
    queue: Mutex<Queue>,
    /// Wakes up the thread.
    filled: Condvar,
    /// The number of tasks that are done.
    done: AtomicU64,
    /// Wakes up the threads that wait for a task, with the lock of the queue.
    progress: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// The number of tasks so far.
    pushed: u64,
    /// Whether no more tasks will come.
    is_closed: bool,
    worker: Option<JoinHandle<()>>,
    id: Option<ThreadId>,
}

pub(super) struct Task {
    pub(super) op: &'static str,
    /// Whether it is delayed and observed.
    pub(super) is_work: bool,
    pub(super) run: Box<dyn FnOnce(TaskContext) -> Result<()> + Send>,
}

/// The state in which a task begins.
pub(super) struct TaskContext {
    /// The first failure so far.
    pub(super) health: Result<()>,
    /// How long to wait while it has its memory.
    pub(super) hold: Duration,
}

/// The end of the tasks that a stream had at some time.
#[derive(Clone)]
pub(super) struct QueuePosition {
    core: Arc<StreamCore>,
    /// The number of tasks by then.
    number: u64,
}

impl QueuePosition {
    pub(super) fn is_done(&self) -> bool {
        self.core.done.load(Ordering::Acquire) >= self.number
    }

    pub(super) fn wait(&self) {
        if self.is_done() {
            return;
        }
        let waiting = self.core.progress.wait_while(lock(&self.core.queue), |_| !self.is_done());
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Checks that this process has the stream's thread.
    /// Fails with `FAILED_PRECONDITION` in a forked process.
    pub(super) fn check_process(&self) -> Result<()> {
        self.core.memory.check_process()
    }

    /// Waits on a thread that is not the stream's own.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` on the stream's own thread, which would wait forever, and in a forked process.
    pub(super) fn wait_elsewhere(&self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        self.check_process()?;
        if lock(&self.core.queue).id == Some(thread::current().id()) {
            return Err(Error::failed_precondition(
                "a task waits for its own stream, which waits for the task; wait on another thread",
            ));
        }
        self.wait();
        Ok(())
    }
}

impl StreamCore {
    pub(super) fn new(
        memory: &HostMemory,
        health: Health,
        delay: Delay,
        number: u64,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let (queue, filled, done, progress) = Default::default();
        let memory = memory.clone();
        Self { memory, health, delay, number, observer, queue, filled, done, progress }
    }

    /// Takes the lock that a thread of the parent may hold during a fork.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        lock(&self.queue)
    }

    /// Returns the end of the tasks that are in the stream now.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` in a forked process.
    pub(super) fn end(self: &Arc<Self>) -> Result<QueuePosition> {
        self.memory.check_process()?;
        Ok(QueuePosition { core: Arc::clone(self), number: lock(&self.queue).pushed })
    }

    pub(super) fn push(self: &Arc<Self>, task: Task) -> Result<QueuePosition> {
        let mut queue = lock(&self.queue);
        if queue.worker.is_none() {
            let core = Arc::clone(self);
            let worker = thread::Builder::new()
                .name(String::from("device stream"))
                .spawn(move || core.work())?;
            queue.id = Some(worker.thread().id());
            queue.worker = Some(worker);
        }
        queue.pushed += 1;
        queue.tasks.push_back(task);
        let number = queue.pushed;
        drop(queue);
        self.filled.notify_one();
        Ok(QueuePosition { core: Arc::clone(self), number })
    }

    /// Calls `copy` with ranges of the memory, which are free again when this returns: the next task may begin as
    /// soon as the token is complete.
    pub(super) fn copy(
        &self,
        turn: TaskContext,
        op: &'static str,
        reads: &[DeviceRange],
        writes: &[DeviceRange],
        copy: impl FnOnce(Borrow),
    ) -> Result<()> {
        turn.health?;
        let borrow = self.memory.borrow(op, reads, writes)?;
        sleep(turn.hold);
        copy(borrow);
        Ok(())
    }

    /// Ends the thread after the tasks that are in the queue, and waits for that.
    pub(super) fn close(&self) {
        // A fork has no thread, and the lock of the queue may be taken there forever.
        if self.memory.check_process().is_err() {
            return;
        }
        let worker = {
            let mut queue = lock(&self.queue);
            queue.is_closed = true;
            queue.worker.take()
        };
        self.filled.notify_one();
        // The last owner may be a task; then the thread ends by itself.
        if let Some(worker) = worker
            && worker.thread().id() != thread::current().id()
        {
            // The thread catches panics, so there is no error.
            let _ = worker.join();
        }
    }

    /// Returns whether a point is in this queue.
    pub(super) fn has(&self, point: &QueuePosition) -> bool {
        core::ptr::eq(self, &*point.core)
    }

    /// Runs the tasks, on the stream's thread.
    fn work(&self) {
        let mut delay = self.delay.of_stream(self.number);
        loop {
            let is_empty = |queue: &mut Queue| queue.tasks.is_empty() && !queue.is_closed;
            let waiting = self.filled.wait_while(lock(&self.queue), is_empty);
            let task = waiting.unwrap_or_else(PoisonError::into_inner).tasks.pop_front();
            let Some(Task { op, is_work, run }) = task else { return };
            let mut hold = Duration::ZERO;
            if is_work {
                sleep(delay());
                hold = delay();
            }
            let health = self.health.check();
            let was_well = health.is_ok();
            let observer = self.observer.as_ref().filter(|_| is_work && was_well);
            let start = observer.map(|observer| (observer, profiler::now(), Instant::now()));
            let result = boundary::catch(op, || run(TaskContext { health, hold }));
            if let Some((observer, start, instant)) = start {
                let (stream, failed) = (self.number, result.is_err());
                let task = FinishedTask { stream, op, start, duration: instant.elapsed(), failed };
                let tell = || {
                    observer.finished(&task);
                    Ok(())
                };
                boundary::guard_logged(op, || (), tell);
            }
            if let Err(error) = result {
                if was_well {
                    self.health.note(op, &error);
                }
                boundary::discard(op, error);
            }
            let queue = lock(&self.queue);
            self.done.fetch_add(1, Ordering::Release);
            drop(queue);
            self.progress.notify_all();
        }
    }
}

pub(super) fn sleep(time: Duration) {
    if !time.is_zero() {
        thread::sleep(time);
    }
}

impl core::fmt::Debug for StreamCore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (pushed, done) = (lock(&self.queue).pushed, self.done.load(Ordering::Acquire));
        f.debug_struct("StreamCore")
            .field("pushed", &pushed)
            .field("done", &done)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for QueuePosition {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("QueuePosition").field(&self.number).finish()
    }
}

//! In-order queues: each has a thread that sends its work to the card.

use crate::abi::{Batch, Block, Gpu, Pipeline, Place};
use se_plugin::{Error, HostCallback, HostSource, HostTarget, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The first failure of the device, for good.
#[derive(Default)]
pub(crate) struct Health(Mutex<Option<Error>>);

fn again(error: &Error) -> Error {
    Error::new(error.code(), error.message().to_owned())
}

impl Health {
    pub(crate) fn check(&self) -> Result<()> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map_or(Ok(()), |error| Err(again(error)))
    }

    fn note(&self, error: Error) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = Some(error);
        }
    }
}

/// One piece of work.
pub(crate) enum Task {
    Copy { target: Place, source: Place, bytes: u64 },
    Fill { target: Place, pattern: [u8; 4], bytes: u64 },
    Launch { pipeline: Pipeline, uses: Vec<Place>, push: Vec<u8>, groups: [u32; 3] },
    Upload { target: Place, source: HostSource },
    Download { target: HostTarget, source: Place },
    Callback(HostCallback),
    Wait(Point),
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    pushed: u64,
    done: u64,
    is_closed: bool,
    worker: Option<JoinHandle<()>>,
}

impl State {
    /// Whether this is the queue's own thread.
    fn is_worker(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.thread().id() == thread::current().id())
    }
}

/// What a stream, its thread and its events share.
pub(crate) struct Queue {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) health: Arc<Health>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The end of what was in a queue at some time.
#[derive(Clone)]
pub(crate) struct Point {
    queue: Arc<Queue>,
    number: u64,
}

impl Point {
    pub(crate) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.queue.lock().done >= self.number
    }

    /// # Errors
    /// `FAILED_PRECONDITION` on the queue's own thread, which would wait forever, and in a fork.
    pub(crate) fn wait(&self) -> Result<()> {
        self.queue.gpu.check_process()?;
        let state = self.queue.lock();
        if state.done < self.number && state.is_worker() {
            return Err(Error::failed_precondition(
                "a callback waits for its own stream, which waits for it; wait on another thread",
            ));
        }
        let waiting = self.queue.changed.wait_while(state, |state| state.done < self.number);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

impl Queue {
    pub(crate) fn new(gpu: &Arc<Gpu>, health: &Arc<Health>) -> Result<Arc<Self>> {
        let batch = Batch::new(gpu)?;
        let queue = Arc::new(Self {
            gpu: Arc::clone(gpu),
            health: Arc::clone(health),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&queue);
        let thread = thread::Builder::new().name(String::from("gpu stream"));
        let thread = thread.spawn(move || of_thread.work(batch)).map_err(Error::internal)?;
        queue.lock().worker = Some(thread);
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: Task) -> Result<()> {
        self.gpu.check_process()?;
        let mut state = self.lock();
        state.tasks.push_back(task);
        state.pushed += 1;
        self.changed.notify_all();
        Ok(())
    }

    pub(crate) fn end(self: &Arc<Self>) -> Point {
        Point { queue: Arc::clone(self), number: self.lock().pushed }
    }

    /// Ends the thread once its work is done, and waits for it, except on the thread itself.
    pub(crate) fn close(&self) {
        if self.gpu.check_process().is_err() {
            return;
        }
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        let worker = if state.is_worker() { None } else { state.worker.take() };
        drop(state);
        // A panic of the thread was reported.
        let _ = worker.map(JoinHandle::join);
    }

    fn work(&self, mut batch: Batch) {
        loop {
            let state = self.lock();
            let wait = |state: &mut State| state.tasks.is_empty() && !state.is_closed;
            let state = self.changed.wait_while(state, wait);
            let tasks = std::mem::take(&mut state.unwrap_or_else(PoisonError::into_inner).tasks);
            if tasks.is_empty() {
                return;
            }
            let mut ran = 0;
            for task in tasks {
                // Streams that wait for each other: what is before the wait is done before it.
                if matches!(task, Task::Wait(_)) {
                    self.finish(&mut batch, std::mem::take(&mut ran));
                }
                if let Err(error) = self.run(&mut batch, task) {
                    self.health.note(error);
                }
                ran += 1;
            }
            self.finish(&mut batch, ran);
        }
    }

    /// Waits for the card, and says that so many tasks more are done.
    fn finish(&self, batch: &mut Batch, tasks: u64) {
        if let Err(error) = batch.flush() {
            self.health.note(error);
        }
        self.lock().done += tasks;
        self.changed.notify_all();
    }

    fn run(&self, batch: &mut Batch, task: Task) -> Result<()> {
        let health = self.health.check();
        match task {
            Task::Copy { target, source, bytes } => {
                health.and_then(|()| batch.copy(&target, &source, bytes))
            }
            Task::Fill { target, pattern, bytes } => {
                health.and_then(|()| batch.fill(&target, pattern, bytes))
            }
            Task::Launch { pipeline, uses, push, groups } => {
                health.and_then(|()| batch.dispatch(pipeline, &uses, &push, groups))
            }
            Task::Upload { target, source } => {
                let copied = health.and_then(|()| {
                    // What is before may write to the source.
                    batch.flush()?;
                    upload(&self.gpu, batch, &target, source.len(), |to| source.read(0, to))
                });
                source.complete(copied.as_ref().map(drop).map_err(again));
                copied
            }
            Task::Download { mut target, source } => {
                let bytes = target.len();
                let copied = health.and_then(|()| {
                    download(&self.gpu, batch, &source, bytes, |from| target.write(0, from))
                });
                target.complete(copied.as_ref().map(drop).map_err(again));
                copied
            }
            Task::Callback(callback) => {
                let done = health.and_then(|()| batch.flush());
                callback.complete(done.as_ref().map(drop).map_err(again));
                done
            }
            Task::Wait(point) => point.wait(),
        }
    }
}

/// Copies from the host, through memory that the card reads.
pub(crate) fn upload(
    gpu: &Arc<Gpu>,
    batch: &mut Batch,
    target: &Place,
    bytes: usize,
    read: impl FnOnce(&mut [u8]),
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let mut staging = Block::mapped(gpu, bytes as u64)?;
    read(staging.host());
    let source = Place { block: Arc::new(staging), offset: 0 };
    batch.copy(target, &source, bytes as u64)?;
    batch.flush()
}

/// Copies to the host, through memory that the card writes.
pub(crate) fn download(
    gpu: &Arc<Gpu>,
    batch: &mut Batch,
    source: &Place,
    bytes: usize,
    write: impl FnOnce(&[u8]),
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let mut target = Place { block: Arc::new(Block::mapped(gpu, bytes as u64)?), offset: 0 };
    batch.copy(&target, source, bytes as u64)?;
    batch.flush()?;
    let staging = Arc::get_mut(&mut target.block);
    write(staging.ok_or_else(|| Error::internal("a batch that is done uses memory"))?.host());
    Ok(())
}

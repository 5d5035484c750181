//! In-order queues: each has a thread that sends its work to the GPU, and one that waits for that.

use crate::backend::{Batch, BufferSlice, Dispatch, Gpu, Measured, Staged, again};
use crate::health::Health;
use crate::peers::CopyAcross;
use se_plugin::profiler::{Line, Timeline};
use se_plugin::{Error, HostCallback, HostSource, HostTarget, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// One piece of work.
pub(crate) enum Task {
    Copy {
        target: BufferSlice,
        source: BufferSlice,
        bytes: u64,
    },
    Fill {
        target: BufferSlice,
        pattern: [u8; 4],
        bytes: u64,
    },
    Launch {
        op: &'static str,
        uses: Vec<BufferSlice>,
        shader: Dispatch,
    },
    Upload {
        target: BufferSlice,
        source: HostSource,
    },
    /// A few bytes, which nobody else has.
    Write {
        target: BufferSlice,
        bytes: Vec<u8>,
    },
    Download {
        target: HostTarget,
        source: BufferSlice,
    },
    /// A copy from or to another GPU.
    Across(CopyAcross),
    Callback(HostCallback),
    Wait(Point),
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// How many tasks there were, how many of them were sent to the GPU, and how many are done.
    pushed: u64,
    sent: u64,
    done: u64,
    is_closed: bool,
    /// Whether the recording thread waits for a task.
    is_idle: bool,
    worker: Option<JoinHandle<()>>,
}

impl State {
    /// Returns whether this is the recording thread.
    fn is_worker(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.thread().id() == thread::current().id())
    }
}

/// The state that a stream, its threads and its events share.
pub(crate) struct Queue {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) health: Arc<Health>,
    /// The queue's line in profiles.
    line: Line,
    state: Mutex<State>,
    changed: Condvar,
}

/// A position in a queue: the end of its tasks at some time.
#[derive(Clone)]
pub(crate) struct Point {
    queue: Arc<Queue>,
    number: u64,
}

impl Point {
    pub(crate) fn is_of(&self, queue: &Arc<Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// Returns whether the tasks are done; also `true` in a fork, where nothing continues.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.gpu.check_process().is_err() || self.queue.lock().done >= self.number
    }

    /// Waits until the tasks are done.
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

    /// Waits until the tasks are sent: the work of all queues is done in the order in which it is sent.
    fn wait_until_sent(&self) {
        let waiting = self.queue.changed.wait_while(self.queue.lock(), |s| s.sent < self.number);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The bytes of a piece of a copy from or to the host: large enough that the other costs of a batch do not matter.
const PIECE: usize = 4 << 20;

/// Divides this many bytes into pieces.
fn pieces(bytes: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes).step_by(PIECE).map(move |start| start..bytes.min(start + PIECE))
}

/// The batches of a queue: one is recorded while the GPU executes the other.
const BATCHES: usize = 2;

/// A batch that was sent, if the tasks needed one.
struct Sent {
    batch: Option<Batch>,
    /// The points of other queues that the tasks wait for.
    waits: Vec<Point>,
    /// How many tasks of the queue are done when it is.
    tasks: u64,
}

/// The state of the recording thread.
struct RecorderState {
    timeline: &'static Timeline,
    open: Option<Batch>,
    /// Another batch, which is empty.
    spare: Option<Batch>,
    idle: Receiver<Batch>,
    sent: Sender<Sent>,
    /// The points of other queues that are waited for, since the last batch was sent.
    waits: Vec<Point>,
    /// How many tasks there were so far, and how many of them were sent.
    taken: u64,
    reported: u64,
}

impl RecorderState {
    /// Returns the batch to record into.
    fn batch(&mut self) -> Result<&mut Batch> {
        if self.open.is_none() {
            self.open = Some(self.idle()?);
        }
        let batch = self.open.as_mut().ok_or_else(|| Error::internal("a queue has no batch"))?;
        batch.measure(self.timeline.is_active());
        Ok(batch)
    }

    /// Returns a batch that the GPU is done with.
    fn idle(&mut self) -> Result<Batch> {
        let idle = self.spare.take().map_or_else(|| self.idle.recv(), Ok);
        idle.map_err(|_| Error::internal("a queue has no batch"))
    }
}

impl Queue {
    /// Creates the queue of the stream with this number, and its threads.
    pub(crate) fn new(gpu: &Arc<Gpu>, health: &Arc<Health>, number: usize) -> Result<Arc<Self>> {
        let (give, idle) = mpsc::channel();
        for _ in 0..BATCHES {
            let _ = give.send(Batch::new(gpu)?);
        }
        let queue = Arc::new(Self {
            gpu: Arc::clone(gpu),
            health: Arc::clone(health),
            line: gpu.timeline.line(gpu.ordinal, format!("Stream {number}")),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let (sent, on_their_way) = mpsc::channel();
        let of_thread = Arc::clone(&queue);
        let thread = thread::Builder::new().name(String::from("gpu waits"));
        let waiter = thread.spawn(move || of_thread.wait_for_all(&on_their_way, &give));
        let waiter = waiter.map_err(Error::internal)?;
        let recorder = RecorderState {
            timeline: gpu.timeline,
            open: None,
            spare: None,
            idle,
            sent,
            waits: Vec::new(),
            taken: 0,
            reported: 0,
        };
        let of_thread = Arc::clone(&queue);
        let thread = thread::Builder::new().name(String::from("gpu stream"));
        let thread = thread.spawn(move || {
            of_thread.record_all(recorder);
            // A panic of the thread was reported.
            let _ = waiter.join();
        });
        let thread = thread.map_err(Error::internal)?;
        queue.lock().worker = Some(thread);
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, task: Task) -> Result<()> {
        self.gpu.check_process()?;
        self.push_here(task);
        Ok(())
    }

    /// Pushes a task as [`push`](Self::push) does. Must not be called in a fork.
    pub(crate) fn push_here(&self, task: Task) {
        let mut state = self.lock();
        state.tasks.push_back(task);
        state.pushed += 1;
        // Waking a thread is a system call, which takes longer than the rest.
        if std::mem::take(&mut state.is_idle) {
            self.changed.notify_all();
        }
    }

    pub(crate) fn end(self: &Arc<Self>) -> Point {
        // In a fork, a thread that does not exist there may hold the lock.
        let number = self.gpu.check_process().map_or(0, |()| self.lock().pushed);
        Point { queue: Arc::clone(self), number }
    }

    /// Ends the thread when its work is done, and waits for it, except on the thread itself.
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

    /// Waits for all batches, in order.
    fn wait_for_all(&self, sent: &Receiver<Sent>, give: &Sender<Batch>) {
        for Sent { batch, waits, tasks } in sent {
            if let Some(mut batch) = batch {
                if let Err(error) = batch.wait() {
                    self.health.note(error);
                }
                self.record(batch.measured());
                // This fails once the other thread has ended.
                let _ = give.send(batch);
            }
            // A stream that waits is not done before these points. Only a fork cannot wait, and it has no threads.
            waits.iter().for_each(|point| drop(point.wait()));
            self.lock().done = tasks;
            self.changed.notify_all();
        }
    }

    fn record_all(&self, mut recorder: RecorderState) {
        loop {
            let state = self.lock();
            let wait = |state: &mut State| {
                state.is_idle = state.tasks.is_empty() && !state.is_closed;
                state.is_idle
            };
            let state = self.changed.wait_while(state, wait);
            let tasks = std::mem::take(&mut state.unwrap_or_else(PoisonError::into_inner).tasks);
            if tasks.is_empty() {
                return;
            }
            for task in tasks {
                if recorder.open.as_ref().is_some_and(Batch::is_full) {
                    self.send(&mut recorder);
                }
                let is_of_host =
                    matches!(task, Task::Download { .. } | Task::Across(_) | Task::Callback(_));
                if let Err(error) = self.run(&mut recorder, task) {
                    self.health.note(error);
                }
                recorder.taken += 1;
                if is_of_host {
                    // The task has waited for all tasks before it.
                    self.all_is_done(&mut recorder);
                }
            }
            self.send(&mut recorder);
        }
    }

    /// Sends the recorded commands.
    fn send(&self, recorder: &mut RecorderState) {
        if recorder.reported < recorder.taken {
            self.send_open(recorder);
        }
    }

    /// Sends them as [`send`](Self::send) does, even in the middle of a task.
    fn send_open(&self, recorder: &mut RecorderState) {
        let mut batch = recorder.open.take();
        if let Err(error) = batch.as_mut().map_or(Ok(()), Batch::send) {
            self.health.note(error);
        }
        recorder.reported = recorder.taken;
        // This fails if the other thread has panicked.
        let waits = std::mem::take(&mut recorder.waits);
        let _ = recorder.sent.send(Sent { batch, waits, tasks: recorder.taken });
        self.lock().sent = recorder.taken;
        self.changed.notify_all();
    }

    /// Adds commands to the profile.
    fn record(&self, commands: Vec<Measured>) {
        for Measured { name, start, duration } in commands {
            self.gpu.timeline.record(self.line, name, start, duration);
        }
    }

    fn all_is_done(&self, recorder: &mut RecorderState) {
        recorder.reported = recorder.taken;
        let mut state = self.lock();
        (state.sent, state.done) = (recorder.taken, recorder.taken);
        self.changed.notify_all();
    }

    /// Waits until all tasks before this one are done, and marks them as done.
    fn finish(&self, recorder: &mut RecorderState) -> Result<()> {
        let flushed = recorder.open.as_mut().map_or(Ok(()), Batch::flush);
        let waiting = self.changed.wait_while(self.lock(), |state| state.done < recorder.reported);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        recorder.waits.drain(..).for_each(|point| drop(point.wait()));
        // Before others see that the work is done: they check for errors next.
        if let Err(error) = flushed {
            self.health.note(error);
        }
        self.all_is_done(recorder);
        self.record(recorder.open.as_mut().map(Batch::measured).unwrap_or_default());
        self.health.check()
    }

    /// Copies from the host, in pieces: while the GPU copies one, several threads of the CPU stage the next.
    fn upload(
        &self,
        recorder: &mut RecorderState,
        target: &BufferSlice,
        source: &HostSource,
    ) -> Result<()> {
        for piece in pieces(source.len()) {
            let is_last = piece.end == source.len();
            let target = target.at(piece.start as u64);
            recorder.batch()?.upload_part(&target, source, piece)?;
            if !is_last {
                self.send_open(recorder);
            }
        }
        Ok(())
    }

    /// Copies to the host, in pieces: while the GPU copies one, several threads of the CPU copy the one before.
    fn download(
        &self,
        recorder: &mut RecorderState,
        target: &mut HostTarget,
        source: &BufferSlice,
    ) -> Result<()> {
        if target.len() <= PIECE {
            let staged = recorder.batch()?.download(source, target.len())?;
            self.finish(recorder)?;
            return recorder.batch()?.take(staged, target, 0);
        }
        recorder.batch()?;
        let mut other = recorder.idle()?;
        other.measure(self.gpu.timeline.is_active());
        let batch = recorder.open.as_mut();
        let batch = batch.ok_or_else(|| Error::internal("a queue has no batch"))?;
        let mut batches = [batch, &mut other];
        let mut before = None;
        let mut copy = || {
            for piece in pieces(target.len()) {
                let start = piece.start;
                let staged = batches[0].download(&source.at(start as u64), piece.len())?;
                batches[0].send()?;
                batches.swap(0, 1);
                // Now the batch at index 0 is the one before.
                if let Some((start, staged)) = before.replace((start, staged)) {
                    self.take(batches[0], start, staged, target)?;
                }
            }
            match before.take() {
                Some((start, staged)) => self.take(batches[1], start, staged, target),
                None => Ok(()),
            }
        };
        let copied: Result<()> = copy();
        // After an error the GPU may still be executing them.
        let waited = batches.map(Batch::wait);
        recorder.spare = Some(other);
        let finished = self.finish(recorder);
        copied.and(waited.into_iter().collect::<Result<()>>()).and(finished)
    }

    /// Waits for a batch, and copies its bytes to TensorFlow's memory.
    fn take(
        &self,
        batch: &mut Batch,
        start: usize,
        staged: Staged,
        target: &mut HostTarget,
    ) -> Result<()> {
        batch.wait()?;
        batch.take(staged, target, start)?;
        self.record(batch.measured());
        Ok(())
    }

    fn run(&self, recorder: &mut RecorderState, task: Task) -> Result<()> {
        let health = self.health.check();
        match task {
            Task::Copy { target, source, bytes } => {
                health.and_then(|()| recorder.batch()?.copy(&target, &source, bytes))
            }
            Task::Fill { target, pattern, bytes } => {
                health.and_then(|()| recorder.batch()?.fill(&target, pattern, bytes))
            }
            Task::Launch { op, uses, shader } => {
                health.and_then(|()| recorder.batch()?.dispatch(op, &uses, &shader))
            }
            Task::Upload { target, source } => {
                // Earlier writes to the source were waited for.
                let copied = health.and_then(|()| self.upload(recorder, &target, &source));
                source.complete(copied.as_ref().map(drop).map_err(again));
                copied
            }
            Task::Write { target, bytes } => health.and_then(|()| {
                let batch = recorder.batch()?;
                batch.upload(&target, bytes.len(), |to| to.copy_from_slice(&bytes))
            }),
            Task::Download { mut target, source } => {
                let copied = health.and_then(|()| self.download(recorder, &mut target, &source));
                if copied.is_err() {
                    // Earlier commands may still be running.
                    let _ = self.finish(recorder);
                }
                target.complete(copied.as_ref().map(drop).map_err(again));
                copied
            }
            Task::Across(copy) => {
                let done = self.finish(recorder);
                health.and(done).and_then(|()| copy.run())
            }
            Task::Callback(callback) => {
                let done = self.finish(recorder);
                callback.complete(done.as_ref().map(drop).map_err(again));
                done
            }
            Task::Wait(point) => {
                self.send(recorder);
                if Arc::ptr_eq(&point.queue.gpu, &self.gpu) {
                    point.wait_until_sent();
                    recorder.waits.push(point);
                    return Ok(());
                }
                // Another GPU runs its work beside that of this one.
                point.wait()
            }
        }
    }
}

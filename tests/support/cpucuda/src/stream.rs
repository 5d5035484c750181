//! Streams, each with a thread that does its work in order. Events are positions in streams.

use crate::device::Device;
use crate::fault;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;

/// A task of a stream, which returns the reason if it fails.
type Task = Box<dyn FnOnce() -> Result<(), String> + Send>;

enum Work {
    Run(Task),
    Record(Arc<Record>),
    Wait(Arc<Record>),
    Hang,
}

/// How much of its work a stream has done.
#[derive(Default)]
struct Progress {
    done: Mutex<u64>,
    changed: Condvar,
}

impl Progress {
    fn has(&self, count: u64) -> bool {
        *self.done.lock().unwrap() >= count
    }

    fn wait(&self, count: u64) {
        let done = self.done.lock().unwrap();
        drop(self.changed.wait_while(done, |done| *done < count).unwrap());
    }

    fn advance(&self) {
        *self.done.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// A position in a stream: an event has the last one that was recorded.
pub(crate) struct Record {
    progress: Arc<Progress>,
    /// The position: the number of work items up to it.
    count: u64,
    time: OnceLock<Instant>,
}

impl Record {
    pub(crate) fn is_complete(&self) -> bool {
        self.progress.has(self.count)
    }

    pub(crate) fn wait(&self) {
        self.progress.wait(self.count);
    }

    /// Returns when the stream reached it.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.time.get().copied()
    }
}

/// A queue and its thread. If the stream is dropped, the thread finishes the queued work and ends.
pub(crate) struct Stream {
    /// The number of work items so far, and the sender.
    queue: Mutex<(u64, Sender<Work>)>,
    progress: Arc<Progress>,
}

impl Stream {
    pub(crate) fn new(device: &'static Device) -> Self {
        let (sender, receiver) = channel();
        let progress = Arc::new(Progress::default());
        let of_thread = progress.clone();
        let thread = std::thread::Builder::new().name("cpu-cuda".into());
        thread.spawn(move || work(device, receiver, &of_thread)).expect("a thread");
        Self { queue: Mutex::new((0, sender)), progress }
    }

    /// Enqueues a work item, which is created with its position.
    fn push(&self, work: impl FnOnce(u64) -> Work) {
        let (count, sender) = &mut *self.queue.lock().unwrap();
        if fault::hangs_stream() {
            *count += 1;
            let _ = sender.send(Work::Hang);
        }
        *count += 1;
        // The thread lives as long as the sender.
        let _ = sender.send(work(*count));
    }

    pub(crate) fn run(&self, task: impl FnOnce() -> Result<(), String> + Send + 'static) {
        self.push(|_| Work::Run(Box::new(task)));
    }

    pub(crate) fn record(&self) -> Arc<Record> {
        let mut recorded = None;
        self.push(|count| {
            let record = Record { progress: self.progress.clone(), count, time: OnceLock::new() };
            Work::Record(recorded.insert(Arc::new(record)).clone())
        });
        recorded.expect("it was pushed")
    }

    /// Makes later work wait for an event.
    pub(crate) fn wait(&self, record: Arc<Record>) {
        self.push(|_| Work::Wait(record));
    }

    pub(crate) fn is_idle(&self) -> bool {
        let count = self.queue.lock().unwrap().0;
        self.progress.has(count)
    }

    pub(crate) fn synchronize(&self) {
        let count = self.queue.lock().unwrap().0;
        self.progress.wait(count);
    }
}

/// Does all work in order. On a lost GPU only events complete, so that every waiter wakes.
fn work(device: &Device, receiver: Receiver<Work>, progress: &Progress) {
    for work in receiver {
        match work {
            Work::Record(record) => _ = record.time.set(Instant::now()),
            Work::Hang => loop {
                std::thread::park();
            },
            Work::Run(_) | Work::Wait(_) if device.is_lost.load(Ordering::SeqCst) => {}
            Work::Wait(record) => record.wait(),
            Work::Run(task) => {
                if let Err(why) = device.reach(task) {
                    device.lose(&format!("lost: {why}"));
                }
            }
        }
        progress.advance();
    }
}

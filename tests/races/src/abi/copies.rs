//! Copies whose host memory TensorFlow takes back once an event behind them is complete.

use super::pending_copies::{Pending, PendingCopies, SpareCopy, begun};
use crate::health::Health;
use crate::{explore, explore_up_to, spawn_with};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::collections::BTreeSet;
// Not loom's: what they order would hide what the model is about.
use std::sync::{Arc, Mutex};
use tf_plugin_core::{Error, Result};

/// What a stream has.
#[derive(Default)]
struct Stream {
    health: Health,
    spare: SpareCopy,
    copy_lists: [PendingCopies; 2],
}

impl Stream {
    fn begin(&self) -> Arc<Pending> {
        self.spare.begin(|| self.health.clone())
    }

    fn begun(&self, copy: Arc<Pending>, outcome: Result<()>) {
        begun("copy", copy, &outcome, &self.spare, self.copy_lists.each_ref());
    }

    /// An event that is recorded now.
    fn record(&self) -> PendingCopies {
        let event = PendingCopies::default();
        event.set(self.copy_lists[0].open());
        event
    }
}

/// Host memory of which loom sees every use.
struct Memory(UnsafeCell<u32>);

// SAFETY: loom reports two uses of a cell of which none is before the other.
unsafe impl Sync for Memory {}
// SAFETY: loom reports two unordered accesses of the cell.
unsafe impl Send for Memory {}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self(UnsafeCell::new(0)))
    }

    /// The device fills it.
    fn fill(&self) {
        // SAFETY: loom reports another use at the same time.
        self.0.with_mut(|at| unsafe { *at = 1 });
    }

    /// TensorFlow takes it back.
    fn take(&self) {
        // SAFETY: loom reports a concurrent access of the cell.
        self.0.with_mut(|at| assert!(unsafe { *at } == 1, "the copy is not done"));
    }
}

/// The thread of a device, which does the copy.
fn copied(copy: &Arc<Pending>, memory: &Arc<Memory>) -> thread::JoinHandle<()> {
    spawn_with((Arc::clone(copy), Arc::clone(memory)), |(token, memory)| {
        memory.fill();
        token.succeed();
    })
}

fn gone() -> Error {
    Error::unavailable("gone")
}

/// A device's thread does the copy. The receiver of the event waits for it, or polls it.
pub fn an_event_behind_a_copy() {
    for waits in [true, false] {
        explore(move || {
            let (stream, memory) = (Stream::default(), Memory::new());
            let copy = stream.begin();
            let device = copied(&copy, &memory);
            stream.begun(copy, Ok(()));
            let event = stream.record();
            if waits {
                event.wait();
                memory.take();
            } else if event.is_done() {
                memory.take();
            }
            device.join().unwrap();
            assert!(event.is_done());
        });
    }
}

/// A copy fails while the author's method returns: exactly the failures that no caller got are recorded.
pub fn a_copy_that_fails() {
    for starts in [true, false] {
        explore(move || {
            let stream = Arc::new(Stream::default());
            let memory = Memory::new();
            let copy = stream.begin();
            let failed = Arc::clone(&copy);
            let shares = (Arc::clone(&copy), Arc::clone(&memory));
            let device = spawn_with(shares, |(token, memory)| {
                memory.fill();
                token.complete("copy", Err(gone()));
            });
            if starts {
                stream.begun(copy, Ok(()));
                stream.record().wait();
            } else {
                // After an error the host takes its memory back at once.
                stream.begun(copy, Err(gone()));
            }
            memory.take();
            device.join().unwrap();
            assert_eq!(stream.health.check().is_err(), starts);
            assert!(!Arc::ptr_eq(&stream.begin(), &failed), "one that has failed is used again");
        });
    }
}

/// Two threads wait for one copy, in events of two streams of which one waits for the other.
pub fn two_who_wait_for_a_copy() {
    explore_up_to(2, || {
        let streams = Arc::new([(); 2].map(|()| Stream::default()));
        let copy = streams[0].begin();
        let token = Arc::clone(&copy);
        streams[0].begun(copy, Ok(()));
        let other = spawn_with(Arc::clone(&streams), |streams| {
            streams[1].copy_lists[0].add_all(streams[0].copy_lists[0].open());
            streams[1].record().wait();
        });
        let device = thread::spawn(move || token.succeed());
        streams[0].record().wait();
        streams[0].copy_lists[1].wait();
        other.join().unwrap();
        device.join().unwrap();
    });
}

/// Events behind a copy while other copies of the stream begin and end: the ledger is cleared up all the time, and
/// still no thread misses what happened before.
pub fn a_ledger_that_is_cleared_up() {
    explore_up_to(2, || {
        let (stream, memory) = (Arc::new(Stream::default()), Memory::new());
        let copy = stream.begin();
        let device = copied(&copy, &memory);
        let other = spawn_with(Arc::clone(&stream), |stream| {
            let copy = stream.begin();
            let token = Arc::clone(&copy);
            stream.begun(copy, Ok(()));
            token.succeed();
            assert!(stream.copy_lists[1].is_done() || stream.copy_lists[1].open().is_some());
        });
        stream.begun(copy, Ok(()));
        let event = stream.record();
        if event.is_done() {
            memory.take();
        }
        device.join().unwrap();
        other.join().unwrap();
        assert!(stream.record().is_done());
    });
}

/// The event is recorded by one thread and looked at by another, to which TensorFlow has passed it.
pub fn an_event_that_is_passed_on() {
    explore(|| {
        let (stream, memory) = (Arc::new(Stream::default()), Memory::new());
        let (event, passed) =
            (Arc::new(PendingCopies::default()), Arc::new(AtomicBool::new(false)));
        let copy = stream.begin();
        let device = copied(&copy, &memory);
        let shares = (Arc::clone(&event), Arc::clone(&passed));
        let poller = spawn_with(shares, move |(event, passed)| {
            if passed.load(Ordering::Acquire) && event.is_done() {
                memory.take();
            }
        });
        stream.begun(copy, Ok(()));
        event.set(stream.copy_lists[0].open());
        passed.store(true, Ordering::Release);
        device.join().unwrap();
        poller.join().unwrap();
    });
}

/// Two threads copy in one stream, which keeps one copy for the next: no two have the same at a time.
pub fn copies_that_are_used_again() {
    explore(|| {
        let (stream, live) = (Arc::new(Stream::default()), Arc::new(Mutex::new(BTreeSet::new())));
        let copies = [(); 2].map(|()| {
            let (stream, live) = (Arc::clone(&stream), Arc::clone(&live));
            thread::spawn(move || {
                for _ in 0..2 {
                    let copy = stream.begin();
                    let at = Arc::as_ptr(&copy).addr();
                    assert!(live.lock().unwrap().insert(at), "two copies have one token");
                    assert!(!copy.is_done(), "a copy begins as done");
                    copy.succeed();
                    live.lock().unwrap().remove(&at);
                    stream.begun(copy, Ok(()));
                }
            })
        });
        copies.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(stream.record().is_done());
    });
}

/// A device's thread ends a copy while the next one begins, which may be the same again.
pub fn a_copy_that_is_used_again_at_once() {
    explore(|| {
        let stream = Stream::default();
        let memory = [(); 2].map(|()| Memory::new());
        let devices = memory.each_ref().map(|memory| {
            let copy = stream.begin();
            let device = copied(&copy, memory);
            stream.begun(copy, Ok(()));
            if stream.record().is_done() {
                memory.take();
            }
            device
        });
        devices.into_iter().for_each(|device| device.join().unwrap());
    });
}

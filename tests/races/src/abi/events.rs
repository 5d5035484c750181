//! Events that are recorded again and again, and looked at by other threads.

use super::recorded_stream::Recorded;
use crate::{explore, spawn_with};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
// Not loom's: what it orders would hide what the model is about.
use std::sync::Arc;

type Stream = u8;

fn record(event: &Recorded<Stream>, stream: &Arc<Stream>) {
    event.set(Arc::as_ptr(stream).addr(), || Arc::downgrade(stream));
}

fn is_in(event: &Recorded<Stream>, stream: &Arc<Stream>) -> bool {
    let mut found = false;
    event.drain(|recorded| found = std::ptr::eq(recorded, &raw const **stream));
    event.is_somewhere() && found
}

/// TensorFlow passes the event to the thread that polls, and gets it back to record it elsewhere.
pub fn an_event_that_goes_round() {
    explore(|| {
        let shared = Arc::new((Recorded::default(), AtomicUsize::new(0), [1, 2].map(Arc::new)));
        let poller = spawn_with(Arc::clone(&shared), |shared| {
            let (event, turn, streams) = &*shared;
            match turn.load(Ordering::Acquire) {
                0 => {}
                1 => {
                    assert!(is_in(event, &streams[0]));
                    turn.store(2, Ordering::Release);
                }
                _ => unreachable!("it is this thread's turn"),
            }
        });
        let (event, turn, streams) = &*shared;
        record(event, &streams[0]);
        turn.store(1, Ordering::Release);
        if turn.load(Ordering::Acquire) == 2 {
            record(event, &streams[1]);
            assert!(is_in(event, &streams[1]));
        }
        poller.join().unwrap();
    });
}

/// One thread waits for the stream of an event that does not say how far it is, while another one records it again
/// in the same stream: it stays recorded.
pub fn an_event_that_is_recorded_again_meanwhile() {
    explore(|| {
        let (event, stream) = (Arc::new(Recorded::default()), Arc::new(1));
        record(&event, &stream);
        let poller = spawn_with(Arc::clone(&event), |event| event.drain(|_| thread::yield_now()));
        record(&event, &stream);
        poller.join().unwrap();
        assert!(is_in(&event, &stream));
    });
}

/// Two threads record an event in two streams at once, of which one may be made where the stream of the last record
/// was: allocators use an address again soon. The event is in one of them, and the next record there knows it.
pub fn two_who_record_where_a_stream_has_gone() {
    explore(|| {
        let (event, old) = (Arc::new(Recorded::default()), Arc::new(1));
        record(&event, &old);
        drop(old);
        let recorders = [2, 3].map(|number| {
            spawn_with(Arc::clone(&event), move |event| {
                let stream = Arc::new(number);
                record(&event, &stream);
                stream
            })
        });
        let [one, other] = recorders.map(|recorder| recorder.join().unwrap());
        let found = [&one, &other].map(|stream| is_in(&event, stream));
        assert!(found == [true, false] || found == [false, true], "{found:?}");
        let recorded = if found[0] { &one } else { &other };
        event.set(Arc::as_ptr(recorded).addr(), || unreachable!("the address is another stream's"));
        let rest = if found[0] { &other } else { &one };
        record(&event, rest);
        assert!(is_in(&event, rest));
    });
}

/// A stream is destroyed and another one made while the event is looked at: its address is not that of another stream.
pub fn a_stream_that_goes() {
    explore(|| {
        let (event, old) = (Arc::new(Recorded::default()), Arc::new(1));
        record(&event, &old);
        let poller = spawn_with(Arc::clone(&event), |event| {
            assert!(event.is_somewhere());
            event.drain(|stream| assert_eq!(*stream, 1));
        });
        drop(old);
        poller.join().unwrap();
        let new = Arc::new(2);
        record(&event, &new);
        assert!(is_in(&event, &new));
        event.clear();
        assert!(!event.is_somewhere());
        record(&event, &new);
        assert!(is_in(&event, &new));
    });
}

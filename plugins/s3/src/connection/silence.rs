//! Keeps what the SDK writes through `tracing` out of the log.

use std::sync::PoisonError;
use tf_fs_plugin::sync::Mutex;

/// Keeps what the SDK writes through `tracing` out of the log. At its finest level that includes session tokens and
/// signed headers. Whether it reaches the log otherwise depends on features that any crate of a build may enable.
pub(super) fn quieten() {
    /// Once, and not again in a forked child: `tracing` has a lock that another thread may have held at the fork.
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*done {
        // A program with its own subscriber keeps it, and controls what it logs.
        let none = tracing::subscriber::NoSubscriber::default();
        let _ = tracing::subscriber::set_global_default(none);
        *done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
    use std::time::Duration;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Dispatch, Event, Metadata, Subscriber};

    /// Holds the lock of `tracing` between two messages: the one that it sends, and the one that it receives.
    struct Holds(SyncSender<()>, std::sync::Mutex<Receiver<()>>);

    impl Subscriber for Holds {
        fn on_register_dispatch(&self, _: &Dispatch) {
            self.0.send(()).unwrap();
            self.1.lock().unwrap().recv().unwrap();
        }

        fn enabled(&self, _: &Metadata<'_>) -> bool {
            false
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn the_sdk_cannot_reach_the_log() {
        crate::connection::Client::new(std::sync::Arc::default(), None);
        // `tracing` writes to the log only while no subscriber has been set.
        assert!(tracing::dispatcher::has_been_set());
    }

    /// A lock of `tracing` that another thread held at the fork is held for ever in the child.
    #[test]
    fn the_lock_of_tracing_is_taken_once() {
        quieten();
        let (says, hears) = sync_channel(0);
        let (end, until) = channel();
        let holder = std::thread::spawn(move || {
            drop(Dispatch::new(Holds(says, std::sync::Mutex::new(until))))
        });
        hears.recv().unwrap();
        let (done, again) = channel();
        let quiet = std::thread::spawn(move || {
            quieten();
            done.send(()).unwrap();
        });
        let in_time = again.recv_timeout(Duration::from_secs(20));
        end.send(()).unwrap();
        holder.join().unwrap();
        quiet.join().unwrap();
        assert_eq!(in_time, Ok(()), "it waits for the lock");
    }
}

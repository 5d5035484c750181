//! Work on several threads at a time.

use std::sync::Barrier;
use std::thread::{self, ScopedJoinHandle};
use tf_plugin_core::{Error, Result};

/// Runs a body on `count` threads, which begin together. Returns the result of each, or an error if it panicked.
pub(crate) fn on_threads<T: Send, E: From<Error> + Send>(
    count: usize,
    body: impl Fn(usize) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let (barrier, body) = (&Barrier::new(count), &body);
    thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                body(number)
            })
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// Returns the result of a thread, or an error if it panicked.
pub(crate) fn joined<T, E: From<Error>>(
    thread: ScopedJoinHandle<'_, Result<T, E>>,
) -> Result<T, E> {
    thread.join().unwrap_or_else(|_| Err(Error::internal("a thread panicked").into()))
}

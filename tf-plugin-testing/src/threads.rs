//! Work on several threads at a time.

use std::sync::Barrier;
use std::thread;

/// Runs a body on so many threads, which begin together: what each gives, or its panic.
pub(crate) fn on_threads<T: Send>(
    count: usize,
    body: impl Fn(usize) -> T + Sync,
) -> Vec<thread::Result<T>> {
    let (barrier, body) = (&Barrier::new(count), &body);
    thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                barrier.wait();
                body(number)
            })
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    })
}

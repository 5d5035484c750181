//! The shared state of `se-plugin`, in all interleavings with few preemptions.
//!
//! The modules below are the files of `se-plugin`, compiled with the locks and atomics of loom: each model is a
//! handful of threads that do what TensorFlow's do, and loom runs it once for each order in which they can meet while they
//! interrupt each other up to three times (in two models twice), and for each value that a load may see on a machine with
//! weak ordering. A fault that takes more preemptions is not found.

#![allow(dead_code, reason = "the files of another crate, of which a model uses a part")]

#[path = "../../../se-plugin/src/health.rs"]
mod health;

#[expect(unsafe_code, reason = "the memory of a copy, which loom watches")]
pub mod abi;
pub mod shared;

/// In the place of the module with which `se-plugin` compiles the same files.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, Mutex as ForkMutex, MutexGuard as ForkMutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> ForkMutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) use lock as lock_across_forks;

    /// For the unit tests of these files, which are checked here and run in `se-plugin`.
    #[cfg(test)]
    pub(crate) fn holds_in_a_child_forked_beside<G>(
        _take: impl FnOnce() -> G + Send,
        _work: impl FnOnce() -> bool,
    ) {
        unreachable!("loom's locks exist within a model only");
    }
}

/// Tries `model` in all interleavings in which threads interrupt each other up to three times.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_up_to(3, model);
}

/// As [`explore`], up to so many times: two where three take half a minute. `LOOM_MAX_PREEMPTIONS` overrides both.
fn explore_up_to(interruptions: usize, model: impl Fn() + Send + Sync + 'static) {
    tf_plugin_core::logging::init();
    log::set_max_level(log::LevelFilter::Off);
    let mut explorer = loom::model::Builder::new();
    explorer.preemption_bound.get_or_insert(interruptions);
    explorer.check(model);
}

/// A thread with a share of what other threads use, too.
fn spawn_with<S: 'static, T: 'static>(
    share: S,
    run: impl FnOnce(S) -> T + 'static,
) -> loom::thread::JoinHandle<T> {
    loom::thread::spawn(move || run(share))
}

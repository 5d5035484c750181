//! Copies within the host's memory by several threads: one thread is slower than a GPU's bus.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// The smallest copy for several threads: below it, waking them costs more than they save.
const LEAST: usize = 2 << 20;

/// How many bytes a thread copies at once. A thread that wakes late copies fewer parts, and nobody waits for it.
const PART: usize = 512 << 10;

/// The most threads that copy, including the one that calls.
const MOST_THREADS: usize = 4;

/// A copy in parts.
struct Job {
    to: *mut u8,
    from: *const u8,
    bytes: usize,
    /// The first byte that no thread has taken.
    next: AtomicUsize,
    copied: Mutex<usize>,
    is_done: Condvar,
}

// SAFETY: threads reach disjoint parts of `to` (see `work`), and only read `from`; `copy` keeps both until all parts are copied.
unsafe impl Send for Job {}
// SAFETY: threads reach disjoint parts of `to`, and only read `from`; the other fields are atomics and locks.
unsafe impl Sync for Job {}

impl Job {
    fn new(to: *mut u8, from: *const u8, bytes: usize) -> Arc<Self> {
        let (next, copied, is_done) = (AtomicUsize::new(0), Mutex::new(0), Condvar::new());
        Arc::new(Self { to, from, bytes, next, copied, is_done })
    }

    fn has_parts(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.bytes
    }

    /// Copies parts until all are taken.
    fn work(&self) {
        loop {
            let start = self.next.fetch_add(PART, Ordering::Relaxed);
            let Some(left) = self.bytes.checked_sub(start).filter(|left| *left > 0) else { return };
            let bytes = left.min(PART);
            // SAFETY: the part is within the `bytes` bytes of both ranges, and `fetch_add` gave it to this thread only. It is
            // not counted as copied yet, so `copy` has not returned, and its caller keeps both ranges.
            unsafe {
                let (to, from) = (self.to.add(start), self.from.add(start));
                to.copy_from_nonoverlapping(from, bytes);
            }
            let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
            *copied += bytes;
            if *copied == self.bytes {
                self.is_done.notify_one();
            }
        }
    }

    fn wait(&self) {
        let copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.is_done.wait_while(copied, |copied| *copied < self.bytes);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The copies in progress. The threads are kept: to wake one takes a tenth of the time of starting one.
#[derive(Default)]
struct CopyThreads {
    jobs: Mutex<Vec<Arc<Job>>>,
    changed: Condvar,
}

/// The threads of this process, since the first large copy; `None` if only one thread copies. They stay until the
/// process ends. A fork does not have them, and does not need them: all calls of batches fail there.
static COPY_THREADS: OnceLock<Option<Arc<CopyThreads>>> = OnceLock::new();

impl CopyThreads {
    fn of_process() -> Option<&'static Self> {
        let threads = COPY_THREADS.get_or_init(|| {
            // Half of the CPUs: TensorFlow and the driver have work, too.
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            Self::new((cpus / 2).clamp(1, MOST_THREADS) - 1)
        });
        threads.as_deref()
    }

    fn new(helpers: usize) -> Option<Arc<Self>> {
        let threads = Arc::new(Self::default());
        let spawn = |_: &usize| {
            let threads = Arc::clone(&threads);
            let thread = thread::Builder::new().name(String::from("gpu copies"));
            // If the system cannot start a thread, copies work without it.
            thread.spawn(move || threads.help()).is_ok()
        };
        let spawned = (0..helpers).filter(spawn).count();
        (spawned > 0).then_some(threads)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Helps with all copies, forever.
    fn help(&self) {
        let mut jobs = self.lock();
        loop {
            let job = jobs.iter().find(|job| job.has_parts()).map(Arc::clone);
            if let Some(job) = job {
                drop(jobs);
                job.work();
                jobs = self.lock();
            } else {
                jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// # Safety
    /// As for [`copy`].
    unsafe fn copy(&self, to: *mut u8, from: *const u8, bytes: usize) {
        let job = Job::new(to, from, bytes);
        self.lock().push(Arc::clone(&job));
        self.changed.notify_all();
        job.work();
        self.lock().retain(|other| !Arc::ptr_eq(other, &job));
        job.wait();
    }
}

/// Copies bytes, with the help of other threads if there are many.
///
/// # Safety
/// `bytes` bytes at `from` can be read and at `to` be written until it returns; they do not overlap, and meanwhile nothing
/// else uses those at `to` or writes those at `from`.
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    if bytes >= LEAST
        && let Some(threads) = CopyThreads::of_process()
    {
        // SAFETY: the ranges are as both functions require.
        unsafe { threads.copy(to, from, bytes) };
    } else {
        // SAFETY: both ranges have `bytes` bytes and do not overlap, and nothing else uses them meanwhile.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies with this threads, to an odd address, and checks the bytes around it.
    fn check(threads: &CopyThreads, bytes: usize, seed: usize) {
        let source: Vec<u8> = (0..bytes).map(|at| ((at + seed) % 251) as u8).collect();
        let mut target = vec![255; bytes + 2];
        // SAFETY: the target has one byte before and one behind what is written; nothing else has either vector.
        unsafe { threads.copy(target.as_mut_ptr().add(1), source.as_ptr(), bytes) };
        assert!(target[1..=bytes] == source, "other bytes, of {bytes}");
        assert_eq!([target[0], target[bytes + 1]], [255; 2], "around {bytes} bytes");
    }

    #[test]
    fn copies_of_several_threads_at_once_are_whole() {
        let threads = CopyThreads::new(3).expect("threads");
        thread::scope(|scope| {
            for seed in 0..3 {
                let threads = &threads;
                scope.spawn(move || {
                    for bytes in [1, PART - 1, PART, PART + 1, 4 * PART, 7 * PART + 13] {
                        (0..5).for_each(|more| check(threads, bytes, seed + more));
                    }
                });
            }
        });
        assert!(threads.lock().is_empty(), "a copy that is done is kept");
    }

    #[test]
    fn a_copy_needs_no_helper() {
        check(&CopyThreads::default(), 3 * PART + 1, 0);
        assert!(CopyThreads::new(0).is_none());
    }

    #[test]
    fn helpers_take_parts_of_a_copy() {
        let threads = CopyThreads::new(2).expect("threads");
        let (mut target, source) = (vec![0; 4 * PART], vec![7; 4 * PART]);
        // Only the helpers work on it.
        let job = Job::new(target.as_mut_ptr(), source.as_ptr(), source.len());
        threads.lock().push(Arc::clone(&job));
        threads.changed.notify_all();
        job.wait();
        assert!(target == source, "other bytes");
    }

    #[test]
    fn small_copies_start_no_threads() {
        // The other tests create their own crews, so this test is the only one that can create that of the process.
        let (mut target, source) = (vec![0; LEAST], vec![7; LEAST]);
        // SAFETY: both vectors are longer, and nothing else has either.
        unsafe { copy(target.as_mut_ptr(), source.as_ptr(), LEAST - 1) };
        assert!(COPY_THREADS.get().is_none(), "threads for a small copy");
        // SAFETY: both vectors are as long, and nothing else has either.
        unsafe { copy(target.as_mut_ptr(), source.as_ptr(), LEAST) };
        assert!(COPY_THREADS.get().is_some(), "no threads for a large copy");
        assert!(target == source, "other bytes");
    }
}

//! Forks: a count of them, and locks that no vanished thread holds in the child.
//!
//! A forked child has one thread, the one that forked. A lock that another thread held at that moment stays
//! locked in the child for ever, and what it guards may be half changed. So `fork` waits until no thread is in a
//! [`Hold`], which the locks of [`sync`](crate::sync) take along. Threads that come meanwhile wait outside.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long a fork waits for the locks of other threads: these guard memory, and are held for microseconds. One
/// that is held for longer may wait for the thread that forks.
pub(crate) const LIMIT: Duration =
    if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(5) };

/// How many forks lie between the process that loaded the plugin and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many threads are about to fork.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// Whether threads that this process does not have may have left locks behind.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// How many threads are in a [`Hold`]. Several counters, each on a cache line, so that threads do not slow each
/// other down; a thread keeps to one.
static HOLDERS: [Counter; 16] = [const { Counter(AtomicUsize::new(0)) }; 16];

#[repr(align(64))]
struct Counter(AtomicUsize);

thread_local! {
    /// The counter of this thread, and how many `Hold`s it is in. There is nothing to drop, so this is there
    /// while the thread ends, too.
    static MINE: Cell<(Option<&'static Counter>, usize)> = const { Cell::new((None, 0)) };
    /// Whether the last fork of this thread went ahead although others were in a `Hold`.
    static GAVE_UP: Cell<bool> = const { Cell::new(false) };
}

/// How many forks lie between the process that called [`watch`] and this one. Costs one load, unlike a
/// look at the process's number, which is a system call.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether a lock that is taken may be one that nobody will give back: a fork did not wait for its holder.
#[inline]
pub(crate) fn may_be_abandoned() -> bool {
    ABANDONED.load(Ordering::Relaxed)
}

/// While one lives in another thread, `fork` waits. It stays in its thread.
#[derive(Debug)]
pub(crate) struct Hold(PhantomData<*const ()>);

// SAFETY: it has no data; a reference to it can do nothing.
unsafe impl Sync for Hold {}

impl Hold {
    #[inline]
    pub(crate) fn new() -> Self {
        let (counter, holds) = MINE.get();
        let counter = counter.unwrap_or_else(choose);
        if holds == 0 {
            enter(counter);
        }
        MINE.set((Some(counter), holds + 1));
        Self(PhantomData)
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        let (counter, holds) = MINE.get();
        MINE.set((counter, holds - 1));
        if holds == 1
            && let Some(counter) = counter
        {
            counter.0.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Counts this thread among the holders, as soon as nobody is about to fork.
#[inline]
fn enter(counter: &Counter) {
    counter.0.fetch_add(1, Ordering::SeqCst);
    // Either this sees who forks, or who forks sees the count: both are sequentially consistent.
    if FORKING.load(Ordering::SeqCst) > 0 {
        wait_outside(counter);
    }
}

#[cold]
fn choose() -> &'static Counter {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    watch();
    &HOLDERS[NEXT.fetch_add(1, Ordering::Relaxed) % HOLDERS.len()]
}

#[cold]
fn wait_outside(counter: &Counter) {
    while FORKING.load(Ordering::SeqCst) > 0 {
        counter.0.fetch_sub(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(50));
        counter.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What this thread adds to a counter.
fn is_mine(counter: &Counter) -> usize {
    let (mine, holds) = MINE.get();
    usize::from(holds > 0 && mine.is_some_and(|mine| std::ptr::eq(mine, counter)))
}

/// Waits until no other thread is in a `Hold`. One that forks in the midst of one is not made to wait: others may
/// wait for the lock that it has.
extern "C" fn before() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let began = Instant::now();
    let is_free = |counter: &Counter| counter.0.load(Ordering::SeqCst) == is_mine(counter);
    let mut looks = 0_u32;
    let mut gave_up = false;
    while !gave_up && !HOLDERS.iter().all(is_free) {
        gave_up = MINE.get().1 > 0 || began.elapsed() > LIMIT;
        looks = looks.saturating_add(1);
        if looks < 64 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    GAVE_UP.set(gave_up);
}

extern "C" fn in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for counter in &HOLDERS {
        counter.0.store(is_mine(counter), Ordering::SeqCst);
    }
    if GAVE_UP.get() {
        ABANDONED.store(true, Ordering::SeqCst);
    }
    FORKING.store(0, Ordering::SeqCst);
}

/// Looks at forks from now on. Where the system cannot tell of them all processes look alike.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handlers stay, since TensorFlow never unloads a plugin. They do nothing but atomic operations on
        // statics and on thread-locals without a destructor, and sleep before the fork, all of which is allowed in
        // the parent; the one for the child of a process with many threads only has the atomic operations.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::sync::{Mutex, RwLock};
    use std::io;
    use std::panic::catch_unwind;
    use std::sync::{Mutex as StdMutex, PoisonError, mpsc};

    /// Forks one at a time: a test that makes one wait must not hold up the other's.
    static ALONE: StdMutex<()> = StdMutex::new(());

    /// Runs something in a child, which has 10 seconds for it, and returns how it ended.
    fn in_a_child(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child takes locks that are free in it or end with a panic, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: both end this process only; the alarm, if it waits.
            unsafe {
                libc::alarm(10);
                libc::_exit(i32::from(!work()));
            }
        }
        assert!(child > 0, "cannot fork: {}", io::Error::last_os_error());
        let mut status = -1;
        loop {
            // SAFETY: a child of this process that nobody else waits for.
            if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
                return status;
            }
            let error = io::Error::last_os_error();
            assert!(error.kind() == io::ErrorKind::Interrupted, "cannot wait: {error}");
        }
    }

    #[test]
    fn a_child_finds_each_lock_free_and_what_it_guards_whole() {
        static PAIR: Mutex<(u64, u64)> = Mutex::new((0, 0));
        static ROWS: RwLock<(u64, u64)> = RwLock::new((0, 0));
        /// Ends the threads, also when an assertion fails: the scope waits for them.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            for index in 0..4 {
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let mut pair = PAIR.lock().unwrap();
                        pair.0 += 1;
                        if index % 2 == 0 {
                            let mut rows = ROWS.write().unwrap();
                            rows.0 += 1;
                            std::thread::yield_now();
                            rows.1 += 1;
                        } else {
                            let rows = ROWS.read().unwrap();
                            assert_eq!(rows.0, rows.1);
                            std::thread::yield_now();
                        }
                        pair.1 += 1;
                    }
                });
            }
            for _ in 0..100 {
                let status = in_a_child(|| {
                    let (pair, mut rows) = (PAIR.lock().unwrap(), ROWS.write().unwrap());
                    rows.0 += 1;
                    pair.0 == pair.1 && rows.0 == rows.1 + 1
                });
                assert_eq!(status, 0, "0x100: half changed; 0xe: waited");
            }
        });
    }

    #[test]
    fn a_lock_that_is_held_for_long_fails_in_the_child_instead_of_hanging() {
        static LOCK: Mutex<u64> = Mutex::new(1);
        static OTHER: Mutex<u64> = Mutex::new(2);
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let ((held, is_held), (release, is_released)) = (mpsc::channel(), mpsc::channel::<()>());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _guard = LOCK.lock().unwrap();
                held.send(()).unwrap();
                let _ = is_released.recv();
            });
            is_held.recv().unwrap();
            let status = in_a_child(|| {
                std::panic::set_hook(Box::new(|_| {}));
                let other = OTHER.lock().is_ok_and(|other| *other == 2);
                other && catch_unwind(|| LOCK.lock().is_ok()).is_err()
            });
            drop(release);
            assert_eq!(status, 0, "0x100: it was taken, or the other was not; 0xe: waited");
        });
        assert_eq!(*LOCK.lock().unwrap(), 1, "the parent goes on");
    }

    #[test]
    fn a_thread_forks_while_it_holds_a_lock() {
        static LOCK: Mutex<u64> = Mutex::new(1);
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = LOCK.lock().unwrap();
        std::thread::scope(|scope| {
            // Waits for the lock meanwhile, so that nobody may wait for this thread.
            let waiting = scope.spawn(|| *LOCK.lock().unwrap());
            let began = Instant::now();
            let status = in_a_child(|| {
                drop(guard);
                *LOCK.lock().unwrap() == 1
            });
            assert_eq!(status, 0);
            assert!(began.elapsed() < Duration::from_secs(5), "the fork waited");
            assert_eq!(waiting.join().unwrap(), 1);
        });
    }
}

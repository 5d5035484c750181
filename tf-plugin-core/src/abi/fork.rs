//! Forks: a count of them, and locks that are free in a forked child.
//!
//! A forked child has one thread, the one that forked. A lock that another thread held at that moment stays locked in
//! the child forever, and the data behind it may be half changed. So `fork` waits until no thread is in a [`ForkGuard`],
//! which each lock of [`sync`](crate::sync) includes. Threads that want to enter one meanwhile wait for the fork.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long a fork waits for the locks of other threads: these guard memory, and are held for microseconds. One
/// that is held for longer may wait for the thread that forks.
pub const LIMIT: Duration =
    if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(5) };

/// How many forks lie between the process that loaded the plugin and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How long a thread that forks within its own [`ForkGuard`] waits for the others. Some of them may wait for the lock that
/// it has, so it does not wait for the whole [`LIMIT`]; those that do not are done by then.
const NESTED_WAIT_LIMIT: Duration = Duration::from_millis(20);

/// How many threads are about to fork, and keep others out.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// Whether a thread has the turn to fork. Forks that overlap would keep others out without end: there would always
/// be one that is about to take place.
static TURN: AtomicBool = AtomicBool::new(false);

/// How many threads wait for a fork to end. The next fork lets them in first.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread has waited for too long and entered a [`ForkGuard`] although another one was about to fork.
static OVERRUN: AtomicBool = AtomicBool::new(false);

/// Whether threads that this process does not have may have left locks behind.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// How many threads are in a [`ForkGuard`]. Several counters, each on a cache line, so that threads do
/// not slow each other down; each thread uses one of them.
static HOLDERS: [Counter; 16] = [const { Counter(AtomicUsize::new(0)) }; 16];

#[repr(align(64))]
struct Counter(AtomicUsize);

thread_local! {
    /// The counter of this thread, and how many `ForkGuard`s it is in. It has no destructor, so it can
    /// still be used while the thread ends.
    static THREAD: Cell<(Option<&'static Counter>, usize)> = const { Cell::new((None, 0)) };
    /// Whether the last fork of this thread went ahead although others were in a `ForkGuard`.
    static GAVE_UP: Cell<bool> = const { Cell::new(false) };
    /// Whether it is this thread's turn to fork.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Returns how many forks lie between the process that called [`watch`] and this one. Costs one
/// load; to read the process ID is a system call.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Returns whether a lock that is taken may never be released: a fork did not wait for its holder.
#[inline]
pub fn may_be_abandoned() -> bool {
    ABANDONED.load(Ordering::Relaxed)
}

/// Makes `fork` in other threads wait while it lives. It stays in its thread.
#[derive(Debug)]
pub struct ForkGuard(PhantomData<*const ()>);

// SAFETY: it has no data; a reference to it can do nothing.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// Enters a hold, as soon as no thread is about to fork.
    #[expect(clippy::new_without_default, reason = "it is more than a value")]
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        // One access to the thread-local: in a shared library each one is a function call.
        THREAD.with(|mine| {
            let (counter, holds) = mine.get();
            let counter = counter.unwrap_or_else(assign_counter);
            if holds == 0 {
                enter(counter);
            }
            mine.set((Some(counter), holds + 1));
        });
        Self(PhantomData)
    }
}

impl Drop for ForkGuard {
    #[inline]
    fn drop(&mut self) {
        THREAD.with(|mine| {
            let (counter, holds) = mine.get();
            mine.set((counter, holds - 1));
            if holds == 1
                && let Some(counter) = counter
            {
                counter.0.fetch_sub(1, Ordering::Release);
            }
        });
    }
}

/// Counts this thread among the holders, as soon as no thread is about to fork.
#[inline]
fn enter(counter: &Counter) {
    counter.0.fetch_add(1, Ordering::SeqCst);
    // Either this thread sees the fork, or the forking thread sees the count: both are sequentially consistent.
    if FORKING.load(Ordering::SeqCst) > 0 {
        wait_outside(counter);
    }
}

#[cold]
fn assign_counter() -> &'static Counter {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    watch();
    &HOLDERS[NEXT.fetch_add(1, Ordering::Relaxed) % HOLDERS.len()]
}

/// Waits until no thread is about to fork, but not forever: the handler of another library may make
/// the fork wait for this thread. A fork waits for [`LIMIT`] at most, so one that takes twice as
/// long is stuck. [`OVERRUN`] tells it that a thread entered nevertheless.
#[cold]
fn wait_outside(counter: &Counter) {
    let began = Instant::now();
    WAITING.fetch_add(1, Ordering::SeqCst);
    while FORKING.load(Ordering::SeqCst) > 0 {
        if began.elapsed() > 2 * LIMIT {
            // Set before the lock is taken, so that a child in which the lock is held sees it, too.
            OVERRUN.store(true, Ordering::SeqCst);
            break;
        }
        counter.0.fetch_sub(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(50));
        counter.0.fetch_add(1, Ordering::SeqCst);
    }
    WAITING.fetch_sub(1, Ordering::SeqCst);
}

/// Returns what this thread adds to a counter.
fn own_guards(counter: &Counter) -> usize {
    let (mine, holds) = THREAD.get();
    usize::from(holds > 0 && mine.is_some_and(|mine| std::ptr::eq(mine, counter)))
}

/// Waits until `done` holds, at most until `limit` after `began`, and returns whether it does.
fn wait_until(began: Instant, limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let mut attempts = 0_u32;
    while !done() {
        if began.elapsed() > limit {
            return false;
        }
        attempts = attempts.saturating_add(1);
        if attempts < 64 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    true
}

/// Waits until no other thread is in a `ForkGuard`.
///
/// Forks take turns. Each first lets in the threads that waited for the fork before it; no thread
/// joins them before it keeps others out itself. So a thread waits for one fork, however many there
/// are. A thread that gets no turn in time forks without one: [`FORKING`] is a count.
extern "C" fn prepare() {
    let began = Instant::now();
    let limit = if THREAD.get().1 > 0 { NESTED_WAIT_LIMIT } else { LIMIT };
    let take_turn = || !TURN.swap(true, Ordering::SeqCst);
    let has_turn = wait_until(began, limit, take_turn);
    HAS_TURN.set(has_turn);
    wait_until(began, limit, || WAITING.load(Ordering::SeqCst) == 0);
    if has_turn {
        // Set at an earlier fork: a thread that entered then is among the holders by now.
        OVERRUN.store(false, Ordering::SeqCst);
    }
    FORKING.fetch_add(1, Ordering::SeqCst);
    let is_free = |counter: &Counter| counter.0.load(Ordering::SeqCst) == own_guards(counter);
    GAVE_UP.set(!wait_until(began, limit, || HOLDERS.iter().all(is_free)));
}

extern "C" fn in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
    if HAS_TURN.replace(false) {
        TURN.store(false, Ordering::SeqCst);
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for counter in &HOLDERS {
        counter.0.store(own_guards(counter), Ordering::SeqCst);
    }
    if GAVE_UP.get() | OVERRUN.swap(false, Ordering::SeqCst) {
        ABANDONED.store(true, Ordering::SeqCst);
    }
    WAITING.store(0, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
    HAS_TURN.set(false);
    TURN.store(false, Ordering::SeqCst);
}

/// Counts forks from now on, and makes them wait for holds. A plugin calls it when it is loaded: in a child that
/// another thread forked during the plugin's first call, the next call would wait forever.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers stay, since TensorFlow never unloads a plugin. They do nothing but atomic operations on
        // statics and on thread-locals without a destructor, and sleep before the fork, all of which is allowed in
        // the parent; the one for the child of a process with many threads only has the atomic operations.
        unsafe {
            libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{Mutex, RwLock};
    use std::panic::catch_unwind;
    use std::sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError, mpsc};
    use std::thread::Scope;
    use tf_plugin_testing::__private::in_a_child;

    /// Lets one test fork at a time: a test that makes a fork wait must not delay another's. As in
    /// a plugin that is loaded, forks are watched before the first.
    fn alone() -> StdMutexGuard<'static, ()> {
        static ALONE: StdMutex<()> = StdMutex::new(());
        watch();
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asserts that `work` returns true in a child, which has 10 seconds for it.
    #[track_caller]
    fn holds_in_a_child(work: impl FnOnce() -> bool, otherwise: &str) {
        let status = in_a_child(10, || i32::from(!work()));
        assert!(status.success(), "{status}; exit status 1: {otherwise}; SIGALRM: it waited");
    }

    /// Lets a thread hold the lock until the returned sender is dropped; `None` if it does not get it.
    fn hold<'s>(scope: &'s Scope<'s, '_>, lock: &'static Mutex<u64>) -> Option<mpsc::Sender<()>> {
        let ((held, is_held), (release, is_released)) = (mpsc::channel(), mpsc::channel());
        scope.spawn(move || {
            let _guard = lock.lock().unwrap();
            held.send(()).unwrap();
            let _ = is_released.recv();
        });
        is_held.recv_timeout(20 * LIMIT).ok().map(|()| release)
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
        let _alone = alone();
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
                let is_whole = || {
                    let (pair, mut rows) = (PAIR.lock().unwrap(), ROWS.write().unwrap());
                    rows.0 += 1;
                    pair.0 == pair.1 && rows.0 == rows.1 + 1
                };
                holds_in_a_child(is_whole, "half changed");
            }
        });
    }

    #[test]
    fn a_lock_that_is_held_for_long_fails_in_the_child_instead_of_hanging() {
        static LOCK: Mutex<u64> = Mutex::new(1);
        static OTHER: Mutex<u64> = Mutex::new(2);
        let _alone = alone();
        std::thread::scope(|scope| {
            let release = hold(scope, &LOCK).unwrap();
            let fails = || {
                std::panic::set_hook(Box::new(|_| {}));
                let other = OTHER.lock().is_ok_and(|other| *other == 2);
                other && catch_unwind(|| LOCK.lock().is_ok()).is_err()
            };
            holds_in_a_child(fails, "it was taken, or the other was not");
            drop(release);
        });
        assert_eq!(*LOCK.lock().unwrap(), 1, "the parent goes on");
    }

    #[test]
    fn a_thread_forks_while_it_holds_a_lock() {
        static LOCK: Mutex<u64> = Mutex::new(1);
        let _alone = alone();
        let guard = LOCK.lock().unwrap();
        std::thread::scope(|scope| {
            // Waits for the lock meanwhile, so no thread may wait for this one.
            let waiting = scope.spawn(|| *LOCK.lock().unwrap());
            let began = Instant::now();
            let is_free = || {
                drop(guard);
                *LOCK.lock().unwrap() == 1
            };
            holds_in_a_child(is_free, "it was changed");
            assert!(began.elapsed() < Duration::from_secs(5), "the fork waited");
            assert_eq!(waiting.join().unwrap(), 1);
        });
    }

    #[test]
    fn a_lock_that_is_being_printed_is_free_in_the_child() {
        /// Takes its time to print itself.
        struct Slow(mpsc::Sender<()>);
        impl std::fmt::Debug for Slow {
            fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.send(()).unwrap();
                std::thread::sleep(LIMIT / 5);
                Ok(())
            }
        }
        let _alone = alone();
        let (printing, is_printing) = mpsc::channel();
        let (mutex, rows) = (Mutex::new(Slow(printing.clone())), RwLock::new(Slow(printing)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = format!("{mutex:?}");
                let _ = format!("{rows:?}");
            });
            is_printing.recv().unwrap();
            holds_in_a_child(|| mutex.lock().is_ok(), "poisoned");
            is_printing.recv().unwrap();
            holds_in_a_child(|| rows.write().is_ok(), "poisoned");
        });
    }

    #[test]
    fn threads_that_fork_without_end_let_others_take_locks() {
        static LOCK: Mutex<u64> = Mutex::new(0);
        let _alone = alone();
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let longest = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) && began.elapsed() < 10 * LIMIT {
                        prepare();
                        std::thread::sleep(Duration::from_millis(2));
                        in_parent();
                    }
                });
            }
            let mut longest = Duration::ZERO;
            for _ in 0..50 {
                let wait = Instant::now();
                *LOCK.lock().unwrap() += 1;
                longest = longest.max(wait.elapsed());
                std::thread::sleep(Duration::from_micros(100));
            }
            stop.store(true, Ordering::Relaxed);
            longest
        });
        assert!(longest < LIMIT, "a thread waited {longest:?} for forks of 2 ms");
        assert!(began.elapsed() < 10 * LIMIT, "50 locks took {:?}", began.elapsed());
    }

    #[test]
    fn a_fork_that_waits_for_a_thread_that_waits_for_it_comes_to_an_end() {
        static LOCK: Mutex<u64> = Mutex::new(0);
        let _alone = alone();
        // As with the handler of a library that was registered earlier, which runs after this one.
        prepare();
        let in_child_of_it = std::thread::scope(|scope| {
            let release = hold(scope, &LOCK);
            if release.is_none() {
                in_parent();
            }
            let release = release.expect("the thread waits forever");
            let flags = libc::c_long::from(libc::SIGCHLD);
            let none: libc::c_long = 0;
            // SAFETY: `clone` with these arguments is `fork` without handlers. The child touches atomics and
            // thread-locals without a destructor only, then ends.
            let child = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
            if child == 0 {
                in_child();
                // SAFETY: it ends this process only.
                unsafe { libc::_exit(i32::from(may_be_abandoned())) };
            }
            let mut status = -1;
            let child = libc::pid_t::try_from(child).unwrap();
            // SAFETY: a child of this process that no other thread waits for.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            drop(release);
            status
        });
        in_parent();
        assert_eq!(in_child_of_it, 0x100, "the child does not know that the lock is held");
    }

    #[test]
    fn a_fork_in_the_midst_of_a_lock_waits_for_others_that_are_done_soon() {
        static THREAD: Mutex<u64> = Mutex::new(0);
        static OTHER: Mutex<u64> = Mutex::new(0);
        let _alone = alone();
        let guard = THREAD.lock().unwrap();
        std::thread::scope(|scope| {
            let (held, is_held) = mpsc::channel();
            scope.spawn(move || {
                let _guard = OTHER.lock().unwrap();
                held.send(()).unwrap();
                std::thread::sleep(NESTED_WAIT_LIMIT / 10);
            });
            is_held.recv().unwrap();
            holds_in_a_child(|| !may_be_abandoned(), "the fork gave up at once");
        });
        drop(guard);
    }

    #[test]
    fn after_a_fork_that_gave_up_a_busy_lock_is_waited_for() {
        static HELD: Mutex<u64> = Mutex::new(0);
        static BUSY: RwLock<u64> = RwLock::new(0);
        let _alone = alone();
        std::thread::scope(|scope| {
            let release = hold(scope, &HELD).unwrap();
            let waits = || {
                let reading = BUSY.read().unwrap();
                let writing = std::thread::spawn(|| *BUSY.write().unwrap() += 1);
                std::thread::sleep(3 * LIMIT);
                drop(reading);
                may_be_abandoned() && writing.join().is_ok()
            };
            holds_in_a_child(waits, "the busy lock was taken for an abandoned one");
            drop(release);
        });
    }
}

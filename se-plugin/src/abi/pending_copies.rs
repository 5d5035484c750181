//! Pending copies from and to host memory.

use crate::health::Health;
use crate::sync::{
    AtomicBool, AtomicU8, Condvar, ForkMutex, ForkMutexGuard, Mutex, Ordering, lock,
    lock_across_forks,
};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use tf_plugin_core::{Error, ProcessOrigin, Result};

/// One copy from or to the host.
///
/// TensorFlow keeps the memory until an event behind the copy is complete. So the SDK reports no event
/// behind it as complete while the copy uses the memory, even if the author's event is complete: this makes
/// the tokens safe.
#[derive(Debug)]
pub(super) struct Pending {
    health: Health,
    /// The process that began the copy. A fork of it does not have the thread that would complete it.
    origin: ProcessOrigin,
    /// The bits below.
    state: AtomicU8,
    /// The error of the copy, until a caller notes it. Threads that wait use the same lock. Not taken in a fork of
    /// `origin`, where it may be locked forever.
    failure: Mutex<Option<Error>>,
    done: Condvar,
}

/// The author's method has returned without an error, so no caller has got the failure.
const ENQUEUED: u8 = 1;
/// The copy has failed, and its error can be noted.
const FAILED: u8 = 2;
/// The memory is no longer used.
const DONE: u8 = 4;
/// A thread waits for `DONE`.
const AWAITED: u8 = 8;

impl Pending {
    fn new(health: Health) -> Arc<Self> {
        let (state, failure, done) = Default::default();
        Arc::new(Self { health, origin: ProcessOrigin::current(), state, failure, done })
    }

    /// Records that the author's method for `op` has returned without an error.
    #[cold]
    fn enqueued(&self, op: &'static str) {
        if self.state.fetch_or(ENQUEUED, Ordering::AcqRel) & FAILED != 0 {
            self.note(op);
        }
    }

    /// Records that the copy of `op` no longer uses the memory.
    pub(super) fn complete(&self, op: &'static str, outcome: Result<()>) {
        if let Err(error) = outcome
            && !self.is_abandoned()
        {
            self.fail(op, error);
        }
        self.succeed();
    }

    /// Completes the copy as [`complete`](Self::complete) does, without an error.
    #[inline]
    pub(super) fn succeed(&self) {
        if self.state.fetch_or(DONE, Ordering::AcqRel) & AWAITED != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // In a fork no thread waits: see `is_done`.
        if !self.origin.is_current() {
            return;
        }
        // After this lock, each waiting thread is in `done.wait`, or has yet to check the state.
        drop(lock(&self.failure));
        self.done.notify_all();
    }

    #[cold]
    fn fail(&self, op: &'static str, error: Error) {
        *lock(&self.failure) = Some(error);
        // The thread that sets its bit second sees the other bit.
        if self.state.fetch_or(FAILED, Ordering::AcqRel) & ENQUEUED != 0 {
            self.note(op);
        }
    }

    fn note(&self, op: &'static str) {
        let failure = lock(&self.failure).take();
        if let Some(error) = failure {
            self.health.note(op, &error);
        }
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) & DONE != 0 || self.is_abandoned()
    }

    /// Returns whether this process is a fork of the one that began the copy. Then nothing uses the memory here, and
    /// the copy has failed.
    #[inline]
    fn is_abandoned(&self) -> bool {
        let is_abandoned = !self.origin.is_current();
        if is_abandoned {
            self.abandon();
        }
        is_abandoned
    }

    #[cold]
    fn abandon(&self) {
        if self.state.load(Ordering::Acquire) & DONE == 0 {
            let text = "it began in the process that this one is a fork of, and nothing completes it here; start \
                        processes that use devices with `spawn`";
            self.health.note("memcpy", &Error::failed_precondition(text));
            // Set last: a thread that sees this bit also sees the failure.
            self.state.fetch_or(DONE, Ordering::AcqRel);
        }
    }

    pub(super) fn wait(&self) {
        if self.is_done() {
            return;
        }
        let mut failure = lock(&self.failure);
        self.state.fetch_or(AWAITED, Ordering::AcqRel);
        while !self.is_done() {
            failure = self.done.wait(failure).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A copy that is done and can be reused: most copies are done before the next one begins. If another thread holds the
/// lock, even one of the parent process, `begin` creates a new copy instead.
#[derive(Debug, Default)]
pub(super) struct SpareCopy(Mutex<Option<Arc<Pending>>>);

impl SpareCopy {
    /// Begins a copy of the stream with this health.
    #[inline]
    pub(super) fn begin(&self, health: impl FnOnce() -> Health) -> Arc<Pending> {
        match self.0.try_lock().ok().and_then(|mut spare| spare.take()) {
            Some(pending) if pending.origin.is_current() => {
                // No other thread sees it: it was done before any could wait for it.
                pending.state.store(0, Ordering::Relaxed);
                pending
            }
            _ => Pending::new(health()),
        }
    }

    /// Keeps a copy that was done before it got into a ledger.
    #[inline]
    fn keep(&self, pending: Arc<Pending>) {
        let old = self.0.try_lock().ok().and_then(|mut spare| spare.replace(pending));
        // Dropped after the lock.
        drop(old);
    }
}

/// Handles the return of the author's method: adds a copy that is not done by now to the copy_lists. No event is
/// behind it yet, because the host does not know yet that it has begun.
#[inline]
pub(super) fn begun(
    op: &'static str,
    pending: Arc<Pending>,
    outcome: &Result<()>,
    spare: &SpareCopy,
    copy_lists: [&PendingCopies; 2],
) {
    match pending.state.load(Ordering::Acquire) {
        DONE => spare.keep(pending),
        _ => goes_on(op, &pending, outcome, copy_lists),
    }
}

#[cold]
fn goes_on(
    op: &'static str,
    pending: &Arc<Pending>,
    outcome: &Result<()>,
    copy_lists: [&PendingCopies; 2],
) {
    match outcome {
        Ok(()) => pending.enqueued(op),
        // After an error the host takes its memory back at once, even if the stream still uses it.
        Err(_) => pending.wait(),
    }
    if !pending.is_done() {
        copy_lists.into_iter().for_each(|ledger| ledger.add(pending));
    }
}

/// Returns the error for a token that was dropped instead of completed.
#[cold]
pub(super) fn dropped(what: &str) -> Error {
    Error::internal(format!(
        "{what} was dropped before it was completed; call `complete` once the work is done"
    ))
}

/// The copies that a stream, an event or a device must wait for.
#[derive(Debug, Default)]
pub(super) struct PendingCopies {
    list: ForkMutex<Vec<Arc<Pending>>>,
    /// Whether there may be any. Changes under the lock. Without it, a thread sees at least the changes by
    /// calls that came before in the host's order.
    is_used: AtomicBool,
}

impl PendingCopies {
    #[inline]
    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Locks the list, after removing the copies that are done.
    #[cold]
    fn open_list(&self) -> ForkMutexGuard<'_, Vec<Arc<Pending>>> {
        let mut list = lock_across_forks(&self.list);
        list.retain(|pending| !pending.is_done());
        self.is_used.store(!list.is_empty(), Ordering::Release);
        list
    }

    fn add(&self, pending: &Arc<Pending>) {
        let mut list = self.open_list();
        list.push(Arc::clone(pending));
        self.is_used.store(true, Ordering::Release);
    }

    /// Adds the copies that another ledger waits for.
    #[inline]
    pub(super) fn add_all(&self, other: Option<Vec<Arc<Pending>>>) {
        if let Some(other) = other {
            self.extend(other);
        }
    }

    #[cold]
    fn extend(&self, other: Vec<Arc<Pending>>) {
        let mut list = self.open_list();
        // Streams that wait for each other pass the same copies back and forth.
        let known: HashSet<_> = list.iter().map(Arc::as_ptr).collect();
        let new = other.into_iter().filter(|pending| !known.contains(&Arc::as_ptr(pending)));
        list.extend(new.collect::<Vec<_>>());
        self.is_used.store(!list.is_empty(), Ordering::Release);
    }

    /// Returns the copies that are not done now.
    #[inline]
    pub(super) fn open(&self) -> Option<Vec<Arc<Pending>>> {
        if self.is_used() { Some(self.open_list().clone()) } else { None }
    }

    /// Replaces all copies.
    #[inline]
    pub(super) fn set(&self, new: Option<Vec<Arc<Pending>>>) {
        if self.is_used() || new.is_some() {
            self.replace(new.unwrap_or_default());
        }
    }

    #[cold]
    fn replace(&self, new: Vec<Arc<Pending>>) {
        let mut list = lock_across_forks(&self.list);
        self.is_used.store(!new.is_empty(), Ordering::Release);
        *list = new;
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        !self.is_used() || self.open_list().is_empty()
    }

    #[inline]
    pub(super) fn wait(&self) {
        if self.is_used() {
            self.wait_for_each();
        }
    }

    #[cold]
    fn wait_for_each(&self) {
        // Without the lock, so that other threads can continue.
        let open = self.open_list().clone();
        open.iter().for_each(|pending| pending.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::holds_in_a_child_forked_beside;

    /// The parts of a stream that copies use.
    #[derive(Default)]
    struct Parts {
        health: Health,
        spare: SpareCopy,
        copy_lists: [PendingCopies; 2],
    }

    impl Parts {
        fn begin(&self) -> Arc<Pending> {
            self.spare.begin(|| self.health.clone())
        }

        fn begun(&self, pending: Arc<Pending>, outcome: Result<()>) {
            begun("copy", pending, &outcome, &self.spare, self.copy_lists.each_ref());
        }
    }

    #[test]
    fn a_copy_that_is_done_at_once_is_used_again() {
        let parts = Parts::default();
        let mut at = None;
        for _ in 0..3 {
            let copy = parts.begin();
            assert!(!copy.is_done());
            assert_eq!(*at.get_or_insert(Arc::as_ptr(&copy)), Arc::as_ptr(&copy));
            let token = Arc::clone(&copy);
            token.succeed();
            parts.begun(copy, Ok(()));
            assert!(
                parts.copy_lists.iter().all(|ledger| ledger.is_done() && ledger.open().is_none())
            );
        }
        let (copy, other) = (parts.begin(), parts.begin());
        assert!(!Arc::ptr_eq(&copy, &other), "two at a time have one each");
    }

    #[test]
    fn ledgers_that_wait_for_each_other_stay_small() {
        let (one, other) = (PendingCopies::default(), PendingCopies::default());
        let copy = Pending::new(Health::default());
        one.add(&copy);
        for _ in 0..100 {
            other.add_all(one.open());
            one.add_all(other.open());
        }
        assert_eq!([one.open(), other.open()].map(|open| open.unwrap().len()), [1, 1]);
        copy.succeed();
        assert!(one.is_done() && other.is_done());
    }

    #[test]
    fn a_fork_fails_the_copies_of_its_parent_whatever_lock_a_thread_has() {
        let parts = Parts::default();
        let copy = parts.begin();
        parts.begun(Arc::clone(&copy), Ok(()));
        let spare = parts.begin();
        spare.succeed();
        parts.begun(spare, Ok(()));
        let [ledger, _] = &parts.copy_lists;
        holds_in_a_child_forked_beside(
            || ledger.open_list(),
            || {
                ledger.wait();
                // The spare copy is the parent's, too.
                let is_new = !parts.begin().is_done();
                let all_done = parts.copy_lists.iter().all(PendingCopies::is_done);
                is_new && all_done && parts.health.check().is_err()
            },
        );
        // A thread of the parent waits.
        copy.state.fetch_or(AWAITED, Ordering::AcqRel);
        for is_completed in [true, false] {
            holds_in_a_child_forked_beside(
                || lock(&copy.failure),
                || {
                    if is_completed {
                        copy.complete("copy", Err(Error::unavailable("gone")));
                    }
                    copy.wait();
                    let text = parts.health.check().unwrap_err().to_string();
                    copy.is_done() && text.contains("`memcpy`") && text.contains("`spawn`")
                },
            );
        }
        assert!(!copy.is_done() && parts.health.check().is_ok(), "the parent goes on");
        copy.succeed();
    }
}

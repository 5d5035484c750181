//! Work of which host memory is part, and that is not done yet.

use crate::health::Health;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tf_fs_plugin::{Error, Result};

/// One copy from or to the host.
///
/// TensorFlow keeps the memory until an event behind the copy is complete. So no event behind it is
/// reported as complete before the copy has given its memory up, whatever the author's event says: this
/// is what makes the tokens safe.
#[derive(Debug)]
pub(super) struct Pending {
    op: &'static str,
    health: Health,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the author's method has returned without an error, so that a failure is nobody's yet.
    enqueued: bool,
    outcome: Option<Result<()>>,
}

impl Pending {
    pub(super) fn new(op: &'static str, health: Health) -> Arc<Self> {
        let (state, done) = Default::default();
        Arc::new(Self { op, health, state, done })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The author's method has returned without an error.
    pub(super) fn enqueued(&self) {
        let mut state = self.state();
        state.enqueued = true;
        self.note(&state);
    }

    /// The memory is used no more.
    pub(super) fn complete(&self, outcome: Result<()>) {
        let mut state = self.state();
        state.outcome = Some(outcome);
        self.note(&state);
        drop(state);
        self.done.notify_all();
    }

    fn note(&self, state: &State) {
        if let State { enqueued: true, outcome: Some(Err(error)) } = state {
            self.health.note(self.op, error);
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state().outcome.is_some()
    }

    pub(super) fn wait(&self) {
        let waiting = self.done.wait_while(self.state(), |state| state.outcome.is_none());
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

/// An error for work that was thrown away.
#[cold]
pub(super) fn dropped(what: &str) -> Error {
    Error::internal(format!(
        "{what} was dropped before it was completed; call `complete` once the work is done"
    ))
}

/// The copies that a stream, an event or a device has to wait for.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Vec<Arc<Pending>>>);

impl Ledger {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Pending>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, pending: &Arc<Pending>) {
        let mut list = self.list();
        list.retain(|pending| !pending.is_done());
        list.push(Arc::clone(pending));
    }

    /// Waits for what another one waits for, too.
    pub(super) fn add_all(&self, other: Vec<Arc<Pending>>) {
        let mut list = self.list();
        list.retain(|pending| !pending.is_done());
        list.extend(other);
    }

    /// What is not done now.
    pub(super) fn open(&self) -> Vec<Arc<Pending>> {
        let mut list = self.list();
        list.retain(|pending| !pending.is_done());
        list.clone()
    }

    /// Replaces everything.
    pub(super) fn set(&self, list: Vec<Arc<Pending>>) {
        *self.list() = list;
    }

    pub(super) fn is_done(&self) -> bool {
        let mut list = self.list();
        list.retain(|pending| !pending.is_done());
        list.is_empty()
    }

    pub(super) fn wait(&self) {
        for pending in self.open() {
            pending.wait();
        }
    }
}

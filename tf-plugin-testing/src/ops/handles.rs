//! Handles of the host's objects.
//!
//! A handle is a number that was never an address, so a handle from the plugin is never followed. Handles of deleted
//! objects, and those that were never one, are reported instead.

use super::account::Account;
use core::ptr;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many deleted handles are remembered, to report which call they belonged to.
const REMEMBERED: usize = 4096;
const STEP: usize = 16;

/// The objects of a kind.
pub(super) struct Handles<T> {
    kind: &'static str,
    first: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    made: usize,
    live: BTreeMap<usize, (Arc<T>, Option<Arc<Account>>)>,
    deleted: BTreeMap<usize, Option<Arc<Account>>>,
}

impl<T> Handles<T> {
    /// Creates an empty table. No other kind has the same number. No program on a 64-bit system has the addresses, so
    /// following one faults at once.
    pub(super) const fn new(kind: &'static str, number: u16) -> Self {
        let first = (0x5ad0 + number as usize) << 48;
        let state = State { made: 0, live: BTreeMap::new(), deleted: BTreeMap::new() };
        Self { kind, first, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object, which the call that this thread makes has to free.
    pub(super) fn add<H>(&self, object: T) -> *mut H {
        let account = Account::current();
        if let Some(account) = &account {
            account.created(self.kind);
        }
        self.insert(Arc::new(object), account)
    }

    /// Adds an object of the host's own, for the length of a call.
    pub(super) fn lend<H, R>(&self, object: Arc<T>, call: impl FnOnce(*mut H) -> R) -> R {
        let handle = self.insert(object, None);
        let result = call(handle);
        let mut state = self.state();
        state.live.remove(&handle.addr());
        state.forget(handle.addr(), Account::current());
        result
    }

    fn insert<H>(&self, object: Arc<T>, account: Option<Arc<Account>>) -> *mut H {
        let mut state = self.state();
        let handle = self.first + state.made * STEP;
        state.made += 1;
        state.live.insert(handle, (object, account));
        ptr::without_provenance_mut(handle)
    }

    /// Returns the object of a handle that the plugin passes to a function. Reports a handle that is none.
    pub(super) fn find<H>(&self, function: &'static str, handle: *const H) -> Option<Arc<T>> {
        let found = self.state().live.get(&handle.addr()).map(|(object, _)| Arc::clone(object));
        if found.is_none() {
            self.report(function, handle.addr());
        }
        found
    }

    /// Does [`find`](Self::find), and deletes the handle.
    pub(super) fn remove<H>(&self, function: &'static str, handle: *const H) -> Option<Arc<T>> {
        let removed = {
            let mut state = self.state();
            let removed = state.live.remove(&handle.addr());
            if let Some((_, account)) = &removed {
                state.forget(handle.addr(), account.clone());
            }
            removed
        };
        let Some((object, account)) = removed else {
            self.report(function, handle.addr());
            return None;
        };
        if let Some(account) = account {
            account.freed(self.kind);
        }
        Some(object)
    }

    /// Reports a handle that is none: to the call that it belonged to, or to the one that this thread makes. Without
    /// either the process ends, as there is no test to report to.
    #[cold]
    fn report(&self, function: &'static str, handle: usize) {
        let kind = self.kind;
        let deleted = self.state().deleted.get(&handle).cloned();
        let what = match (&deleted, handle) {
            (Some(_), _) => format!(
                "the plugin used a {kind} after it was freed or its call had ended; TensorFlow would corrupt its memory"
            ),
            (None, 0) => {
                format!("the plugin passed a null pointer for a {kind}; TensorFlow would crash")
            }
            (None, _) => format!("{handle:#x} is not a {kind}; TensorFlow would crash"),
        };
        match Account::current().or(deleted.flatten()) {
            Some(account) => account.add(function, what),
            None => {
                eprintln!("{function}: {what}, and so does this test");
                std::process::abort();
            }
        }
    }
}

impl<T> State<T> {
    fn forget(&mut self, handle: usize, account: Option<Arc<Account>>) {
        if self.deleted.len() >= REMEMBERED {
            self.deleted.pop_first();
        }
        self.deleted.insert(handle, account);
    }
}

//! What belongs to one call of an op: its violations, and the objects that the plugin has to free.

use super::abi::TENSOR;
use crate::abi::status::Status;
use crate::violations::Log;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The account of one call, or of a kernel and its runs.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) log: Arc<Log>,
    op: String,
    live: Mutex<BTreeMap<&'static str, usize>>,
}

thread_local! {
    /// The account of the call that this thread makes.
    static CURRENT: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

impl Account {
    pub(super) fn new(op: &str) -> Arc<Self> {
        Arc::new(Self {
            log: Arc::new(Log::default()),
            op: op.to_owned(),
            live: Mutex::new(BTreeMap::new()),
        })
    }

    /// Records a violation: once, as the kernel runs several times.
    pub(super) fn add(&self, operation: &'static str, what: impl Into<String>) {
        self.log.add_once(operation, self.op.as_bytes(), what);
    }

    /// Calls the plugin: what it creates on this thread meanwhile belongs to this account.
    pub(super) fn call<T>(self: &Arc<Self>, call: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let result = call();
        CURRENT.set(before);
        result
    }

    /// Returns the account of the call that this thread makes.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Returns a status for a call of the plugin.
    pub(super) fn status(self: &Arc<Self>, operation: &'static str) -> Status {
        Status::new(&self.log, operation, self.op.as_bytes())
    }

    /// Counts an object that the plugin has to free.
    pub(super) fn created(&self, kind: &'static str) {
        *self.live().entry(kind).or_default() += 1;
    }

    /// Counts an object that the plugin has freed.
    pub(super) fn freed(&self, kind: &'static str) {
        if let Some(count) = self.live().get_mut(kind) {
            *count = count.saturating_sub(1);
        }
    }

    /// Records a violation for each kind of objects that the plugin did not free.
    pub(super) fn check_freed(&self, may_keep_tensors: bool) {
        for (kind, count) in self.live().iter().filter(|(_, count)| **count > 0) {
            if *kind != TENSOR || !may_keep_tensors {
                let what = format!(
                    "{count} {kind}(s) that the plugin got are not freed after its kernel is deleted"
                );
                self.add("the op", what);
            }
        }
    }

    fn live(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

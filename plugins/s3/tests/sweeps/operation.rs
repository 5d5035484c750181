//! An operation that faults meet, and what its answers may be.

use std::collections::BTreeMap;
use tf_fs_plugin::{Code, Error};
use tf_plugin_s3_tests::{Store, host};
use tf_plugin_testing::filesystem::Host;

/// Why an operation did not do what it should.
pub(super) enum Failure {
    /// It said so.
    Error(Error),
    /// It answered, but not rightly.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

pub(super) type Answer = Result<(), Failure>;

pub(super) fn right(holds: bool, what: impl FnOnce() -> String) -> Answer {
    if holds { Ok(()) } else { Err(Failure::Wrong(what())) }
}

/// The result must be this error, as on a store without faults.
pub(super) fn fails_with<T>(answer: Result<T, Error>, code: Code) -> Answer {
    match answer {
        Ok(_) => Err(Failure::Wrong(format!("OK in place of {code:?}"))),
        Err(error) if error.code() == code => Ok(()),
        Err(error) => Err(Failure::Error(error)),
    }
}

/// Whole contents by key. Long ones are told apart by their ETag.
pub(super) type Objects = BTreeMap<String, Vec<u8>>;

/// One run of one operation, below a directory of its own.
pub(super) struct Case<'s> {
    pub(super) store: &'s Store,
    pub(super) dir: String,
}

impl Case<'_> {
    pub(super) fn host(&self) -> &'static Host {
        host()
    }

    pub(super) fn uri(&self, key: &str) -> String {
        self.store.uri(&format!("{}{key}", self.dir))
    }

    pub(super) fn put(&self, key: &str, content: impl Into<Vec<u8>>) {
        self.store.put(&format!("{}{key}", self.dir), content);
    }

    /// What is in the bucket, below this directory and elsewhere.
    pub(super) fn objects(&self) -> Objects {
        let keys = self.store.keys().into_iter();
        keys.filter_map(|key| {
            // What an operation that was given up has under way may still be done.
            let info = self.store.stat(self.store.bucket(), &key)?;
            let content = if info.len > HUGE {
                info.len.to_string().into_bytes()
            } else {
                self.store.get(&key)?
            };
            Some((key, content))
        })
        .collect()
    }

    pub(super) fn clear(&self) {
        for key in self.store.keys() {
            self.store.delete(self.store.bucket(), &key);
        }
    }
}

/// From here on a single request cannot copy.
pub(super) const HUGE: u64 = 5 << 30;

/// A call of TensorFlow.
pub(super) struct Op {
    pub(super) name: &'static str,
    pub(super) setup: fn(&Case<'_>),
    pub(super) run: fn(&Case<'_>) -> Answer,
    /// What becomes of the objects, with the directory of the case.
    pub(super) effect: fn(&mut Objects, &str),
    /// Sources and targets: what is no longer at its source has to be at its target.
    pub(super) moves: &'static [(&'static str, &'static str)],
    /// What it returns without a fault, if that is an error.
    pub(super) fails: Option<Code>,
    /// What the operation returns when it is called again after it is done.
    pub(super) done_already: &'static [Code],
    /// How often the usual limit it may take.
    pub(super) patience: u32,
    /// Codes that it may give besides those of the fault.
    pub(super) also: &'static [Code],
    /// Who may not list cannot tell a directory from nothing, so refused listings are left out.
    pub(super) needs_listing: bool,
    /// Of the faults at single requests, every so many is tried: for operations that take long.
    pub(super) sample: usize,
    /// It appends, and looks first, by HEAD: whose response has no body to say what is wrong.
    pub(super) appends: bool,
    /// For operations with many requests: only these.
    pub(super) at: fn(usize) -> bool,
}

pub(super) const QUERY: Op = Op {
    name: "",
    setup: |_| {},
    run: |_| Ok(()),
    effect: |_, _| {},
    moves: &[],
    fails: None,
    patience: 1,
    also: &[],
    needs_listing: false,
    sample: 1,
    appends: false,
    done_already: &[],
    at: |_| true,
};

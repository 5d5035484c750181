//! Versions of objects, and how far the validators of a bucket tell them apart.

use crate::object::{Comparison, Validators, strong};
use crate::{GetHead, Name, ObjectMeta, VersionCheck};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Version {
    pub(in super::super) size: u64,
    /// `None` if the store does not tell.
    pub(in super::super) etag: Option<String>,
    /// That of a GET: a listing may round it.
    pub(in super::super) modified: Option<SystemTime>,
}

impl Version {
    /// Returns the version that a response tells.
    pub(super) fn of(head: &GetHead) -> Self {
        Self { size: head.size, etag: head.etag.clone(), modified: head.modified }
    }

    /// Returns the metadata of the object, for the store.
    pub(super) fn meta(&self) -> ObjectMeta {
        ObjectMeta::new(self.size).with_etag(self.etag.clone()).with_modified(self.modified)
    }

    /// Returns the ETag if it names the exact bytes.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        strong(self.etag.as_deref())
    }

    /// Compares it with the version of a response.
    pub(super) fn compare(&self, other: &Self, check: VersionCheck) -> Comparison {
        match self.validators().compare(other.validators()) {
            Comparison::Exact => Comparison::Exact,
            _ if check == VersionCheck::Size && self.size == other.size => Comparison::Same,
            comparison => comparison,
        }
    }

    fn validators(&self) -> Validators<'_> {
        Validators { size: self.size, etag: self.etag.as_deref(), modified: self.modified }
    }

    /// Returns what tells it from another of the same size, for errors.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let shown = |etag: &Option<String>| printable(etag.as_deref().unwrap_or("none"));
        let what = match (self.etag == other.etag, self.modified == other.modified) {
            _ if self.size != other.size => return None,
            (true, true) => return None,
            (false, is_same_time) => {
                let time = if is_same_time { "" } else { ", with another modification time" };
                format!(
                    "the ETag was {}, now it is {}{time}",
                    shown(&self.etag),
                    shown(&other.etag)
                )
            }
            (true, false) => "the modification time is another one".to_owned(),
        };
        Some(format!("the size is the same; {what}"))
    }
}

/// Returns an ETag for a message, with its quotes.
fn printable(etag: &str) -> String {
    etag.replace(char::is_control, "?")
}

/// The bucket's validators, as far as its responses have shown them.
#[derive(Debug, Default)]
pub(super) struct Trust {
    is_headless: AtomicBool,
    refuses_conditions: AtomicBool,
    has_mirrors: AtomicBool,
    /// Held while it is found out whether there are mirrors.
    pub(super) finding_out: tokio::sync::Mutex<()>,
}

impl Trust {
    /// Returns whether responses of the bucket tell nothing but bytes.
    pub(super) fn is_headless(&self) -> bool {
        self.is_headless.load(Ordering::Relaxed)
    }

    /// Records that one did.
    pub(super) fn responses_are_headless(&self) {
        self.is_headless.store(true, Ordering::Relaxed);
    }

    /// Returns whether the bucket refuses a condition that holds.
    pub(super) fn refuses_conditions(&self) -> bool {
        self.refuses_conditions.load(Ordering::Relaxed)
    }

    /// Records that it does.
    #[cold]
    pub(super) fn conditions_are_refused(&self, name: &Name, etag: &str) {
        if !self.refuses_conditions.swap(true, Ordering::Relaxed) {
            log::warn!(
                "{}: the server refuses `If-Match: {}` although that is the ETag that it sends; requests to it have no \
                 condition from now on, and the version of each response is compared",
                name.with_key(""),
                printable(etag)
            );
        }
    }

    /// Returns whether the bucket's servers name one version in different ways.
    pub(super) fn has_mirrors(&self) -> bool {
        self.has_mirrors.load(Ordering::Relaxed)
    }

    /// Records that they do.
    #[cold]
    pub(super) fn mirrors_are_found(&self, name: &Name, difference: &str) {
        if !self.has_mirrors.swap(true, Ordering::Relaxed) {
            log::warn!(
                "{}: its servers do not agree on the version of one file ({difference}); a file counts as unchanged from \
                 now on if its size and either its ETag or its modification time are the same",
                name.with_key("")
            );
        }
    }
}

/// The state of all buckets, by name.
#[derive(Debug, Default)]
pub(super) struct Trusts(Mutex<HashMap<Arc<str>, Arc<Trust>>>);

impl Trusts {
    pub(super) fn of(&self, name: &Name) -> Arc<Trust> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(Arc::clone(&name.bucket)).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_enough_where_the_user_says_so() {
        let version =
            |size, etag: &str| Version { size, etag: Some(etag.to_owned()), modified: None };
        let compare = |other, check| version(1, "\"a\"").compare(&other, check);
        let other = || version(1, "\"b\"");
        assert_eq!(compare(other(), VersionCheck::Etag), Comparison::Other);
        assert_eq!(compare(other(), VersionCheck::Size), Comparison::Same);
        assert_eq!(compare(version(1, "\"a\""), VersionCheck::Size), Comparison::Exact);
        assert_eq!(compare(version(2, "\"a\""), VersionCheck::Size), Comparison::Other);
    }
}

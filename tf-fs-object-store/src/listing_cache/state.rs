//! The listings and names that are kept, and what changes them.

use super::{
    CacheEpoch, Change, Child, GRACE, Kind, ListedRange, Listing, Lookup, MAX_BYTES, MAX_CHANGES,
    MAX_NAMES, State, id, is_same_or_below,
};
use crate::Name;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

impl State {
    /// Returns the buckets of which something is known.
    pub(super) fn buckets(&self) -> BTreeSet<Arc<str>> {
        let named = self.names.keys().map(|name| &*name.bucket);
        let listed = self.listings.keys().filter_map(|id| id.split('\n').next());
        named.chain(listed).map(Arc::from).collect()
    }

    /// Keeps a listing, unless that of a later request for the same directory is there. Returns whether it is kept.
    pub(super) fn insert(&mut self, id: Box<str>, mut listing: Listing) -> bool {
        if self.listings.get(&id).is_some_and(|kept| kept.until > listing.until) {
            return false;
        }
        self.next += 1;
        listing.number = self.next;
        self.order.push_back((self.next, id.clone()));
        self.bytes += listing.bytes;
        if let Some(old) = self.listings.insert(id, listing) {
            self.bytes -= old.bytes;
        }
        let now = Instant::now();
        while let Some((number, id)) = self.order.front() {
            let current = self.listings.get(id).filter(|listing| listing.number == *number);
            match current {
                Some(listing) if listing.until + GRACE > now && self.bytes <= MAX_BYTES => break,
                Some(listing) => {
                    self.bytes -= listing.bytes;
                    self.listings.remove(id);
                }
                None => {}
            }
            self.order.pop_front();
        }
        true
    }

    /// Returns the changes since then, the latest first; `None` if there were more than are remembered.
    pub(super) fn changes_since(&self, began: CacheEpoch) -> Option<impl Iterator<Item = &Change>> {
        let missed = usize::try_from(self.changes - began.changes).unwrap_or(usize::MAX);
        (missed <= self.latest.len()).then(|| self.latest.iter().rev().take(missed))
    }

    /// Returns whether this process has changed neither this name since then, nor anything in it, nor what it is in.
    pub(super) fn is_unchanged(&self, name: &Name, began: CacheEpoch) -> bool {
        let path = name.key.trim_end_matches('/');
        self.changes_since(began).is_some_and(|mut changes| {
            changes.all(|change| {
                let changed = change.name.key.trim_end_matches('/');
                name.bucket != change.name.bucket
                    || !(is_same_or_below(path, changed) || is_same_or_below(changed, path))
            })
        })
    }

    /// Keeps a result for a name, unless that of a later request is there.
    pub(super) fn insert_name(&mut self, name: &Name, found: Lookup, until: Instant) {
        if let Some(kept) = self.names.get_mut(name) {
            if kept.1 <= until {
                *kept = (found, until);
            }
            return;
        }
        if self.names.len() >= MAX_NAMES {
            let now = Instant::now();
            self.names.retain(|_, (_, until)| *until > now);
        }
        if self.names.len() < MAX_NAMES {
            self.names.insert(name.clone(), (found, until));
        }
    }

    pub(super) fn changed(&mut self, change: Change) {
        self.changes += 1;
        if !self.names.is_empty() {
            self.change_names(&change);
        }
        if !self.listings.is_empty() {
            self.mark(&change);
        }
        self.latest.push_back(change);
        if self.latest.len() > MAX_CHANGES {
            self.latest.pop_front();
        }
    }

    /// Forgets the single names that a change concerns, except what it tells of them.
    pub(super) fn change_names(&mut self, change: &Change) {
        let Change { name, kind } = change;
        // The directories that it is in: they are there now, or may be gone.
        let mut directory = name.clone();
        for (slash, _) in name.key.rmatch_indices('/') {
            for end in [slash + 1, slash] {
                directory.key.truncate(end);
                if *kind != Kind::Written {
                    self.names.remove(&directory);
                } else if let Some((found @ Lookup::Missing, _)) = self.names.get_mut(&directory) {
                    *found = Lookup::Directory;
                }
            }
        }
        if *kind == Kind::Written {
            self.names.remove(name);
            return;
        }
        let path = name.key.trim_end_matches('/');
        let below: Vec<Name> = self
            .names
            .range(name.with_key(path)..)
            .map(|(known, _)| known)
            .take_while(|known| known.bucket == name.bucket && known.key.starts_with(path))
            .filter(|known| is_same_or_below(known.key.trim_end_matches('/'), path))
            .cloned()
            .collect();
        for known in below {
            self.names.remove(&known);
        }
    }

    pub(super) fn mark(&mut self, change: &Change) {
        if change.kind == Kind::Tree {
            let below = id(&change.name.bucket, &change.name.prefix());
            let mut freed = 0;
            self.listings.retain(|id, listing| {
                let keep = !id.starts_with(&*below);
                freed += if keep { 0 } else { listing.bytes };
                keep
            });
            self.bytes -= freed;
        }
        let path = change.name.key.trim_end_matches('/');
        let id = id(&change.name.bucket, &format!("{path}/"));
        let above = id.len() - path.len() - 1;
        let slashes = id[above..].rmatch_indices('/').map(|(slash, _)| above + slash + 1);
        for end in slashes.chain([above]) {
            if let Some(listing) = self.listings.get_mut(&id[..end]) {
                listing.changed(change);
            }
        }
    }
}

impl Listing {
    pub(super) fn new(listed: ListedRange, until: Instant, bytes: usize) -> Self {
        Self {
            number: 0,
            listed,
            until,
            bytes,
            unknown: BTreeSet::new(),
            hits: AtomicU32::new(0),
            is_ahead: false,
            is_absence: false,
        }
    }

    /// Returns what was shown of a child: `Some(None)` if it was shown to be missing, `None` if nothing was shown.
    pub(super) fn child(&self, name: &str) -> Option<Option<&Child>> {
        if self.unknown.contains(name) { None } else { self.listed.child(name) }
    }

    /// Records a change. Returns whether anything is still known.
    pub(super) fn changed(&mut self, change: &Change) -> bool {
        let directory = self.listed.directory.as_str();
        if change.kind == Kind::Tree && directory.starts_with(&change.name.prefix()) {
            return false;
        }
        if change.name.key.trim_end_matches('/') == directory.trim_end_matches('/') {
            // The directory itself may be gone now, or a file.
            self.is_ahead = false;
        }
        if let Some(rest) = change.name.key.strip_prefix(directory) {
            let (child, below) = rest.split_once('/').unwrap_or((rest, ""));
            // A write in a directory does not change what is in the one above.
            let is_no_news = change.kind == Kind::Written
                && !below.is_empty()
                && matches!(self.listed.child(child), Some(Some(child)) if child.is_directory);
            if !is_no_news {
                self.unknown.insert(child.into());
            }
        }
        true
    }
}

impl ListedRange {
    /// Returns what was shown of a child: `Some(None)` if it was shown to be missing, `None` if nothing was shown.
    pub(crate) fn child(&self, name: &str) -> Option<Option<&Child>> {
        // The child may be a directory too, which sorts later.
        let is_before = |upto: &str| match upto.strip_prefix(name) {
            Some(rest) => rest.starts_with(|next| next >= '/'),
            None => name < upto,
        };
        let covered = name.starts_with(&*self.names)
            && self.after.as_deref().is_none_or(|after| after < name)
            && self.upto.as_deref().is_none_or(is_before);
        covered.then(|| {
            let found = self.children.binary_search_by(|child| (*child.name).cmp(name));
            found.ok().map(|index| &self.children[index])
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.names.is_empty() && self.after.is_none() && self.upto.is_none()
    }

    pub(super) fn bytes(&self) -> usize {
        let children = self.children.iter().map(|child| {
            let etag = child.object.as_ref().and_then(|known| known.etag.as_ref());
            let etag = etag.map_or(0, String::capacity);
            size_of::<Child>() + child.name.len() + etag
        });
        size_of::<Listing>() + 4 * self.directory.len() + children.sum::<usize>()
    }
}

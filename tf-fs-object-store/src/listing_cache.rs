//! A cache of recent listings, so that the lookups that follow a listing need no request; and the store's answers about
//! single names: when it was queried for them, opened them, or confirmed that they are written.
//!
//! A listing is believed until its time is over, except for the names that this process has changed since: for them
//! only the confirmation of the change counts. That also holds for listings in flight, which may show what was there
//! before the change.

mod state;

use crate::{Name, ObjectMeta, metrics};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// An object. There may be keys below it, too.
    File(ObjectMeta),
    /// No object, but keys below it.
    Directory,
    /// Neither.
    Missing,
}

/// An entry of a directory: an object, a directory, or both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    /// Without the directory.
    pub(crate) name: Box<str>,
    /// The object of this name.
    pub(crate) object: Option<ObjectMeta>,
    /// Whether there are keys below it.
    pub(crate) is_directory: bool,
}

/// A directory, or the part of it that a listing covered.
#[derive(Debug, Default)]
pub(crate) struct ListedRange {
    /// The prefix of the keys in it.
    pub(crate) directory: String,
    /// Only names that begin with this were listed.
    pub(crate) names: String,
    /// Only names that sort after this were listed, where directories have a `/` at their end.
    pub(crate) after: Option<String>,
    /// Only names that sort up to this were listed, where directories have a `/` at their end.
    pub(crate) upto: Option<String>,
    /// Sorted by name.
    pub(crate) children: Vec<Child>,
}

/// When a listing began: it does not tell what this process changed later.
#[derive(Clone, Copy, Debug)]
pub struct CacheEpoch {
    pub(crate) at: Instant,
    changes: u64,
}

/// Recent results of listings and lookups.
#[derive(Debug, Default)]
pub struct ListingCache(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    /// By [`id`] of the directory.
    listings: HashMap<Box<str>, Listing>,
    /// Results for single names, by name.
    names: BTreeMap<Name, (Lookup, Instant)>,
    /// The listings in the order in which they arrived, with their numbers.
    order: VecDeque<(u64, Box<str>)>,
    next: u64,
    bytes: usize,
    /// The number of changes.
    changes: u64,
    /// The latest changes, for listings in flight.
    latest: VecDeque<Change>,
}

#[derive(Debug)]
struct Listing {
    number: u64,
    listed: ListedRange,
    until: Instant,
    bytes: usize,
    /// Names that this process has changed since.
    unknown: BTreeSet<Box<str>>,
    /// How many lookups it served.
    hits: AtomicU32,
    /// Whether [`ListingCache::take_children`] may use it.
    is_ahead: bool,
    /// Whether nobody listed it: it was not there, so nothing was in it.
    is_absence: bool,
}

#[derive(Debug)]
struct Change {
    name: Name,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An object is there now.
    Written,
    /// An object is gone, or that is unknown.
    Other,
    /// The name itself, and any number of objects below it.
    Tree,
}

/// The most bytes of all listings together, roughly.
const MAX_BYTES: usize = 32 << 20;
/// How long listings are kept that are not believed any more, to detect a walk through a tree.
const GRACE: Duration = Duration::from_secs(30);
/// The number of lookups in a listing from which on they count as a scan of all its names.
const SCAN: u32 = 16;
/// The most single names that are remembered.
const MAX_NAMES: usize = 4096;
/// The most changes that are remembered for listings in flight.
const MAX_CHANGES: usize = 1024;

impl ListingCache {
    /// Returns the object of this name, if a recent listing showed it.
    pub(crate) fn object(&self, name: &Name) -> Option<ObjectMeta> {
        match self.look(name) {
            Some(Lookup::File(known)) => Some(known),
            _ => None,
        }
    }

    /// Returns what this name is, if a recent listing showed it.
    pub(crate) fn find(&self, name: &Name) -> Option<Lookup> {
        let found = self.look(name);
        let counter = match found {
            Some(_) => &metrics::LISTING_HITS,
            None => &metrics::LISTING_MISSES,
        };
        counter.add(1);
        found
    }

    fn look(&self, name: &Name) -> Option<Lookup> {
        let state = self.read();
        if name.key.is_empty() || state.listings.is_empty() && state.names.is_empty() {
            return None;
        }
        let now = Instant::now();
        if let Some((found, until)) = state.names.get(name)
            && now < *until
        {
            return Some(found.clone());
        }
        let (path, wants_directory) = match name.key.strip_suffix('/') {
            Some(path) => (path, true),
            None => (name.key.as_str(), false),
        };
        // Unless `d` is a file, `d/` is the same as `d`. `d//` is another name.
        if wants_directory
            && !path.ends_with('/')
            && let Some((found @ (Lookup::Directory | Lookup::Missing), until)) =
                state.names.get(&name.with_key(path))
            && now < *until
        {
            return Some(found.clone());
        }
        let mut end = path.len();
        let mut is_parent = true;
        let id = id(&name.bucket, path);
        let above = id.len() - path.len();
        // The directory that it is in, and if that is not known its parent, and so on: nothing exists below a name that
        // is not a directory.
        loop {
            let start = path[..end].rfind('/').map_or(0, |slash| slash + 1);
            let component = &path[start..end];
            let listing = state.listings.get(&id[..above + start]);
            if let Some(listing) = listing.filter(|listing| now < listing.until) {
                let known = listing.child(component)?;
                listing.hits.fetch_add(1, Ordering::Relaxed);
                return match known {
                    Some(child) if is_parent => match &child.object {
                        Some(known) if !wants_directory => Some(Lookup::File(known.clone())),
                        _ if child.is_directory => Some(Lookup::Directory),
                        _ => Some(Lookup::Missing),
                    },
                    Some(child) if child.is_directory => None,
                    _ => Some(Lookup::Missing),
                };
            }
            is_parent = false;
            end = start.checked_sub(1)?;
        }
    }

    /// Returns the children of a directory, if a recent listing of something else showed them. Returns them only once:
    /// a caller that lists again wants to see what is new.
    pub(crate) fn take_children(&self, bucket: &str, directory: &str) -> Option<Vec<Box<str>>> {
        let mut state = self.write();
        let listing = state.listings.get_mut(&*id(bucket, directory))?;
        let is_whole = listing.is_ahead
            && Instant::now() < listing.until
            && listing.unknown.is_empty()
            && listing.listed.is_whole();
        if !is_whole {
            return None;
        }
        listing.is_ahead = false;
        Some(listing.listed.children.iter().map(|child| child.name.clone()).collect())
    }

    /// Returns whether the parent of this directory was listed recently: then its other directories are likely to be
    /// listed next.
    pub(crate) fn is_walk(&self, directory: &Name) -> bool {
        let parent = parent(directory.key.trim_end_matches('/'));
        !directory.key.is_empty()
            && self
                .read()
                .listings
                .get(&*id(&directory.bucket, parent))
                .is_some_and(|listing| !listing.is_absence)
    }

    /// Returns whether more names of this directory begin with `names` than one page holds, as far as is remembered.
    pub(crate) fn is_long(&self, bucket: &str, directory: &str, names: &str) -> bool {
        let state = self.read();
        state
            .listings
            .get(&*id(bucket, directory))
            .is_some_and(|listing| listing.listed.names == names && listing.listed.upto.is_some())
    }

    /// Returns whether the listing of this name's directory served many of its names, and its time, or the part that it
    /// covered, is over. Then the names that follow are likely to be looked up next.
    pub(crate) fn is_scan(&self, name: &Name) -> bool {
        let state = self.read();
        let directory = parent(&name.key);
        let listing = state.listings.get(&*id(&name.bucket, directory));
        listing.is_some_and(|listing| {
            let is_over = listing.until <= Instant::now()
                || listing.listed.child(&name.key[directory.len()..]).is_none();
            is_over && !listing.is_absence && listing.hits.load(Ordering::Relaxed) >= SCAN
        })
    }

    /// Keeps what the store said of a single name, for `ttl` from the request on, unless this process has changed
    /// something there since.
    pub(crate) fn insert_name(
        &self,
        name: &Name,
        found: &Lookup,
        began: CacheEpoch,
        ttl: Duration,
    ) {
        let Some(until) = until(began, ttl) else { return };
        let mut state = self.write();
        if state.is_unchanged(name, began) {
            state.insert_name(name, found.clone(), until);
        }
    }

    /// Records that there is nothing of this name, nor below it, as a listing showed.
    pub(crate) fn insert_absence(&self, name: &Name, began: CacheEpoch, ttl: Duration) {
        let Some(until) = until(began, ttl) else { return };
        let mut state = self.write();
        if !state.is_unchanged(name, began) {
            return;
        }
        let listed = ListedRange { directory: name.prefix(), ..ListedRange::default() };
        let bytes = listed.bytes();
        let id = id(&name.bucket, &listed.directory);
        let listing = Listing { is_absence: true, ..Listing::new(listed, until, bytes) };
        if state.insert(id, listing) {
            state.insert_name(name, Lookup::Missing, until);
        }
    }

    /// Begins a listing or a lookup. Call it before the request.
    pub fn begin(&self) -> CacheEpoch {
        CacheEpoch { at: Instant::now(), changes: self.read().changes }
    }

    /// Keeps what a listing showed, for `ttl` from when it began. `is_ahead`: nobody requested the children themselves
    /// yet.
    pub(crate) fn insert(
        &self,
        name: &Name,
        listed: ListedRange,
        began: CacheEpoch,
        ttl: Duration,
        is_ahead: bool,
    ) {
        let Some(until) = until(began, ttl) else { return };
        let bytes = listed.bytes();
        if bytes > MAX_BYTES / 2 {
            return;
        }
        let mut state = self.write();
        let mut listing = Listing { is_ahead, ..Listing::new(listed, until, bytes) };
        let Some(changes) = state.changes_since(began) else { return };
        for change in changes {
            if change.name.bucket == name.bucket && !listing.changed(change) {
                return;
            }
        }
        let id = id(&name.bucket, &listing.listed.directory);
        // A part tells less than the whole.
        let is_known = |old: &Listing| old.until > Instant::now() && old.listed.is_whole();
        if listing.listed.is_whole() || !state.listings.get(&id).is_some_and(is_known) {
            state.insert(id, listing);
        }
    }

    /// Records that this process wrote this object, or the marker of this directory, and that the store has confirmed
    /// it. This is believed for `ttl` from the request on. Earlier listings of it are not believed any more.
    pub fn record_write(
        &self,
        name: &Name,
        known: Option<ObjectMeta>,
        began: CacheEpoch,
        ttl: Duration,
    ) {
        let found = match name.key.ends_with('/') {
            true => Some(Lookup::Directory),
            false => known.map(Lookup::File),
        };
        let mut state = self.write();
        // Of two writes at a time it is unknown which came last.
        let is_only = state.is_unchanged(name, began);
        state.changed(Change { name: name.clone(), kind: Kind::Written });
        if let (Some(found), Some(until), true) = (found, until(began, ttl), is_only) {
            state.insert_name(name, found, until);
        }
    }

    /// Records that this process deleted this object, or may have changed it: earlier listings of it are not believed.
    pub fn invalidate(&self, name: &Name) {
        self.write().changed(Change { name: name.clone(), kind: Kind::Other });
    }

    /// Records that this process changed any number of objects below this directory.
    pub(crate) fn invalidate_below(&self, directory: &Name) {
        self.write().changed(Change { name: directory.clone(), kind: Kind::Tree });
    }

    /// Returns the buckets of which something is known.
    pub(crate) fn buckets(&self) -> BTreeSet<Arc<str>> {
        self.read().buckets()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut state = self.write();
        let changes = state.changes;
        // Nothing in flight is kept either.
        *state = State { changes: changes + 1, ..State::default() };
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns until when to believe the result of a request; `None` if that is over.
fn until(began: CacheEpoch, ttl: Duration) -> Option<Instant> {
    began.at.checked_add(ttl).filter(|until| *until > Instant::now())
}

/// Returns whether a path is this directory or something in it.
fn is_same_or_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory.is_empty())
}

/// Returns the directory that a path is in.
fn parent(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// Returns the key of a directory's listing. No bucket has a newline in its name.
fn id(bucket: &str, directory: &str) -> Box<str> {
    let mut id = String::with_capacity(bucket.len() + 1 + directory.len());
    id.push_str(bucket);
    id.push('\n');
    id.push_str(directory);
    id.into_boxed_str()
}

#[cfg(test)]
mod tests;

//! What listings showed a moment ago, so that the questions that follow a listing need no request; and what
//! the store said of single names: when it was asked for them, opened them, or confirmed that they are written.
//!
//! A listing is believed until its time is over, but for the names that this process has changed since:
//! of those only the confirmation of the change tells. That holds for listings on their way too, which may
//! show what was there before the change.

mod state;

use crate::{Name, ObjectMeta, metrics};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// What a name is.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// An object, whatever else begins with its name and a `/`.
    File(ObjectMeta),
    /// No object, but something below it.
    Directory,
    /// Neither.
    Nothing,
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
pub(crate) struct Listed {
    /// What the keys in it begin with.
    pub(crate) directory: String,
    /// Only names that begin with this were listed.
    pub(crate) names: String,
    /// Only what sorts after this was listed, where directories have a `/` at their end.
    pub(crate) after: Option<String>,
    /// Only what sorts up to this was listed, where directories have a `/` at their end.
    pub(crate) upto: Option<String>,
    /// Sorted by name.
    pub(crate) children: Vec<Child>,
}

/// When a listing began: what this process changed later is not to be learnt from it.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    pub(crate) at: Instant,
    changes: u64,
}

/// Answers of listings, kept for a moment.
#[derive(Debug, Default)]
pub struct Listings(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    /// By [`id`] of the directory.
    listings: HashMap<Box<str>, Listing>,
    /// Answers about single names, by name.
    names: BTreeMap<Name, (Found, Instant)>,
    /// The listings in the order in which they came, with their numbers.
    order: VecDeque<(u64, Box<str>)>,
    next: u64,
    bytes: usize,
    /// How many changes there were.
    changes: u64,
    /// The latest of them, for listings that are on their way.
    latest: VecDeque<Change>,
}

#[derive(Debug)]
struct Listing {
    number: u64,
    listed: Listed,
    until: Instant,
    bytes: usize,
    /// Names that this process has changed since.
    unknown: BTreeSet<Box<str>>,
    /// How many questions it answered.
    hits: AtomicU32,
    /// Whether [`Listings::take_children`] may answer from it.
    is_ahead: bool,
    /// Nobody listed it: it was not there, so nothing was in it.
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
    /// An object is gone, or nobody knows.
    Other,
    /// Any number of objects below it, and itself.
    Tree,
}

/// Bytes of all listings together, roughly.
const MAX_BYTES: usize = 32 << 20;
/// How long listings are kept when they are not believed any more, to tell a walk through a tree.
const GRACE: Duration = Duration::from_secs(30);
/// Questions that a listing answered, from which on they are taken for a walk through all its names.
const SCAN: u32 = 16;
/// Single names that are remembered.
const MAX_NAMES: usize = 4096;
/// Changes that are remembered for listings on their way.
const MAX_CHANGES: usize = 1024;

impl Listings {
    /// The object of this name, if a listing showed it a moment ago.
    pub(crate) fn object(&self, name: &Name) -> Option<ObjectMeta> {
        match self.look(name) {
            Some(Found::File(known)) => Some(known),
            _ => None,
        }
    }

    /// What this name is, if a listing showed it a moment ago.
    pub(crate) fn find(&self, name: &Name) -> Option<Found> {
        let found = self.look(name);
        let counter = match found {
            Some(_) => &metrics::LISTING_HITS,
            None => &metrics::LISTING_MISSES,
        };
        counter.add(1);
        found
    }

    fn look(&self, name: &Name) -> Option<Found> {
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
        // `d/` is what `d` is if that is no file; `d//` has nothing to do with it.
        if wants_directory
            && !path.ends_with('/')
            && let Some((found @ (Found::Directory | Found::Nothing), until)) =
                state.names.get(&name.with_key(path))
            && now < *until
        {
            return Some(found.clone());
        }
        let mut end = path.len();
        let mut is_parent = true;
        let id = id(&name.bucket, path);
        let above = id.len() - path.len();
        // The directory that it is in, and if that is not known its parent, and so on: what is below a
        // name that is no directory does not exist.
        loop {
            let start = path[..end].rfind('/').map_or(0, |slash| slash + 1);
            let component = &path[start..end];
            let listing = state.listings.get(&id[..above + start]);
            if let Some(listing) = listing.filter(|listing| now < listing.until) {
                let known = listing.child(component)?;
                listing.hits.fetch_add(1, Ordering::Relaxed);
                return match known {
                    Some(child) if is_parent => match &child.object {
                        Some(known) if !wants_directory => Some(Found::File(known.clone())),
                        _ if child.is_directory => Some(Found::Directory),
                        _ => Some(Found::Nothing),
                    },
                    Some(child) if child.is_directory => None,
                    _ => Some(Found::Nothing),
                };
            }
            is_parent = false;
            end = start.checked_sub(1)?;
        }
    }

    /// The children of a directory, if a listing of something else showed them a moment ago. Says so once:
    /// who lists again wants to see what is new.
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

    /// Whether the directory that this one is in was listed lately: then its other directories are likely
    /// to be listed next.
    pub(crate) fn is_walk(&self, directory: &Name) -> bool {
        let parent = parent(directory.key.trim_end_matches('/'));
        !directory.key.is_empty()
            && self
                .read()
                .listings
                .get(&*id(&directory.bucket, parent))
                .is_some_and(|listing| !listing.is_absence)
    }

    /// Whether more names of this directory begin like this than one page holds, as far as is remembered.
    pub(crate) fn is_long(&self, bucket: &str, directory: &str, names: &str) -> bool {
        let state = self.read();
        state
            .listings
            .get(&*id(bucket, directory))
            .is_some_and(|listing| listing.listed.names == names && listing.listed.upto.is_some())
    }

    /// Whether the listing of the directory that this name is in answered for many of its names, until its
    /// time, or what it covered, was over: then the names that follow are likely to be asked for next.
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

    /// Keeps what the store said of a single name, for `ttl` from when it was asked, unless this process
    /// has changed something there since.
    pub(crate) fn insert_name(&self, name: &Name, found: &Found, began: Began, ttl: Duration) {
        let Some(until) = until(began, ttl) else { return };
        let mut state = self.write();
        if state.is_unchanged(name, began) {
            state.insert_name(name, found.clone(), until);
        }
    }

    /// Keeps that there is nothing of this name, nor below it, as a listing showed.
    pub(crate) fn insert_absence(&self, name: &Name, began: Began, ttl: Duration) {
        let Some(until) = until(began, ttl) else { return };
        let mut state = self.write();
        if !state.is_unchanged(name, began) {
            return;
        }
        let listed = Listed { directory: name.prefix(), ..Listed::default() };
        let bytes = listed.bytes();
        let id = id(&name.bucket, &listed.directory);
        let listing = Listing { is_absence: true, ..Listing::new(listed, until, bytes) };
        if state.insert(id, listing) {
            state.insert_name(name, Found::Nothing, until);
        }
    }

    /// To be called before a listing, or a name, is asked for.
    pub fn begin(&self) -> Began {
        Began { at: Instant::now(), changes: self.read().changes }
    }

    /// Keeps what a listing showed, for `ttl` from when it began. `is_ahead`: nobody asked for the children
    /// themselves yet.
    pub(crate) fn insert(
        &self,
        name: &Name,
        listed: Listed,
        began: Began,
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

    /// This process wrote this object, or the marker of this directory, and the store has confirmed it: that
    /// is known of it for `ttl` from when it was asked to. What listings showed of it is past.
    pub fn wrote(&self, name: &Name, known: Option<ObjectMeta>, began: Began, ttl: Duration) {
        let found = match name.key.ends_with('/') {
            true => Some(Found::Directory),
            false => known.map(Found::File),
        };
        let mut state = self.write();
        // Of two writes at a time nobody knows which came last.
        let is_only = state.is_unchanged(name, began);
        state.changed(Change { name: name.clone(), kind: Kind::Written });
        if let (Some(found), Some(until), true) = (found, until(began, ttl), is_only) {
            state.insert_name(name, found, until);
        }
    }

    /// This process deleted this object, or may have changed it: what listings showed of it is past.
    pub fn changed(&self, name: &Name) {
        self.write().changed(Change { name: name.clone(), kind: Kind::Other });
    }

    /// This process changed any number of objects below this directory.
    pub(crate) fn changed_below(&self, directory: &Name) {
        self.write().changed(Change { name: directory.clone(), kind: Kind::Tree });
    }

    /// The buckets of which something is known.
    pub(crate) fn buckets(&self) -> BTreeSet<Arc<str>> {
        self.read().buckets()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut state = self.write();
        let changes = state.changes;
        // Of what is on its way nothing is kept either.
        *state = State { changes: changes + 1, ..State::default() };
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until when to believe what was asked then; `None` if that is over.
fn until(began: Began, ttl: Duration) -> Option<Instant> {
    began.at.checked_add(ttl).filter(|until| *until > Instant::now())
}

/// Whether a path is this directory or something in it.
fn is_same_or_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory.is_empty())
}

/// The directory that a path is in.
fn parent(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

/// No bucket has a newline in its name.
fn id(bucket: &str, directory: &str) -> Box<str> {
    let mut id = String::with_capacity(bucket.len() + 1 + directory.len());
    id.push_str(bucket);
    id.push('\n');
    id.push_str(directory);
    id.into_boxed_str()
}

#[cfg(test)]
mod tests;

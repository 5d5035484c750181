//! What listings showed a moment ago, so that the questions that follow a listing need no request; and what
//! the store said of single names: when it was asked for them, opened them, or confirmed that they are written.
//!
//! A listing is believed until its time is over, but for the names that this process has changed since:
//! of those only the confirmation of the change tells. That holds for listings on their way too, which may
//! show what was there before the change.

use crate::metrics;
use crate::name::Name;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant, SystemTime};

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
    /// With its quotes, as the store writes it; empty if unknown.
    pub(crate) etag: String,
}

/// What a name is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// An object, whatever else begins with its name and a `/`.
    File(Known),
    Directory,
    Nothing,
}

/// An entry of a directory: an object, a directory, or both.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    pub(crate) name: Box<str>,
    pub(crate) object: Option<Known>,
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
pub(crate) struct Began {
    pub(super) at: Instant,
    changes: u64,
}

/// Answers of listings, kept for a moment.
#[derive(Debug, Default)]
pub(crate) struct Listings(RwLock<State>);

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
    pub(crate) fn object(&self, name: &Name) -> Option<Known> {
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
        // The directory that it is in, and if that is not known its parent, and so on: what is below a
        // name that is no directory does not exist.
        loop {
            let start = path[..end].rfind('/').map_or(0, |slash| slash + 1);
            let component = &path[start..end];
            let listing = state.listings.get(&*id(&name.bucket, &path[..start]));
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
    pub(crate) fn begin(&self) -> Began {
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
    pub(crate) fn wrote(&self, name: &Name, known: Option<Known>, began: Began, ttl: Duration) {
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
    pub(crate) fn changed(&self, name: &Name) {
        self.write().changed(Change { name: name.clone(), kind: Kind::Other });
    }

    /// This process changed any number of objects below this directory.
    pub(crate) fn changed_below(&self, directory: &Name) {
        self.write().changed(Change { name: directory.clone(), kind: Kind::Tree });
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
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

impl State {
    /// Keeps a listing, unless one of the same directory that was asked for later is there. Whether it is kept.
    fn insert(&mut self, id: Box<str>, mut listing: Listing) -> bool {
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

    /// The changes since then, the latest first; `None` if there were more than are remembered.
    fn changes_since(&self, began: Began) -> Option<impl Iterator<Item = &Change>> {
        let missed = usize::try_from(self.changes - began.changes).unwrap_or(usize::MAX);
        (missed <= self.latest.len()).then(|| self.latest.iter().rev().take(missed))
    }

    /// Whether this process has changed neither this name since then, nor anything in it, nor what it is in.
    fn is_unchanged(&self, name: &Name, began: Began) -> bool {
        let path = name.key.trim_end_matches('/');
        self.changes_since(began).is_some_and(|mut changes| {
            changes.all(|change| {
                let changed = change.name.key.trim_end_matches('/');
                name.bucket != change.name.bucket
                    || !(is_same_or_below(path, changed) || is_same_or_below(changed, path))
            })
        })
    }

    /// Keeps an answer about a name, unless one to a later question is there.
    fn insert_name(&mut self, name: &Name, found: Found, until: Instant) {
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

    fn changed(&mut self, change: Change) {
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

    /// Forgets the single names that a change concerns, but for what it tells of them.
    fn change_names(&mut self, change: &Change) {
        let Change { name, kind } = change;
        // The directories that it is in: they are there now, or may be gone.
        for (slash, _) in name.key.match_indices('/') {
            for directory in [&name.key[..slash], &name.key[..=slash]] {
                let directory = name.with_key(directory);
                if *kind != Kind::Written {
                    self.names.remove(&directory);
                } else if let Some((found @ Found::Nothing, _)) = self.names.get_mut(&directory) {
                    *found = Found::Directory;
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

    fn mark(&mut self, change: &Change) {
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
        if let Some(listing) = self.listings.get_mut(&*id(&change.name.bucket, &format!("{path}/")))
        {
            listing.changed(change);
        }
        let mut end = path.len();
        loop {
            let start = path[..end].rfind('/').map_or(0, |slash| slash + 1);
            if let Some(listing) = self.listings.get_mut(&*id(&change.name.bucket, &path[..start]))
            {
                listing.changed(change);
            }
            match start.checked_sub(1) {
                Some(slash) => end = slash,
                None => break,
            }
        }
    }
}

impl Listing {
    fn new(listed: Listed, until: Instant, bytes: usize) -> Self {
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

    /// What was shown of a child, `Some(None)` if it was shown to be missing, `None` if nothing was shown.
    fn child(&self, name: &str) -> Option<Option<&Child>> {
        if self.unknown.contains(name) { None } else { self.listed.child(name) }
    }

    /// Notes a change. Whether anything is known still.
    fn changed(&mut self, change: &Change) -> bool {
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
            // What is written into a directory does not change what is in the one above.
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

impl Listed {
    /// What was shown of a child, `Some(None)` if it was shown to be missing, `None` if nothing was shown.
    pub(crate) fn child(&self, name: &str) -> Option<Option<&Child>> {
        // The child may be a directory too, which comes later.
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

    fn is_whole(&self) -> bool {
        self.names.is_empty() && self.after.is_none() && self.upto.is_none()
    }

    fn bytes(&self) -> usize {
        let children = self.children.iter().map(|child| {
            let etag = child.object.as_ref().map_or(0, |known| known.etag.capacity());
            size_of::<Child>() + child.name.len() + etag
        });
        size_of::<Listing>() + 4 * self.directory.len() + children.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(3600);

    fn name(key: &str) -> Name {
        Name { bucket: "b".into(), key: key.into() }
    }

    fn known(size: u64) -> Known {
        Known { size, modified: SystemTime::UNIX_EPOCH, etag: "\"e\"".into() }
    }

    /// `x/`: a directory, `x`: an object of one byte.
    fn listed(directory: &str, children: &[&str]) -> Listed {
        let mut children: Vec<Child> = children
            .iter()
            .map(|child| Child {
                name: child.trim_end_matches('/').into(),
                object: (!child.ends_with('/')).then(|| known(1)),
                is_directory: child.ends_with('/'),
            })
            .collect();
        children.sort_by(|a, b| a.name.cmp(&b.name));
        Listed { directory: directory.into(), children, ..Listed::default() }
    }

    fn holding(directory: &str, children: &[&str]) -> Listings {
        let listings = Listings::default();
        let began = listings.begin();
        listings.insert(&name(directory), listed(directory, children), began, TTL, false);
        listings
    }

    #[test]
    fn a_listing_answers_for_what_it_showed_and_what_it_did_not_show() {
        let listings = holding("d/", &["a", "s/"]);
        assert_eq!(listings.object(&name("d/a")), Some(known(1)));
        assert_eq!(listings.find(&name("d/a")), Some(Found::File(known(1))));
        assert_eq!(listings.find(&name("d/s")), Some(Found::Directory));
        assert_eq!(listings.find(&name("d/s/")), Some(Found::Directory));
        assert_eq!(listings.find(&name("d/a/")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d/x")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d/a/x")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d/x/y/z")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d/s/x")), None);
        assert_eq!(listings.find(&name("d")), None);
        assert_eq!(listings.find(&name("")), None);
        let other = Name { bucket: "c".into(), key: "d/a".into() };
        assert_eq!(listings.find(&other), None);
    }

    #[test]
    fn a_part_of_a_listing_answers_for_that_part() {
        let listings = Listings::default();
        let part = |names: &str, after: Option<&str>, upto: Option<&str>| Listed {
            names: names.into(),
            after: after.map(str::to_owned),
            upto: upto.map(str::to_owned),
            ..listed("d/", &["pb"])
        };
        let began = listings.begin();
        listings.insert(&name("d"), part("p", None, None), began, TTL, false);
        assert_eq!(listings.find(&name("d/pa")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d/q")), None);
        listings.insert(&name("d"), part("", Some("pa"), Some("pc")), began, TTL, false);
        for (key, is_known) in
            [("d/pa", false), ("d/pb", true), ("d/pc", false), ("d/pd", false), ("d/a", false)]
        {
            assert_eq!(listings.find(&name(key)).is_some(), is_known, "{key}");
        }
        // The page ended with the directory `pc`: of `pc-1`, which sorts before `pc/`, all is known too.
        listings.insert(&name("d"), part("", None, Some("pc/")), began, TTL, false);
        for (key, is_known) in [("d/pc", true), ("d/pc-1", true), ("d/pc0", false), ("d/pd", false)]
        {
            assert_eq!(listings.find(&name(key)).is_some(), is_known, "{key}");
        }
    }

    #[test]
    fn changes_of_this_process_are_seen_at_once() {
        let listings = holding("d/", &["a", "b", "s/"]);
        listings.changed(&name("d/a"));
        assert_eq!(listings.find(&name("d/a")), None);
        assert_eq!(listings.object(&name("d/b")), Some(known(1)));
        listings.changed(&name("d/new/x/y"));
        assert_eq!(listings.find(&name("d/new")), None);
        assert_eq!(listings.find(&name("d/new/x")), None);
        listings.changed_below(&name("d"));
        assert_eq!(listings.find(&name("d/b")), None);
    }

    #[test]
    fn a_listing_that_began_before_a_change_does_not_hide_it() {
        let listings = Listings::default();
        let began = listings.begin();
        listings.changed(&name("d/a"));
        listings.insert(&name("d"), listed("d/", &["b"]), began, TTL, false);
        assert_eq!(listings.find(&name("d/a")), None);
        assert_eq!(listings.find(&name("d/b")), Some(Found::File(known(1))));
        let began = listings.begin();
        listings.changed_below(&name("e"));
        listings.insert(&name("e/f"), listed("e/f/", &["b"]), began, TTL, false);
        assert_eq!(listings.find(&name("e/f/b")), None);
        let began = listings.begin();
        for _ in 0..=MAX_CHANGES {
            listings.changed(&name("far/away"));
        }
        listings.insert(&name("g"), listed("g/", &["b"]), began, TTL, false);
        assert_eq!(listings.find(&name("g/b")), None);
        let began = listings.begin();
        listings.clear();
        listings.insert(&name("g"), listed("g/", &["b"]), began, TTL, false);
        assert_eq!(listings.find(&name("g/b")), None);
    }

    #[test]
    fn the_time_of_a_listing_is_over_at_last() {
        let listings = Listings::default();
        let began = listings.begin();
        listings.insert(&name("d"), listed("d/", &["a"]), began, Duration::ZERO, false);
        assert_eq!(listings.find(&name("d/a")), None);
        let ttl = Duration::from_millis(30);
        listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), ttl, false);
        assert!(listings.find(&name("d/a")).is_some());
        std::thread::sleep(ttl);
        assert_eq!(listings.find(&name("d/a")), None);
    }

    #[test]
    fn children_are_given_once_and_only_if_all_are_known() {
        let listings = Listings::default();
        listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), TTL, true);
        assert_eq!(listings.take_children("b", "d/"), Some(vec!["a".into()]));
        assert_eq!(listings.take_children("b", "d/"), None);
        listings.insert(&name("d"), listed("d/", &["a"]), listings.begin(), TTL, true);
        listings.changed(&name("d/b"));
        assert_eq!(listings.take_children("b", "d/"), None);
    }

    #[test]
    fn walks_are_told_after_the_time_of_a_listing() {
        let listings = Listings::default();
        let children: Vec<String> = (0..SCAN).map(|n| n.to_string()).collect();
        let children: Vec<&str> = children.iter().map(String::as_str).collect();
        let ttl = Duration::from_millis(30);
        listings.insert(&name("d"), listed("d/", &children), listings.begin(), ttl, false);
        for child in &children {
            listings.find(&name(&format!("d/{child}")));
        }
        assert!(!listings.is_scan(&name("d/x")));
        std::thread::sleep(ttl);
        assert!(listings.is_scan(&name("d/x")));
        assert!(!listings.is_scan(&name("e/x")));
        assert!(listings.is_walk(&name("d/x/")) && listings.is_walk(&name("d/x")));
        assert!(!listings.is_walk(&name("d")) && !listings.is_walk(&name("")));
    }

    #[test]
    fn single_names_are_remembered_until_this_process_changes_something_there() {
        let file = || Found::File(known(1));
        for (changed, is_kept) in
            [("d/a", false), ("d/a/below", false), ("d", false), ("d/ab", true), ("e", true)]
        {
            let listings = Listings::default();
            let began = listings.begin();
            listings.insert_name(&name("d/a"), &file(), began, TTL);
            assert_eq!(listings.find(&name("d/a")), Some(file()));
            listings.changed(&name(changed));
            assert_eq!(listings.find(&name("d/a")).is_some(), is_kept, "{changed}");
            // Asked before the change, answered after it.
            listings.insert_name(&name("d/a"), &file(), began, TTL);
            assert_eq!(listings.find(&name("d/a")).is_some(), is_kept, "{changed}");
            listings.insert_absence(&name("d/a"), began, TTL);
            assert_eq!(listings.find(&name("d/a/x")).is_some(), is_kept, "{changed}");
        }
        let listings = Listings::default();
        listings.insert_name(&name("gone"), &Found::Nothing, listings.begin(), Duration::ZERO);
        assert_eq!(listings.find(&name("gone")), None);
        listings.insert_name(&name("gone"), &Found::Nothing, listings.begin(), TTL);
        assert_eq!(listings.find(&name("gone")), Some(Found::Nothing));
        listings.changed_below(&name(""));
        assert_eq!(listings.find(&name("gone")), None);
    }

    #[test]
    fn a_write_tells_what_is_there() {
        let listings = Listings::default();
        let began = listings.begin();
        for directory in ["d", "d/e"] {
            listings.insert_absence(&name(directory), began, TTL);
        }
        assert_eq!(listings.find(&name("d/x/y")), Some(Found::Nothing));
        listings.wrote(&name("d/e/f"), Some(known(7)), listings.begin(), TTL);
        assert_eq!(listings.find(&name("d/e/f")), Some(Found::File(known(7))));
        for directory in ["d", "d/", "d/e", "d/e/"] {
            assert_eq!(listings.find(&name(directory)), Some(Found::Directory), "{directory}");
        }
        for missing in ["d/x", "d/e/x", "d/x/y"] {
            assert_eq!(listings.find(&name(missing)), Some(Found::Nothing), "{missing}");
        }
        // Gone, and with it perhaps the directories: nothing is known of them.
        listings.changed(&name("d/e/f"));
        for unknown in ["d", "d/e", "d/e/f"] {
            assert_eq!(listings.find(&name(unknown)), None, "{unknown}");
        }
        assert_eq!(listings.find(&name("d/e/x")), Some(Found::Nothing));
        // An object beside a directory of its name.
        listings.wrote(&name("a"), Some(known(1)), listings.begin(), TTL);
        listings.wrote(&name("a/b"), Some(known(2)), listings.begin(), TTL);
        listings.wrote(&name("m/"), None, listings.begin(), TTL);
        assert_eq!(listings.find(&name("a")), Some(Found::File(known(1))));
        assert_eq!(listings.find(&name("a/b")), Some(Found::File(known(2))));
        assert_eq!(listings.find(&name("m/")), Some(Found::Directory));
        assert_eq!(listings.find(&name("m")), None);
        listings.wrote(&name("a"), None, listings.begin(), TTL);
        assert_eq!(listings.find(&name("a")), None);
        assert_eq!(listings.find(&name("a/b")), Some(Found::File(known(2))));
        listings.wrote(&name("b"), Some(known(1)), listings.begin(), Duration::ZERO);
        assert_eq!(listings.find(&name("b")), None);
    }

    #[test]
    fn of_two_writes_at_a_time_none_is_believed() {
        let listings = Listings::default();
        let (first, second) = (listings.begin(), listings.begin());
        listings.wrote(&name("a"), Some(known(1)), first, TTL);
        assert_eq!(listings.find(&name("a")), Some(Found::File(known(1))));
        listings.wrote(&name("b"), Some(known(3)), second, TTL);
        assert_eq!(listings.find(&name("b")), Some(Found::File(known(3))));
        listings.wrote(&name("a"), Some(known(2)), second, TTL);
        assert_eq!(listings.find(&name("a")), None);
    }

    #[test]
    fn what_is_written_into_a_directory_is_no_news_of_the_directories_above() {
        let listings = holding("d/", &["a", "s/"]);
        listings.wrote(&name("d/s/x"), None, listings.begin(), TTL);
        assert_eq!(listings.find(&name("d/s")), Some(Found::Directory));
        listings.wrote(&name("d/a/x"), None, listings.begin(), TTL);
        assert_eq!(listings.find(&name("d/a")), None);
        listings.changed(&name("d/s/x"));
        assert_eq!(listings.find(&name("d/s")), None);
    }

    #[test]
    fn a_part_of_a_listing_does_not_take_the_place_of_the_whole() {
        let listings = holding("d/", &["a", "pb"]);
        let part = Listed { names: "p".into(), upto: Some("pz".into()), ..listed("d/", &["pb"]) };
        assert!(!listings.is_long("b", "d/", "p"));
        listings.insert(&name("d"), part, listings.begin(), TTL, false);
        assert_eq!(listings.find(&name("d/a")), Some(Found::File(known(1))));
        assert!(!listings.is_long("b", "d/", "p"));
        let part = Listed { names: "p".into(), upto: Some("pz".into()), ..listed("e/", &["pb"]) };
        listings.insert(&name("e"), part, listings.begin(), TTL, false);
        assert!(listings.is_long("b", "e/", "p") && !listings.is_long("b", "e/", "q"));
    }

    #[test]
    fn of_two_answers_that_to_the_later_question_is_believed() {
        let listings = Listings::default();
        let first = listings.begin();
        std::thread::sleep(Duration::from_millis(2));
        let second = listings.begin();
        listings.insert_name(&name("a"), &Found::File(known(2)), second, TTL);
        listings.insert_name(&name("a"), &Found::Nothing, first, TTL);
        assert_eq!(listings.find(&name("a")), Some(Found::File(known(2))));
        listings.insert_absence(&name("a"), first, TTL);
        assert_eq!(listings.find(&name("a")), Some(Found::File(known(2))));
        listings.insert(&name("d"), listed("d/", &["new"]), second, TTL, false);
        listings.insert(&name("d"), listed("d/", &["old"]), first, TTL, false);
        listings.insert_absence(&name("d"), first, TTL);
        assert_eq!(listings.find(&name("d/new")), Some(Found::File(known(1))));
        assert_eq!(listings.find(&name("d/old")), Some(Found::Nothing));
        assert_eq!(listings.find(&name("d")), None);
        // The other way round.
        listings.insert_name(&name("b"), &Found::Nothing, first, TTL);
        listings.insert_name(&name("b"), &Found::File(known(2)), second, TTL);
        assert_eq!(listings.find(&name("b")), Some(Found::File(known(2))));
    }

    #[test]
    fn a_name_that_is_remembered_gets_its_new_answer_however_many_there_are() {
        let listings = Listings::default();
        let began = listings.begin();
        for n in 0..MAX_NAMES {
            listings.insert_name(&name(&n.to_string()), &Found::Nothing, began, TTL);
        }
        listings.insert_name(&name("too many"), &Found::Nothing, began, TTL);
        assert_eq!(listings.find(&name("too many")), None);
        listings.insert_name(&name("7"), &Found::File(known(2)), listings.begin(), TTL);
        assert_eq!(listings.find(&name("7")), Some(Found::File(known(2))));
    }

    #[test]
    fn memory_is_bounded() {
        let listings = Listings::default();
        let children: Vec<String> = (0..1000).map(|n| format!("{n:0100}")).collect();
        let children: Vec<&str> = children.iter().map(String::as_str).collect();
        for n in 0..1000 {
            let directory = format!("{n}/");
            listings.insert(
                &name(&directory),
                listed(&directory, &children),
                listings.begin(),
                TTL,
                false,
            );
        }
        let state = listings.read();
        let bytes: usize = state.listings.values().map(|listing| listing.bytes).sum();
        assert!(state.bytes == bytes && bytes <= MAX_BYTES && bytes > MAX_BYTES / 2);
        assert!(state.listings.contains_key(&*id("b", "999/")));
    }
}

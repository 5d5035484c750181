//! Directories made of the keys that listings show.

use crate::{CacheEpoch, Child, ListedRange, ListingCache, Name, ObjectMeta, Page};
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;
use tf_fs_plugin::Entries;

/// Directories below one another that are kept. A key of 1,024 bytes may be in 512 of them.
const DEEPEST: usize = 64;

/// The entries of one directory, page by page.
#[derive(Debug)]
pub(crate) struct DirListing {
    /// The prefix of its keys.
    directory: String,
    /// The prefix of the listed names.
    names: String,
    children: BTreeMap<String, Child>,
    /// Whether anything was seen in it, if only its own marker.
    pub(crate) exists: bool,
    /// When each page was requested, and its last name.
    pages: Vec<(CacheEpoch, String)>,
    /// Whether the names came in the order of their bytes. Otherwise a part of them tells nothing of those missing in it.
    is_in_order: bool,
}

impl DirListing {
    /// Creates an empty collection of the keys that begin with `directory`; names that begin with `names` are listed.
    pub(crate) fn new(directory: impl Into<String>, names: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            names: names.into(),
            children: BTreeMap::new(),
            exists: false,
            pages: Vec::new(),
            is_in_order: true,
        }
    }

    /// Adds a page of this directory, listed with or without a delimiter.
    pub(crate) fn add(&mut self, page: Page, began: CacheEpoch) {
        let within = |name: Option<&str>| {
            name.and_then(|name| name.strip_prefix(&*self.directory)).unwrap_or_default().to_owned()
        };
        let (first, last) = (within(page.first()), within(page.last()));
        let is_next = self.pages.last().is_none_or(|(_, last)| *last <= first || first.is_empty());
        self.is_in_order &= is_next && page.is_in_order();
        self.pages.push((began, last));
        for object in page.objects {
            self.add_key(&object.key, Some(object.meta));
        }
        for directory in page.common_prefixes {
            self.add_key(&directory, None);
        }
    }

    fn add_key(&mut self, key: &str, known: Option<ObjectMeta>) {
        let Some(rest) = key.strip_prefix(&*self.directory) else { return };
        self.exists = true;
        let (name, is_directory) = match rest.split_once('/') {
            Some((name, _)) => (name, true),
            None => (rest, false),
        };
        // The directory's own marker. The name before a `//` is kept, so that lookups find what is below it.
        if name.is_empty() && !is_directory {
            return;
        }
        if !self.children.contains_key(name) {
            let child = Child { name: name.into(), object: None, is_directory: false };
            self.children.insert(name.to_owned(), child);
        }
        if let Some(child) = self.children.get_mut(name) {
            if is_directory {
                child.is_directory = true;
            } else {
                child.object = known;
            }
        }
    }

    /// Returns the entries seen so far that TensorFlow can list, in order.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Child> {
        self.children.values().filter(|child| Entries::is_listable(child.name.as_bytes()))
    }

    /// Returns what was listed, up to its last name if there is more.
    pub(crate) fn into_listed(self, is_truncated: bool) -> ListedRange {
        let last = self.pages.into_iter().next_back().map(|(_, last)| last);
        // Up to nothing.
        let last = last.filter(|_| self.is_in_order).or(Some(String::new()));
        ListedRange {
            directory: self.directory,
            names: self.names,
            after: None,
            upto: last.filter(|_| is_truncated),
            children: self.children.into_values().collect(),
        }
    }

    /// Keeps the listing for later lookups. Pages that are too old are left out.
    pub(crate) fn keep(self, listings: &ListingCache, name: &Name, ttl: Duration) {
        // A page is of use only while half of its time is left.
        let is_fresh = |began: &CacheEpoch| began.at.elapsed() < ttl / 2;
        let fresh = self.pages.iter().position(|(began, _)| is_fresh(began));
        let Some(first) = fresh.or(self.pages.len().checked_sub(1)) else { return };
        if first > 0 && !self.is_in_order {
            return;
        }
        let began = self.pages[first].0;
        let after = first.checked_sub(1).map(|before| self.pages[before].1.clone());
        let is_kept = |child: &Child| after.as_deref().is_none_or(|after| after < &*child.name);
        let children = self.children.into_values().filter(is_kept).collect();
        let listed = ListedRange {
            directory: self.directory,
            names: self.names,
            after,
            upto: None,
            children,
        };
        listings.insert(name, listed, began, ttl, false);
    }
}

/// All directories below a prefix, from a listing without a delimiter.
#[derive(Debug)]
pub(crate) struct DirTree {
    /// The directory at the top.
    prefix: String,
    /// The prefix of the listed names in it.
    names: String,
    /// All keys are after this one.
    after: String,
    /// By prefix.
    directories: BTreeMap<String, DirListing>,
    last: String,
    /// As in [`DirListing`].
    is_in_order: bool,
}

impl DirTree {
    /// Creates an empty tree for a listing below `prefix`, of the keys after `after` whose names begin with `names`.
    pub(crate) fn new(
        prefix: impl Into<String>,
        names: impl Into<String>,
        after: impl Into<String>,
    ) -> Self {
        Self {
            prefix: prefix.into(),
            names: names.into(),
            after: after.into(),
            directories: BTreeMap::new(),
            last: String::new(),
            is_in_order: true,
        }
    }

    /// Adds a page.
    pub(crate) fn add(&mut self, page: &Page) {
        let is_next = page.first().is_none_or(|first| *self.last <= *first);
        self.is_in_order &= is_next && page.is_in_order();
        for object in &page.objects {
            let key = object.key.as_str();
            let slashes = key.match_indices('/').map(|(slash, _)| slash + 1);
            let slashes = slashes.filter(|&end| end > self.prefix.len()).take(DEEPEST);
            let ends: Vec<usize> = iter::once(self.prefix.len()).chain(slashes).collect();
            for end in ends.into_iter().rev() {
                let directory = &key[..end];
                let is_known = self.directories.contains_key(directory);
                if !is_known {
                    let new = DirListing::new(directory, "");
                    self.directories.insert(directory.to_owned(), new);
                }
                if let Some(found) = self.directories.get_mut(directory) {
                    found.add_key(key, Some(object.meta.clone()));
                }
                // The directories above a known one have it already.
                if is_known {
                    break;
                }
            }
            if key > self.last.as_str() {
                key.clone_into(&mut self.last);
            }
        }
    }

    /// Keeps what is known of each directory for later lookups.
    pub(crate) fn keep(
        self,
        listings: &ListingCache,
        name: &Name,
        began: CacheEpoch,
        is_done: bool,
        ttl: Duration,
    ) {
        if !self.is_in_order && !is_done {
            return;
        }
        for (directory, found) in self.directories {
            let rest = |key: &str| key.strip_prefix(&*directory).map(str::to_owned);
            let after = rest(&self.after).filter(|after| !after.is_empty());
            let upto = if is_done { None } else { rest(&self.last) };
            let is_top = directory == self.prefix;
            // This may be only a part of the top, and more of it is known already.
            if is_top && (after.is_some() || upto.is_some()) {
                continue;
            }
            let names = if is_top { self.names.clone() } else { String::new() };
            let children = found.children.into_values().collect();
            let listed = ListedRange { directory, names, after, upto, children };
            listings.insert(name, listed, began, ttl, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    fn tree(keys: &[&str]) -> DirTree {
        let objects = keys.iter().map(|&key| Object::new(key, ObjectMeta::new(1))).collect();
        let page = Page { objects, ..Page::default() };
        let mut tree = DirTree::new("", "", "");
        tree.add(&page);
        tree
    }

    fn shown(tree: &DirTree, directory: &str) -> Vec<String> {
        let children = tree.directories[directory].children();
        children.map(|child| format!("{}{}", child.name, child.is_directory)).collect()
    }

    #[test]
    fn each_directory_above_a_key_has_it() {
        let tree = tree(&["a/b/c", "a/b/d/e", "a//x", "a/b", "z"]);
        assert_eq!(
            tree.directories.keys().collect::<Vec<_>>(),
            ["", "a/", "a//", "a/b/", "a/b/d/"]
        );
        assert_eq!(shown(&tree, ""), ["atrue", "zfalse"]);
        assert_eq!(shown(&tree, "a/"), ["btrue"]);
        assert_eq!(shown(&tree, "a//"), ["xfalse"]);
        // Not listed, but known.
        assert!(tree.directories["a/"].children[""].is_directory);
        assert_eq!(shown(&tree, "a/b/"), ["cfalse", "dtrue"]);
        assert_eq!(shown(&tree, "a/b/d/"), ["efalse"]);
    }

    #[test]
    fn deep_keys_take_no_more_memory_than_they_have_bytes_many_times() {
        let keys: Vec<String> =
            (0..100).map(|n| format!("{}{n}", format!("{n}/").repeat(300))).collect();
        let tree = tree(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(tree.directories.len(), 1 + 100 * DEEPEST);
        let deepest = "7/".repeat(DEEPEST);
        assert_eq!(shown(&tree, &deepest), ["7true"]);
        assert_eq!(shown(&tree, "").len(), 100);
    }
}

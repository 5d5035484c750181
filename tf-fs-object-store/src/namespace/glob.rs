//! Names that match a pattern.
//!
//! A wildcard in the last component needs one listing by directory. Wildcards in several could be followed directory by
//! directory, with a request each. A listing of all keys below often needs fewer: it shows a thousand keys a request.
//! That is tried first, and given up as soon as it seems to need more.

use super::pages::{Allowance, Pages};
use super::{has_temporary_names, lookup};
use crate::write::is_temporary;
use crate::{
    Client, Connection, DirListing, DirTree, Directories, ListOptions, Lookup, Name, ObjectStore,
    Page,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use tf_fs_plugin::glob;
use tf_fs_plugin::prelude::*;
use tokio::sync::Semaphore;

/// Requests in flight for a pattern.
const REQUESTS: usize = 16;

/// Returns the names that match, as they would be written with the scheme of the pattern; sorted.
///
/// # Errors
/// `INVALID_ARGUMENT` for a pattern that is not a name; as the store says.
pub(super) async fn matching<C: Client>(
    connection: &Connection<C>,
    pattern: Uri<'_>,
) -> Result<Entries> {
    if pattern.as_bytes().is_empty() {
        return Ok(Entries::new());
    }
    let (bucket, path) = C::split(pattern)?;
    // What comes before the key, as the user wrote it.
    let start = pattern.as_bytes().len() - path.len();
    let before = &pattern.as_bytes()[..start];
    let root = C::name(bucket, "")?;
    let components: Vec<&str> = path.split('/').collect();
    let keys = if bucket.is_empty() || components.iter().all(|part| is_literal(part)) {
        let name = C::name(bucket, &unescape(path))?;
        match lookup::find(connection, &name).await? {
            Lookup::Missing => BTreeSet::new(),
            Lookup::File(_) | Lookup::Directory => BTreeSet::from([name.key]),
        }
    } else {
        let bucket = connection.bucket(&root.bucket).await?;
        let search = Search {
            connection,
            allowance: Allowance::new(bucket.settings()),
            bucket,
            pattern: root.with_key(path),
            components,
            requests: Semaphore::new(REQUESTS),
            found: RefCell::default(),
        };
        search.expand(String::new(), 0).await?;
        for key in connection.unpublished.below(&root, "") {
            search.judge("", 0, &key);
        }
        search.found.into_inner()
    };
    Ok(keys.into_iter().map(|key| [before, key.as_bytes()].concat()).collect())
}

pub(super) fn is_literal(component: &str) -> bool {
    glob::is_literal(component.as_bytes())
}

/// Returns the name that a pattern without wildcards denotes. A `\` at the end of a component is itself.
pub(super) fn unescape(literal: &str) -> String {
    let components = literal.split('/').map(|component| glob::unescape(component.as_bytes()));
    String::from_utf8_lossy(&components.collect::<Vec<_>>().join(&b'/')).into_owned()
}

/// Returns the prefix of all names that match a component.
pub(super) fn head(component: &str) -> String {
    let mut head = String::new();
    let mut chars = component.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' | '[' => break,
            '\\' => head.push(chars.next().unwrap_or(c)),
            _ => head.push(c),
        }
    }
    head
}

struct Search<'a, C: Client> {
    connection: &'a Connection<C>,
    bucket: Arc<C::Store>,
    /// For errors.
    pattern: Name,
    components: Vec<&'a str>,
    requests: Semaphore,
    allowance: Allowance,
    /// Keys; those of directories have a `/` at the end only if the pattern has one.
    found: RefCell<BTreeSet<String>>,
}

/// The result of listing one level by directory.
struct Level {
    /// Directories, sorted, and whether their names match.
    directories: Vec<(String, bool)>,
}

impl<C: Client> Search<'_, C> {
    /// Finds the names that match from component `depth` on, below `directory`, which is empty or ends in `/`.
    fn expand(
        &self,
        mut directory: String,
        mut depth: usize,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(async move {
            while is_literal(self.components[depth]) {
                directory.push_str(&unescape(self.components[depth]));
                depth += 1;
                if depth == self.components.len() {
                    return self.check(directory).await;
                }
                directory.push('/');
            }
            match self.components[depth + 1..] {
                [] | [""] => self.level(&directory, depth).await.map(drop),
                _ => self.deep(directory, depth).await,
            }
        })
    }

    /// Returns whether a wildcard may match this name.
    fn is_shown(&self, component: &str) -> bool {
        !(is_temporary(component) && has_temporary_names(&*self.bucket))
    }

    /// Looks up a name that has no wildcard after its directory.
    async fn check(&self, key: String) -> Result<()> {
        let name = self.pattern.with_key(key);
        let _permit = self.requests.acquire().await;
        if lookup::find(self.connection, &name).await? != Lookup::Missing {
            self.found.borrow_mut().insert(name.key);
        }
        Ok(())
    }

    async fn next(&self, pages: &mut Pages<'_, C::Store>) -> Result<Option<Page>> {
        let _permit = self.requests.acquire().await;
        pages.next_kept(&self.allowance).await
    }

    /// Lists one level by directory. If it is the last one, adds the names that match.
    async fn level(&self, directory: &str, depth: usize) -> Result<Level> {
        let component = self.components[depth];
        let head = head(component);
        let options = ListOptions::new(format!("{directory}{head}")).with_delimiter();
        let mut listing = DirListing::new(directory, head);
        let mut pages = Pages::new(&*self.bucket, &self.pattern, options);
        loop {
            let began = self.connection.listings.begin();
            let Some(page) = self.next(&mut pages).await? else { break };
            listing.add(page, began);
        }
        let rest = &self.components[depth + 1..];
        let mut directories = Vec::new();
        for child in listing.children() {
            let matches = glob::matches(component.as_bytes(), child.name.as_bytes())
                && self.is_shown(&child.name);
            if child.is_directory {
                directories.push((format!("{directory}{}", child.name), matches));
            }
            match rest {
                [] if matches => {
                    self.found.borrow_mut().insert(format!("{directory}{}", child.name));
                }
                [""] if matches && child.is_directory => {
                    self.found.borrow_mut().insert(format!("{directory}{}/", child.name));
                }
                _ => {}
            }
        }
        let ttl = self.bucket.settings().listing_ttl;
        listing.keep(&self.connection.listings, &self.pattern, ttl);
        Ok(Level { directories })
    }

    /// Follows wildcards in several components.
    async fn deep(&self, directory: String, depth: usize) -> Result<()> {
        if self.bucket.directories() == Directories::Real {
            let level = self.level(&directory, depth).await?;
            return self.expand_all(level, depth, |_| true).await;
        }
        let head = head(self.components[depth]);
        let options = ListOptions::new(format!("{directory}{head}"));
        let mut pages = Pages::new(&*self.bucket, &self.pattern, options);
        let began = self.connection.listings.begin();
        let mut tree = DirTree::new(&*directory, head, "");
        let mut flat = Flat::default();
        let mut level: Option<Level> = None;
        loop {
            let Some(page) = self.next(&mut pages).await? else { break };
            for object in &page.objects {
                self.judge(&directory, depth, &object.key);
            }
            tree.add(&page);
            flat.add(&page, &directory);
            if pages.is_done() {
                break;
            }
            // Where this level has as many directories and files as there are keys, going directory by directory saves
            // nothing.
            if level.is_none() && flat.is_shallow() {
                continue;
            }
            let level = match &level {
                Some(level) => level,
                None => level.insert(self.level(&directory, depth).await?),
            };
            if !flat.is_cheaper(level) {
                break;
            }
        }
        let ttl = self.bucket.settings().listing_ttl;
        tree.keep(&self.connection.listings, &self.pattern, began, pages.is_done(), ttl);
        let Some(level) = level.filter(|_| !pages.is_done()) else { return Ok(()) };
        self.expand_all(level, depth, |directory| !flat.has_passed(directory)).await
    }

    /// Follows the directories of a level that match and are not known yet.
    async fn expand_all(
        &self,
        level: Level,
        depth: usize,
        is_left: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let rest = level
            .directories
            .into_iter()
            .filter(|(directory, matches)| *matches && is_left(directory));
        stream::iter(rest)
            .map(|(directory, _)| self.expand(format!("{directory}/"), depth + 1))
            .buffer_unordered(REQUESTS)
            .try_collect()
            .await
    }

    /// Adds what a key shows to exist, itself or a directory that it is in, if that matches from component `depth` on.
    fn judge(&self, directory: &str, depth: usize, key: &str) {
        let Some(rest) = key.strip_prefix(directory) else { return };
        let wanted = &self.components[depth..];
        let parts: Vec<&str> = rest.splitn(wanted.len() + 1, '/').collect();
        if parts.len() < wanted.len() {
            return;
        }
        let (only_directories, wanted) = match wanted {
            [wanted @ .., ""] => (true, wanted),
            wanted => (false, wanted),
        };
        let all_match = wanted.iter().zip(&parts).all(|(component, part)| {
            if is_literal(component) {
                unescape(component) == *part
            } else {
                // A wildcard matches what is listed.
                Entries::is_listable(part.as_bytes())
                    && self.is_shown(part)
                    && glob::matches(component.as_bytes(), part.as_bytes())
            }
        });
        if all_match {
            let mut path = format!("{directory}{}", parts[..wanted.len()].join("/"));
            if only_directories {
                path.push('/');
            }
            self.found.borrow_mut().insert(path);
        }
    }
}

/// The progress of a listing of all keys below.
#[derive(Default)]
struct Flat {
    pages: usize,
    keys: usize,
    /// Directories and files of the level that the listing begins at.
    at_level: usize,
    last: String,
    last_at_level: String,
    /// Whether a page was not in order: then none of the names is known to have been passed.
    is_mixed: bool,
}

impl Flat {
    fn add(&mut self, page: &Page, directory: &str) {
        self.pages += 1;
        self.keys += page.objects.len();
        for object in &page.objects {
            let rest = object.key.strip_prefix(directory).unwrap_or_default();
            let name = rest.split('/').next().unwrap_or_default();
            if name != self.last_at_level {
                self.at_level += 1;
                name.clone_into(&mut self.last_at_level);
            }
        }
        if let Some(last) = page.last() {
            self.is_mixed |= !page.is_in_order() || *last < *self.last;
            last.clone_into(&mut self.last);
        }
    }

    fn is_shallow(&self) -> bool {
        self.at_level * 2 >= self.keys
    }

    /// Returns whether all of this directory was shown.
    fn has_passed(&self, directory: &str) -> bool {
        if self.is_mixed {
            return false;
        }
        match self.last.strip_prefix(directory) {
            Some(rest) => rest.starts_with(|next| next > '/'),
            None => *self.last > *directory,
        }
    }

    /// Returns whether continuing is likely to need clearly fewer requests than one for each directory that is left. Its
    /// requests take longer, because each has to wait for the one before.
    fn is_cheaper(&self, level: &Level) -> bool {
        let passed = level.directories.iter().filter(|(name, _)| self.has_passed(name)).count();
        let is_left = |entry: &&(String, bool)| entry.1 && !self.has_passed(&entry.0);
        let requests = level.directories.iter().filter(is_left).count();
        let pages = (level.directories.len() - passed) * self.pages;
        // `pages / passed` are left if the other directories are like those so far.
        passed > 0 && requests > 0 && pages * 2 <= requests * passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        for (component, expected) in
            [("part-*", "part-"), ("*", ""), (r"a\*b?", "a*b"), ("x[0-9]", "x"), ("é?", "é")]
        {
            assert_eq!(head(component), expected);
        }
    }

    #[test]
    fn passed_keys_of_a_listing() {
        let flat = Flat { last: "d/b/x".into(), ..Flat::default() };
        assert!(flat.has_passed("d/a"));
        assert!(flat.has_passed("d/a-"));
        assert!(!flat.has_passed("d/b"));
        assert!(!flat.has_passed("d/c"));
        let flat = Flat { last: "d/b-".into(), ..Flat::default() };
        assert!(!flat.has_passed("d/b"));
        let flat = Flat { last: "d/b0".into(), ..Flat::default() };
        assert!(flat.has_passed("d/b"));
    }

    #[test]
    fn the_cheaper_way_is_taken() {
        let level = |left: usize, passed: usize| Level {
            directories: (0..passed)
                .map(|n| (format!("a{n:04}"), true))
                .chain((0..left).map(|n| (format!("c{n:04}"), true)))
                .collect(),
        };
        let flat = |pages| Flat { pages, last: "b".into(), ..Flat::default() };
        // 10 directories a page, 100 to go.
        assert!(flat(1).is_cheaper(&level(100, 10)));
        assert!(!flat(9).is_cheaper(&level(100, 10)));
        assert!(!flat(1).is_cheaper(&level(100, 1)));
        assert!(!flat(1).is_cheaper(&level(100, 0)));
        assert!(!flat(1).is_cheaper(&level(0, 10)));
    }
}

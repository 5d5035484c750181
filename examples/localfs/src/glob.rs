//! `get_matching_paths`.

use crate::error::leads_nowhere;
use crate::list::for_each_entry;
use crate::name::LocalPath;
use crate::root::{Access, Root, is_directory};
use rustix::fs::FileType;
use tf_fs_plugin::{Entries, Result, Uri, glob};

/// Returns the names that match, sorted, written as the pattern is: with its scheme, its host and
/// its superfluous slashes and dots. Only directories that can hold a match are read.
///
/// A missing path matches nothing, and neither does a path that only a link out of the root leads
/// to. Any other failure is an error, so an empty result means that nothing matches.
pub(crate) fn get_matching_paths(root: &Root, pattern: Uri<'_>) -> Result<Entries> {
    let bytes = pattern.as_bytes();
    if bytes.is_empty() {
        return Ok(Entries::new());
    }
    LocalPath::new(root, pattern)?;
    let prefix = match pattern.scheme().len() {
        0 => 0,
        scheme => scheme + "://".len(),
    };
    // The host is the first component, so that a wildcard works there too. It is often empty.
    let components: Vec<_> = bytes[prefix..].split(|&byte| byte == b'/').collect();
    let mut search = Search { root, matches: Vec::new() };
    search.descend(bytes[..prefix].to_vec(), &components)?;
    search.matches.sort_unstable();
    Ok(search.matches.into_iter().collect())
}

struct Search<'a> {
    root: &'a Root,
    matches: Vec<Vec<u8>>,
}

impl Search<'_> {
    /// Collects what matches `components` after `path`, which ends where a component begins.
    fn descend(&mut self, mut path: Vec<u8>, components: &[&[u8]]) -> Result<()> {
        let wildcard = components.iter().position(|component| !glob::is_literal(component));
        let (literals, rest) = components.split_at(wildcard.unwrap_or(components.len()));
        for (index, literal) in literals.iter().enumerate() {
            path.extend_from_slice(&glob::unescape(literal));
            if index + 1 < components.len() {
                path.push(b'/');
            }
        }
        match rest.split_first() {
            None => self.check(path),
            Some((wildcard, rest)) => {
                for child in self.children(&path, wildcard, !rest.is_empty())? {
                    if rest.is_empty() {
                        self.matches.push(child);
                    } else {
                        self.descend(child, rest)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Keeps a path without wildcards if it exists. One that ends in `/` must be a directory.
    fn check(&mut self, path: Vec<u8>) -> Result<()> {
        let place = LocalPath::new(self.root, Uri::new(&path))?;
        match self.root.metadata(&place.path) {
            Ok(stat) if is_directory(&stat) || !path.ends_with(b"/") => {
                drop(place);
                self.matches.push(path);
            }
            Ok(_) => {}
            Err(error) if leads_nowhere(&error) => {}
            Err(error) => return Err(place.describe(error)),
        }
        Ok(())
    }

    /// Returns the entries of a directory that match `wildcard`, as complete names; with
    /// `descending` only those that may be directories, with a `/`.
    fn children(&self, path: &[u8], wildcard: &[u8], descending: bool) -> Result<Vec<Vec<u8>>> {
        let place = LocalPath::new(self.root, Uri::new(path))?;
        let directory = match self.root.open(&place.path, Access::Directory) {
            Ok(directory) => directory,
            Err(error) if leads_nowhere(&error) => return Ok(Vec::new()),
            Err(error) => return Err(place.describe(error)),
        };
        let mut children = Vec::new();
        for_each_entry(&directory, |name, kind| {
            let may_be_directory =
                matches!(kind, FileType::Directory | FileType::Symlink | FileType::Unknown);
            if (!descending || may_be_directory) && glob::matches(wildcard, name) {
                let mut child = Vec::with_capacity(path.len() + name.len() + 1);
                child.extend_from_slice(path);
                child.extend_from_slice(name);
                if descending {
                    child.push(b'/');
                }
                children.push(child);
            }
        })
        .map_err(|error| place.describe(error))?;
        Ok(children)
    }
}

//! The files and directories of the file server, and what it does.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, UNIX_EPOCH};
use tf_fs_object_store::{ErrorKind, ObjectMeta, Publication, RequestError};

/// The files and directories, the requests, and what the server does.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By path, with the number of the write.
    pub(crate) files: BTreeMap<String, (Bytes, u64)>,
    /// With the `/` at the end.
    pub(crate) directories: BTreeSet<String>,
    pub(crate) log: Vec<String>,
    pub(crate) cannot: Vec<&'static str>,
    /// The response of the next request of this kind is lost.
    pub(crate) loses: Option<&'static str>,
    /// Requests for a directory that took along what was in it.
    pub(crate) took_along: Vec<String>,
    pub(crate) undeletable: Option<String>,
    /// Names a page.
    pub(crate) page: usize,
    /// Each directory shows itself, and one more in it.
    pub(crate) is_hostile: bool,
    pub(crate) ttl: Duration,
    /// How the server says that files become visible; at once by default.
    pub(crate) publication: Option<Publication>,
    /// Files are uploaded from the first byte to the last.
    pub(crate) has_upload: bool,
    /// The responses of requests of this kind fail in this way, once.
    pub(crate) fails: Option<(&'static str, ErrorKind)>,
    /// Responses to `get` tell nothing but bytes, and ranges past the end are refused.
    pub(crate) is_headless: bool,
    /// Files have no ETag.
    pub(crate) has_no_etags: bool,
    /// What somebody else makes of a file before a request of this kind: other bytes, or none.
    pub(crate) changes: VecDeque<(&'static str, Option<Bytes>)>,
    /// Responses to renames do not tell what the file is.
    pub(crate) is_silent: bool,
    /// The writer is killed at the request of this number: while it is made, or before it arrives.
    pub(crate) dies_at: Option<(usize, bool)>,
    pub(crate) requests: usize,
    pub(super) writes: u64,
}

impl Contents {
    pub(crate) fn fill(&mut self, paths: &[&str]) {
        self.files.clear();
        self.directories.clear();
        for path in paths {
            for (slash, _) in path.match_indices('/') {
                self.directories.insert(path[..=slash].to_owned());
            }
            if !path.ends_with('/') {
                self.write(path, Bytes::copy_from_slice(path.as_bytes()));
            }
        }
    }

    pub(super) fn write(&mut self, path: &str, bytes: Bytes) {
        self.writes += 1;
        self.files.insert(path.to_owned(), (bytes, self.writes));
    }

    pub(super) fn meta(&self, path: &str) -> Option<ObjectMeta> {
        let (bytes, version) = self.files.get(path)?;
        let meta = ObjectMeta::new(bytes.len() as u64);
        Some(match self.has_no_etags {
            true => meta.with_modified(UNIX_EPOCH + Duration::from_secs(*version)),
            false => meta.with_etag(format!("\"{version}\"")),
        })
    }

    pub(crate) fn publication(&self) -> Publication {
        self.publication.unwrap_or(Publication::Atomic)
    }

    /// Returns whether this request is the last one of the writer.
    pub(super) fn is_dying(&self) -> bool {
        self.dies_at.is_some_and(|(at, _)| self.requests == at)
    }

    /// Returns all paths that begin with this one.
    pub(super) fn below(&self, directory: &str) -> Vec<String> {
        let all = self.files.keys().chain(&self.directories);
        all.filter(|path| path.starts_with(directory)).cloned().collect()
    }

    pub(super) fn has_parent(&self, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        path.rfind('/').is_none_or(|slash| self.directories.contains(&path[..=slash]))
    }

    /// Copies or moves a file, or a directory with all in it.
    pub(super) fn transfer(
        &mut self,
        from: &str,
        to: &str,
        moves: bool,
    ) -> Result<(), RequestError> {
        if !self.has_parent(to) {
            return Err(RequestError::new(ErrorKind::NotFound, "no such directory"));
        }
        let (from, to) = match self.directories.contains(&format!("{from}/")) {
            true => (format!("{from}/"), format!("{to}/")),
            false => (from.to_owned(), to.to_owned()),
        };
        let paths = match from.ends_with('/') {
            true => self.below(&from),
            false => self.files.keys().filter(|path| **path == from).cloned().collect(),
        };
        if paths.is_empty() {
            return Err(RequestError::new(ErrorKind::NotFound, "no such file or directory"));
        }
        if from.ends_with('/') && !moves {
            self.took_along.push(format!("copy {from}"));
        }
        for path in paths {
            let new = format!("{to}{}", &path[from.len()..]);
            if path.ends_with('/') {
                self.directories.insert(new);
                if moves {
                    self.directories.remove(&path);
                }
            } else if let Some((bytes, _)) = self.files.get(&path).cloned() {
                self.write(&new, bytes);
                if moves {
                    self.files.remove(&path);
                }
            }
        }
        Ok(())
    }
}

pub(super) fn missing() -> RequestError {
    RequestError::new(ErrorKind::NotFound, "no such file or directory")
}

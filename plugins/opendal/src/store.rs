//! A remote: a service's operations as the engine's requests.
//!
//! Directories are real, and their keys end in `/`.

use crate::copy::copy_through;
use crate::metrics::counted;
use crate::name;
use crate::service::{Body, Entry, Service, Writing, missing, stored};
use bytes::BufMut as _;
use std::sync::Arc;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::{
    Attributes, Body as _, BoxUpload, Content, CopyOptions, Directories, ErrorKind, GetHead,
    GetOptions, ListOptions, Lookup, Name, Object, ObjectMeta, ObjectStore, Page, Payload,
    PutOptions, Range, RenameOptions, Settings, StoreError as _, StoredObject, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// Bytes that are compared at a time.
const PIECE: usize = 64 << 10;

/// A directory on a server.
#[derive(Debug)]
pub struct Remote {
    pub(crate) service: Box<dyn Service>,
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The path below which all names are.
    pub(crate) root: String,
    pub(crate) settings: Settings,
}

impl ObjectStore for Remote {
    type Error = HttpError;
    type Body = Body;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn endpoint(&self) -> String {
        self.origin.clone()
    }

    // Versions of many servers are made of a time in seconds and a size.
    fn cache_scope(&self) -> Option<String> {
        None
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Body), HttpError> {
        counted("Read", self.service.read(options)).await
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, HttpError> {
        match self.stat(&name.key).await? {
            Some(entry) if !entry.is_directory => Ok(entry.meta),
            _ => Err(missing()),
        }
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), HttpError> {
        let meta = match self.service.tells_versions() {
            // It has the same ETag as the responses of a file that is read, which listings may not have.
            true => match self.get(GetOptions::new(&name.key, Range::new(0, 1))).await? {
                (Some(head), _) => head.meta(),
                (None, _) => self.head(name).await?,
            },
            false => self.head(name).await?,
        };
        let size = meta.size.ok_or_else(|| HttpError::invalid("it tells no size"))?;
        Ok((stored(size, meta), Attributes::default()))
    }

    fn directories(&self) -> Directories {
        Directories::Real
    }

    async fn list(&self, options: &ListOptions, _: Option<&str>) -> Result<Page, HttpError> {
        let directory = options.directory();
        let entries = match counted("List", self.service.list(path(directory))).await {
            // There is none. The engine looks what is there.
            Err(error)
                if error.kind() != ErrorKind::NotFound
                    && is_refused(&error)
                    && self.is_below_file(directory).await =>
            {
                return Err(missing());
            }
            listed => listed?,
        };
        let mut page = Page::default();
        for (name, entry) in entries {
            let is_name = !matches!(&*name, "" | "." | "..")
                && !name.contains('/')
                && name.len() <= name::LONGEST;
            match (is_name, entry.is_directory) {
                (true, true) => page.common_prefixes.push(format!("{directory}{name}/")),
                (true, false) => {
                    page.objects.push(Object::new(format!("{directory}{name}"), entry.meta));
                }
                (false, _) => {}
            }
        }
        page.objects.sort_by(|one, other| one.key.cmp(&other.key));
        page.common_prefixes.sort();
        Ok(page)
    }

    fn supports_lookup(&self) -> bool {
        true
    }

    async fn lookup(&self, name: &Name) -> Result<Lookup, HttpError> {
        Ok(match self.stat(&name.key).await? {
            None => Lookup::Missing,
            Some(found) if found.is_directory => Lookup::Directory,
            Some(_) if name.is_always_directory() => Lookup::Missing,
            Some(found) => Lookup::File(found.meta),
        })
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), HttpError> {
        let created = counted("CreateDirectory", self.service.create_dir(path(&marker.key))).await;
        self.explained(marker, created).await
    }

    async fn delete(&self, name: &Name) -> Result<(), HttpError> {
        let is_directory = name.key.ends_with('/');
        counted("Delete", self.service.delete(path(&name.key), is_directory)).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, HttpError> {
        from.check_place(to)?;
        let (src, dst) = (&options.src.key, options.dst);
        let copy = || async {
            match counted("Copy", to.service.copy(src, &dst.key)).await {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    copy_through(&*to.service, src, dst).await
                }
                copied => copied,
            }
        };
        let copied = to.with_parents(&dst.key, Some(src), copy).await;
        to.explained(dst, copied).await.map(|()| None)
    }

    fn supports_rename(&self) -> bool {
        true
    }

    async fn rename(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: RenameOptions<'_>,
    ) -> Result<Option<ObjectMeta>, HttpError> {
        from.check_place(to)?;
        let (src, dst) = (&options.src.key, options.dst);
        let is_directory = src.ends_with('/');
        let rename =
            || counted("Rename", to.service.rename(path(src), path(&dst.key), is_directory));
        let renamed = to.with_parents(&dst.key, Some(src), rename).await;
        to.explained(dst, renamed).await.map(|()| None)
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        self.service.write_limits()
    }

    async fn put(&self, to: PutOptions<'_>, content: &Content) -> Result<StoredObject, HttpError> {
        let put = || counted("Write", self.service.put(&to.name.key, content));
        let written = self.with_parents(&to.name.key, None, put).await;
        Ok(stored(content.len(), self.explained(to.name, written).await?))
    }

    async fn start_upload(&self, to: PutOptions<'_>) -> Result<BoxUpload<HttpError>, HttpError> {
        let start = || counted("Write", self.service.start(&to.name.key));
        let started = self.with_parents(&to.name.key, None, start).await;
        let sink = self.explained(to.name, started).await?;
        Ok(BoxUpload::new(Writing { sink, len: 0 }))
    }

    async fn is_ours(
        &self,
        name: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, HttpError> {
        let Payload::Whole(content) = sent else { return Ok(None) };
        let range = Range::new(0, found.size.max(1));
        let (_, mut body) = self.get(GetOptions::new(&name.key, range)).await?;
        let mut piece = Vec::with_capacity(PIECE);
        for expected in content.chunks().iter().flat_map(|chunk| chunk.chunks(PIECE)) {
            piece.clear();
            while piece.len() < expected.len() {
                let left = expected.len() - piece.len();
                if body.fill(&mut (&mut piece).limit(left)).await? == 0 {
                    return Ok(Some(false));
                }
            }
            if piece != expected {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

impl Remote {
    /// Checks that `other` is the same directory, maybe under another name.
    fn check_place(&self, other: &Self) -> Result<(), HttpError> {
        match (&self.origin, &self.root) == (&other.origin, &other.root) {
            true => Ok(()),
            false => Err(HttpError::unsupported("copies and renames between two remotes")),
        }
    }

    /// Makes a request that puts something at `key`, and makes it again if the directories above were missing. `source` is what it
    /// moves there.
    async fn with_parents<T, R: Future<Output = Result<T, HttpError>>>(
        &self,
        key: &str,
        source: Option<&str>,
        request: impl Fn() -> R,
    ) -> Result<T, HttpError> {
        match request().await {
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && self.creates_parents(key, source).await =>
            {
                request().await
            }
            done => done,
        }
    }

    /// Creates the directories above `key` if they are missing, and returns whether they were.
    async fn creates_parents(&self, key: &str, source: Option<&str>) -> bool {
        let Some((parent, _)) = path(key).rsplit_once('/') else { return false };
        if let Some(source) = source
            && !matches!(self.stat(source).await, Ok(Some(_)))
        {
            return false;
        }
        if !matches!(self.stat(parent).await, Ok(None)) {
            return false;
        }
        let slashes = parent.match_indices('/').map(|(slash, _)| slash);
        for end in slashes.chain([parent.len()]) {
            match counted("CreateDirectory", self.service.create_dir(&parent[..end])).await {
                Err(error) if error.kind() != ErrorKind::Precondition => return false,
                _ => {}
            }
        }
        true
    }

    /// Replaces the refusal of what would be below a file, or in place of a directory: servers give it any status.
    async fn explained<T>(&self, name: &Name, done: Result<T, HttpError>) -> Result<T, HttpError> {
        if done.as_ref().err().is_none_or(|error| !is_refused(error)) {
            return done;
        }
        let slashes = name.key.trim_end_matches('/').match_indices('/');
        for parent in slashes.map(|(slash, _)| &name.key[..slash]) {
            match self.stat(parent).await {
                Ok(Some(found)) if !found.is_directory => {
                    let parent = name.with_key(parent);
                    return Err(HttpError::Other(Error::expected_directory(&parent)));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return done,
            }
        }
        if !name.is_always_directory()
            && matches!(self.stat(&name.key).await, Ok(Some(found)) if found.is_directory)
        {
            return Err(HttpError::Other(Error::expected_file(name)));
        }
        done
    }

    /// Returns whether a file is where this directory should be, or above it.
    async fn is_below_file(&self, directory: &str) -> bool {
        for (slash, _) in directory.match_indices('/') {
            match self.stat(&directory[..slash]).await {
                Ok(Some(found)) if found.is_directory => {}
                found => return matches!(found, Ok(Some(_))),
            }
        }
        false
    }

    async fn stat(&self, key: &str) -> Result<Option<Entry>, HttpError> {
        match counted("Stat", self.service.stat(path(key))).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found,
        }
    }
}

/// Returns whether the server refused, rather than that nothing arrived.
fn is_refused(error: &HttpError) -> bool {
    match error {
        // nginx responds with 500.
        HttpError::Status(_) => true,
        HttpError::Request(error) => !error.is_ambiguous(),
        _ => false,
    }
}

/// Returns the path of a key, which a service has without a slash: a server may refuse a file with one, and shows a
/// directory by either name.
fn path(key: &str) -> &str {
    key.strip_suffix('/').unwrap_or(key)
}

//! A file server in memory. It deletes, copies and renames a directory with all that is in it, as WebDAV does.

use crate::contents::{Contents, missing};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tf_fs_object_store::{
    BoxUpload, Client, Connect, Connection, Content, CopyOptions, Directories, ErrorKind, GetHead,
    GetOptions, ListOptions, Lookup, Name, Object, ObjectMeta, ObjectStore, Page, Process,
    Publication, PutOptions, RenameOptions, RequestError, Settings, StoreError, StoredObject,
    StreamBody, Upload, WriteLimits,
};
use tf_fs_plugin::prelude::*;

#[derive(Clone, Debug)]
pub(crate) struct Share {
    settings: Settings,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Server(Arc<Mutex<Contents>>);

#[derive(Clone)]
pub(crate) struct Plugin(pub(crate) Arc<Connection<Server>>);

pub(crate) fn name(key: &str) -> Name {
    Name::new("mem", "b", key)
}

/// Creates a server with these files, each of which holds its path, and directories.
pub(crate) fn server(paths: &[&str]) -> Plugin {
    let process = Process::current("mem", 2, 64 << 20).unwrap();
    let contents = Contents { page: 3, ..Contents::default() };
    let plugin = Plugin(Arc::new(Connection::new(process, Server(Arc::new(Mutex::new(contents))))));
    plugin.contents().fill(paths);
    plugin
}

impl Plugin {
    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.client.0.lock().unwrap()
    }

    /// Returns what a file has.
    pub(crate) fn bytes(&self, path: &str) -> Option<Bytes> {
        self.contents().files.get(path).map(|(bytes, _)| bytes.clone())
    }

    /// Returns all paths, directories with a `/` at the end.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = self.contents().below("");
        paths.sort();
        paths
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.contents().log)
    }

    pub(crate) fn children(&self, key: &str) -> Result<Vec<String>> {
        let entries = self.0.get_children(&name(key))?;
        Ok(entries.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }
}

impl Client for Server {
    type Store = Share;

    const SCHEMES: &'static [&'static str] = &["mem"];

    async fn open(&self, _: &Arc<str>) -> Result<Share> {
        let ttl = self.0.lock().unwrap().ttl;
        let settings = Settings::default().with(|settings| {
            settings.max_attempts = 3;
            settings.retry_backoff = Duration::from_millis(1);
            settings.listing_ttl = ttl;
            settings.write_part = 1 << 20;
            settings.read_part = 1 << 20;
        });
        Ok(Share { settings, contents: Arc::clone(&self.0) })
    }
}

impl Share {
    /// Logs a request.
    fn begin(
        &self,
        kind: &'static str,
        path: &str,
    ) -> Result<MutexGuard<'_, Contents>, RequestError> {
        let mut contents = self.contents.lock().unwrap();
        contents.requests += 1;
        match contents.dies_at {
            Some((at, half)) if contents.requests > at || contents.requests == at && !half => {
                return Err(dead());
            }
            _ => contents.log.push(format!("{kind} {path}")),
        }
        if contents.cannot.contains(&kind) {
            return Err(RequestError::unsupported(kind));
        }
        if contents.changes.front().is_some_and(|(of, _)| *of == kind)
            && let Some((_, bytes)) = contents.changes.pop_front()
        {
            match bytes {
                Some(bytes) => contents.write(path, bytes),
                None => _ = contents.files.remove(path),
            }
        }
        if let Some((_, failure)) = contents.fails.take_if(|(of, _)| *of == kind) {
            return Err(RequestError::new(failure, "injected"));
        }
        Ok(contents)
    }

    fn can(&self, kind: &str) -> bool {
        !self.contents.lock().unwrap().cannot.contains(&kind)
    }

    /// Loses the response of a request that was done, if it is to be lost.
    fn end(&self, kind: &'static str) -> Result<(), RequestError> {
        let mut contents = self.contents.lock().unwrap();
        match contents.loses.take_if(|lost| *lost == kind) {
            Some(_) => Err(RequestError::new(ErrorKind::Transient, "no response")),
            None if contents.is_dying() => Err(dead()),
            None => Ok(()),
        }
    }
}

fn dead() -> RequestError {
    RequestError::new(ErrorKind::Transient, "the writer is dead")
}

impl ObjectStore for Share {
    type Error = RequestError;
    type Body = StreamBody<BoxStream<'static, Result<Bytes, RequestError>>>;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn directories(&self) -> Directories {
        Directories::Real
    }

    fn supports_lookup(&self) -> bool {
        self.can("look")
    }

    fn supports_rename(&self) -> bool {
        self.can("rename")
    }

    async fn get(
        &self,
        options: GetOptions<'_>,
    ) -> Result<(Option<GetHead>, Self::Body), RequestError> {
        let contents = self.begin("get", options.key)?;
        let meta = contents.meta(options.key).ok_or_else(missing)?;
        if options.if_match.is_some_and(|wanted| meta.etag.as_deref() != Some(wanted)) {
            return Err(RequestError::changed());
        }
        let bytes = &contents.files[options.key].0;
        let size = bytes.len() as u64;
        let is_headless = contents.is_headless;
        if is_headless && options.range.end > size && options.known.is_some() {
            return Err(RequestError::new(ErrorKind::Permanent, "the range is past the end"));
        }
        let (start, end) = (options.range.start.min(size), options.range.end.min(size));
        let chunk = bytes.slice(start as usize..end as usize);
        let body = StreamBody::boxed(stream::iter([Ok(chunk)]));
        let head = GetHead::new(size, end).with_etag(meta.etag).with_modified(meta.modified);
        Ok(((!is_headless).then_some(head), body))
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, RequestError> {
        self.begin("head", &name.key)?.meta(&name.key).ok_or_else(missing)
    }

    /// Lists a directory, whatever the names in it begin with; the token is a number of names.
    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, RequestError> {
        let directory = options.directory();
        let contents = self.begin("list", directory)?;
        assert!(options.delimiter);
        if contents.is_hostile {
            let mut page = Page::default();
            let deeper = format!("{directory}{}/", "x".repeat(100));
            page.common_prefixes = vec![directory.to_owned(), deeper];
            return Ok(page);
        }
        if !directory.is_empty() && !contents.directories.contains(directory) {
            return Err(missing());
        }
        let mut page = Page::default();
        let paths = contents.below(directory);
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for path in &paths {
            let rest = &path[directory.len()..];
            let end = rest.find('/').map_or(rest.len(), |slash| slash + 1);
            // The directory itself, too.
            names.insert(&path[..directory.len() + end]);
        }
        let names: Vec<&str> = names.into_iter().collect();
        let passed = token.map_or(0, |token| token.parse().unwrap());
        let end = names.len().min(passed + contents.page);
        for &name in &names[passed..end] {
            match contents.meta(name) {
                Some(meta) => page.objects.push(Object::new(name, meta)),
                None => page.common_prefixes.push(name.to_owned()),
            }
        }
        page.next = (end < names.len()).then(|| end.to_string());
        Ok(page)
    }

    async fn lookup(&self, name: &Name) -> Result<Lookup, RequestError> {
        let contents = self.begin("look", &name.key)?;
        Ok(match contents.meta(&name.key) {
            Some(meta) => Lookup::File(meta),
            None if contents.directories.contains(&name.prefix()) || contents.is_hostile => {
                Lookup::Directory
            }
            None => Lookup::Missing,
        })
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), RequestError> {
        {
            let mut contents = self.begin("mkdir", &marker.key)?;
            if !contents.has_parent(&marker.key) {
                return Err(missing());
            }
            if !contents.directories.insert(marker.key.clone()) {
                return Err(RequestError::new(ErrorKind::Precondition, "it is there"));
            }
        }
        self.end("mkdir")
    }

    async fn delete(&self, name: &Name) -> Result<(), RequestError> {
        {
            let mut contents = self.begin("delete", &name.key)?;
            if contents.undeletable.as_ref() == Some(&name.key) {
                return Err(RequestError::new(ErrorKind::Permanent, "it is locked"));
            }
            if name.key.ends_with('/') {
                let below = contents.below(&name.key);
                if below.len() > 1 {
                    contents.took_along.push(format!("delete {}", name.key));
                }
                for path in below {
                    contents.files.remove(&path);
                    contents.directories.remove(&path);
                }
            } else {
                contents.files.remove(&name.key);
            }
        }
        self.end("delete")
    }

    async fn copy(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let (src, dst) = (&options.src.key, &options.dst.key);
        let meta = {
            let mut contents = from.begin("copy", src)?;
            contents.transfer(src, dst, false)?;
            contents.meta(dst)
        };
        from.end("copy")?;
        Ok(meta)
    }

    async fn rename(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: RenameOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let (src, dst) = (&options.src.key, &options.dst.key);
        let meta = {
            let mut contents = from.begin("rename", &format!("{src} {dst}"))?;
            assert_eq!(src.ends_with('/'), dst.ends_with('/'));
            let is_there = contents.files.contains_key(dst)
                || contents.directories.contains(&options.dst.prefix());
            if is_there && !options.replace {
                return Err(RequestError::new(ErrorKind::Precondition, "it is there"));
            }
            contents.transfer(src.trim_end_matches('/'), dst.trim_end_matches('/'), true)?;
            contents.meta(dst).filter(|_| !contents.is_silent)
        };
        from.end("rename")?;
        Ok(meta)
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        let contents = self.contents.lock().unwrap();
        let limits = match contents.publication() {
            // A rename that does not replace is the condition.
            Publication::Rename => WriteLimits::new(Publication::Rename),
            other => WriteLimits::new(other).without_conditions(),
        };
        Some(if contents.has_upload { limits.with_upload() } else { limits })
    }

    async fn put(
        &self,
        to: PutOptions<'_>,
        content: &Content,
    ) -> Result<StoredObject, RequestError> {
        let mut contents = self.begin("put", &to.name.key)?;
        if !contents.has_parent(&to.name.key) {
            return Err(missing());
        }
        let bytes = Bytes::from(content.chunks().concat());
        if contents.is_dying() {
            if contents.publication() != Publication::Atomic {
                contents.write(&to.name.key, bytes.slice(..bytes.len() / 2));
            }
            return Err(dead());
        }
        contents.write(&to.name.key, bytes);
        let etag = contents.meta(&to.name.key).and_then(|meta| meta.etag);
        drop(contents);
        self.end("put")?;
        Ok(StoredObject::new(content.len()).with_etag(etag))
    }

    async fn start_upload(
        &self,
        to: PutOptions<'_>,
    ) -> Result<BoxUpload<RequestError>, RequestError> {
        let path = to.name.key.clone();
        {
            let mut contents = self.begin("start", &path)?;
            if !contents.has_parent(&path) {
                return Err(missing());
            }
            if contents.publication() != Publication::Atomic {
                contents.write(&path, Bytes::new());
            }
        }
        self.end("start")?;
        Ok(BoxUpload::new(Sending { share: self.clone(), path, bytes: Vec::new() }))
    }
}

/// An upload to a path, which grows there unless the server makes files visible at once.
struct Sending {
    share: Share,
    path: String,
    bytes: Vec<u8>,
}

impl Sending {
    fn grow(&mut self, contents: &mut Contents, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if contents.publication() != Publication::Atomic {
            contents.write(&self.path, self.bytes.clone().into());
        }
    }
}

impl Upload for Sending {
    type Error = RequestError;

    async fn append(&mut self, content: &Content) -> Result<(), RequestError> {
        let share = self.share.clone();
        let bytes = content.chunks().concat();
        {
            let mut contents = share.begin("append", &bytes.len().to_string())?;
            let half = if contents.is_dying() { bytes.len() / 2 } else { bytes.len() };
            self.grow(&mut contents, &bytes[..half]);
        }
        share.end("append")
    }

    async fn commit(&mut self) -> Result<StoredObject, RequestError> {
        let stored = {
            let mut contents = self.share.begin("commit", &self.path)?;
            contents.write(&self.path, self.bytes.clone().into());
            let etag = contents.meta(&self.path).and_then(|meta| meta.etag);
            StoredObject::new(self.bytes.len() as u64).with_etag(etag)
        };
        self.share.end("commit")?;
        Ok(stored)
    }

    async fn abort(&mut self) -> Result<(), RequestError> {
        let mut contents = self.share.begin("abort", &self.path)?;
        if contents.publication() == Publication::Rename {
            contents.files.remove(&self.path);
        }
        Ok(())
    }
}

impl Connect for Plugin {
    type Client = Server;

    fn connection(&self) -> Result<Arc<Connection<Server>>> {
        Ok(Arc::clone(&self.0))
    }
}

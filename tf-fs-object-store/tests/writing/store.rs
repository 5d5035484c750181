//! A store in memory that can be written to in every way, and faults.

use bytes::{Buf, BufMut, Bytes};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tf_fs_object_store::{
    Attributes, Body, Client, Connect, Connection, Content, CopyLimits, CopyOptions, ErrorKind,
    GetHead, GetOptions, ListOptions, Multipart, Name, Object as ListedObject, ObjectMeta,
    ObjectStore, Page, Part, PartLimits, Payload, Process, Publication, PutOptions, Range,
    RenameOptions, RequestError, Settings, StoreError, StoredObject, WriteLimits, Writer,
    same_etag,
};
use tf_fs_plugin::prelude::*;

#[path = "contents.rs"]
mod contents;

pub(crate) use contents::*;

#[derive(Debug)]
pub(crate) struct Bucket {
    settings: Settings,
    limits: WriteLimits,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    settings: Settings,
    limits: WriteLimits,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Clone)]
pub(crate) struct Plugin(pub Arc<Connection<Memory>>);

pub(crate) struct Rest(Bytes);

pub(crate) const MIB: u64 = 1 << 20;

/// Returns limits for parts of a MiB and more, and copies of objects of as much.
pub(crate) fn parts() -> PartLimits {
    let copies = Some(CopyLimits { smallest: MIB, largest: 4 * MIB, usual: 3 * MIB });
    PartLimits { smallest: MIB, largest: 4 * MIB, most: 1000, copies }
}

pub(crate) fn name(key: &str) -> Name {
    Name::new("mem", "b", key)
}

/// Returns the limits of a store that makes an object visible in one step.
pub(crate) fn atomic() -> WriteLimits {
    WriteLimits::new(Publication::Atomic)
}

/// Creates an empty store with these limits, in parts of a MiB.
pub(crate) fn store(limits: WriteLimits) -> Plugin {
    with_settings(limits, Settings::default())
}

pub(crate) fn with_settings(limits: WriteLimits, settings: Settings) -> Plugin {
    let process = Process::current("mem", 2, 256 << 20).unwrap();
    let mut settings = settings;
    settings.max_attempts = 3;
    settings.retry_backoff = Duration::from_millis(1);
    settings.write_part = MIB as usize;
    settings.write_concurrency = 4;
    let contents = Contents { has_checksums: true, ..Contents::default() };
    let memory = Memory { settings, limits, contents: Arc::new(Mutex::new(contents)) };
    Plugin(Arc::new(Connection::new(process, memory)))
}

impl Plugin {
    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.client.contents.lock().unwrap()
    }

    pub(crate) fn create(&self, key: &str) -> Result<Writer<Self>> {
        Writer::create(self, name(key))
    }

    pub(crate) fn append_to(&self, key: &str) -> Result<Writer<Self>> {
        Writer::append_to(self, name(key))
    }

    /// Writes an object as somebody else.
    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.contents().put(key, bytes.into(), Attributes::default());
    }

    /// Returns what is in the store.
    pub(crate) fn objects(&self) -> BTreeMap<String, Bytes> {
        let contents = self.contents();
        contents.objects.iter().map(|(key, object)| (key.clone(), object.bytes.clone())).collect()
    }

    pub(crate) fn bytes(&self, key: &str) -> Option<Bytes> {
        self.contents().objects.get(key).map(|object| object.bytes.clone())
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.contents().log)
    }

    pub(crate) fn fails(&self, kind: &'static str, fault: Fault) {
        self.contents().faults.push_back((kind, fault));
    }
}

impl Memory {
    /// Returns whether the store checks conditions.
    pub(crate) fn checks(&self) -> bool {
        self.limits.checks_create && self.limits.checks_update
    }
}

impl Client for Memory {
    type Store = Bucket;

    const SCHEMES: &'static [&'static str] = &["mem"];

    async fn open(&self, _: &Arc<str>) -> Result<Bucket> {
        let Self { settings, limits, contents } = self.clone();
        Ok(Bucket { settings, limits, contents })
    }
}

impl Bucket {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap()
    }
}

fn joined(content: &Content) -> Bytes {
    content.chunks().concat().into()
}

impl ObjectStore for Bucket {
    type Error = RequestError;
    type Body = Rest;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn has_stable_page_tokens(&self) -> bool {
        true
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Rest), RequestError> {
        let mut contents = self.contents();
        let GetOptions { key, range, if_match, .. } = options;
        contents.begin("get", key, format!("get {key} from {}", range.start))?;
        let object = contents.objects.get(key).cloned();
        let object =
            object.ok_or_else(|| RequestError::new(ErrorKind::NotFound, "no such object"))?;
        let StoredObject { etag, modified, .. } = contents.shown(&object);
        if if_match.is_some() && if_match != etag.as_deref() {
            return Err(RequestError::changed());
        }
        let size = object.bytes.len() as u64;
        let (start, end) = (range.start.min(size), range.end.min(size));
        let body = Rest(object.bytes.slice(start as usize..end as usize));
        let head = GetHead::new(size, end).with_etag(etag).with_modified(modified);
        Ok((Some(head), body))
    }

    /// Pages have four names; a token is the last of them.
    async fn list(&self, query: &ListOptions, token: Option<&str>) -> Result<Page, RequestError> {
        let mut contents = self.contents();
        contents.begin("list", &query.prefix, format!("list {}", query.prefix))?;
        let mut page = Page::default();
        let mut last = token.unwrap_or_default();
        for (key, object) in &contents.objects {
            let Some(rest) = key.strip_prefix(&query.prefix) else { continue };
            let slash = rest.find('/').filter(|_| query.delimiter);
            let shown = slash.map_or(&**key, |slash| &key[..=query.prefix.len() + slash]);
            if shown <= last {
                continue;
            }
            if page.objects.len() + page.common_prefixes.len() == 4 {
                page.next = Some(last.to_owned());
                break;
            }
            last = shown;
            match slash {
                Some(_) => page.common_prefixes.push(shown.to_owned()),
                None => page.objects.push(ListedObject::new(shown, contents.meta(object))),
            }
        }
        Ok(page)
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), RequestError> {
        let mut contents = self.contents();
        contents.begin("marker", &marker.key, format!("marker {}", marker.key))?;
        contents.put(&marker.key, Bytes::new(), Attributes::default());
        Ok(())
    }

    async fn delete(&self, name: &Name) -> Result<(), RequestError> {
        let mut contents = self.contents();
        contents.begin("delete", &name.key, format!("delete {}", name.key))?;
        contents.objects.remove(&name.key);
        Ok(())
    }

    async fn copy(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let mut contents = from.contents();
        let key = &options.src.key;
        contents.begin("copy", key, format!("copy {key}"))?;
        let object = contents.objects.get(key).cloned();
        let object =
            object.ok_or_else(|| RequestError::new(ErrorKind::NotFound, "no such object"))?;
        let copied = contents.meta(&object);
        if options.known.is_some_and(|known| known.etag != copied.etag) {
            return Err(RequestError::changed());
        }
        // Of the same version, by which a copy is known.
        contents.objects.insert(options.dst.key.clone(), object);
        Ok(Some(copied))
    }

    fn supports_rename(&self) -> bool {
        self.limits.publication == Publication::Rename
    }

    async fn rename(
        from: &Arc<Self>,
        _: &Arc<Self>,
        options: RenameOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let mut contents = from.contents();
        let (src, dst) = (&options.src.key, &options.dst.key);
        contents.begin("rename", dst, format!("rename {dst}"))?;
        if !options.replace && contents.objects.contains_key(dst) {
            return Err(RequestError::new(ErrorKind::Precondition, "there is one"));
        }
        let object = contents.objects.remove(src);
        let object =
            object.ok_or_else(|| RequestError::new(ErrorKind::NotFound, "no such object"))?;
        let meta = contents.meta(&object);
        contents.objects.insert(dst.clone(), object);
        Ok(Some(meta))
    }

    fn is_copy(source: &ObjectMeta, destination: &ObjectMeta) -> bool {
        source.etag == destination.etag
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        (self.limits.put > 0).then_some(self.limits)
    }

    async fn put(
        &self,
        to: PutOptions<'_>,
        content: &Content,
    ) -> Result<StoredObject, RequestError> {
        let mut contents = self.contents();
        let key = &to.name.key;
        let fault = contents.begin("put", key, format!("put {key} of {}", content.len()))?;
        contents.make(&self.limits, to, joined(content), fault)
    }

    async fn stored(&self, name: &Name) -> Result<(StoredObject, Attributes), RequestError> {
        let mut contents = self.contents();
        contents.begin("head", &name.key, format!("head {}", name.key))?;
        match contents.objects.get(&name.key) {
            Some(object) => Ok((contents.shown(object), object.attributes.clone())),
            None => Err(RequestError::new(ErrorKind::NotFound, "no such object")),
        }
    }

    async fn is_ours(
        &self,
        _: &Name,
        sent: Payload<'_>,
        found: &StoredObject,
    ) -> Result<Option<bool>, RequestError> {
        let Some(theirs) = &found.checksum else { return Ok(None) };
        let own = match sent {
            Payload::Whole(content) => sum(&joined(content)),
            Payload::Parts { parts, .. } => {
                let sums = parts.iter().map(|part| part.checksum.as_ref().unwrap());
                sums.map(|sum| sum.parse::<u64>().unwrap()).sum::<u64>().to_string()
            }
        };
        Ok(Some(own == *theirs))
    }

    async fn create_multipart(&self, to: PutOptions<'_>) -> Result<String, RequestError> {
        let mut contents = self.contents();
        let key = &to.name.key;
        contents.begin("create", key, format!("create {key}"))?;
        let id = format!("upload-{}", contents.log.len());
        contents.uploads.insert(id.clone(), BTreeMap::new());
        Ok(id)
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, RequestError> {
        // Parts are on their way for a moment, and do not arrive in order.
        tokio::time::sleep(Duration::from_millis(u64::from(number * 7 % 5))).await;
        let mut contents = self.contents();
        let line = format!("part {number} of {}", content.len());
        contents.begin("part", &upload.name.key, line)?;
        let bytes = joined(content);
        let part = Part::new(number, number.to_string(), content.len());
        let part = part.with_checksum(Some(sum(&bytes)));
        let upload = contents.uploads.get_mut(upload.id).expect("an upload");
        upload.insert(number, bytes);
        Ok(part)
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, RequestError> {
        let mut contents = self.contents();
        let key = &upload.name.key;
        contents.begin("copy", key, format!("copy {}-{}", range.start, range.end))?;
        let object = contents.objects.get(key).cloned();
        let object =
            object.ok_or_else(|| RequestError::new(ErrorKind::NotFound, "no such object"))?;
        // Parts are copied while the test goes on, before or after the ETags turn weak.
        let (found, wanted) = (contents.shown(&object).etag, &source.etag);
        let is_same = |(one, other): (String, &String)| same_etag(&one, other);
        if !found.zip(wanted.as_ref()).is_none_or(is_same) {
            return Err(RequestError::new(ErrorKind::Precondition, "precondition"));
        }
        let bytes = object.bytes.slice(range.start as usize..range.end as usize);
        let part = Part::new(number, number.to_string(), range.len());
        let part = part.with_checksum(Some(sum(&bytes)));
        contents.uploads.get_mut(upload.id).expect("an upload").insert(number, bytes);
        Ok(part)
    }

    async fn complete_multipart(
        &self,
        to: PutOptions<'_>,
        id: &str,
        parts: &[Part],
    ) -> Result<StoredObject, RequestError> {
        let mut contents = self.contents();
        let key = &to.name.key;
        let line = format!("complete {key} of {}", parts.len());
        let fault = contents.begin("complete", key, line)?;
        let Some(upload) = contents.uploads.get(id) else {
            return Err(RequestError::new(ErrorKind::NotFound, "no such upload"));
        };
        let bytes: Vec<u8> = parts.iter().flat_map(|part| upload[&part.number].clone()).collect();
        let made = contents.make(&self.limits, to, bytes.into(), fault);
        if !made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Precondition) {
            contents.uploads.remove(id);
        }
        made
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), RequestError> {
        let mut contents = self.contents();
        contents.begin("abort", &upload.name.key, "abort".into())?;
        match contents.uploads.remove(upload.id) {
            Some(_) => Ok(()),
            None => Err(RequestError::new(ErrorKind::NotFound, "no such upload")),
        }
    }
}

impl Body for Rest {
    type Error = RequestError;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, RequestError> {
        let n = self.0.len().min(to.remaining_mut()).min(100_000);
        to.put_slice(&self.0[..n]);
        self.0.advance(n);
        Ok(n)
    }
}

impl Connect for Plugin {
    type Client = Memory;

    fn connection(&self) -> Result<Arc<Connection<Memory>>> {
        Ok(Arc::clone(&self.0))
    }
}

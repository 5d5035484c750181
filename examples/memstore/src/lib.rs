//! An object store in memory for TensorFlow: what is under `memstore://` lives as long as the process.
#![forbid(unsafe_code)]

use bytes::{Buf, BufMut, Bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tf_fs_object_store::{
    Body, Client, Content, CopyLimits, CopyOptions, ErrorKind, GetHead, GetOptions, ListOptions,
    Multipart, Name, Object, ObjectFilesystem, ObjectMeta, ObjectStore, Page, Part, PartLimits,
    Publication, PutMode, PutOptions, Range, RequestError, Settings, StorePlugin, StoredObject,
    WriteLimits,
};
use tf_fs_plugin::{
    prelude::*,
    sync::{Mutex, MutexGuard},
};

/// Names in a page of a listing.
const PAGE: usize = 1000;

/// The account: its buckets, which are there as soon as they are named.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<Mutex<BTreeMap<Arc<str>, Bucket>>>);

/// Objects by their keys.
type Objects = BTreeMap<String, Version>;

/// The parts of uploads that are under way, by the upload's id and the part's number.
type Uploads = BTreeMap<String, BTreeMap<u32, Bytes>>;

/// A bucket, whose name is known to the account only.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    objects: Arc<Mutex<Objects>>,
    uploads: Arc<Mutex<Uploads>>,
    settings: Settings,
}

/// One version of an object. No other one has its number.
#[derive(Clone, Debug)]
struct Version {
    bytes: Bytes,
    number: u64,
}

impl Version {
    fn new(bytes: Bytes) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { bytes, number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn etag(&self) -> String {
        format!("\"{}\"", self.number)
    }

    fn meta(&self) -> ObjectMeta {
        ObjectMeta::new(self.bytes.len() as u64).with_etag(self.etag())
    }
}

impl Client for Account {
    type Store = Bucket;
    const SCHEMES: &'static [&'static str] = &["memstore"];

    async fn open(&self, bucket: &Arc<str>) -> Result<Bucket> {
        Ok(self.0.lock()?.entry(Arc::clone(bucket)).or_default().clone())
    }
}

impl ObjectStore for Bucket {
    type Error = RequestError;
    type Body = Rest;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Rest), RequestError> {
        let version = self.version(options.key)?;
        let etag = version.etag();
        if options.if_match.is_some_and(|wanted| wanted != etag) {
            return Err(another());
        }
        let size = version.bytes.len() as u64;
        let (start, end) = (options.range.start.min(size), options.range.end.min(size));
        let rest = Rest(version.bytes.slice(start as usize..end as usize));
        Ok((Some(GetHead::new(size, end).with_etag(etag)), rest))
    }

    async fn list(&self, options: &ListOptions, token: Option<&str>) -> Result<Page, RequestError> {
        let objects = self.objects()?;
        let mut page = Page::default();
        let first = token.unwrap_or(&options.prefix).to_owned();
        for (key, version) in objects.range(first..) {
            let Some(rest) = key.strip_prefix(&options.prefix) else { break };
            let slash = rest.find('/').filter(|_| options.delimiter);
            let common = slash.map(|slash| &key[..=options.prefix.len() + slash]);
            if common.is_some_and(|common| {
                page.common_prefixes.last().is_some_and(|last| last == common)
            }) {
                continue;
            }
            if page.objects.len() + page.common_prefixes.len() == PAGE {
                page.next = Some(key.clone());
                break;
            }
            match common {
                Some(common) => page.common_prefixes.push(common.to_owned()),
                None => page.objects.push(Object::new(key, version.meta())),
            }
        }
        Ok(page)
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), RequestError> {
        self.objects()?.insert(marker.key.clone(), Version::new(Bytes::new()));
        Ok(())
    }

    async fn delete(&self, name: &Name) -> Result<(), RequestError> {
        self.objects()?.remove(&name.key);
        Ok(())
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let copy = Version::new(from.version(&options.src.key)?.bytes);
        let meta = copy.meta();
        to.objects()?.insert(options.dst.key.clone(), copy);
        Ok(Some(meta))
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        let copies = Some(CopyLimits { smallest: 1 << 20, largest: u64::MAX, usual: u64::MAX });
        let parts = PartLimits { smallest: 1, largest: u64::MAX, most: 10_000, copies };
        Some(WriteLimits::new(Publication::Atomic).with_parts(parts))
    }

    async fn put(
        &self,
        to: PutOptions<'_>,
        content: &Content,
    ) -> Result<StoredObject, RequestError> {
        self.make(to, content.chunks().concat().into())
    }

    async fn create_multipart(&self, _: PutOptions<'_>) -> Result<String, RequestError> {
        let id = Version::new(Bytes::new()).etag();
        self.uploads()?.insert(id.clone(), BTreeMap::new());
        Ok(id)
    }

    async fn put_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        content: &Content,
    ) -> Result<Part, RequestError> {
        self.add(upload, number, content.chunks().concat().into())
    }

    async fn copy_part(
        &self,
        upload: Multipart<'_>,
        number: u32,
        source: &StoredObject,
        range: Range,
    ) -> Result<Part, RequestError> {
        let version = self.version(&upload.name.key)?;
        if source.etag.as_ref() != Some(&version.etag()) {
            return Err(another());
        }
        let bytes = version.bytes.slice(range.start as usize..range.end as usize);
        self.add(upload, number, bytes)
    }

    async fn complete_multipart(
        &self,
        to: PutOptions<'_>,
        id: &str,
        _: &[Part],
    ) -> Result<StoredObject, RequestError> {
        let parts = self.uploads()?.remove(id).ok_or_else(no_upload)?;
        self.make(to, parts.into_values().collect::<Vec<_>>().concat().into())
    }

    async fn abort_multipart(&self, upload: Multipart<'_>) -> Result<(), RequestError> {
        self.uploads()?.remove(upload.id).map(drop).ok_or_else(no_upload)
    }
}

impl Bucket {
    fn objects(&self) -> Result<MutexGuard<'_, Objects>> {
        Ok(self.objects.lock()?)
    }

    fn uploads(&self) -> Result<MutexGuard<'_, Uploads>> {
        Ok(self.uploads.lock()?)
    }

    fn version(&self, key: &str) -> Result<Version, RequestError> {
        let version = self.objects()?.get(key).cloned();
        version.ok_or_else(|| RequestError::new(ErrorKind::NotFound, "no such object"))
    }

    /// Makes an object in one step, unless somebody else's is there.
    fn make(&self, to: PutOptions<'_>, bytes: Bytes) -> Result<StoredObject, RequestError> {
        let mut objects = self.objects()?;
        let there = objects.get(&to.name.key).map(Version::etag);
        let holds = match to.mode {
            PutMode::Overwrite => true,
            PutMode::Create => there.is_none(),
            PutMode::Update(stored) => there == stored.etag,
        };
        if !holds {
            return Err(another());
        }
        let new = Version::new(bytes);
        let stored = StoredObject::new(new.bytes.len() as u64).with_etag(new.etag());
        objects.insert(to.name.key.clone(), new);
        Ok(stored)
    }

    fn add(&self, upload: Multipart<'_>, number: u32, bytes: Bytes) -> Result<Part, RequestError> {
        let part = Part::new(number, number.to_string(), bytes.len() as u64);
        self.uploads()?.get_mut(upload.id).ok_or_else(no_upload)?.insert(number, bytes);
        Ok(part)
    }
}

fn another() -> RequestError {
    RequestError::new(ErrorKind::Precondition, "another version is there")
}

fn no_upload() -> RequestError {
    RequestError::new(ErrorKind::NotFound, "no such upload")
}

/// The rest of a response.
pub struct Rest(Bytes);

impl Body for Rest {
    type Error = RequestError;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, RequestError> {
        let n = self.0.len().min(to.remaining_mut());
        to.put_slice(&self.0[..n]);
        self.0.advance(n);
        Ok(n)
    }
}

/// `memstore://` in TensorFlow.
#[derive(Debug, Default)]
pub struct MemStore(Account);

impl StorePlugin for MemStore {
    type Client = Account;

    fn connect(&self, _: Option<&Account>) -> Result<Account> {
        Ok(self.0.clone())
    }
}

filesystem_plugins! { "memstore" => ObjectFilesystem<MemStore> }

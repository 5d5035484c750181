//! A client of the crate `object_store` as a bucket.

use crate::{
    BoxUpload, Content, CopyOptions, ErrorKind, GetHead, GetOptions, ListOptions, Name, Object,
    ObjectMeta, ObjectStore, Page, Publication, PutMode, PutOptions, RequestError, Settings,
    StoreError as _, StoredObject, StreamBody, Upload, WriteLimits,
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{Error as ForeignError, ObjectStoreExt as _, PutPayload};
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_plugin::prelude::*;

/// A bucket of any store that the crate [`object_store`] has a client for: [`Client::open`](crate::Client::open) makes one.
///
/// ```
/// use object_store::memory::InMemory;
/// use std::sync::Arc;
/// use tf_fs_object_store::{AdaptedStore, Settings};
///
/// let store = AdaptedStore::new(Arc::new(InMemory::new()), Settings::default());
/// ```
///
/// Paths of that crate have no empty components, no `.`, no `..` and no control characters: names with them are
/// `INVALID_ARGUMENT`. A directory that is created has
/// an empty object `.tf-directory` in it. The clients retry by themselves.
///
/// The store has to check `PutMode::Create`. If it does not check `PutMode::Update`, as that for local files, use
/// [`without_update_check`](Self::without_update_check).
#[derive(Clone, Debug)]
pub struct AdaptedStore {
    store: Arc<dyn object_store::ObjectStore>,
    settings: Settings,
    checks_update: bool,
}

impl AdaptedStore {
    /// Creates a bucket of this client.
    pub fn new(store: Arc<dyn object_store::ObjectStore>, settings: Settings) -> Self {
        Self { store, settings, checks_update: true }
    }

    /// Declares that the store does not check `PutMode::Update`.
    #[must_use]
    pub fn without_update_check(self) -> Self {
        Self { checks_update: false, ..self }
    }

    async fn find(&self, key: &str) -> Result<ObjectMeta, RequestError> {
        let found = self.store.head(&path(key)?).await.map_err(failure)?;
        Ok(meta(&found))
    }
}

/// What marks a directory, in it: paths of the crate do not end in `/`.
const MARKER: &str = ".tf-directory";

/// Returns a key as the crate has it.
fn path(key: &str) -> Result<Path, RequestError> {
    let marker = if key.ends_with('/') { MARKER } else { "" };
    Path::parse(format!("{key}{marker}")).map_err(|error| {
        RequestError::from_foreign(ErrorKind::Permanent, error).with_code(Code::InvalidArgument)
    })
}

/// Returns the key of a path.
fn key(path: &Path) -> String {
    let path = path.as_ref();
    match path.strip_suffix(MARKER) {
        Some(directory) if directory.ends_with('/') => directory.to_owned(),
        _ => path.to_owned(),
    }
}

fn meta(found: &object_store::ObjectMeta) -> ObjectMeta {
    let modified = SystemTime::from(found.last_modified);
    ObjectMeta::new(found.size).with_etag(found.e_tag.clone()).with_modified(modified)
}

fn failure(error: ForeignError) -> RequestError {
    let kind = match &error {
        ForeignError::NotFound { .. } => ErrorKind::NotFound,
        ForeignError::AlreadyExists { .. }
        | ForeignError::Precondition { .. }
        | ForeignError::NotModified { .. } => ErrorKind::Precondition,
        ForeignError::PermissionDenied { .. } | ForeignError::Unauthenticated { .. } => {
            ErrorKind::Denied
        }
        ForeignError::NotSupported { .. } | ForeignError::NotImplemented { .. } => {
            ErrorKind::Unsupported
        }
        _ => ErrorKind::Permanent,
    };
    RequestError::from_foreign(kind, error)
}

impl ObjectStore for AdaptedStore {
    type Error = RequestError;
    type Body = StreamBody<BoxStream<'static, Result<Bytes, RequestError>>>;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn has_timeouts(&self) -> bool {
        true
    }

    fn endpoint(&self) -> String {
        self.store.to_string()
    }

    // What it shows need not tell two stores apart.
    fn cache_scope(&self) -> Option<String> {
        None
    }

    async fn get(
        &self,
        options: GetOptions<'_>,
    ) -> Result<(Option<GetHead>, Self::Body), RequestError> {
        let (path, range) = (path(options.key)?, options.range);
        let request = object_store::GetOptions {
            if_match: options.if_match.map(str::to_owned),
            range: Some(object_store::GetRange::Bounded(range.start..range.end)),
            ..object_store::GetOptions::default()
        };
        let head = |meta: ObjectMeta, end| {
            let head = GetHead::new(meta.size.unwrap_or_default(), end);
            Some(head.with_etag(meta.etag).with_modified(meta.modified))
        };
        match self.store.get_opts(&path, request).await {
            Ok(found) => {
                let head = head(meta(&found.meta), found.range.end);
                Ok((head, StreamBody::boxed(found.into_stream().map_err(failure))))
            }
            Err(error) => {
                let error = failure(error);
                // It refuses a range past the end, such as the first byte of an empty object.
                if error.kind() != ErrorKind::Permanent {
                    return Err(error);
                }
                match self.find(options.key).await {
                    Ok(meta) if meta.size.is_some_and(|size| size <= range.start) => {
                        let end = meta.size.unwrap_or_default();
                        Ok((head(meta, end), StreamBody::boxed(futures_util::stream::empty())))
                    }
                    _ => Err(error),
                }
            }
        }
    }

    async fn list(&self, options: &ListOptions, _: Option<&str>) -> Result<Page, RequestError> {
        let directory = match options.directory().trim_end_matches('/') {
            "" => None,
            directory => Some(path(directory)?),
        };
        let mut page = Page::default();
        let object =
            |found: &object_store::ObjectMeta| Object::new(key(&found.location), meta(found));
        if options.delimiter {
            let listed = self.store.list_with_delimiter(directory.as_ref()).await;
            let listed = listed.map_err(failure)?;
            page.objects = listed.objects.iter().map(object).collect();
            page.common_prefixes =
                listed.common_prefixes.iter().map(|path| format!("{path}/")).collect();
        } else {
            let listed = self.store.list(directory.as_ref());
            let listed: Vec<_> = listed.map_err(failure).try_collect().await?;
            page.objects = listed.iter().map(object).collect();
        }
        page.objects.sort_by(|one, other| one.key.cmp(&other.key));
        page.common_prefixes.sort();
        Ok(page)
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, RequestError> {
        self.find(&name.key).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<(), RequestError> {
        let stored = self.store.put(&path(&marker.key)?, PutPayload::new()).await;
        stored.map(drop).map_err(failure)
    }

    async fn delete(&self, name: &Name) -> Result<(), RequestError> {
        self.store.delete(&path(&name.key)?).await.map_err(failure)
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        if !Arc::ptr_eq(&from.store, &to.store) {
            return Err(RequestError::unsupported("copies between two buckets"));
        }
        if options.known.is_some() {
            // It copies any version.
            return Err(RequestError::new(ErrorKind::Precondition, "it cannot compare versions"));
        }
        let (src, dst) = (path(&options.src.key)?, path(&options.dst.key)?);
        to.store.copy(&src, &dst).await.map(|()| None).map_err(failure)
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        let limits = WriteLimits::new(Publication::Atomic).with_upload();
        Some(if self.checks_update { limits } else { limits.without_update_check() })
    }

    async fn put(
        &self,
        to: PutOptions<'_>,
        content: &Content,
    ) -> Result<StoredObject, RequestError> {
        let mode = match to.mode {
            PutMode::Overwrite => object_store::PutMode::Overwrite,
            PutMode::Create => object_store::PutMode::Create,
            PutMode::Update(stored) => {
                let e_tag = stored.etag.clone();
                object_store::PutMode::Update(object_store::UpdateVersion { e_tag, version: None })
            }
        };
        let payload = PutPayload::from_iter(content.chunks().iter().cloned());
        let stored = self.store.put_opts(&path(&to.name.key)?, payload, mode.into()).await;
        Ok(StoredObject::new(content.len()).with_etag(stored.map_err(failure)?.e_tag))
    }

    async fn start_upload(
        &self,
        to: PutOptions<'_>,
    ) -> Result<BoxUpload<RequestError>, RequestError> {
        // Its uploads have no conditions.
        let (key, mode) = (to.name.key.clone(), to.mode.clone());
        let upload = self.store.put_multipart(&path(&key)?).await.map_err(failure)?;
        Ok(BoxUpload::new(Parts { store: self.clone(), key, mode, upload, len: 0 }))
    }
}

/// An upload in parts, in their order.
struct Parts {
    store: AdaptedStore,
    key: String,
    mode: PutMode,
    upload: Box<dyn object_store::MultipartUpload>,
    len: u64,
}

impl Upload for Parts {
    type Error = RequestError;

    async fn append(&mut self, content: &Content) -> Result<(), RequestError> {
        self.len += content.len();
        let payload = PutPayload::from_iter(content.chunks().iter().cloned());
        self.upload.put_part(payload).await.map_err(failure)
    }

    async fn commit(&mut self) -> Result<StoredObject, RequestError> {
        if self.mode != PutMode::Overwrite {
            let found = match self.store.find(&self.key).await {
                Ok(found) => {
                    let stored = StoredObject::new(found.size.unwrap_or_default());
                    Some(stored.with_etag(found.etag).with_modified(found.modified))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            if !self.mode.allows(found.as_ref()) {
                return Err(RequestError::new(ErrorKind::Precondition, "another object is there"));
            }
        }
        let stored = self.upload.complete().await.map_err(failure)?;
        Ok(StoredObject::new(self.len).with_etag(stored.e_tag))
    }

    async fn abort(&mut self) -> Result<(), RequestError> {
        self.upload.abort().await.map_err(failure)
    }
}

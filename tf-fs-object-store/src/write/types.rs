//! The arguments and results of a store's writes.

use crate::object::{Validators, strong};
use crate::{Content, Name, ObjectMeta};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How an object becomes visible, and what is left of the old one if the writer is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// In one step: until all bytes have arrived, every request shows what was there before, and a request that breaks off
    /// changes nothing.
    Atomic,
    /// By a temporary name. Requests write in place, and [`rename`](crate::ObjectStore::rename) replaces an object in one step.
    ///
    /// The engine writes `.tf-….part` in the same directory, and renames it. A writer that is killed leaves that
    /// object, which listings and patterns do not show. An object of several parts becomes visible at its close: parts that
    /// are [copies](PartLimits::copies) are not used.
    Rename,
    /// In place. Readers see a part of a file, and a writer that is killed loses the old object. The engine warns of that in
    /// the log, once for each bucket.
    InPlace,
}

/// How a store is written to: conditions, and one PUT of any length unless more is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteLimits {
    /// How an object becomes visible.
    pub publication: Publication,
    /// The most bytes of an object that one [`put`](crate::ObjectStore::put) can make.
    pub put: u64,
    /// The parts of an upload. `None`: the store has no multipart upload. Without an upload of another kind a file then stays
    /// in memory until it is closed.
    pub parts: Option<PartLimits>,
    /// Whether the store has [uploads](crate::ObjectStore::start_upload) from the first byte to the last. They are used if there
    /// are no parts.
    pub has_upload: bool,
    /// Whether the store does nothing where an object is there and [`PutMode::Create`] wants none. With
    /// [`Publication::Rename`] that is [`RenameOptions::replace`](crate::RenameOptions::replace). Otherwise the engine looks at
    /// the object before and after the write, and what another process writes in between is lost.
    pub checks_create: bool,
    /// Whether the store does nothing where another object is there than that of [`PutMode::Update`]. Otherwise as above.
    /// With [`Publication::Rename`] the engine always looks.
    pub checks_update: bool,
}

impl WriteLimits {
    /// Creates the limits of a store that takes one PUT of any length, and checks all conditions.
    pub fn new(publication: Publication) -> Self {
        Self {
            publication,
            put: u64::MAX,
            parts: None,
            has_upload: false,
            checks_create: true,
            checks_update: true,
        }
    }

    /// Adds a multipart upload.
    #[must_use]
    pub fn with_parts(self, parts: PartLimits) -> Self {
        Self { parts: Some(parts), ..self }
    }

    /// Adds an upload from the first byte to the last.
    #[must_use]
    pub fn with_upload(self) -> Self {
        Self { has_upload: true, ..self }
    }

    /// Sets the most bytes of an object that one request makes.
    #[must_use]
    pub fn with_max_put(self, put: u64) -> Self {
        Self { put, ..self }
    }

    /// Declares that the store does not check whether an object is there.
    #[must_use]
    pub fn without_create_check(self) -> Self {
        Self { checks_create: false, ..self }
    }

    /// Declares that the store does not check which object is there.
    #[must_use]
    pub fn without_update_check(self) -> Self {
        Self { checks_update: false, ..self }
    }

    /// Declares that the store does not check [`PutOptions::mode`].
    #[must_use]
    pub fn without_conditions(self) -> Self {
        self.without_create_check().without_update_check()
    }
}

/// The parts of a multipart upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartLimits {
    /// Bytes of the smallest part, except for the last one.
    pub smallest: u64,
    /// Bytes of the largest part.
    pub largest: u64,
    /// The most parts.
    pub most: u32,
    /// What [`copy_part`](crate::ObjectStore::copy_part) can copy. `None`: the store does not support it. A file of
    /// more than one part then becomes visible only when it is closed, and an object to append to is read first.
    pub copies: Option<CopyLimits>,
}

/// Parts that are copies of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Bytes of the smallest object that is copied. A smaller one is sent again. At least [`PartLimits::smallest`].
    pub smallest: u64,
    /// Bytes of the largest part that is a copy.
    pub largest: u64,
    /// Bytes of a part that the store copies in a few seconds: a request that takes longer counts as stalled. Larger
    /// objects are copied in several such parts at the same time, or in larger ones if these were more than an eighth of
    /// [`PartLimits::most`]. At least twice [`PartLimits::smallest`].
    pub usual: u64,
}

/// Where an object is written.
#[derive(Clone, Copy, Debug)]
pub struct PutOptions<'a> {
    /// The object.
    pub name: &'a Name,
    /// Its attributes besides its bytes.
    pub attributes: &'a Attributes,
    /// The precondition for making it visible.
    pub mode: &'a PutMode,
}

/// The attributes of an object. Appending to a file keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// Names and values that users chose.
    pub metadata: Option<HashMap<String, String>>,
}

impl Attributes {
    /// The attributes of an object of which none is known.
    pub const NONE: Self = Self {
        content_type: None,
        cache_control: None,
        content_disposition: None,
        content_encoding: None,
        content_language: None,
        metadata: None,
    };
}

/// The precondition for publishing a file. A store gets only those that it [checks](WriteLimits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Anything: it is replaced.
    Overwrite,
    /// No object of this name: `If-None-Match: *`.
    Create,
    /// This object: `If-Match` with its ETag. If that is weak or missing, the engine looks before and after the write, compares
    /// size and modification time, and tells the store [`Overwrite`](Self::Overwrite).
    Update(StoredObject),
}

impl PutMode {
    /// Returns the object that has to be there.
    pub fn stored(&self) -> Option<&StoredObject> {
        match self {
            Self::Update(stored) => Some(stored),
            Self::Overwrite | Self::Create => None,
        }
    }

    /// Returns whether it holds, where `found` is there.
    pub fn allows(&self, found: Option<&StoredObject>) -> bool {
        match (self, found) {
            (Self::Overwrite, _) | (Self::Create, None) => true,
            (Self::Update(stored), Some(found)) => stored.is_version(found),
            (Self::Create, Some(_)) | (Self::Update(_), None) => false,
        }
    }

    /// Returns whether a request of a store with these limits checks it.
    pub(super) fn is_checked(&self, limits: &WriteLimits) -> bool {
        match self {
            Self::Overwrite => true,
            Self::Create => limits.checks_create,
            Self::Update(stored) => limits.checks_update && stored.strong_etag().is_some(),
        }
    }
}

/// An object in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredObject {
    /// In bytes.
    pub size: u64,
    /// The version, as the store writes it, with its quotes. `None` if the store does not tell.
    pub etag: Option<String>,
    /// When it was last written, as the store tells it.
    pub modified: Option<SystemTime>,
    /// The checksum of its bytes, as the store writes it, if that is known.
    pub checksum: Option<String>,
}

impl StoredObject {
    /// Creates an object of this many bytes, of which nothing else is known.
    pub fn new(size: u64) -> Self {
        Self { size, etag: None, modified: None, checksum: None }
    }

    /// Sets the version. An empty one counts as none.
    #[must_use]
    pub fn with_etag(self, etag: impl Into<Option<String>>) -> Self {
        Self { etag: etag.into().filter(|etag| !etag.is_empty()), ..self }
    }

    /// Sets the modification time.
    #[must_use]
    pub fn with_modified(self, modified: impl Into<Option<SystemTime>>) -> Self {
        Self { modified: modified.into(), ..self }
    }

    /// Sets the checksum.
    #[must_use]
    pub fn with_checksum(self, checksum: impl Into<Option<String>>) -> Self {
        Self { checksum: checksum.into(), ..self }
    }

    /// Returns whether `other` may be the same version of the same object.
    pub(super) fn is_version(&self, other: &Self) -> bool {
        self.validators().compare(other.validators()).is_same()
    }

    /// Returns the ETag if it names the exact bytes, so that a write can be bound to it.
    pub fn strong_etag(&self) -> Option<&str> {
        strong(self.etag.as_deref())
    }

    fn validators(&self) -> Validators<'_> {
        Validators { size: self.size, etag: self.etag.as_deref(), modified: self.modified }
    }

    /// Returns what a listing would say of it. Its time is that of this machine, in seconds as stores have it.
    pub(super) fn known(&self) -> ObjectMeta {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = UNIX_EPOCH + Duration::from_secs(since.as_secs());
        ObjectMeta::new(self.size).with_etag(self.etag.clone()).with_modified(modified)
    }
}

/// A multipart upload in progress.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    /// The object that it becomes.
    pub name: &'a Name,
    /// Its ID, as [`create_multipart`](crate::ObjectStore::create_multipart) returned it.
    pub id: &'a str,
}

/// A part that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Its place among the parts, counted from 1.
    pub number: u32,
    /// Its ID: its ETag, or the ID of a block.
    pub id: String,
    /// In bytes.
    pub len: u64,
    /// The checksum of its bytes, as the store writes it, if that is known.
    pub checksum: Option<String>,
    /// Whether the response proved that the store has the right bytes.
    pub is_proved: bool,
}

impl Part {
    /// Creates part `number`, of `len` bytes.
    pub fn new(number: u32, id: impl Into<String>, len: u64) -> Self {
        Self { number, id: id.into(), len, checksum: None, is_proved: false }
    }

    /// Sets the checksum.
    #[must_use]
    pub fn with_checksum(self, checksum: Option<String>) -> Self {
        Self { checksum, ..self }
    }

    /// Sets whether the response proved that the store has the right bytes.
    #[must_use]
    pub fn proved(self, is_proved: bool) -> Self {
        Self { is_proved, ..self }
    }
}

/// The content that becomes an object.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// All bytes, in one request.
    Whole(&'a Content),
    /// The parts of an upload, in their order.
    Parts {
        /// The ID of the upload.
        id: &'a str,
        /// All of them.
        parts: &'a [Part],
    },
}

impl Payload<'_> {
    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(content) => content.len(),
            Self::Parts { parts, .. } => parts.iter().map(|part| part.len).sum(),
        }
    }

    pub(super) fn op(&self) -> &'static str {
        match self {
            Self::Whole(_) => "put",
            Self::Parts { .. } => "complete multipart",
        }
    }
}

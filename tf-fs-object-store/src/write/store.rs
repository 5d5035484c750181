//! What a store is told of a write, and what it tells of what it has.

use crate::object::strong;
use crate::{Content, Name, ObjectMeta};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a store takes. The default is one PUT of any length, and conditions that the store checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteLimits {
    /// Bytes of the longest object that one [`put`](crate::ObjectStore::put) can make.
    pub put: u64,
    /// The parts of an upload. `None`: the store has no multipart upload, so a file is in memory until it is closed.
    pub parts: Option<PartLimits>,
    /// Whether the store does nothing where [`Target::before`] does not hold. Otherwise the engine looks at the object
    /// before and after the write. What another process writes between these two is lost then.
    pub checks_before: bool,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { put: u64::MAX, parts: None, checks_before: true }
    }
}

impl WriteLimits {
    /// The same with a multipart upload.
    #[must_use]
    pub fn with_parts(self, parts: PartLimits) -> Self {
        Self { parts: Some(parts), ..self }
    }

    /// The same, where one request makes an object of at most so many bytes.
    #[must_use]
    pub fn with_largest_put(self, put: u64) -> Self {
        Self { put, ..self }
    }

    /// The same, where the store does not check [`Target::before`].
    #[must_use]
    pub fn without_conditions(self) -> Self {
        Self { checks_before: false, ..self }
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
    /// What [`copy_part`](crate::ObjectStore::copy_part) can copy. `None`: the store does not have it. Then a file of
    /// more than one part becomes visible when it is closed, and not at a flush, and what is appended to is read first.
    pub copies: Option<CopyLimits>,
}

/// Parts that are copies of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// Bytes of the smallest object that is copied. What is smaller is sent again. At least [`PartLimits::smallest`].
    pub smallest: u64,
    /// Bytes of the largest part that is a copy.
    pub largest: u64,
}

/// Where something is written.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The object.
    pub name: &'a Name,
    /// What it has besides its bytes.
    pub attributes: &'a Attributes,
    /// What has to be there when it becomes visible.
    pub before: &'a Before,
}

/// What an object has besides its bytes. A file that is appended to keeps it.
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
    /// An object of which none is known.
    pub const NONE: Self = Self {
        content_type: None,
        cache_control: None,
        content_disposition: None,
        content_encoding: None,
        content_language: None,
        metadata: None,
    };
}

/// What has to be there when a file is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// Whatever it is: it is replaced.
    Anything,
    /// No object of this name: `If-None-Match: *`.
    Nothing,
    /// This object: `If-Match` with its ETag, if it has one that is not weak. Otherwise the engine looks before and after
    /// the write, compares size and modification time, and gives the store [`Anything`](Self::Anything).
    This(Stored),
}

impl Before {
    /// The object that is there.
    pub fn stored(&self) -> Option<&Stored> {
        match self {
            Self::This(stored) => Some(stored),
            Self::Anything | Self::Nothing => None,
        }
    }

    /// Whether it holds, where `found` is there.
    pub fn holds(&self, found: Option<&Stored>) -> bool {
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) => true,
            (Self::This(stored), Some(found)) => stored.is_version(found),
            (Self::Nothing, Some(_)) | (Self::This(_), None) => false,
        }
    }

    /// Whether a store that checks conditions can check this one.
    pub(super) fn can_be_checked(&self) -> bool {
        self.stored().is_none_or(|stored| strong(stored.etag.as_deref()).is_some())
    }
}

/// An object in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// In bytes.
    pub size: u64,
    /// The version, as the store writes it, with its quotes. `None` if the store does not tell.
    pub etag: Option<String>,
    /// When it was last written, as the store tells it.
    pub modified: Option<SystemTime>,
    /// The checksum of its bytes, as the store writes it, if that is known.
    pub checksum: Option<String>,
}

impl Stored {
    /// An object of this many bytes of which nothing else is known.
    pub fn new(size: u64) -> Self {
        Self { size, etag: None, modified: None, checksum: None }
    }

    /// The same with this version. An empty one is none.
    #[must_use]
    pub fn with_etag(self, etag: impl Into<Option<String>>) -> Self {
        Self { etag: etag.into().filter(|etag| !etag.is_empty()), ..self }
    }

    /// The same with this modification time.
    #[must_use]
    pub fn with_modified(self, modified: impl Into<Option<SystemTime>>) -> Self {
        Self { modified: modified.into(), ..self }
    }

    /// The same with this checksum.
    #[must_use]
    pub fn with_checksum(self, checksum: impl Into<Option<String>>) -> Self {
        Self { checksum: checksum.into(), ..self }
    }

    /// Whether `other` may be the same version of the same object.
    pub(super) fn is_version(&self, other: &Self) -> bool {
        let is_other = self.etag.is_some() && other.etag.is_some() && self.etag != other.etag;
        // Where ETags do not tell, the time may.
        let is_told = strong(self.etag.as_deref()).and(strong(other.etag.as_deref())).is_some();
        let is_later = self.modified.zip(other.modified).is_some_and(|(own, other)| own != other);
        self.size == other.size && !is_other && (is_told || !is_later)
    }

    /// What a listing would say of it. Its time is that of this machine, in seconds as stores have it.
    pub(super) fn known(&self) -> ObjectMeta {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = UNIX_EPOCH + Duration::from_secs(since.as_secs());
        ObjectMeta::new(self.size).with_etag(self.etag.clone()).with_modified(modified)
    }
}

/// An upload of parts that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    /// The object that it becomes.
    pub name: &'a Name,
    /// The store's name of it, as [`create_multipart`](crate::ObjectStore::create_multipart) told it.
    pub id: &'a str,
}

/// A part that the store has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Its place among the parts, counted from 1.
    pub number: u32,
    /// What the store calls it: its ETag, or the id of a block.
    pub id: String,
    /// In bytes.
    pub len: u64,
    /// The checksum of its bytes, as the store writes it, if that is known.
    pub checksum: Option<String>,
    /// Whether the response proved that the store has the right bytes.
    pub is_proved: bool,
}

impl Part {
    /// Part `number`, of `len` bytes.
    pub fn new(number: u32, id: impl Into<String>, len: u64) -> Self {
        Self { number, id: id.into(), len, checksum: None, is_proved: false }
    }

    /// The same with this checksum.
    #[must_use]
    pub fn with_checksum(self, checksum: Option<String>) -> Self {
        Self { checksum, ..self }
    }

    /// The same; `is_proved`: the response proved that the store has the right bytes.
    #[must_use]
    pub fn proved(self, is_proved: bool) -> Self {
        Self { is_proved, ..self }
    }
}

/// What becomes an object.
#[derive(Clone, Copy, Debug)]
pub enum Sent<'a> {
    /// All bytes, in one request.
    Whole(&'a Content),
    /// The parts of an upload, in their order.
    Parts {
        /// The store's name of the upload.
        id: &'a str,
        /// All of them.
        parts: &'a [Part],
    },
}

impl Sent<'_> {
    /// In bytes.
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

//! The options of requests for objects, and the metadata in responses.

use crate::{Lookup, Name, Range};
use std::time::SystemTime;

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ObjectMeta {
    /// In bytes. `None` if the store does not tell; then the engine gets the first byte when it needs the size.
    pub size: Option<u64>,
    /// The version, as the store writes it, with its quotes. `None` if the store does not tell.
    ///
    /// A listing and a GET return the same text for the same version. If a store writes them in different ways, its
    /// author unifies them. A weak ETag (`W/"…"`) is never sent as [`GetOptions::if_match`]: the engine compares it,
    /// size and modification time of each response.
    pub etag: Option<String>,
    /// When it was last written, if the store tells.
    pub modified: Option<SystemTime>,
}

impl ObjectMeta {
    /// Creates the metadata of an object of this many bytes, of which nothing else is known.
    pub fn new(size: u64) -> Self {
        Self { size: Some(size), ..Self::default() }
    }

    /// Sets the version. An empty one counts as none.
    #[must_use]
    pub fn with_etag(mut self, etag: impl Into<Option<String>>) -> Self {
        self.etag = etag.into().filter(|etag| !etag.is_empty());
        self
    }

    /// Sets when it was last written.
    #[must_use]
    pub fn with_modified(mut self, modified: impl Into<Option<SystemTime>>) -> Self {
        self.modified = modified.into();
        self
    }

    /// Returns the ETag if it names the exact bytes, so that a request can be bound to it.
    pub fn strong_etag(&self) -> Option<&str> {
        strong(self.etag.as_deref())
    }
}

/// Returns the ETag if it is not weak.
pub(crate) fn strong(etag: Option<&str>) -> Option<&str> {
    etag.filter(|etag| !etag.starts_with("W/"))
}

/// The suffixes that servers add to an ETag whose response they may compress, as Apache and Jetty do.
const ENCODINGS: [&str; 4] = ["--gzip\"", "-gzip\"", "-br\"", "-zstd\""];

/// Returns whether two ETags are equal by the weak comparison of RFC 9110, section 8.8.3.2: the `W/` does not count, and
/// neither does the suffix of an encoding such as in `"x-gzip"`.
///
/// Servers send both forms for one version: Apache sends `W/"x"` for a second after a write, then `"x"`.
pub fn same_etag(one: &str, other: &str) -> bool {
    fn opaque(etag: &str) -> &str {
        let opaque = etag.strip_prefix("W/").unwrap_or(etag);
        let is_suffix =
            |suffix: &&&str| opaque.len() > suffix.len() + 1 && opaque.ends_with(**suffix);
        let suffix = ENCODINGS.iter().find(is_suffix).copied().unwrap_or("\"");
        opaque.strip_suffix(suffix).unwrap_or(opaque)
    }
    opaque(one) == opaque(other)
}

/// The identity of a version of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    pub(crate) size: u64,
    pub(crate) etag: Option<&'a str>,
    pub(crate) modified: Option<SystemTime>,
}

/// How the validators of two responses compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Equal strong ETags: the same bytes.
    Exact,
    /// Nothing tells them apart.
    Same,
    /// ETag and modification time contradict each other.
    Contradictory,
    Other,
}

impl Comparison {
    /// Returns whether it may be one version.
    pub(crate) fn is_same(self) -> bool {
        matches!(self, Self::Exact | Self::Same)
    }
}

impl Validators<'_> {
    /// Compares ETags, and where they do not name the exact bytes also the modification time, which a store may round or
    /// leave out. A store that tells neither is believed if the size is equal.
    pub(crate) fn compare(self, other: Validators<'_>) -> Comparison {
        if self.size != other.size {
            return Comparison::Other;
        }
        let is_same_time = self.modified.zip(other.modified).map(|(own, other)| own == other);
        match self.etag.zip(other.etag) {
            Some((own, other)) if own == other && strong(Some(own)).is_some() => Comparison::Exact,
            Some((own, other)) if same_etag(own, other) => match is_same_time {
                Some(false) => Comparison::Contradictory,
                _ => Comparison::Same,
            },
            Some(_) if is_same_time == Some(true) => Comparison::Contradictory,
            None if is_same_time != Some(false) => Comparison::Same,
            _ => Comparison::Other,
        }
    }
}

/// What to get.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GetOptions<'a> {
    /// The exact key.
    pub key: &'a str,
    /// The bytes. They may end past the end of the object.
    pub range: Range,
    /// The required version, as [`GetHead::etag`] told it. Never a weak one.
    pub if_match: Option<&'a str>,
    /// The version of the open file, as responses told it; `None` for the request that opens it. A store is not to refuse
    /// another version for it: the engine compares.
    pub known: Option<&'a ObjectMeta>,
}

impl<'a> GetOptions<'a> {
    /// Creates options for these bytes of this key, in any version.
    pub fn new(key: &'a str, range: Range) -> Self {
        Self { key, range, if_match: None, known: None }
    }

    /// Sets the required version.
    #[must_use]
    pub fn with_if_match(self, if_match: Option<&'a str>) -> Self {
        Self { if_match, ..self }
    }

    /// Sets the version of the open file.
    #[must_use]
    pub fn with_known(self, known: Option<&'a ObjectMeta>) -> Self {
        Self { known, ..self }
    }
}

/// The head of a response: the object's metadata, and where its body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GetHead {
    /// Bytes of the whole object.
    pub size: u64,
    /// The version, as in [`ObjectMeta::etag`].
    pub etag: Option<String>,
    /// Where the body ends, as a position in the object: what was requested, or the end of the object.
    pub end: u64,
    /// When it was last written, if the store tells.
    pub modified: Option<SystemTime>,
    /// Whether it was written so recently that another version may have the same ETag: servers that make ETags from a
    /// time in seconds give two versions of one second the same. Such an object is not cached on a disk.
    pub is_recent: bool,
}

impl GetHead {
    /// Creates the head of a response whose body ends before byte `end` of an object of `size` bytes.
    pub fn new(size: u64, end: u64) -> Self {
        Self { size, end, etag: None, modified: None, is_recent: false }
    }

    /// Sets the version. An empty one counts as none.
    #[must_use]
    pub fn with_etag(mut self, etag: impl Into<Option<String>>) -> Self {
        self.etag = etag.into().filter(|etag| !etag.is_empty());
        self
    }

    /// Sets when it was last written.
    #[must_use]
    pub fn with_modified(mut self, modified: impl Into<Option<SystemTime>>) -> Self {
        self.modified = modified.into();
        self
    }

    /// Sets whether it is [recent](Self::is_recent).
    #[must_use]
    pub fn with_recent(mut self, is_recent: bool) -> Self {
        self.is_recent = is_recent;
        self
    }

    /// Returns the metadata of the object.
    pub fn meta(&self) -> ObjectMeta {
        ObjectMeta::new(self.size).with_etag(self.etag.clone()).with_modified(self.modified)
    }
}

/// What to list.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListOptions {
    /// The prefix of the keys.
    pub prefix: String,
    /// Whether `/` is a delimiter: keys with a `/` after the prefix are shown as the common prefix that ends with it.
    pub delimiter: bool,
    /// Only keys after this one, and common prefixes of such keys. `None` unless the store [supports
    /// it](crate::ObjectStore::supports_start_after).
    pub start_after: Option<String>,
    /// The maximum number of keys a page; the store's own number if not given.
    pub max_keys: Option<u32>,
}

impl ListOptions {
    /// Creates options for all keys with this prefix.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Returns the directory that has all keys with this prefix, with the `/` at its end; empty for the bucket. A store that
    /// cannot list by prefix lists this one: the engine ignores names without the prefix.
    pub fn directory(&self) -> &str {
        &self.prefix[..self.prefix.rfind('/').map_or(0, |slash| slash + 1)]
    }

    /// Sets `/` as the delimiter.
    #[must_use]
    pub fn with_delimiter(self) -> Self {
        Self { delimiter: true, ..self }
    }
}

/// An object as a listing shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Object {
    /// Its whole key.
    pub key: String,
    /// Its metadata in the listing.
    pub meta: ObjectMeta,
}

impl Object {
    /// Creates an object with this key.
    pub fn new(key: impl Into<String>, meta: ObjectMeta) -> Self {
        Self { key: key.into(), meta }
    }
}

/// A page of a listing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// In the order of the store.
    pub objects: Vec<Object>,
    /// With the `/` at their end.
    pub common_prefixes: Vec<String>,
    /// The token of the next page. `None` at the end. If there is more, but the store has given no token, it is empty: the
    /// engine continues after the last name if the store [can](crate::ObjectStore::supports_start_after), and fails otherwise.
    pub next: Option<String>,
    /// How many names without the prefix were left out.
    pub(crate) strays: usize,
}

impl Page {
    /// Returns whether there are more pages.
    pub(crate) fn is_truncated(&self) -> bool {
        self.next.is_some()
    }

    /// Returns the last name in it.
    pub(crate) fn last(&self) -> Option<&str> {
        self.names().max()
    }

    /// Returns the first name in it.
    pub(crate) fn first(&self) -> Option<&str> {
        self.names().min()
    }

    /// Returns whether the names are in the order of their bytes, as S3 requires. Only then a page tells that a name
    /// before its last one is missing.
    pub(crate) fn is_in_order(&self) -> bool {
        self.objects.is_sorted_by_key(|object| &object.key) && self.common_prefixes.is_sorted()
    }

    /// Returns all names in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let objects = self.objects.iter().map(|object| &*object.key);
        objects.chain(self.common_prefixes.iter().map(String::as_str))
    }
}

/// A page of the list of buckets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BucketPage {
    /// The names.
    pub names: Vec<String>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

impl BucketPage {
    /// Creates a page with these names.
    pub fn new(names: Vec<String>, next: Option<String>) -> Self {
        Self { names, next }
    }
}

/// A store's own words for requests and permissions, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The request of [`ObjectStore::list`](crate::ObjectStore::list).
    pub list: &'static str,
    /// The permission to list.
    pub permission_to_list: &'static str,
    /// The permission to read.
    pub permission_to_read: &'static str,
}

impl Default for Terms {
    /// Returns words that fit any store.
    fn default() -> Self {
        Self {
            list: "list",
            permission_to_list: "the permission to list",
            permission_to_read: "the permission to read",
        }
    }
}

/// What to copy.
#[derive(Debug)]
#[non_exhaustive]
pub struct CopyOptions<'a> {
    /// The source.
    pub src: &'a Name,
    /// The destination.
    pub dst: &'a Name,
    /// The source's assumed metadata, with a strong ETag; a recent listing may have shown it. A store with conditional
    /// copies copies this version or [none](crate::ObjectStore::copy), and so knows what the copy is. `None`: any
    /// version that is there.
    pub known: Option<ObjectMeta>,
    /// The length of the source, if it is believed to be known: only for choosing how to copy.
    pub len: Option<u64>,
    /// The object that is assumed to be at the destination.
    pub replaced: &'a Lookup,
}

/// Whether a store has directories of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directories {
    /// Keys imply them, as in S3. A directory is there while a key is below it; an object whose key ends in `/` marks one
    /// that is empty.
    #[default]
    Implied,
    /// They are created and deleted, as in a filesystem. Their keys end in `/`.
    ///
    /// | The engine | The store |
    /// |---|---|
    /// | always lists with [`ListOptions::delimiter`] | shows directories as common prefixes, empty ones too; [`ListOptions::directory`] is the one to list. A listing of a directory that is not there may fail with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) |
    /// | creates a directory with [`put_marker`](crate::ObjectStore::put_marker), parents first | fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if the parent is missing, or creates it |
    /// | deletes one with [`delete`](crate::ObjectStore::delete) after all that is in it, never together with it | may delete what others write to it at that moment |
    /// | copies files only, each to a directory that is there | |
    /// | renames one with one [`rename`](crate::ObjectStore::rename), both names with a `/`, if the store [can](crate::ObjectStore::supports_rename) | fails with [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) if something is at the destination |
    /// | writes a file to its directory | fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if that is missing, or creates it |
    Real,
}

/// What to rename.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RenameOptions<'a> {
    /// The source. If [directories are real](Directories::Real), a key that ends in `/` is one of them.
    pub src: &'a Name,
    /// The destination. It ends in `/` if the source does.
    pub dst: &'a Name,
    /// Whether an object at the destination is replaced.
    pub replace: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_etag_binds_no_request() {
        let meta = |etag: &str| ObjectMeta::new(1).with_etag(etag.to_owned());
        assert_eq!(meta("\"a\"").strong_etag(), Some("\"a\""));
        assert_eq!(meta("W/\"a\"").strong_etag(), None);
        assert_eq!(meta(""), ObjectMeta::new(1));
    }

    #[test]
    fn etags_are_compared_weakly() {
        for (one, other) in [
            ("\"a\"", "\"a\""),
            ("W/\"a\"", "\"a\""),
            ("W/\"a\"", "W/\"a\""),
            ("\"a-gzip\"", "\"a\""),
            ("W/\"a-br\"", "\"a--gzip\""),
            ("bare", "bare"),
        ] {
            assert!(same_etag(one, other) && same_etag(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("\"a\"", "\"b\""),
            ("W/\"a\"", "W/\"A\""),
            ("\"-gzip\"", "\"-br\""),
            ("\"a-gzip\"", "\"b-gzip\""),
            ("\"a-9\"", "\"a\""),
            ("\"\"", "\"a\""),
            ("bare", "\"bare\""),
        ] {
            assert!(!same_etag(one, other) && !same_etag(other, one), "{one} {other}");
        }
    }

    #[test]
    fn etag_size_and_time_tell_versions_apart() {
        use Comparison::{Contradictory, Exact, Other, Same};
        let time = |seconds| Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        let (one, two) = (time(1), time(2));
        for (etag, modified, other_etag, other_modified, expected) in [
            (Some("\"a\""), one, Some("\"a\""), one, Exact),
            // Mirrors may have files of other times, and listings round them.
            (Some("\"a\""), one, Some("\"a\""), two, Exact),
            (Some("\"a\""), None, Some("\"b\""), None, Other),
            (Some("\"a\""), one, Some("\"b\""), two, Other),
            (Some("\"a\""), one, Some("\"b\""), one, Contradictory),
            // Apache, in the second of a write and after it.
            (Some("W/\"a\""), one, Some("\"a\""), one, Same),
            (Some("W/\"a\""), one, Some("\"a\""), None, Same),
            (Some("W/\"a\""), one, Some("\"a\""), two, Contradictory),
            (Some("W/\"a\""), one, Some("W/\"a\""), two, Contradictory),
            (Some("W/\"a\""), one, Some("W/\"b\""), two, Other),
            (Some("\"a\""), one, None, one, Same),
            (Some("\"a\""), one, None, two, Other),
            (None, None, None, one, Same),
        ] {
            let own = Validators { size: 1, etag, modified };
            let other = Validators { size: 1, etag: other_etag, modified: other_modified };
            assert_eq!(own.compare(other), expected, "{own:?} {other:?}");
            assert_eq!(other.compare(own), expected, "{other:?} {own:?}");
            assert_eq!(own.compare(Validators { size: 2, ..other }), Other);
        }
    }
}

//! The trait of a bucket, which the author of a store implements.

use crate::write::DefaultCommit;
use crate::{
    Attributes, Body, BoxUpload, CommitStrategy, Content, CopyOptions, Directories, GetHead,
    GetOptions, ListOptions, Lookup, Multipart, Name, ObjectMeta, Page, Part, Payload, PutOptions,
    Range, RenameOptions, Settings, StoreError, StoredObject, Terms, WriteLimits,
};
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

/// A bucket of a store, which some stores call a container.
///
/// Each method makes one request, in one attempt. The engine retries failures that may pass ([`StoreError::kind`]) until
/// [`Settings::retry_timeout`] is over, and drops an attempt that makes no progress for [`Settings::stall_timeout`]. A
/// store whose client retries by itself returns its last failure as one that does not pass, and sets
/// [`has_timeouts`](Self::has_timeouts). In [`put`](Self::put), [`complete_multipart`](Self::complete_multipart) and
/// [`CommitStrategy::send`], the client must not retry an attempt that may have been done: the engine would take what that
/// attempt stored for somebody else's object.
///
/// All futures run on the engine's threads, or on the TensorFlow thread that waits for them. They are dropped to cancel
/// the request.
///
/// Only [`settings`](Self::settings) and [`get`](Self::get) are required. A method that a store leaves out fails with
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), which is `UNIMPLEMENTED` for the user:
///
/// | Left out | What the engine does |
/// |---|---|
/// | [`list`](Self::list) | Reads files. Looks up a name with [`head`](Self::head), so `stat` and `exists` work; no name is a directory. Directories and patterns with wildcards are `UNIMPLEMENTED` |
/// | [`lookup`](Self::lookup) | Looks up a name with a listing of the names that begin with it |
/// | [`head`](Self::head) | Looks up a name with `get` of its first byte |
/// | [`put_marker`](Self::put_marker) | Creates no directory; directories that keys imply exist |
/// | [`delete`](Self::delete) | Deletes and renames nothing |
/// | [`delete_many`](Self::delete_many) | Deletes one key a request, 16 at a time |
/// | [`copy`](Self::copy) | Copies nothing, and renames only with `rename` |
/// | [`rename`](Self::rename) | Renames by a copy and the deletion of the source |
/// | [`write_limits`](Self::write_limits), [`put`](Self::put) | Opens no file for writing |
pub trait ObjectStore: Debug + Send + Sync + Sized + 'static {
    /// Why a request failed.
    type Error: StoreError;
    /// The bytes of a response.
    type Body: Body<Error = Self::Error>;

    /// Returns the engine's settings for this bucket.
    fn settings(&self) -> &Settings;

    /// Returns the store's own words for requests and permissions, for errors.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// Returns whether the store has directories of its own, which changes how the engine lists, creates, deletes, copies and
    /// renames them: see [`Directories::Real`].
    fn directories(&self) -> Directories {
        Directories::Implied
    }

    /// Returns whether [`list`](Self::list) honours [`ListOptions::start_after`]. The engine does not set it otherwise.
    fn supports_start_after(&self) -> bool {
        false
    }

    /// Returns whether a token of [`list`](Self::list) continues after the last name of its page, whatever was deleted
    /// meanwhile, as S3's do. Otherwise the engine lists a directory of several pages again after deleting all their
    /// names, until nothing is left.
    fn has_stable_page_tokens(&self) -> bool {
        false
    }

    /// Returns whether each request ends by itself when it makes no progress. The engine then sets no deadline, except
    /// for the bytes of a body.
    fn has_timeouts(&self) -> bool {
        false
    }

    /// Returns the next step where several servers send one object, and name its version in different ways: the end of
    /// an error, with a `;` before it. `None` if a bucket has one version of an object at a time.
    ///
    /// If it is given, the engine finds out whether a response with another ETag, but the same size and modification
    /// time, is of such a server.
    fn mirrors(&self) -> Option<&str> {
        None
    }

    /// Returns where requests go, for errors: scheme, host and port of a URL. Empty if there is nothing to tell.
    fn endpoint(&self) -> String {
        String::new()
    }

    /// Returns what tells this bucket from those of the same name elsewhere, now and in other processes: the endpoint,
    /// and the account if buckets of the same endpoint differ by account. The [disk cache](Settings::disk_cache)
    /// identifies blocks by it, by the key and by the ETag. `None` if objects must not be kept on a disk, such as when
    /// ETags of this process mean nothing to another one.
    fn cache_scope(&self) -> Option<String> {
        Some(self.endpoint()).filter(|endpoint| !endpoint.is_empty())
    }

    /// Requests a range of an object, and returns with the head of the response.
    ///
    /// The response tells size, version and modification time: the engine opens a file with this one request. It may end
    /// before the range, as [`GetHead::end`] tells: the engine requests the rest.
    ///
    /// A client whose responses tell nothing but bytes returns `None` as their head. The engine then calls
    /// [`head`](Self::head) before and after, requests no byte past the end, and keeps the bytes back until both agree.
    ///
    /// The range may begin past the end only if `options.if_match` is `None`; then an empty body and the size are a
    /// success.
    ///
    /// # Errors
    /// - [`StoreError::changed`] if the store refuses `options.if_match`. The engine requests the range again without the
    ///   condition, and compares the version of each response itself: another one is `FAILED_PRECONDITION` for the user.
    ///   So a store without conditional requests ignores it. A store without versions returns `None` as
    ///   [`GetHead::etag`]; then size and modification time show a change.
    /// - [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such object. When the engine opens a file, it then
    ///   checks whether it is a directory.
    /// - Others by kind.
    fn get(
        &self,
        options: GetOptions<'_>,
    ) -> impl Future<Output = Result<(Option<GetHead>, Self::Body), Self::Error>> + Send;

    /// Lists a page of the keys that begin with [`ListOptions::prefix`], in the order of their bytes, from `token` on:
    /// [`Page::next`] of an earlier page. A page may be empty although there is a next one. The engine ignores keys
    /// without the prefix, and detects listings that go round in circles.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) if the user may not list: the engine then looks up a single name with
    /// [`head`](Self::head). `NOT_FOUND` if there is no such bucket. It is not an error if no key has the prefix.
    fn list(
        &self,
        _options: &ListOptions,
        _token: Option<&str>,
    ) -> impl Future<Output = Result<Page, Self::Error>> + Send {
        async { Err(StoreError::unsupported("listings")) }
    }

    /// Returns whether [`lookup`](Self::lookup) tells what a name is. Otherwise the engine lists the names that begin with it.
    ///
    /// It should if one request tells objects and directories apart and [`list`](Self::list) has no prefix within a
    /// directory: there a listing returns all names of the directory, for each name that is looked up.
    fn supports_lookup(&self) -> bool {
        false
    }

    /// Looks up what a name is: an object, a directory, or neither. A name that ends in `/` is a directory or nothing. The
    /// engine calls it if the store [supports](Self::supports_lookup) it.
    ///
    /// # Errors
    /// By kind; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) counts as [`Lookup::Missing`].
    fn lookup(&self, _name: &Name) -> impl Future<Output = Result<Lookup, Self::Error>> + Send {
        async { Err(StoreError::unsupported("lookups")) }
    }

    /// Looks up one object. The engine calls it where responses to [`get`](Self::get) have no head, and, without
    /// [`lookup`](Self::lookup), where [`list`](Self::list) is denied or unsupported: both also tell directories.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is none.
    fn head(&self, name: &Name) -> impl Future<Output = Result<ObjectMeta, Self::Error>> + Send {
        let options = GetOptions::new(&name.key, Range::new(0, 1));
        let get = self.get(options);
        async {
            let (head, _) = get.await?;
            head.map(|head| head.meta())
                .ok_or_else(|| StoreError::unsupported("metadata of one object"))
        }
    }

    /// Writes the empty object that marks a directory, or creates a [real](Directories::Real) one. The key of `marker` ends in
    /// `/`.
    ///
    /// # Errors
    /// By kind. For a real directory [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if its parent is missing,
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) if it is there.
    fn put_marker(&self, _marker: &Name) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Err(StoreError::unsupported("new directories")) }
    }

    /// Deletes exactly this key, whether or not there is such an object. A key that ends in `/` is a marker or a
    /// [real](Directories::Real) directory, which is empty.
    ///
    /// # Errors
    /// By kind; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) is a success. After an error the engine looks again before
    /// it assumes that the object is deleted or not.
    fn delete(&self, _name: &Name) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Err(StoreError::unsupported("deletions")) }
    }

    /// Returns how many keys [`delete_many`](Self::delete_many) takes; 0 if the store does not support it.
    fn delete_many_limit(&self) -> usize {
        0
    }

    /// Returns whether [`delete_many`](Self::delete_many) can delete this key: the request's format may exclude some.
    /// The engine deletes others one by one, and those that end in `/` after all that is below them.
    ///
    /// By default a key that ends in `/` is deleted alone: where it is a real directory, its deletion fails while something
    /// is in it, or takes all of it along.
    fn can_batch_delete(&self, key: &str) -> bool {
        !key.ends_with('/')
    }

    /// Deletes these keys, at most [`delete_many_limit`](Self::delete_many_limit), all below `directory`, in one
    /// request. Returns those that are left, each with the reason; the engine retries those that may pass, and deletes
    /// those alone of which the response says nothing: their reason is
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// # Errors
    /// If nothing is known of any of them. After [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) the engine deletes
    /// one key a request.
    fn delete_many(
        &self,
        _directory: &Name,
        _keys: &[String],
    ) -> impl Future<Output = Result<Vec<(String, Self::Error)>, Self::Error>> + Send {
        async { Err(StoreError::unsupported("deletions of several objects")) }
    }

    /// Copies an object of `from` to one of `to`, or over it, inside the store. Returns what the copy is if that is
    /// known. It may take as long as the store needs: the engine sets no deadline.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such source.
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) if it is another version than [`CopyOptions::known`], or the
    /// store cannot compare: the engine then retries without it. After any error the destination is whole or as it was.
    fn copy(
        _from: &Arc<Self>,
        _to: &Arc<Self>,
        _options: CopyOptions<'_>,
    ) -> impl Future<Output = Result<Option<ObjectMeta>, Self::Error>> + Send {
        async { Err(StoreError::unsupported("copies")) }
    }

    /// Returns whether [`rename`](Self::rename) moves objects. Otherwise the engine copies an object and deletes the source.
    fn supports_rename(&self) -> bool {
        false
    }

    /// Renames an object of `from` to one of `to`, or over it, inside the store. Returns what the object is then if that is
    /// known. The object has one of the two names at each moment, and after any error.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such source; after a lost response the engine looks
    /// whether an earlier attempt was done. [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) if something is at the
    /// destination, and [`RenameOptions::replace`] is false. After
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), as between buckets of two servers, the engine copies and deletes.
    fn rename(
        _from: &Arc<Self>,
        _to: &Arc<Self>,
        _options: RenameOptions<'_>,
    ) -> impl Future<Output = Result<Option<ObjectMeta>, Self::Error>> + Send {
        async { Err(StoreError::unsupported("renames")) }
    }

    /// Returns whether `destination` is certainly a copy of `source`, which has another key and maybe another bucket.
    /// Then a rename of a directory that was interrupted continues, and deletes the source.
    ///
    /// True only if the ETags are made from the content. A counter or a time is equal for objects that differ.
    fn is_copy(_source: &ObjectMeta, _destination: &ObjectMeta) -> bool {
        false
    }

    // The following methods are for files open for writing.

    /// Returns the limits for writing. `None` if the store is read-only: opening a file to write is `UNIMPLEMENTED`.
    fn write_limits(&self) -> Option<WriteLimits> {
        None
    }

    /// Stores a whole object if [`PutOptions::mode`] holds, and otherwise nothing.
    ///
    /// [`WriteLimits::publication`] says how the object becomes visible. If that is
    /// [`Publication::Atomic`](crate::Publication::Atomic), the engine relies on it: it sends each file to its own key, without a
    /// temporary object or a copy of the old one.
    ///
    /// # Errors
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) if `to.mode` does not hold; others by kind. After
    /// [`Transient`](crate::ErrorKind::Transient) and [`InvalidResponse`](crate::ErrorKind::InvalidResponse) the object may be stored. If a
    /// retry then fails with `Precondition`, [`is_ours`](Self::is_ours) tells whether the first attempt was done.
    fn put(
        &self,
        _to: PutOptions<'_>,
        _content: &Content,
    ) -> impl Future<Output = Result<StoredObject, Self::Error>> + Send {
        async { Err(StoreError::unsupported("PUT")) }
    }

    /// Looks up one object: what it is, and its attributes besides its bytes. By default with a GET of its first byte, and
    /// [`head`](Self::head) if that tells nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is none.
    fn stored(
        &self,
        name: &Name,
    ) -> impl Future<Output = Result<(StoredObject, Attributes), Self::Error>> + Send {
        let get = self.get(GetOptions::new(&name.key, Range::new(0, 1)));
        async {
            let meta = match get.await? {
                (Some(head), _) => head.meta(),
                (None, _) => self.head(name).await?,
            };
            let size = meta.size.ok_or_else(|| StoreError::invalid("it tells no size"))?;
            let stored = StoredObject::new(size).with_etag(meta.etag).with_modified(meta.modified);
            Ok((stored, Attributes::default()))
        }
    }

    /// Returns whether `found`, which has the length of what was sent, has exactly these bytes: by its checksum, or by
    /// an ETag that is made from them. `None`, which is the default, if the store does not tell.
    ///
    /// The engine calls it when a request may have been done although no response said so, and when it has read an
    /// object to append to it. If the store does not tell, the error of the file says that it is unknown.
    ///
    /// # Errors
    /// By kind.
    fn is_ours(
        &self,
        _name: &Name,
        _sent: Payload<'_>,
        _found: &StoredObject,
    ) -> impl Future<Output = Result<Option<bool>, Self::Error>> + Send {
        async { Ok(None) }
    }

    /// Begins an upload from the first byte to the last, for a file of more than
    /// [`Settings::write_part`](crate::Settings::write_part) bytes. It is called if
    /// [`WriteLimits::has_upload`] is true and [`WriteLimits::parts`] is `None`. Nothing of it is visible until its
    /// [commit](crate::Upload::commit), unless [`WriteLimits::publication`] says that writes are in place.
    ///
    /// # Errors
    /// By kind.
    fn start_upload(
        &self,
        _to: PutOptions<'_>,
    ) -> impl Future<Output = Result<BoxUpload<Self::Error>, Self::Error>> + Send {
        async { Err(StoreError::unsupported("uploads")) }
    }

    /// Begins a multipart upload, and returns its ID. Nothing of it is visible until
    /// [`complete_multipart`](Self::complete_multipart), where alone `to.mode` matters.
    ///
    /// This method and those that follow are called if [`WriteLimits::parts`] is given.
    ///
    /// # Errors
    /// By kind.
    fn create_multipart(
        &self,
        _to: PutOptions<'_>,
    ) -> impl Future<Output = Result<String, Self::Error>> + Send {
        async { Err(StoreError::unsupported("multipart uploads")) }
    }

    /// Sends part `number`, counted from 1. Parts are sent concurrently and in any order. A part that was sent before
    /// is replaced.
    ///
    /// # Errors
    /// By kind.
    fn put_part(
        &self,
        _upload: Multipart<'_>,
        _number: u32,
        _content: &Content,
    ) -> impl Future<Output = Result<Part, Self::Error>> + Send {
        async { Err(StoreError::unsupported("multipart uploads")) }
    }

    /// Makes part `number` a copy of these bytes of `source`, the object of the same name, inside the store. It is
    /// called if [`PartLimits::copies`](crate::PartLimits::copies) is given. The ranges follow one another from the
    /// first byte to the last, and no part that is sent precedes them.
    ///
    /// # Errors
    /// [`ErrorKind::Precondition`](crate::ErrorKind::Precondition) or [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if another version or none is there; others by kind.
    fn copy_part(
        &self,
        _upload: Multipart<'_>,
        _number: u32,
        _source: &StoredObject,
        _range: Range,
    ) -> impl Future<Output = Result<Part, Self::Error>> + Send {
        async { Err(StoreError::unsupported("copies of parts")) }
    }

    /// Makes the object from the parts of upload `id` if [`PutOptions::mode`] holds, and otherwise nothing. The object becomes
    /// visible as in [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put), with the size of all parts as [`StoredObject::size`].
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such upload, as a second attempt finds if the first
    /// was done.
    fn complete_multipart(
        &self,
        _to: PutOptions<'_>,
        _id: &str,
        _parts: &[Part],
    ) -> impl Future<Output = Result<StoredObject, Self::Error>> + Send {
        async { Err(StoreError::unsupported("multipart uploads")) }
    }

    /// Aborts an upload, and deletes its parts. It must not touch the object of an upload that was completed: the
    /// engine also calls it when it does not know whether one was.
    ///
    /// # Errors
    /// By kind. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), if there is no such upload, is a success.
    fn abort_multipart(
        &self,
        _upload: Multipart<'_>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Err(StoreError::unsupported("multipart uploads")) }
    }

    /// Returns how this content becomes an object: by default with [`put`](Self::put) or
    /// [`complete_multipart`](Self::complete_multipart), under conditions that the store may
    /// [check](WriteLimits). A store that learns this only from responses overrides it, and needs neither.
    fn commit_strategy<'a>(
        &'a self,
        to: PutOptions<'a>,
        sent: Payload<'a>,
    ) -> impl CommitStrategy<Error = Self::Error> + 'a {
        DefaultCommit::new(self, to, sent)
    }
}

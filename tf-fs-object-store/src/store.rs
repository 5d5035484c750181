//! What the author of a store implements.

use crate::{
    Attributes, Content, Found, Known, Multipart, Name, Page, Part, Query, Range, Sent, Settings,
    Stored, Target, WriteLimits,
};
use bytes::BufMut;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;

/// An account of a store: opens its buckets.
///
/// A plugin has one a process and settings. The engine makes it again in a forked child.
pub trait Client: Debug + Send + Sync + 'static {
    /// A bucket of the store.
    type Store: ObjectStore;

    /// Finds out how the bucket of this name is reached. The engine keeps what comes of it. It makes no request to the
    /// bucket: whether it exists is for the first operation to say.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the settings are wrong.
    fn open(&self, bucket: &Arc<str>) -> impl Future<Output = Result<Self::Store>> + Send;

    /// Splits a URI or a pattern into its bucket and the key after the `/`, neither of them unescaped. What follows the
    /// bucket may have wildcards.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what can be no bucket of any store.
    fn split(uri: Uri<'_>) -> Result<(&str, &str)>;

    /// Makes a name of a bucket and a key. The bucket itself has an empty key, the list of all buckets no bucket.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a key that no object can have.
    fn name(bucket: &str, key: &str) -> Result<Name>;

    /// What `uri` names: an object, a directory, a bucket, or the list of buckets.
    ///
    /// # Errors
    /// As [`split`](Self::split) and [`name`](Self::name).
    fn parse(uri: Uri<'_>) -> Result<Name> {
        let (bucket, key) = Self::split(uri)?;
        Self::name(bucket, key)
    }

    /// What `uri` names, which has to be possible for an object that is a file.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); `FAILED_PRECONDITION` for a bucket or a name that ends in `/`.
    fn file(uri: Uri<'_>) -> Result<Name> {
        let name = Self::parse(uri)?;
        if name.is_always_directory() {
            return Err(Error::expected_file(uri));
        }
        Ok(name)
    }
}

/// A bucket of a store, or what the store calls one: a container.
///
/// Each method is one request. [`get`](Self::get) is made once: the engine repeats what [`Failure::class`] says may pass.
/// The others are repeated by the store itself, as its client does it, and their errors are the user's: they name the
/// operation and the object. All futures run on the engine's threads, or on the thread of TensorFlow that waits for them; they are dropped
/// to cancel the request.
pub trait ObjectStore: Debug + Send + Sync + Sized + 'static {
    /// Why a request failed.
    type Failure: Failure;
    /// The bytes of a response.
    type Body: Body<Failure = Self::Failure>;
    /// Why a page of a listing cannot be had.
    type NoPage: NoPage;

    /// What the store calls [`list`](Self::list), for errors.
    const LIST: &'static str = "list";

    /// How the engine uses this bucket.
    fn settings(&self) -> &Settings;

    /// Where requests go, for errors: scheme, host and port of a URL. Empty if there is nothing to tell.
    fn endpoint(&self) -> String {
        String::new()
    }

    /// Requests a range of an object, for the `attempt`th time, counted from 1, and returns at the head of the response.
    ///
    /// One request tells size, version and modification time: the engine opens a file with it, and needs no other one.
    /// The range may begin past the end only if `options.if_match` is `None`; then an empty body and the size are a
    /// success.
    ///
    /// # Errors
    /// - [`Failure::changed`] if `options.if_match` names another version: `FAILED_PRECONDITION` for the user. A store
    ///   without conditions compares the version of its response. One without versions returns `None` as
    ///   [`Head::etag`]; then only the size shows that an object changed.
    /// - [`Class::NotFound`] if there is no such object. At the opening of a file the engine then looks whether it is a
    ///   directory.
    /// - Others by class.
    fn get(
        &self,
        options: GetOptions<'_>,
        attempt: u32,
    ) -> impl Future<Output = Result<(Head, Self::Body), Self::Failure>> + Send;

    /// Lists a page of the keys that begin with [`Query::prefix`], in the order of their bytes, from `token` on, which an
    /// earlier [`Page::next`] told. The engine goes on for as long as [`Page::is_truncated`] is true, and notices pages
    /// that go round in circles.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is no such bucket; none if no key begins so.
    fn list(
        &self,
        query: &Query,
        token: Option<&str>,
    ) -> impl Future<Output = Result<Page, Self::NoPage>> + Send;

    /// Looks for one object, after its listing was `refused` although [`NoPage::head_may_tell`]. `None` if there is none.
    ///
    /// A store that always lists need not have it: then `refused` is the error.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` if this does not tell either.
    fn head(
        &self,
        name: &Name,
        refused: Self::NoPage,
    ) -> impl Future<Output = Result<Option<Known>>> + Send {
        let error = refused.into_error(name);
        async { Err(error) }
    }

    /// Writes the empty object that marks a directory. The key of `marker` ends in `/`.
    ///
    /// # Errors
    /// As the store says.
    fn put_marker(&self, marker: &Name) -> impl Future<Output = Result<()>> + Send;

    /// Deletes exactly this key, whether or not there is such an object.
    ///
    /// # Errors
    /// As the store says. The engine takes the object for deleted or not until it has looked.
    fn delete(&self, name: &Name) -> impl Future<Output = Result<()>> + Send;

    /// Whether [`delete_many`](Self::delete_many) can delete this key: the format of the request may not hold each one.
    fn deletes_together(&self, _key: &str) -> bool {
        true
    }

    /// Deletes these keys, at most 1,000, all below `directory`, in one request. Returns what is left of them; the engine
    /// makes one more request for those that may pass.
    ///
    /// `None` if the store cannot do this: then each key is a request, 16 at a time.
    ///
    /// # Errors
    /// If nothing is known of any of them.
    fn delete_many(
        &self,
        _directory: &Name,
        _keys: &[String],
    ) -> impl Future<Output = Option<Result<Vec<NotDeleted>>>> + Send {
        async { None }
    }

    /// Lists the buckets of the account. It is called on the store of the bucket with the empty name; `name` is for errors.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the store has no such list, as here.
    fn list_buckets(
        &self,
        name: &Name,
        _token: Option<&str>,
    ) -> impl Future<Output = Result<BucketPage>> + Send {
        let error =
            Error::unimplemented(format_args!("{name}: the store does not list buckets; name one"));
        async { Err(error) }
    }

    /// Copies an object of `from` to one of `to`, or over it. No byte of it comes here. Returns what the source is, and
    /// what the copy is if that is known.
    ///
    /// Without it nothing can be copied or renamed.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` if the store cannot do it, as here. After any error the destination is whole or as it was.
    fn copy(
        _from: &Arc<Self>,
        _to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> impl Future<Output = Result<(Source, Option<Known>)>> + Send {
        let error =
            Error::unimplemented(format_args!("{}: the store cannot copy objects", options.src));
        async { Err(error) }
    }

    // What follows is for files open for writing.

    /// Whether each request ends by itself when it makes no progress. Then the engine sets no deadline.
    const HAS_DEADLINES: bool = false;

    /// What the store takes. `None` if it cannot be written to: then a file that is opened for writing is `UNIMPLEMENTED`.
    fn write_limits(&self) -> Option<WriteLimits> {
        None
    }

    /// Stores all of an object, if [`Target::before`] holds, or nothing.
    ///
    /// # Errors
    /// [`Class::Precondition`] if `to.before` does not hold; others by class. After [`Class::Transient`] and
    /// [`Class::Doubtful`] the engine takes the object for stored or not. If another attempt then fails with
    /// [`Class::Precondition`], [`is_ours`](Self::is_ours) tells whether the first was done.
    fn put(
        &self,
        _to: Target<'_>,
        _content: &Content,
        _attempt: u32,
    ) -> impl Future<Output = Result<Stored, Self::Failure>> + Send {
        async { Err(Failure::invalid("the store has no PUT")) }
    }

    /// Looks for one object: what it is, and what it has besides its bytes. By default from a GET of its first byte.
    ///
    /// # Errors
    /// [`Class::NotFound`] if there is none.
    fn stored(
        &self,
        name: &Name,
    ) -> impl Future<Output = Result<(Stored, Attributes), Self::Failure>> + Send {
        let options = GetOptions { key: &name.key, range: Range::new(0, 1), if_match: None };
        let get = self.get(options, 1);
        async {
            let (head, _) = get.await?;
            Ok((Stored::new(head.size).with_etag(head.etag), Attributes::default()))
        }
    }

    /// Whether `found`, which has the length of what was sent, has exactly these bytes: by its checksum, or by an ETag
    /// that is made of them. `None`, as here, if the store does not tell.
    ///
    /// The engine calls it when a request may have been done although no response said so, and when it has read an
    /// object to append to it. If the store does not tell, the error of the file says that it is unknown.
    ///
    /// # Errors
    /// By class.
    fn is_ours(
        &self,
        _name: &Name,
        _sent: Sent<'_>,
        _found: &Stored,
    ) -> impl Future<Output = Result<Option<bool>, Self::Failure>> + Send {
        async { Ok(None) }
    }

    /// Begins a multipart upload, and returns the store's name of it. Nothing is visible of it until
    /// [`complete_multipart`](Self::complete_multipart). `to.before` matters only there.
    ///
    /// This and the methods that follow are called if [`WriteLimits::parts`] is given.
    ///
    /// # Errors
    /// By class.
    fn create_multipart(
        &self,
        _to: Target<'_>,
    ) -> impl Future<Output = Result<String, Self::Failure>> + Send {
        async { Err(Failure::invalid("the store has no multipart upload")) }
    }

    /// Sends part `number`, counted from 1. Parts are sent at the same time and in any order. A part that was sent before
    /// is replaced.
    ///
    /// # Errors
    /// By class.
    fn put_part(
        &self,
        _upload: Multipart<'_>,
        _number: u32,
        _content: &Content,
        _attempt: u32,
    ) -> impl Future<Output = Result<Part, Self::Failure>> + Send {
        async { Err(Failure::invalid("the store has no multipart upload")) }
    }

    /// Makes these bytes of `source`, which is the object of the same name, part `number`, without sending them. It is
    /// called if [`PartLimits::copies`](crate::PartLimits::copies) is given. The ranges follow one another from the first
    /// byte to the last, and no part that is sent precedes them.
    ///
    /// # Errors
    /// [`Class::Precondition`] or [`Class::NotFound`] if another version or none is there; others by class.
    fn copy_part(
        &self,
        _upload: Multipart<'_>,
        _number: u32,
        _source: &Stored,
        _range: Range,
        _attempt: u32,
    ) -> impl Future<Output = Result<Part, Self::Failure>> + Send {
        async { Err(Failure::invalid("the store cannot copy parts")) }
    }

    /// Makes the object of the parts of upload `id`, if [`Target::before`] holds, or nothing.
    ///
    /// # Errors
    /// As [`put`](Self::put). [`Class::NotFound`] if there is no such upload, which a second attempt finds if the first
    /// was done.
    fn complete_multipart(
        &self,
        _to: Target<'_>,
        _id: &str,
        _parts: &[Part],
        _attempt: u32,
    ) -> impl Future<Output = Result<Stored, Self::Failure>> + Send {
        async { Err(Failure::invalid("the store has no multipart upload")) }
    }

    /// Makes the store forget an upload and its parts.
    ///
    /// # Errors
    /// By class. [`Class::NotFound`], if there is no such upload, is a success.
    fn abort_multipart(
        &self,
        _upload: Multipart<'_>,
    ) -> impl Future<Output = Result<(), Self::Failure>> + Send {
        async { Err(Failure::invalid("the store has no multipart upload")) }
    }

    /// Makes what was sent visible, if [`Target::before`] holds, or nothing. `is_open`: whether an earlier attempt for the
    /// same content may have been done although it failed; the method says the same of its own.
    ///
    /// By default it calls [`put`](Self::put) or [`complete_multipart`](Self::complete_multipart), repeats them by class,
    /// and finds out what became of an attempt whose response was lost. If the store [does not check
    /// conditions](WriteLimits::checks_before), it looks before and after. A store replaces it only if it has to do
    /// these in another way; then it needs neither of the two.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` if somebody else wrote or deleted the object, and those of the requests.
    fn publish(
        &self,
        to: Target<'_>,
        sent: Sent<'_>,
        is_open: &mut bool,
    ) -> impl Future<Output = Result<Stored>> + Send {
        crate::write::publish::publish(self, to, sent, is_open)
    }
}

/// Why a page of a listing cannot be had.
pub trait NoPage: Debug + Send {
    /// Whether [`ObjectStore::head`] may still tell of one object: who may read objects may not always list them, and some
    /// stores cannot list so.
    fn head_may_tell(&self) -> bool;

    /// The error for the user.
    fn into_error(self, name: &Name) -> Error;
}

/// A page of the list of buckets.
#[derive(Clone, Debug, Default)]
pub struct BucketPage {
    /// The names.
    pub names: Vec<String>,
    /// How to get the next page, if there is one.
    pub next: Option<String>,
}

/// An object that could not be deleted.
#[derive(Debug)]
pub struct NotDeleted {
    /// Its key.
    pub key: String,
    /// Why.
    pub error: Error,
    /// Whether it may be deleted by another attempt.
    pub may_pass: bool,
}

/// What to copy.
#[derive(Debug)]
pub struct CopyOptions<'a> {
    /// The source.
    pub src: &'a Name,
    /// The destination.
    pub dst: &'a Name,
    /// What is believed of the source. A store with conditions copies exactly this version, or else whatever is there.
    pub known: Option<Known>,
    /// The length of the source, if it is believed to be known: to choose the way only.
    pub len: Option<u64>,
    /// What is believed to be at the destination.
    pub replaced: &'a Found,
}

/// What the source of a copy is, as far as it is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An object. It is copied.
    File,
    /// A directory. Nothing is copied.
    Directory,
    /// Nothing.
    Missing,
}

/// What to get.
#[derive(Clone, Copy, Debug)]
pub struct GetOptions<'a> {
    /// The exact key.
    pub key: &'a str,
    /// The bytes. Its end may be past that of the object.
    pub range: Range,
    /// The version that the object has to have, as [`Head::etag`] told it.
    pub if_match: Option<&'a str>,
}

/// What a response tells of the object and of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the whole object.
    pub size: u64,
    /// The version, as the store writes it: with its quotes, if it has some. `None` if the store does not tell.
    pub etag: Option<String>,
    /// Where the body ends, as a position in the object: what was requested, or the end of the object.
    pub end: u64,
    /// When it was last written, if the store tells.
    pub modified: Option<SystemTime>,
}

/// The bytes of a response, as they arrive. Dropping it ends the request.
pub trait Body: Send {
    /// Why they do not arrive.
    type Failure;

    /// Adds bytes to `to` as soon as there are some, and returns how many: 0 at the end, or if there is no room.
    ///
    /// `to` may be TensorFlow's own buffer. A store reads its socket straight into it, and copies nothing. Dropping the
    /// future loses no byte that was added.
    ///
    /// # Errors
    /// If the response breaks off, or is not what its head told. The engine gets the rest by another request. That nothing
    /// arrives for too long it notices itself.
    fn fill(
        &mut self,
        to: &mut (impl BufMut + Send + ?Sized),
    ) -> impl Future<Output = Result<usize, Self::Failure>> + Send;
}

/// Why one attempt of a request failed.
pub trait Failure: Debug + Send + Sync + Sized + 'static {
    /// The object is not the version that was requested.
    fn changed() -> Self;

    /// Nothing, or next to nothing, arrived from this [endpoint](ObjectStore::endpoint) for as long.
    fn stalled(endpoint: String, time: Duration) -> Self;

    /// The response contradicts itself or the request.
    fn invalid(how: &str) -> Self;

    /// Whether another attempt can help.
    fn class(&self) -> Class;

    /// Whether the failure says nothing of the store's health, so that another attempt is made at once and is not
    /// counted: a connection that the store had closed while it was idle, or an error whose reason the store named
    /// and that is corrected now.
    fn is_spurious(&self) -> bool {
        false
    }

    /// How long the store wants to be left alone. Honoured up to [`LONGEST_RETRY_AFTER`](crate::LONGEST_RETRY_AFTER).
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// What went wrong, for the log.
    fn summary(&self) -> String;

    /// The error for the user, once no further attempt is made: `op` on `what` failed `attempts` times.
    fn into_error(self, op: &str, what: &dyn Display, attempts: u32) -> Error;
}

/// Whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// There is no such object. It is not requested again.
    NotFound,
    /// A condition of the request does not hold: the object is another version than the request names, or is there
    /// although the request says that it must not be. It is not requested again.
    Precondition,
    /// It may pass: no connection, an overloaded store. Attempts go on for [`Settings::retry_timeout`].
    Transient,
    /// It hardly passes with time: a response that cannot be right, a certificate that is not trusted. There are
    /// [`WRONG_ANSWERS`](crate::WRONG_ANSWERS) attempts.
    Doubtful,
    /// The store refused. It is not requested again.
    Permanent,
}

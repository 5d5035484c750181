//! An engine for object stores as TensorFlow filesystems: the parts that do not depend on a protocol.
//!
//! The author of a store implements [`Client`], which opens buckets, and [`ObjectStore`], a bucket: each method is one
//! request. The engine does the rest, and [`ObjectFilesystem`] is the plugin. `s3://` (`plugins/s3`) is built on it.
//!
//! Reading: [`Reader`] reads ahead while the reads follow one another, into a memory budget that all files share. Or it
//! reads with several requests straight into TensorFlow's buffer. It pins one version of the object, resumes responses
//! that break off, and retries by [`ErrorKind`] until [`Settings::retry_timeout`] is over. Operations by name are methods
//! of [`Connection`]: queries, listings and patterns by pages, implied directories, recursive deletion, copies and
//! renames, and what this process may remember of them.
//!
//! Writing: [`Writer`] collects what TensorFlow appends, and uploads parts while it goes on writing. A flush or the
//! close makes the object visible whole. Writers never replace what somebody else wrote to a file that they append to.
//!
//! | Module | Job |
//! |---|---|
//! | `client`, `object_store`, `body` | what the author of a store implements |
//! | `object` | requests for objects, and what responses tell of them |
//! | `error`, `retry` | why a request failed; how long it is retried |
//! | `request` | each request, retried until it succeeds or no further attempt helps |
//! | `filesystem` | a store as a filesystem of TensorFlow |
//! | `connection` | how this process reaches a store, and what it knows of it |
//! | `process`, `memory_budget` | what belongs to one process, created again after a fork: worker threads, memory |
//! | `read`, `reader` | files open for reading |
//! | `disk` | blocks of objects on a local disk, for the next time that they are read |
//! | `write` | files open for writing |
//! | `namespace` | operations by name |
//! | `name`, `range`, `settings` | a bucket and an exact key; bytes of an object; settings of a bucket |
//! | `listing_cache` | what recent listings showed |
//! | `dir_tree` | directories made from the keys of a listing |
//! | `unpublished` | what this process has done and the store does not show yet |
//! | `buffer` | bytes that wait to be uploaded |
//! | `config` | settings of a plugin, behind the feature of this name |
//! | `testing` | faults at every request, for the tests of a store, behind the feature of this name |
//! | [`redact`] | hides the secrets of this process in texts that others wrote |
//! | `abi` | everything unsafe |
//! | `adapter` | a client of the crate `object_store` as a bucket, behind the feature `object-store` |
//! | `http` | HTTP for stores that speak it, behind the feature of this name |
//! | [`metrics`] | what is counted |

#[cfg(feature = "http")]
#[expect(unsafe_code, reason = "an option of sockets")]
mod abi;
#[cfg(feature = "object-store")]
mod adapter;
mod body;
mod buffer;
mod client;
#[cfg(feature = "config")]
pub mod config;
mod connection;
mod dir_tree;
mod disk;
mod error;
mod filesystem;
#[cfg(feature = "http")]
pub mod http;
mod listing_cache;
mod memory_budget;
pub mod metrics;
mod name;
mod namespace;
mod object;
mod object_store;
mod process;
mod range;
mod read;
mod reader;
pub mod redact;
mod request;
mod retry;
#[cfg(any(feature = "config", feature = "http"))]
mod server;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;
mod units;
mod unpublished;
mod write;

#[cfg(feature = "object-store")]
pub use adapter::AdaptedStore;
pub use body::{Body, StreamBody};
pub use buffer::{Buffer, Content};
pub use client::Client;
pub use connection::{Connect, Connection, CurrentConnection};
use dir_tree::{DirListing, DirTree};
pub use disk::DiskCache;
pub use error::{ErrorKind, OrKind, RequestError, StoreError};
pub use filesystem::{BucketOf, File, ObjectFilesystem, Resources, StorePlugin};
pub use listing_cache::{CacheEpoch, ListingCache, Lookup};
use listing_cache::{Child, ListedRange};
pub use memory_budget::{MemoryBudget, Reservation};
pub use name::Name;
pub use object::{
    BucketPage, CopyOptions, Directories, GetHead, GetOptions, ListOptions, Object, ObjectMeta,
    Page, RenameOptions, Terms, same_etag,
};
pub use object_store::ObjectStore;
pub use process::Process;
pub use range::Range;
#[cfg(feature = "ranges")]
pub use read::Ranges;
pub use reader::Reader;
pub use request::retry;
pub use retry::{
    Attempt, MAX_BACKOFF, MAX_INVALID_RESPONSES, MAX_RETRY_AFTER, RetryBudget, attempt, backoff,
    max_wait,
};
pub use settings::{Settings, VersionCheck};
use unpublished::LocalState;
pub use unpublished::{UnpublishedWrite, UnpublishedWrites};
pub use write::commit::{conflict_error, unknown_outcome_error};
pub use write::{
    Attributes, BoxUpload, CommitStrategy, ConflictOutcome, CopyLimits, MissingCheck, Multipart,
    Part, PartLimits, Payload, Publication, PutMode, PutOptions, StoredObject, Upload, WriteLimits,
    Writer, temporary_name,
};

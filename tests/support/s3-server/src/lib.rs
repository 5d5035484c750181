//! An S3 server in memory, for tests and benches: exact keys in byte order, signatures really checked, a log of
//! every request, a network of any slowness, and faults at any request.
//!
//! `s3s` implements the protocol (routes, XML, SigV4, `aws-chunked`); this crate implements buckets, conditions,
//! multipart uploads, checksums and all faults.
//!
//! ```
//! use s3_server::{Fault, Options, Server, What, When};
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::start(Options { buckets: vec!["bench".into()], ..Options::default() })?;
//! server.put("bench", "dir/", "");
//! let fault = server.inject(Fault::new(When::Nth(2), What::status(503, "SlowDown")).operation("GetObject"));
//! // ... let a client work with `server.endpoint()` ...
//! assert_eq!(server.keys("bench"), ["dir/"]);
//! assert_eq!(server.met(fault), 0);
//! assert!(server.counts().is_empty());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod auth;
mod checksum;
mod control;
mod data;
mod fault;
mod front;
mod list;
mod log;
mod operation;
mod quirk;
mod server;
mod service;
mod shape;
mod store;
mod tls;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

pub use auth::Credentials;
pub use fault::{At, Fault, FaultId, Gate, Hook, Reply, What, When};
pub use log::{Counters, Request};
pub use quirk::{Conditions, Habit, Quirks};
pub use server::{Options, Server};
pub use shape::Shape;
pub use store::{Info, Object, Upload};
pub use tls::Tls;

pub(crate) use server::Core;

use data::Data;
use store::Stored;

/// The handle of a running server; a clone is the same server. [`Server`] dereferences to it.
///
/// All methods that name a bucket panic if there is no such bucket: then the test is wrong.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Core>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

/// The most bytes that [`Handle::get`] creates for runs of zeros, which are not in memory.
const MAX_DENSE: u64 = 1 << 30;

impl Handle {
    /// Returns `http://127.0.0.1:PORT`, or with `https`.
    pub fn endpoint(&self) -> String {
        let scheme = if self.0.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.0.address)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> std::net::SocketAddr {
        self.0.address
    }

    /// Returns the access key that it started with.
    pub fn access_key(&self) -> &str {
        &self.0.access_key
    }

    /// Returns the secret key that it started with.
    pub fn secret_key(&self) -> &str {
        &self.0.secret_key
    }

    /// Returns the certificate that a client must trust, if the server uses TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.0.ca_pem.as_deref()
    }

    /// Accepts only these keys from now on.
    pub fn set_credentials(&self, credentials: impl IntoIterator<Item = Credentials>) {
        self.0.keys.set(credentials);
    }

    /// Creates a bucket that any region may sign for; an existing one stays.
    pub fn create_bucket(&self, bucket: &str) {
        self.0.store.create(bucket, None);
    }

    /// Creates a bucket that accepts only signatures for `region`.
    pub fn create_bucket_in(&self, bucket: &str, region: &str) {
        self.0.store.create(bucket, Some(region.to_owned()));
    }

    /// Sets whether anyone may read and list the bucket without a signature.
    pub fn set_public(&self, bucket: &str, public: bool) {
        self.with(bucket, |bucket| bucket.public = public);
    }

    fn with<T>(&self, name: &str, work: impl FnOnce(&mut store::Bucket) -> T) -> T {
        let mut buckets = self.0.store.lock();
        match buckets.get_mut(name) {
            Some(bucket) => work(bucket),
            None => panic!("there is no bucket {name:?}; make it first"),
        }
    }

    fn store(&self, bucket: &str, key: &str, data: Data) -> String {
        let info = Info {
            len: data.len(),
            etag: self.0.store.etag(&data, None),
            modified: Some(SystemTime::now()),
            ..Info::default()
        };
        let etag = info.etag.clone();
        self.with(bucket, |bucket| {
            bucket.objects.insert(key.to_owned(), Arc::new(Stored { data, info }))
        });
        etag
    }

    /// Writes an object and returns its ETag.
    pub fn put(&self, bucket: &str, key: &str, content: impl Into<Bytes>) -> String {
        self.store(bucket, key, Data::from(content.into()))
    }

    /// Writes an object of `len` zeros, which takes no memory, and returns its ETag.
    pub fn put_sparse(&self, bucket: &str, key: &str, len: u64) -> String {
        self.store(bucket, key, Data::zeros(len))
    }

    fn stored(&self, bucket: &str, key: &str) -> Option<Arc<Stored>> {
        self.with(bucket, |bucket| bucket.objects.get(key).cloned())
    }

    /// Returns an object with its content.
    ///
    /// # Panics
    /// If it has more than 1 GiB, with zeros from [`put_sparse`](Handle::put_sparse): use [`stat`](Handle::stat) or
    /// [`read`](Handle::read).
    pub fn get(&self, bucket: &str, key: &str) -> Option<Object> {
        let stored = self.stored(bucket, key)?;
        let sparse = stored.data.is_sparse() && stored.data.len() > MAX_DENSE;
        assert!(!sparse, "{key:?} is too long to hold; use `stat` or `read`");
        Some(Object { bytes: stored.data.to_bytes(), info: stored.info.clone() })
    }

    /// Changes the metadata of an object, like the headers of its upload.
    ///
    /// # Panics
    /// If there is no such object.
    pub fn describe(&self, bucket: &str, key: &str, change: impl FnOnce(&mut Info)) {
        self.with(bucket, |bucket| {
            let stored = bucket.objects.get_mut(key).expect("the object is there");
            let mut info = stored.info.clone();
            change(&mut info);
            *stored = Arc::new(Stored { data: stored.data.clone(), info });
        });
    }

    /// Returns the metadata of an object.
    pub fn stat(&self, bucket: &str, key: &str) -> Option<Info> {
        Some(self.stored(bucket, key)?.info.clone())
    }

    /// Returns a part of an object's content; less where the object ends.
    pub fn read(&self, bucket: &str, key: &str, range: Range<u64>) -> Option<Bytes> {
        let stored = self.stored(bucket, key)?;
        let len = stored.data.len();
        Some(stored.data.slice(range.start.min(len)..range.end.min(len)).to_bytes())
    }

    /// Removes an object; `false` if there was none.
    pub fn delete(&self, bucket: &str, key: &str) -> bool {
        self.with(bucket, |bucket| bucket.objects.remove(key)).is_some()
    }

    /// Returns all keys in byte order.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        self.with(bucket, |bucket| bucket.objects.keys().cloned().collect())
    }

    /// Returns all multipart uploads that are neither complete nor aborted.
    pub fn uploads(&self, bucket: &str) -> Vec<Upload> {
        self.with(bucket, |bucket| {
            let upload = |(id, pending): (&String, &store::Pending)| Upload {
                id: id.clone(),
                key: pending.key.clone(),
                parts: pending
                    .parts
                    .iter()
                    .map(|(number, part)| (*number, part.data.len()))
                    .collect(),
            };
            bucket.uploads.iter().map(upload).collect()
        })
    }

    /// Returns all requests since the start or the last [`reset_log`](Handle::reset_log), in order of arrival.
    pub fn log(&self) -> Vec<Request> {
        self.0.log.requests()
    }

    /// Returns the number of requests by operation.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.counters().operations
    }

    /// Returns all counters.
    pub fn counters(&self) -> Counters {
        self.0.log.counters()
    }

    /// Clears the log, and returns its counters.
    pub fn reset_log(&self) -> Counters {
        self.0.log.reset()
    }

    /// Makes the network as slow as `shape`, also for open connections.
    pub fn shape(&self, shape: Shape) {
        self.0.network.set(shape);
    }

    /// Injects a fault.
    pub fn inject(&self, fault: Fault<'_>) -> FaultId {
        self.0.faults.inject(fault)
    }

    /// Returns how many requests a fault has hit, also after [`clear_faults`](Handle::clear_faults).
    pub fn met(&self, fault: FaultId) -> usize {
        self.0.faults.met(fault)
    }

    /// Ends all faults, except those in progress.
    pub fn clear_faults(&self) {
        self.0.faults.clear();
    }

    /// Makes the store differ from Amazon S3 from now on.
    pub fn set_quirks(&self, quirks: Quirks) {
        self.0.character.set(None, quirks);
    }

    /// Makes one bucket of the store differ from Amazon S3 from now on, whatever the others do.
    pub fn set_bucket_quirks(&self, bucket: &str, quirks: Quirks) {
        self.0.character.set(Some(bucket), quirks);
    }

    /// Stops or resumes listening. While `true`, the kernel refuses clients. Open connections stay.
    ///
    /// # Errors
    /// If another program has taken the port meanwhile.
    pub fn set_refusing(&self, refusing: bool) -> std::io::Result<()> {
        self.0.set_refusing(refusing)
    }

    /// Resets all open connections.
    pub fn reset_connections(&self) {
        self.0.reset_connections();
    }
}

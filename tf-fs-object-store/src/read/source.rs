//! Bytes of one version of an object, in as many requests as it takes.

use super::Reads;
use super::assumption::Assumption;
use crate::disk::{BLOCK, Cached, Object};
use crate::object::strong;
use crate::retry::Attempts;
use crate::{Body as _, Class, Failure as _, GetOptions, Head, Name, ObjectStore, Range};
use bytes::BufMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tf_fs_plugin::prelude::*;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many bytes make up for a failed attempt.
const PROGRESS: u64 = 256 << 10;
/// A body with fewer bytes a second than this, over `stall_timeout`, has stalled.
const TRICKLE: u64 = 200;

/// An object open for reading.
#[derive(Debug)]
pub(super) struct Source<S> {
    pub(super) name: Name,
    pub(super) store: Arc<S>,
    pub(super) reads: Arc<Reads>,
    /// The version, from the first response on.
    version: OnceLock<Version>,
    known: Notify,
    pub(super) assumption: Assumption,
    /// Whether another version may have the ETag of this one.
    is_recent: AtomicBool,
    /// The object on a disk, if it may be there.
    object: Option<Arc<Object>>,
    /// The version of that, from the first response on.
    cached: OnceLock<Option<Arc<Cached>>>,
}

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) size: u64,
    /// `None` if the store does not tell.
    pub(super) etag: Option<String>,
    /// Only if the ETag does not name the exact bytes. A listing may round it, so it is that of a GET.
    pub(super) modified: Option<SystemTime>,
}

impl Version {
    /// Returns the version that a response tells.
    fn of(head: &Head) -> Self {
        let is_exact = strong(head.etag.as_deref()).is_some();
        Self {
            size: head.size,
            etag: head.etag.clone(),
            modified: head.modified.filter(|_| !is_exact),
        }
    }

    /// Returns the ETag that binds a request to it.
    fn if_match(&self) -> Option<&str> {
        strong(self.etag.as_deref())
    }

    /// Returns whether the other may be the same. A store that does not tell is believed if the length is right.
    fn may_be(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        self.size == other.size
            && agree(&self.etag, &other.etag)
            && agree(&self.modified, &other.modified)
    }
}

/// The bytes of a range, one after the other.
pub(super) struct Fetch<S: ObjectStore> {
    source: Arc<Source<S>>,
    /// Where it began.
    start: u64,
    /// What is missing.
    left: Range,
    /// Whether its first response settles the version.
    settles: bool,
    body: Option<S::Body>,
    failures: Failures,
    /// When the last attempt began.
    asked: Instant,
    pace: Pace,
    op: &'static str,
}

/// The failures since bytes last arrived.
#[derive(Debug, Default)]
struct Failures {
    attempts: Attempts,
    bytes_since: u64,
}

/// How long it took for how many bytes to arrive.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    bytes: u64,
}

impl<S: ObjectStore> Source<S> {
    pub(super) fn new(name: Name, store: Arc<S>, reads: Arc<Reads>) -> Self {
        let (version, known) = (OnceLock::new(), Notify::new());
        Self {
            name,
            store,
            reads,
            version,
            known,
            assumption: Assumption::none(),
            is_recent: AtomicBool::new(false),
            object: None,
            cached: OnceLock::new(),
        }
    }

    /// Uses the disk cache, if the settings say so. `scheme` is that of the store.
    pub(super) fn on_disk(mut self, scheme: &str) -> Self {
        let cache = self.store.settings().disk_cache.as_ref();
        self.object = cache.zip(self.store.cache_scope()).map(|(cache, scope)| {
            let identity = [scheme, &scope, &self.name.bucket, &self.name.key];
            Arc::new(self.reads.disks.object(cache, &identity))
        });
        self
    }

    /// Returns where a request ends that should end at `end`: with a whole block, if blocks are kept.
    pub(super) fn end_of_blocks(&self, end: u64) -> u64 {
        if self.object.is_some() { end.next_multiple_of(BLOCK) } else { end }
    }

    /// Returns whether the beginning of some version of it is on a disk.
    pub(super) fn begins_on_disk(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.begins())
    }

    /// Returns the disk cache of the version that is read, once it is known and if its ETag names the exact bytes.
    pub(super) fn cached(&self) -> Option<&Arc<Cached>> {
        if self.is_recent.load(Ordering::Relaxed) {
            return None;
        }
        let (object, version) = (self.object.as_ref()?, self.version()?);
        let cached = self
            .cached
            .get_or_init(|| object.cached(version.if_match()?, version.size).map(Arc::new));
        cached.as_ref()
    }

    /// Makes the version an assumption, which the store still has to confirm.
    pub(super) fn assuming(self) -> Self {
        Self { assumption: Assumption::made(), ..self }
    }

    /// Returns the version that is read, once it is known.
    pub(super) fn version(&self) -> Option<&Version> {
        self.version.get()
    }

    /// Waits until the version is settled.
    async fn settled(&self) {
        let mut known = std::pin::pin!(self.known.notified());
        known.as_mut().enable();
        if self.version.get().is_none() {
            known.await;
        }
    }

    /// Settles which version is read: this one, unless it is settled already.
    ///
    /// # Errors
    /// [`Failure::changed`](crate::Failure::changed) if that is another one.
    pub(super) fn pin(&self, version: Version) -> Result<(), S::Failure> {
        let pinned = self.version.get_or_init(|| version.clone());
        self.known.notify_waiters();
        if pinned.may_be(&version) { Ok(()) } else { Err(S::Failure::changed()) }
    }
}

impl<S: ObjectStore> Fetch<S> {
    pub(super) fn new(source: Arc<Source<S>>, range: Range, op: &'static str) -> Self {
        Self {
            source,
            start: range.start,
            left: range,
            settles: false,
            body: None,
            failures: Failures::default(),
            asked: Instant::now(),
            pace: Pace::default(),
            op,
        }
    }

    /// Returns whether a response is being received.
    pub(super) fn is_open(&self) -> bool {
        self.body.is_some()
    }

    /// Returns how many bytes were delivered.
    pub(super) fn read_so_far(&self) -> u64 {
        self.left.start - self.start
    }

    /// Returns the range that has not been delivered yet.
    pub(super) fn left(&self) -> Range {
        self.left
    }

    /// Makes a request, and returns with the head of the response. Only before the first byte, and for the first
    /// response of a file: a missing object is not an error here.
    ///
    /// # Errors
    /// Any except *not found*, which is `Ok(None)`.
    pub(super) async fn open(&mut self) -> Result<Option<Head>> {
        self.settles = true;
        loop {
            match self.ask().await {
                Ok(head) => return Ok(Some(head)),
                Err(cause) if cause.class() == Class::NotFound => return Ok(None),
                Err(cause) => self.failed(cause).await?,
            }
        }
    }

    /// Adds bytes to `to` as soon as some arrive, and returns how many; 0 at the end of the range or of the object, or
    /// if there is no room.
    ///
    /// # Errors
    /// Once no further attempt is made.
    pub(super) async fn fill(&mut self, to: &mut (impl BufMut + Send + ?Sized)) -> Result<usize> {
        if !to.has_remaining_mut() {
            return Ok(0);
        }
        loop {
            if let Some(version) = self.source.version() {
                self.left.end = self.left.end.min(version.size);
            }
            if self.left.is_empty() {
                return Ok(0);
            }
            let outcome = match &mut self.body {
                Some(body) => {
                    let store = &self.source.store;
                    let stall = store.settings().stall_timeout;
                    let outcome = self.pace.time(stall, body.fill(to)).await;
                    outcome.unwrap_or_else(|| Err(S::Failure::stalled(store.endpoint(), stall)))
                }
                None => match self.ask().await {
                    Ok(_) => continue,
                    Err(cause) => Err(cause),
                },
            };
            match outcome {
                Ok(0) => {
                    // The response was shorter than was requested, and said so.
                    self.body = None;
                    self.failed(S::Failure::invalid("it ends early")).await?;
                }
                Ok(n) => {
                    self.left.start += n as u64;
                    self.failures.progress(n as u64);
                    return Ok(n);
                }
                Err(cause) => {
                    self.body = None;
                    self.failed(cause).await?;
                }
            }
        }
    }

    async fn ask(&mut self) -> Result<Head, S::Failure> {
        self.pace = Pace::default();
        self.asked = Instant::now();
        let source = &self.source;
        let options = GetOptions::new(&source.name.key, self.left)
            .with_if_match(source.version().and_then(Version::if_match));
        let get = self.failures.attempts.run(source.store.get(options));
        let (head, body) = if S::HAS_DEADLINES {
            get.await?
        } else {
            let stall = source.store.settings().stall_timeout;
            let stalled = |_| Err(S::Failure::stalled(source.store.endpoint(), stall));
            tokio::time::timeout(stall, get).await.unwrap_or_else(stalled)?
        };
        if !self.settles {
            source.settled().await;
        }
        if head.is_recent {
            source.is_recent.store(true, Ordering::Relaxed);
        }
        source.pin(Version::of(&head))?;
        if !source.assumption.confirm() {
            // It agreed, but others read another version by now.
            return Err(S::Failure::changed());
        }
        self.left.end = self.left.end.min(head.size);
        self.body = Some(body);
        Ok(head)
    }

    /// Waits until another attempt is due.
    ///
    /// # Errors
    /// If no further attempt is made.
    #[cold]
    async fn failed(&mut self, cause: S::Failure) -> Result<()> {
        let (settings, name) = (self.source.store.settings(), &self.source.name);
        self.failures.bytes_since = 0;
        let wait = self.failures.attempts.failed(settings, self.op, name, cause, self.asked);
        let wait = wait.map_err(|given_up| given_up.into_error(self.op, name))?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

impl Failures {
    fn progress(&mut self, bytes: u64) {
        self.bytes_since = self.bytes_since.saturating_add(bytes);
        if self.bytes_since >= PROGRESS {
            self.attempts.forget();
        }
    }
}

impl Pace {
    /// Runs `fill`; `None` if too few bytes arrived in `stall` over the recent calls.
    async fn time<E>(
        &mut self,
        stall: Duration,
        fill: impl Future<Output = Result<usize, E>>,
    ) -> Option<Result<usize, E>> {
        let start = Instant::now();
        let outcome = tokio::time::timeout(stall.saturating_sub(self.waited), fill).await;
        self.waited += start.elapsed();
        if let Ok(Ok(n)) = &outcome {
            self.bytes += *n as u64;
            if self.bytes.saturating_mul(1000) >= TRICKLE * stall.as_millis() as u64 {
                *self = Self::default();
            }
        }
        outcome.ok()
    }
}

//! Bytes of one version of an object, in as many requests as it takes.

use super::Reads;
use super::assumption::Assumption;
use super::headless::Response;
use super::version::{Trust, Version};
use crate::disk::{BLOCK, CachedObject, CachedVersion};
use crate::object::Comparison;
use crate::retry::RetryState;
use crate::{
    ErrorKind, GetHead, GetOptions, Name, ObjectStore, Range, StoreError as _, VersionCheck,
};
use bytes::BufMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many bytes make up for a failed attempt.
const PROGRESS: u64 = 256 << 10;
/// A response that ends before the range, and has fewer bytes than this, counts as a failed attempt.
const SHORTEST: u64 = 4 << 10;
/// How often, and with how many requests, it is found out whether an object has mirrors.
const ROUNDS: usize = 3;
const PROBES: usize = 4;
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
    /// The state of the bucket's validators.
    trust: Arc<Trust>,
    /// Whether another version may have the ETag of this one, or a response had another ETag.
    is_inexact: AtomicBool,
    /// The object on a disk, if it may be there.
    object: Option<Arc<CachedObject>>,
    /// The version of that, from the first response on.
    cached: OnceLock<Option<Arc<CachedVersion>>>,
}

/// The bytes of a range, one after the other.
pub(super) struct Fetch<S: ObjectStore> {
    source: Arc<Source<S>>,
    /// Where it began.
    start: u64,
    /// The bytes that are still missing.
    left: Range,
    /// Whether its first response settles the version.
    settles: bool,
    body: Option<Response<S::Body>>,
    /// The range that the head of its response announced.
    told: Range,
    failures: RetryProgress,
    /// The validator that distinguished another version of the same size from the one that is read.
    difference: Option<String>,
    /// When the last attempt began.
    asked: Instant,
    pace: Pace,
    op: &'static str,
}

/// The failures since bytes last arrived.
#[derive(Debug, Default)]
struct RetryProgress {
    attempts: RetryState,
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
        let trust = reads.trusts.of(&name);
        Self {
            name,
            store,
            reads,
            version,
            known,
            assumption: Assumption::none(),
            trust,
            is_inexact: AtomicBool::new(false),
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
    pub(super) fn cached(&self) -> Option<&Arc<CachedVersion>> {
        if self.is_inexact.load(Ordering::Relaxed) {
            return None;
        }
        let (object, version) = (self.object.as_ref()?, self.version()?);
        let cached = self
            .cached
            .get_or_init(|| object.cached(version.strong_etag()?, version.size).map(Arc::new));
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

    /// Settles which version is read: this one, unless it is settled already. Returns that, and how this one compares.
    pub(super) fn pin(&self, version: Version) -> (&Version, Comparison) {
        let pinned = self.version.get_or_init(|| version.clone());
        self.known.notify_waiters();
        (pinned, pinned.compare(&version, self.store.settings().version_check))
    }

    /// Returns the ETag to bind a request to, unless that cannot be relied on.
    fn condition(&self) -> Option<&str> {
        let is_sent = !self.trust.refuses_conditions()
            && !self.trust.has_mirrors()
            && self.store.settings().version_check == VersionCheck::Etag;
        self.version()?.strong_etag().filter(|_| is_sent)
    }

    /// Makes one attempt to get a range.
    async fn get(
        &self,
        range: Range,
        if_match: Option<&str>,
        attempts: &RetryState,
    ) -> Result<(GetHead, Response<S::Body>), S::Error> {
        if !self.trust.is_headless() {
            if let (Some(head), body) = self.request(range, if_match, attempts).await? {
                return Ok((head, Response::Arriving(body)));
            }
            self.trust.responses_are_headless();
        }
        self.get_headless(range, if_match, attempts).await
    }

    /// Makes one attempt of a request.
    pub(super) async fn request(
        &self,
        range: Range,
        if_match: Option<&str>,
        attempts: &RetryState,
    ) -> Result<(Option<GetHead>, S::Body), S::Error> {
        let known = self.version().map(Version::meta);
        let options = GetOptions::new(&self.name.key, range)
            .with_if_match(if_match)
            .with_known(known.as_ref());
        self.in_time(attempts.run(self.store.get(options))).await
    }

    /// Ends a request that makes no progress, unless the store does.
    pub(super) async fn in_time<T>(
        &self,
        request: impl Future<Output = Result<T, S::Error>>,
    ) -> Result<T, S::Error> {
        if self.store.has_timeouts() {
            return request.await;
        }
        let stall = self.store.settings().stall_timeout;
        let stalled = |_| Err(S::Error::stalled(self.store.endpoint(), stall));
        tokio::time::timeout(stall, request).await.unwrap_or_else(stalled)
    }

    /// Returns whether a response is of the version that is read. `Err` tells what differs, if the size does not.
    async fn agrees(&self, head: &GetHead) -> Result<(), Option<String>> {
        let version = Version::of(head);
        let (pinned, comparison) = self.pin(version.clone());
        if head.is_recent || comparison != Comparison::Exact {
            self.is_inexact.store(true, Ordering::Relaxed);
        }
        let agrees = match comparison {
            Comparison::Exact | Comparison::Same => true,
            Comparison::Contradictory if self.store.mirrors().is_some() => {
                self.has_mirrors(pinned, &version).await
            }
            _ => false,
        };
        if agrees { Ok(()) } else { Err(pinned.difference(&version)) }
    }

    /// Returns whether several servers send the object, which name its version in different ways. A version that
    /// replaces another is the only one from then on. So they are not told apart by one request, but by several of one
    /// byte at the same time, over several connections, that get different responses, and that twice.
    async fn has_mirrors(&self, pinned: &Version, found: &Version) -> bool {
        let _alone = self.trust.finding_out.lock().await;
        let mut mixed = 0;
        for round in 0..ROUNDS {
            if self.trust.has_mirrors() {
                return true;
            }
            let probes = futures_util::future::join_all((0..PROBES).map(|_| self.probe())).await;
            let seen: Vec<Version> = probes.into_iter().flatten().collect();
            let is_other =
                |seen: &Version| pinned.compare(seen, VersionCheck::Etag) == Comparison::Other;
            if seen.iter().any(is_other) {
                return false;
            }
            mixed += usize::from(seen.iter().any(|other| *other != seen[0]));
            if mixed == 0 && round > 0 {
                return false;
            }
            if mixed == 2 {
                let difference = pinned.difference(found).unwrap_or_default();
                self.trust.mirrors_are_found(&self.name, &difference);
            }
        }
        self.trust.has_mirrors()
    }

    /// Requests one byte, and returns the version of the response; `None` if it fails.
    async fn probe(&self) -> Option<Version> {
        let (head, mut body) =
            self.get(Range::new(0, 1), None, &RetryState::default()).await.ok()?;
        // So that the connection can be used again.
        let mut byte = Vec::with_capacity(1).limit(1);
        let stall = self.store.settings().stall_timeout;
        let _ = tokio::time::timeout(stall, body.fill(&mut byte)).await;
        Some(Version::of(&head))
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
            told: Range::new(0, 0),
            failures: RetryProgress::default(),
            difference: None,
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

    /// Delivers no bytes from `end` on.
    pub(super) fn end_at(&mut self, end: u64) {
        self.left.end = self.left.end.min(end);
    }

    /// Makes a request, and returns with the head of the response. Only before the first byte, and for the first
    /// response of a file: a missing object is not an error here.
    ///
    /// # Errors
    /// Any except *not found*, which is `Ok(None)`.
    pub(super) async fn open(&mut self) -> Result<Option<GetHead>> {
        self.settles = true;
        loop {
            match self.ask().await {
                Ok(head) => return Ok(Some(head)),
                Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
                Err(cause) => self.failed(cause).await?,
            }
        }
    }

    /// Adds bytes to `to` as soon as some arrive, and returns how many; 0 at the end of the range or of the object, or
    /// if there is no room.
    ///
    /// # Errors
    /// Once no further attempt is made.
    pub(super) async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize> {
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
                    outcome.unwrap_or_else(|| Err(S::Error::stalled(store.endpoint(), stall)))
                }
                None => match self.ask().await {
                    Ok(_) => continue,
                    Err(cause) => Err(cause),
                },
            };
            match outcome {
                Ok(0) => {
                    self.body = None;
                    // Some gateways send fewer bytes at a time than are requested, and say so.
                    let is_as_told = self.left.start == self.told.end;
                    if !is_as_told || self.told.len() < SHORTEST {
                        self.failed(S::Error::invalid("it ends early")).await?;
                    }
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

    async fn ask(&mut self) -> Result<GetHead, S::Error> {
        self.pace = Pace::default();
        self.asked = Instant::now();
        let source = &self.source;
        let (range, attempts) = (self.left, &self.failures.attempts);
        let condition = source.condition();
        let (head, body) = match (source.get(range, condition, attempts).await, condition) {
            // Some servers refuse a condition that holds.
            (Err(failure), Some(etag))
                if failure.kind() == ErrorKind::Precondition
                    && !failure.retry_immediately()
                    && (source.store.mirrors().is_some() || source.assumption.is_confirmed()) =>
            {
                let (head, body) = source.get(range, None, attempts).await?;
                if source.pin(Version::of(&head)).1.is_same() {
                    source.trust.conditions_are_refused(&source.name, etag);
                }
                (head, body)
            }
            (outcome, _) => outcome?,
        };
        if !self.settles {
            source.settled().await;
        }
        if let Err(difference) = source.agrees(&head).await {
            self.difference = difference;
            return Err(S::Error::changed());
        }
        if !source.assumption.confirm() {
            // It agreed, but others read another version by now.
            return Err(S::Error::changed());
        }
        self.told = Range::new(self.left.start, head.end);
        self.left.end = self.left.end.min(head.size);
        self.body = Some(body);
        Ok(head)
    }

    /// Waits until another attempt is due.
    ///
    /// # Errors
    /// If no further attempt is made.
    #[cold]
    async fn failed(&mut self, cause: S::Error) -> Result<()> {
        let (settings, name) = (self.source.store.settings(), &self.source.name);
        self.failures.bytes_since = 0;
        let wait = self.failures.attempts.failed(settings, self.op, name, cause, self.asked);
        let difference = self.difference.take();
        let wait = wait.map_err(|last| {
            let error = last.into_error();
            match difference {
                Some(difference) if error.code() == Code::FailedPrecondition => error.with_source(
                    format!("{difference}{}", self.source.store.mirrors().unwrap_or_default()),
                ),
                _ => error,
            }
        })?;
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

impl RetryProgress {
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

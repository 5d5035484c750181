//! Bytes of one version of an object, however often it takes to get them.

use super::Reads;
use super::assumption::Assumption;

use crate::{
    Body as _, Class, Failure as _, GetOptions, Head, LONGEST_RETRY_AFTER, Name, ObjectStore,
    Patience, Range, WRONG_ANSWERS, backoff,
};
use bytes::BufMut;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tf_fs_plugin::prelude::*;
use tokio::sync::Notify;
use tokio::time::Instant;

/// As many bytes make up for a failed attempt.
const PROGRESS: u64 = 256 << 10;
/// Attempts made at once, without counting: over each idle connection one may fail.
const MENDED: u32 = 80;
/// A body that brings fewer bytes a second than this, over `stall_timeout`, has stalled.
const TRICKLE: u64 = 200;

/// An object open for reading.
#[derive(Debug)]
pub(super) struct Source<S> {
    pub(super) name: Name,
    pub(super) store: Arc<S>,
    pub(super) reads: Arc<Reads>,
    /// The version, from the first answer on.
    version: OnceLock<Version>,
    known: Notify,
    pub(super) assumption: Assumption,
}

/// One version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) size: u64,
    /// `None` if the store does not tell.
    pub(super) etag: Option<String>,
}

/// The bytes of a range, one after the other.
pub(super) struct Fetch<S: ObjectStore> {
    source: Arc<Source<S>>,
    /// Where it began.
    start: u64,
    /// What is missing.
    left: Range,
    /// Whether its first answer settles the version.
    settles: bool,
    body: Option<S::Body>,
    failures: Failures,
    /// When the last attempt began.
    asked: Instant,
    pace: Pace,
    op: &'static str,
}

/// What went wrong since bytes last arrived.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// Those of them whose cause will not go away.
    wrong: u32,
    /// The time that is left for more; all of it before the first failure.
    patience: Option<Patience>,
    /// How long was waited for the last attempt.
    waited: Duration,
    /// Attempts that tell nothing of the store, such as over a connection that it had closed.
    mended: u32,
    bytes_since: u64,
}

/// How long was waited for how many bytes.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    bytes: u64,
}

impl<S: ObjectStore> Source<S> {
    pub(super) fn new(name: Name, store: Arc<S>, reads: Arc<Reads>) -> Self {
        let (version, known) = (OnceLock::new(), Notify::new());
        Self { name, store, reads, version, known, assumption: Assumption::none() }
    }

    /// One whose version is still to be confirmed by the store.
    pub(super) fn assuming(self) -> Self {
        Self { assumption: Assumption::made(), ..self }
    }

    /// The version that is read, once it is known.
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
        let same_etag = match (&pinned.etag, &version.etag) {
            (Some(pinned), Some(etag)) => pinned == etag,
            // A store that does not tell is believed if the length is right.
            _ => true,
        };
        if same_etag && pinned.size == version.size { Ok(()) } else { Err(S::Failure::changed()) }
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

    /// Whether an answer is being received.
    pub(super) fn is_open(&self) -> bool {
        self.body.is_some()
    }

    /// How many bytes were handed over.
    pub(super) fn read_so_far(&self) -> u64 {
        self.left.start - self.start
    }

    /// What has not been handed over yet.
    pub(super) fn left(&self) -> Range {
        self.left
    }

    /// Asks, and returns at the head of the answer. Only before the first byte, and for the first
    /// answer of a file: a missing object is no error here.
    ///
    /// # Errors
    /// Any but *not found*, which is `Ok(None)`.
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

    /// Adds bytes to `to` as soon as there are some; 0 at the end of the range or of the object, or if
    /// there is no room.
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
                    // The answer was shorter than what was asked for, and said so.
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
        let options = GetOptions {
            key: &source.name.key,
            range: self.left,
            if_match: source.version().and_then(|version| version.etag.as_deref()),
        };
        let attempt = self.failures.count + 1;
        let (head, body) = source.store.get(options, attempt).await?;
        if !self.settles {
            source.settled().await;
        }
        source.pin(Version { size: head.size, etag: head.etag.clone() })?;
        if !source.assumption.confirm() {
            // Right then, but others read another version by now.
            return Err(S::Failure::changed());
        }
        self.left.end = self.left.end.min(head.size);
        self.body = Some(body);
        Ok(head)
    }

    /// Waits until another attempt is due.
    ///
    /// # Errors
    /// If none is.
    #[cold]
    async fn failed(&mut self, cause: S::Failure) -> Result<()> {
        let settings = self.source.store.settings();
        if cause.is_spurious() && self.failures.mended < MENDED {
            self.failures.mended += 1;
            return Ok(());
        }
        let failures = &mut self.failures;
        failures.count += 1;
        let class = cause.class();
        failures.wrong += u32::from(class == Class::Doubtful);
        failures.bytes_since = 0;
        let patience = failures.patience.get_or_insert_with(|| Patience::new(settings));
        let left = patience.lose(std::mem::take(&mut failures.waited), self.asked.elapsed());
        let is_over = failures.count >= settings.max_attempts || failures.wrong >= WRONG_ANSWERS;
        let may_pass = matches!(class, Class::Transient | Class::Doubtful);
        let Some(left) = left.filter(|_| may_pass && !is_over) else {
            return Err(cause.into_error(self.op, &self.source.name, self.failures.count));
        };
        patience.warn(&self.source.name, || cause.summary());
        let own = backoff(settings.retry_backoff, failures.count);
        let asked = cause.retry_after().unwrap_or_default();
        let wait = own.max(asked.min(LONGEST_RETRY_AFTER)).min(left);
        failures.waited = wait;
        log::debug!(
            "{}: {}: attempt {} failed: {cause:?}; next in {wait:?}",
            self.source.name,
            self.op,
            self.failures.count
        );
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

impl Failures {
    fn progress(&mut self, bytes: u64) {
        self.bytes_since = self.bytes_since.saturating_add(bytes);
        if self.bytes_since >= PROGRESS {
            *self = Self { mended: self.mended, bytes_since: self.bytes_since, ..Self::default() };
        }
    }
}

impl Pace {
    /// Runs `fill`; `None` if too little arrived in `stall` over all calls of late.
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

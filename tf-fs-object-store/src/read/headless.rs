//! Responses that tell nothing but bytes: which version they are of is asked before and after.

use super::source::Source;
use super::version::Version;
use crate::retry::RetryState;
use crate::{
    Body, ErrorKind, GetHead, Name, ObjectMeta, ObjectStore, Range, StoreError as _, VersionCheck,
};
use bytes::{BufMut, Bytes, BytesMut};

/// The bytes of a response.
pub(super) enum Response<B> {
    /// As they arrive.
    Arriving(B),
    /// All of them, of a version that is known.
    Held(Bytes),
}

impl<B: Body> Response<B> {
    /// As [`Body::fill`].
    pub(super) async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, B::Error> {
        match self {
            Self::Arriving(body) => body.fill(to).await,
            Self::Held(bytes) => {
                let n = bytes.len().min(to.remaining_mut());
                to.put(bytes.split_to(n));
                Ok(n)
            }
        }
    }
}

impl<S: ObjectStore> Source<S> {
    /// Requests bytes between two requests that tell the version. The one before is left out if the file has a version:
    /// a response of then, or a listing, told it.
    pub(super) async fn get_headless(
        &self,
        range: Range,
        if_match: Option<&str>,
        attempts: &RetryState,
    ) -> Result<(GetHead, Response<S::Body>), S::Error> {
        let before = match self.version() {
            Some(version) => version.clone(),
            None => self.head(attempts).await?,
        };
        // Some stores refuse a range past the end. All bytes of a response are in memory at once.
        let most = self.store.settings().read_part as u64;
        let end = range.end.min(before.size).min(range.start.saturating_add(most.max(1)));
        let range = Range::new(range.start.min(end), end);
        if range.is_empty() {
            return Ok((head_of(before, range.end), Response::Held(Bytes::new())));
        }
        let (head, body) = match self.request(range, if_match, attempts).await {
            Ok(response) => response,
            Err(failure) => return Err(self.explained(failure, &before, attempts).await),
        };
        if let Some(head) = head {
            return Ok((head, Response::Arriving(body)));
        }
        let bytes = self.collect(body, range).await?;
        if bytes.is_empty() {
            return Err(S::Error::invalid("it has no bytes"));
        }
        let after = self.head(attempts).await?;
        let end = range.start + bytes.len() as u64;
        // The version of an open file is compared by the caller.
        if self.version().is_none() && !is_same(&before, &after) {
            return Err(self.changed());
        }
        Ok((head_of(after, end), Response::Held(bytes)))
    }

    /// Returns the failure of a request, or that there is another version now: its range may be past the end of that.
    async fn explained(
        &self,
        failure: S::Error,
        before: &Version,
        attempts: &RetryState,
    ) -> S::Error {
        if !matches!(failure.kind(), ErrorKind::Permanent | ErrorKind::InvalidResponse) {
            return failure;
        }
        match self.head(attempts).await {
            Ok(after) if !is_same(before, &after) => self.changed(),
            _ => failure,
        }
    }

    /// Returns the failure of a response of another version: an error of an open file. One that is being opened is opened
    /// again.
    fn changed(&self) -> S::Error {
        match self.version() {
            Some(_) => S::Error::changed(),
            None => S::Error::invalid("the object changed while its beginning was read"),
        }
    }

    /// Looks up the version of the object.
    async fn head(&self, attempts: &RetryState) -> Result<Version, S::Error> {
        let name: &Name = &self.name;
        let meta = self.in_time(attempts.run(self.store.head(name))).await?;
        let ObjectMeta { size, etag, modified } = meta;
        let size = size.ok_or_else(|| S::Error::invalid("it tells no size"))?;
        Ok(Version { size, etag, modified })
    }

    /// Receives all bytes of a body, and no more than were requested.
    async fn collect(&self, mut body: S::Body, range: Range) -> Result<Bytes, S::Error> {
        let len = usize::try_from(range.len()).unwrap_or(usize::MAX);
        let mut bytes = BytesMut::with_capacity(len).limit(len);
        let stall = self.store.settings().stall_timeout;
        loop {
            let filled = tokio::time::timeout(stall, body.fill(&mut bytes)).await;
            match filled {
                Ok(Ok(0)) => return Ok(bytes.into_inner().freeze()),
                Ok(filled) => filled?,
                Err(_) => return Err(S::Error::stalled(self.store.endpoint(), stall)),
            };
        }
    }
}

fn head_of(version: Version, end: u64) -> GetHead {
    GetHead::new(version.size, end).with_etag(version.etag).with_modified(version.modified)
}

fn is_same(one: &Version, other: &Version) -> bool {
    one.compare(other, VersionCheck::Etag).is_same()
}

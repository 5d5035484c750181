//! One ranged GET, by either of two ways: over connections of our own, read straight into the
//! destination, or by the official client where a proxy stands between.

mod answer;
mod cause;
mod own;
mod pool;
mod request;
mod sdk;
mod target;

pub(super) use cause::Cause;
pub(super) use pool::Pool;
pub(super) use target::Target;

use crate::metrics;
use bytes::BufMut;
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The bytes from `start` up to `end`, which is not one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    pub(super) fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    pub(super) fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) key: &'a str,
    pub(super) range: Range,
    /// The version that it has to be.
    pub(super) etag: Option<&'a str>,
}

/// What an answer says of the object and of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of the whole object.
    pub(super) size: u64,
    /// As the store writes it, with quotes.
    pub(super) etag: Option<String>,
    /// Where the body goes on to.
    pub(super) end: u64,
    /// If the store tells.
    pub(super) modified: Option<SystemTime>,
}

/// The bytes of an answer, as they arrive.
pub(super) enum Body {
    Own(own::Body),
    Sdk(sdk::Body),
    /// Of an object without bytes.
    Empty,
}

impl Body {
    /// Adds bytes as soon as there are some; 0 at the end or if there is no room.
    pub(super) async fn fill(&mut self, to: &mut (impl BufMut + ?Sized)) -> Result<usize, Cause> {
        match self {
            Self::Own(body) => body.fill(to).await,
            Self::Sdk(body) => body.fill(to).await,
            Self::Empty => Ok(0),
        }
    }
}

/// Asks for `wanted`, for the `attempt`th time, and returns at the head of the answer.
pub(super) async fn get(
    target: &Target,
    pool: &Arc<Pool>,
    wanted: Wanted<'_>,
    attempt: u32,
) -> Result<(Head, Body), Cause> {
    let route = target.route().map_err(Cause::Other)?;
    if target.is_for_sdk(&route) {
        return sdk::get(target, wanted).await;
    }
    let asked = Instant::now();
    let outcome = own::get(target, &route, pool, wanted).await;
    let status = match &outcome {
        Ok(_) => Some(206),
        Err(cause) => cause.status(),
    };
    metrics::attempt("GetObject", attempt, asked.elapsed(), status);
    if matches!(outcome, Err(Cause::Unsupported)) {
        target.use_sdk();
        return sdk::get(target, wanted).await;
    }
    outcome
}

/// The answer 416 to a range of an object whose version is not known yet: it ends before.
fn past_the_end(wanted: Wanted<'_>, size: Option<u64>) -> Result<(Head, Body), Cause> {
    // Without a word on the size, an object that has no first byte is empty.
    let size = size.or((wanted.range.start == 0).then_some(0));
    match size {
        Some(size) if size <= wanted.range.start => {
            Ok((Head { size, etag: None, end: size, modified: None }, Body::Empty))
        }
        _ => Err(Cause::Nonsense("HTTP 416 for a range that the object has".into())),
    }
}

/// The answer broke off.
fn closed(missing: u64) -> io::Error {
    let kind = io::ErrorKind::UnexpectedEof;
    io::Error::new(kind, format!("closed with {missing} bytes missing"))
}

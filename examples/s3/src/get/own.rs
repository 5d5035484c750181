//! A GET over a connection of our own, from the socket straight into the destination.

use super::answer::{self, Answer};
use super::cause::Refusal;
use super::pool::{Pool, Wire};
use super::target::Place;
use super::{Cause, closed, past_the_end, request};
use crate::connection::{Bucket, Route};
use crate::metrics;
use bytes::BufMut;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::{GetOptions, Head};

/// Longer heads than this are refused.
const HEAD_LIMIT: usize = 32 << 10;
/// A head that keeps coming may take so many times the time that anything may take to move.
const HEAD_PATIENCE: u32 = 5;
/// What is received with a head at most; the rest of the body goes where it belongs at once.
const HEAD_READ: usize = 4 << 10;
/// Of the body of a refusal no more is read.
const REFUSAL_LIMIT: usize = 64 << 10;

/// The body of an answer.
pub(super) struct Body {
    /// Until the end of the body.
    wire: Option<Wire>,
    left: u64,
    keep: bool,
    endpoint: String,
    place: Place,
    pool: Arc<Pool>,
}

pub(super) async fn get(
    bucket: &Bucket,
    route: &Route,
    wanted: GetOptions<'_>,
) -> Result<(Head, super::Body), Cause> {
    let credentials = bucket.credentials().await.map_err(Cause::Other)?;
    let request =
        request::request(bucket, route, wanted, credentials.as_ref()).map_err(Cause::Other)?;
    let settings = &bucket.settings;
    let place = bucket.place(route).map_err(Cause::Other)?;
    let pool = bucket.pool();
    let mut wire = pool.connect(&place, &route.base, settings.connect_timeout).await?;
    let stall = settings.engine.stall_timeout;
    let answered = async {
        let sent = tokio::time::timeout(stall, wire.send(&request)).await;
        sent.map_err(|_| stalled(route, stall))?.map_err(|error| broken(route, error))?;
        receive_head(&mut wire, route, stall).await
    };
    let answer = match tokio::time::timeout(stall * HEAD_PATIENCE, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(Cause::Transport(..))) if wire.was_used && wire.received.is_empty() => {
            return Err(Cause::Stale);
        }
        Ok(Err(cause)) => return Err(cause),
        Err(_) => return Err(stalled(route, stall)),
    };
    match answer.status {
        200 | 206 => {
            let head = answer.head(wanted)?;
            let length = answer.content_length.unwrap_or_default();
            let asked = head.end - wanted.range.start;
            let mut body = Body {
                wire: Some(wire),
                left: asked,
                // Otherwise more follows than was asked for.
                keep: answer.keep && length == asked,
                endpoint: route.base.clone(),
                place,
                pool: Arc::clone(pool),
            };
            body.end_if_done();
            Ok((head, super::Body(super::Inner::Own(body))))
        }
        304 | 412 => Err(Cause::Changed),
        416 if wanted.if_match.is_none() => {
            let body = refusal_body(&mut wire, &answer, settings.engine.stall_timeout).await;
            if answer.keep && answer.content_length == Some(body.len() as u64) {
                pool.keep(&place, wire);
            }
            past_the_end(wanted, answer.unsatisfied_size())
        }
        416 => Err(Cause::Changed),
        _ => {
            let body = refusal_body(&mut wire, &answer, settings.engine.stall_timeout).await;
            if answer.keep && answer.content_length == Some(body.len() as u64) {
                pool.keep(&place, wire);
            }
            let refusal = answer.refusal(&body);
            let is_mended = bucket.may_try_again(answer.status, answer.region(), &body)
                || (refusal.code.as_deref() == Some("RequestTimeTooSkewed")
                    && answer.date().is_some_and(|date| bucket.set_clock(date)));
            let retry_after = answer.retry_after;
            Err(Cause::Answer(Box::new(Refusal { answer: refusal, retry_after, is_mended })))
        }
    }
}

async fn receive_head(wire: &mut Wire, route: &Route, stall: Duration) -> Result<Answer, Cause> {
    loop {
        if let Some((answer, len)) = answer::parse(&wire.received)? {
            let _ = wire.received.split_to(len);
            // `100 Continue` and its like come before the answer.
            if (100..200).contains(&answer.status) {
                continue;
            }
            return Ok(answer);
        }
        if wire.received.len() >= HEAD_LIMIT {
            return Err(Cause::Nonsense(format!("its head is longer than {HEAD_LIMIT} bytes")));
        }
        let received = tokio::time::timeout(stall, wire.receive(HEAD_READ)).await;
        let received = received.map_err(|_| stalled(route, stall))?;
        if received.map_err(|error| broken(route, error))? == 0 {
            let kind = io::ErrorKind::UnexpectedEof;
            return Err(broken(route, io::Error::new(kind, "closed without a response")));
        }
    }
}

fn broken(route: &Route, error: io::Error) -> Cause {
    Cause::Transport(route.base.clone(), error)
}

fn stalled(route: &Route, stall: Duration) -> Cause {
    Cause::Stalled(route.base.clone(), stall)
}

/// What a refusal says, as far as it arrives; chunked or not, the XML is in one piece of it.
async fn refusal_body(wire: &mut Wire, answer: &Answer, stall: Duration) -> Vec<u8> {
    let length = answer.content_length.and_then(|length| usize::try_from(length).ok());
    let limit = length.unwrap_or(REFUSAL_LIMIT).min(REFUSAL_LIMIT);
    let ended = |received: &[u8]| answer.chunked && received.ends_with(b"0\r\n\r\n");
    let receive = async {
        while wire.received.len() < limit && !ended(&wire.received) {
            if !matches!(wire.receive(limit - wire.received.len()).await, Ok(1..)) {
                break;
            }
        }
    };
    // As much as has come by then has to do.
    let _ = tokio::time::timeout(stall, receive).await;
    let len = wire.received.len().min(limit);
    wire.received.split_to(len).to_vec()
}

impl Body {
    pub(super) async fn fill(
        &mut self,
        to: &mut (impl BufMut + Send + ?Sized),
    ) -> Result<usize, Cause> {
        let Some(wire) = &mut self.wire else { return Ok(0) };
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(to.remaining_mut());
        if room == 0 {
            return Ok(0);
        }
        match wire.read(&mut to.limit(room)).await {
            Ok(0) => {
                self.wire = None;
                Err(Cause::Transport(self.endpoint.clone(), closed(self.left)))
            }
            Ok(n) => {
                metrics::BYTES_RECEIVED.add(n as u64);
                self.left -= n as u64;
                self.end_if_done();
                Ok(n)
            }
            Err(error) => {
                self.wire = None;
                Err(Cause::Transport(self.endpoint.clone(), error))
            }
        }
    }

    fn end_if_done(&mut self) {
        if self.left == 0
            && let Some(wire) = self.wire.take()
            && self.keep
        {
            self.pool.keep(&self.place, wire);
        }
    }
}

//! A request over one of our connections.

use super::body::RawBody;
use super::pool::{Pool, PoolKey};
use super::raw_connection::RawConnection;
use super::response::Response;
use super::response_head::{ResponseHead, parse};
use super::{HttpBody, HttpError};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longer heads than this are refused. Browsers and curl accept some 256 KiB.
const HEAD_LIMIT: usize = 256 << 10;
/// A head that keeps arriving may take the stall timeout this many times.
const HEAD_PATIENCE: u32 = 5;
/// The most bytes received at once with a head; the rest of the body goes directly to its destination.
const HEAD_READ: usize = 4 << 10;

/// A request without a body, as it goes on the wire.
#[derive(Clone, Copy)]
pub struct RawGet<'a> {
    /// Where to send it.
    pub pool_key: &'a PoolKey,
    /// Scheme, host and port, for errors.
    pub endpoint: &'a Arc<str>,
    /// How long it may take to make a connection.
    pub connect_timeout: Duration,
    /// How long there may be no progress.
    pub stall_timeout: Duration,
    /// From the first line to the empty one.
    pub request: &'a [u8],
}

// The request may have credentials in it.
impl fmt::Debug for RawGet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawGet").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl RawGet<'_> {
    /// Sends the request, and returns with the head of the response, whatever its status. The body of a response with
    /// `Transfer-Encoding` is received as it is, and can only be [read in part](Response::beginning).
    ///
    /// # Errors
    /// If no response comes. [`HttpError::Stale`] if the connection turned out to be closed.
    pub async fn send(self, pool: &Arc<Pool>) -> Result<Response, HttpError> {
        let stall = self.stall_timeout;
        let mut connection =
            pool.connect(self.pool_key, self.endpoint, self.connect_timeout).await?;
        let answered = async {
            let sent = tokio::time::timeout(stall, connection.send(self.request)).await;
            sent.map_err(|_| self.stalled())?.map_err(|error| self.broken(error))?;
            self.receive_head(&mut connection).await
        };
        match tokio::time::timeout(stall * HEAD_PATIENCE, answered).await {
            Ok(Ok(answer)) => {
                let (len, keep, peer) = (answer.content_length, answer.keep, connection.peer());
                let raw = RawBody::new(connection, len, keep, self.pool_key, pool);
                let body = HttpBody::from_raw(raw, Arc::clone(self.endpoint), stall);
                Ok(Response::from_raw(answer, body, self.endpoint, peer))
            }
            Ok(Err(HttpError::Transport(endpoint, _)))
                if connection.was_used && connection.received.is_empty() =>
            {
                Err(HttpError::Stale(endpoint))
            }
            Ok(Err(failed)) => Err(failed),
            Err(_) => Err(self.stalled()),
        }
    }

    async fn receive_head(
        &self,
        connection: &mut RawConnection,
    ) -> Result<ResponseHead, HttpError> {
        let mut parsed = 0;
        loop {
            let is_due = is_due(&connection.received, parsed);
            if is_due && let Some((answer, len)) = parse(&connection.received)? {
                let _ = connection.received.split_to(len);
                // `100 Continue` and its like come before the response.
                if (100..200).contains(&answer.status) {
                    parsed = 0;
                    continue;
                }
                return Ok(answer);
            }
            if is_due {
                parsed = connection.received.len();
            }
            if connection.received.len() >= HEAD_LIMIT {
                return Err(HttpError::Invalid(format!(
                    "its head is longer than {HEAD_LIMIT} bytes"
                )));
            }
            let received =
                tokio::time::timeout(self.stall_timeout, connection.receive(HEAD_READ)).await;
            let received = received.map_err(|_| self.stalled())?;
            if received.map_err(|error| self.broken(error))? == 0 {
                let kind = io::ErrorKind::UnexpectedEof;
                return Err(self.broken(io::Error::new(kind, "closed without a response")));
            }
        }
    }

    fn broken(&self, error: io::Error) -> HttpError {
        HttpError::Transport(self.endpoint.to_string(), error.into())
    }

    fn stalled(&self) -> HttpError {
        HttpError::Stalled(self.endpoint.to_string(), self.stall_timeout)
    }
}

/// Returns whether to parse a head again, of which so many bytes were parsed: each time costs its whole length.
fn is_due(received: &[u8], parsed: usize) -> bool {
    received.len() - parsed >= parsed.div_ceil(4) || received[parsed..].contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_arrives_in_drips_is_parsed_rarely() {
        let head = [b'a'; 64 << 10];
        let (mut parsed, mut times) = (0, 0);
        for len in 1..=head.len() {
            if is_due(&head[..len], parsed) {
                (parsed, times) = (len, times + 1);
            }
        }
        assert!(times < 64, "{times}");
        assert!(is_due(b"HTTP/1.1 200 OK\r\n\r\n", 18), "its end has come");
    }
}

//! HTTP for stores that speak it: connections, certificates, requests, bodies, failures by status. Feature `http`.
//!
//! A store builds a [`Request`] and [sends](Http::send) it. It gets a [`Response`] whatever the status: the store
//! decides which status is a success, and [`Response::into_error`] makes a [`HttpError`] of any other. URLs, keys and headers
//! are sent exactly as they are given; no redirect is followed, nothing is decompressed.
//!
//! | Module | Job |
//! |---|---|
//! | `client`, `response` | a client, its requests and responses |
//! | `body` | bodies of requests and responses |
//! | `upload_body` | a body that is being sent, in pieces that show its progress |
//! | `error` | why a request failed, and the error for the user |
//! | `raw_connection`, `pool`, `raw_get`, `response_head` | our connections, the idle ones, a GET over one, and its response |
//! | `range_response` | what a response to a GET of a range means |
//! | `connector`, `write_timeout` | connections: direct or through a proxy, and broken when the peer accepts no more bytes |
//! | `network_policy` | which addresses may be connected to |
//! | `tls` | which certificates are trusted |
//! | `headers` | header values, parsed strictly |
//! | `metrics` | requests and failures, counted |
//! | `transport` | why a request got no response |
//! | `xml` | listings and errors |

mod body;
mod client;
mod connector;
mod error;
#[cfg(test)]
mod fuzz;
mod headers;
mod metrics;
mod network_policy;
mod pool;
mod range_response;
mod raw_connection;
mod raw_get;
mod response;
mod response_head;
mod tls;
mod transport;
mod upload_body;
mod write_timeout;
#[cfg(feature = "xml")]
pub mod xml;

pub use crate::server::names_server;
pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
pub use body::{Chunks, HttpBody};
pub use client::{Http, HttpSettings, endpoint};
pub use connector::{Connector, IDLE, Proxy, is_confidential, is_proxied};
pub use error::{ErrorResponse, HttpError};
pub use headers::{compression, content_range, date, number, retry_after, unsatisfied_size, words};
pub use metrics::RequestCounts;
pub use network_policy::{NetworkPolicy, Zone};
pub use pool::{Pool, PoolKey};
pub use range_response::{RangeOutcome, RangeResponse};
pub use raw_get::RawGet;
pub use response::Response;
pub use tls::Tls;
pub use write_timeout::WriteTimeout;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use transport::{PROXY_AUTH_REQUIRED, causes, is_lasting, is_timeout, printable};

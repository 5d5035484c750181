//! HTTP for stores that speak it: connections, certificates, requests, bodies, failures by status. Feature `http`.
//!
//! A store builds a [`Request`] and [sends](Http::send) it. It gets a [`Response`] whatever the status: the store
//! decides which status is a success, and [`Response::refusal`] makes a [`Failed`] of any other. URLs, keys and headers
//! are sent exactly as they are given; no redirect is followed, nothing is decompressed.
//!
//! | Module | Job |
//! |---|---|
//! | `client`, `response` | a client, its requests and responses |
//! | `body` | bodies of requests and responses |
//! | `sending` | a body that is being sent, in pieces that show its progress |
//! | `failure` | why a request failed, and the error for the user |
//! | `wire`, `sealed`, `pool`, `exchange`, `answer` | our connections, those with TLS, the idle ones, a request over one, and its response |
//! | `ranged` | what a response to a GET of a range means |
//! | `connector`, `guard` | connections: direct or through a proxy, and broken when the peer accepts no more bytes |
//! | `reach` | which addresses may be connected to |
//! | `tls` | which certificates are trusted |
//! | `headers` | header values, parsed strictly |
//! | `metrics` | requests and failures, counted |
//! | `transport` | why a request got no response |

mod answer;
mod body;
mod client;
mod connector;
mod exchange;
mod failure;
#[cfg(test)]
mod fuzz;
mod guard;
mod headers;
mod metrics;
mod pool;
mod ranged;
mod reach;
mod response;
mod sealed;
mod sending;
mod tls;
mod transport;
mod wire;

pub use crate::server::names_server;
pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
pub use body::{Chunks, HttpBody};
pub use client::{Http, HttpSettings, endpoint};
pub use connector::{Connector, IDLE, Proxy, is_proxied, keeps_secrets};
pub use exchange::Exchange;
pub use failure::{Failed, Refusal};
pub use guard::Guarded;
pub use headers::{compression, content_range, date, number, retry_after, unsatisfied_size, words};
pub use metrics::Counts;
pub use pool::{Place, Pool};
pub use ranged::{RangeAnswer, Ranged};
pub use reach::{Reach, Zone};
pub use response::Response;
pub use tls::Tls;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub use transport::{PROXY_WANTS_CREDENTIALS, causes, is_timeout, printable, will_stay};

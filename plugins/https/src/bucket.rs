//! A server and its files, which the engine calls a bucket and its objects.

use crate::credentials::Credentials;
use crate::redirect::{Clients, Location};
use crate::response::{self, RangeBody};
use bytes::BufMut;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tf_fs_object_store::http::{HeaderValue, HttpBody, HttpError, Method, Response};
use tf_fs_object_store::{
    Body, GetHead, GetOptions, Name, ObjectMeta, ObjectStore, Range, Settings, StoreError as _,
    attempt,
};
use tf_fs_plugin::prelude::*;

/// Marks the error of a file that its server sends only as a whole.
const WHOLE: &str = "tensorflow-https/whole";

/// The most whole files that wait to be opened, each with a connection.
const WHOLES: usize = 16;

/// A server.
pub struct Origin {
    pub(crate) clients: Clients,
    /// Scheme, host and port, as the user wrote them.
    pub(crate) base: String,
    pub(crate) settings: Settings,
    pub(crate) credentials: Credentials,
    /// The user agent of requests, if it is not the usual one.
    pub(crate) user_agent: Option<HeaderValue>,
    /// Where redirects led, and the cookies for it, by key and version: all of an open file is read from there.
    pub(crate) locations: Mutex<HashMap<(String, String), Location>>,
    /// Whole files that arrived when a part was requested, by key, and when.
    pub(crate) wholes: Arc<Mutex<HashMap<String, (Instant, Response)>>>,
    /// Whether a GET of one byte told more than a HEAD did: then no HEAD is sent any more.
    pub(crate) prefers_get: AtomicBool,
}

/// The bytes of a response; none past the end of a file.
#[derive(Debug)]
pub struct Part(Option<HttpBody>);

impl Body for Part {
    type Error = HttpError;

    async fn fill(&mut self, to: &mut (impl BufMut + Send)) -> Result<usize, HttpError> {
        match &mut self.0 {
            Some(body) => body.fill(to).await,
            None => Ok(0),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether an error says that the server sends the file only as a whole.
pub(crate) fn is_whole(error: &Error) -> bool {
    error.payloads().any(|(key, _)| key == WHOLE)
}

/// Without URLs, which may be signed.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Origin {
    /// Returns the whole file that arrived when a part of it was requested, for opening it.
    pub(crate) fn take_whole(&self, key: &str) -> Option<Response> {
        lock(&self.wholes).remove(key).map(|(_, response)| response)
    }

    fn whole(&self, key: &str, response: Option<Response>) -> HttpError {
        if let Some(response) = response {
            let mut wholes = lock(&self.wholes);
            if wholes.len() >= WHOLES {
                wholes.clear();
            }
            wholes.insert(key.to_owned(), (Instant::now(), response));
            drop(wholes);
            // A reader of an open file does not open it now, and nobody else may: it would keep its connection.
            let (wholes, patience) = (Arc::downgrade(&self.wholes), self.settings.stall_timeout);
            tokio::spawn(async move {
                tokio::time::sleep(patience).await;
                if let Some(wholes) = wholes.upgrade() {
                    lock(&wholes).retain(|_, (since, _)| since.elapsed() < patience);
                }
            });
        }
        let error = Error::failed_precondition("the server sends it only whole; open it again");
        HttpError::Other(error.with_payload(WHOLE, ""))
    }
}

impl ObjectStore for Origin {
    type Error = HttpError;
    type Body = Part;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn endpoint(&self) -> String {
        self.base.clone()
    }

    fn mirrors(&self) -> Option<&str> {
        Some(
            "; if the nodes of the server send other ETags for the same bytes, set TF_HTTPS_VERSION_CHECK=size, which \
             compares the size alone",
        )
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(Option<GetHead>, Part), HttpError> {
        let response = self.request(Method::GET, options.key, Some(options)).await?;
        match response::read(response, options, self.settings.version_check)? {
            RangeBody::Part(head, body) => Ok((Some(head), Part(body))),
            RangeBody::Whole(response) => Err(self.whole(options.key, response)),
            RangeBody::Refused(response) => Err(self.error_of(response).await),
        }
    }

    async fn head(&self, name: &Name) -> Result<ObjectMeta, HttpError> {
        // A HEAD that got no response may never get one: the next attempt does without.
        if attempt().number == 1 && !self.prefers_get.load(Ordering::Relaxed) {
            match self.request(Method::HEAD, &name.key, None).await {
                // Where a HEAD tells no length or 0, a GET may tell more.
                Ok(response)
                    if response.status == 200
                        && response.content_length > Some(0)
                        && response.compression().is_none() =>
                {
                    let (etag, modified) = response::version(&response);
                    // A file that is opened by this version is read in parts: only if the server sends any.
                    let in_parts =
                        response.header("accept-ranges").is_some_and(|unit| unit == "bytes");
                    let size = response.content_length.unwrap_or_default();
                    return Ok(ObjectMeta::new(size)
                        .with_etag(etag.filter(|_| in_parts))
                        .with_modified(modified));
                }
                Err(failed) if failed.is_ambiguous() => return Err(failed),
                // A refusal may be for HEAD alone: many servers, and most signatures, are made for GET.
                Ok(_) | Err(_) => {}
            }
        }
        self.probe(&name.key).await
    }
}

impl Origin {
    /// Requests one byte of a file, to learn its metadata.
    async fn probe(&self, key: &str) -> Result<ObjectMeta, HttpError> {
        let options = GetOptions::new(key, Range::new(0, 1));
        let response = self.request(Method::GET, key, Some(options)).await?;
        match response::read(response, options, self.settings.version_check)? {
            RangeBody::Part(head, body) => {
                self.prefers_get.store(true, Ordering::Relaxed);
                if let Some(body) = body {
                    // So that the connection can be used again.
                    let _ = body.collect(1).await;
                }
                Ok(head.meta())
            }
            RangeBody::Whole(response) => {
                self.prefers_get.store(false, Ordering::Relaxed);
                match response {
                    Some(response)
                        if response.content_length.is_some()
                            && response.compression().is_none() =>
                    {
                        let size = response.content_length.unwrap_or_default();
                        Ok(ObjectMeta::new(size).with_modified(response::version(&response).1))
                    }
                    response => Err(self.whole(key, response)),
                }
            }
            RangeBody::Refused(response) => Err(self.error_of(response).await),
        }
    }
}

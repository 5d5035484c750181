//! A server: its files, as the engine requests them.

use crate::answer::{self, Answer};
use crate::cookies::Cookies;
use crate::credentials::Credentials;
use crate::name;
use crate::redirect::{self, Clients};
use bytes::BufMut;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tf_fs_object_store::http::{
    Chunks, ErrorResponse, HeaderValue, HttpBody, HttpError, Method, NetworkPolicy, Request,
    Response, Uri as Url, header,
};
use tf_fs_object_store::{
    Body, GetHead, GetOptions, Name, ObjectMeta, ObjectStore, Range, Settings, StoreError as _,
    attempt,
};
use tf_fs_plugin::prelude::*;

/// The most redirects that are followed to a file.
const REDIRECTS: usize = 10;
/// The most files whose redirects are remembered.
const PLACES: usize = 4096;
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
    /// What requests say of the program, if not the usual.
    pub(crate) user_agent: Option<HeaderValue>,
    /// Where redirects led, and the cookies for it, by key and version: all of an open file is read from there.
    pub(crate) places: Mutex<HashMap<(String, String), Place>>,
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

    async fn fill(&mut self, to: &mut (impl BufMut + Send + ?Sized)) -> Result<usize, HttpError> {
        match &mut self.0 {
            Some(body) => body.fill(to).await,
            None => Ok(0),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

    /// Requests a file, or part of it, and follows redirects.
    ///
    /// # Errors
    /// If no response comes, or redirects cannot be followed.
    pub(crate) async fn request(
        &self,
        method: Method,
        key: &str,
        options: Option<GetOptions<'_>>,
    ) -> Result<Response, HttpError> {
        let original = name::url(&self.base, key).map_err(HttpError::Other)?;
        let version = options.and_then(|options| options.known?.etag.clone());
        let place = version.map(|version| (key.to_owned(), version));
        let known = place.as_ref().and_then(|place| lock(&self.places).get(place).cloned());
        let ask = Ask { method: &method, options, named: &original };
        if let (Some(known), Some(place)) = (known, &place) {
            let response = self.once(ask, &known).await?;
            if !matches!(response.status, 300..=399 | 401 | 403 | 404 | 410) {
                return Ok(response);
            }
            // The signature of such a URL expires after a while; the server provides another one.
            lock(&self.places).remove(place);
        }
        let mut place = Place { url: original.clone(), cookies: Cookies::default(), reach: None };
        let mut first = None;
        for redirects in 0..=REDIRECTS {
            let response = self.once(ask, &place).await?;
            let Some(location) = redirect::location(&response) else {
                if redirects > 0
                    && matches!(response.status, 200 | 206)
                    && let (Some(version), _) = answer::version(&response)
                {
                    let mut places = lock(&self.places);
                    if places.len() >= PLACES {
                        places.clear();
                    }
                    places.insert((key.to_owned(), version), place);
                }
                return Ok(response);
            };
            place.cookies.keep(&place.url, &response);
            let zone = *first.get_or_insert_with(|| redirect::zone(&response));
            place.url = redirect::follow(&place.url, &location)?;
            let is_named = name::origin(&place.url) == name::origin(&original);
            place.reach = (!is_named).then(|| redirect::reach(zone, &place.url));
        }
        let text = format!(
            "more than {REDIRECTS} redirects, the last one to {}; look at the URL",
            name::origin(&place.url)
        );
        Err(HttpError::Other(Error::failed_precondition(text)))
    }

    /// Makes one request to one server.
    async fn once(&self, ask: Ask<'_>, place: &Place) -> Result<Response, HttpError> {
        let response = self.clients.of(place.reach).send(self.written(ask, place)).await;
        response.map_err(|failed| redirect::explain(failed, &name::origin(ask.named), &place.url))
    }

    /// Returns a request, with the secrets that its server may have.
    fn written(&self, ask: Ask<'_>, place: &Place) -> Request<Chunks> {
        let mut request = Request::new(Chunks::default());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = place.url.clone();
        let headers = request.headers_mut();
        if let Some(GetOptions { range, .. }) = ask.options {
            let text = format!("bytes={}-{}", range.start, range.end - 1);
            headers.insert(header::RANGE, HeaderValue::try_from(text).expect("digits"));
        }
        let if_match = ask.options.and_then(|options| options.if_match);
        if let Some(version) = if_match.and_then(|version| HeaderValue::try_from(version).ok()) {
            headers.insert(header::IF_MATCH, version);
        }
        if let Some(agent) = &self.user_agent {
            headers.insert(header::USER_AGENT, agent.clone());
        }
        if let Some(cookies) = place.cookies.header(&place.url) {
            headers.insert(header::COOKIE, cookies);
        }
        self.credentials.add(headers, &place.url, ask.named);
        request
    }

    /// Returns the failure of a response whose status is not a success.
    pub(crate) async fn error_of(&self, response: Response) -> HttpError {
        let url = response.url();
        let host = name::origin(url);
        let base = name::url(&self.base, "").unwrap_or_default();
        let has_credentials = self.credentials.has(url, &base);
        let is_named = host == name::origin(&base);
        let is_signed = redirect::is_signed(url);
        response
            .into_error(self.settings.stall_timeout, |refusal, _| {
                refusal.advice = advice(refusal, has_credentials, is_named, is_signed, &host);
            })
            .await
    }
}

/// What a request is for.
#[derive(Clone, Copy)]
struct Ask<'a> {
    method: &'a Method,
    options: Option<GetOptions<'a>>,
    /// The URL that the user named.
    named: &'a Url,
}

/// Where a file is, after redirects.
#[derive(Clone)]
pub(crate) struct Place {
    url: Url,
    cookies: Cookies,
    /// What its requests may reach; `None` for a server that the user named.
    reach: Option<NetworkPolicy>,
}

/// Returns what a user can do after a refusal.
fn advice(
    refusal: &ErrorResponse,
    has_credentials: bool,
    is_named: bool,
    is_signed: bool,
    host: &str,
) -> Option<String> {
    Some(match (refusal.status, has_credentials) {
        (401, false) if !is_named => format!(
            "a redirect led to {host}, which requires credentials; name its URL itself, or put a token into \
             TF_HTTPS_BEARER_TOKENS or a header into TF_HTTPS_HEADERS for it"
        ),
        (401, false) => format!(
            "it requires credentials; put a token into TF_HTTPS_BEARER_TOKENS (host=token), a header into TF_HTTPS_HEADERS, \
             or a password into ~/.netrc, for {host}"
        ),
        (401, true) => format!("the credentials for {host} are not accepted; correct them"),
        (403, _) if is_signed => {
            "look at the URL: it is signed, and its time may be over".to_owned()
        }
        (403, false) => format!(
            "look at the URL; if it is right, {host} wants credentials (TF_HTTPS_BEARER_TOKENS, TF_HTTPS_HEADERS, ~/.netrc), \
             or another name of the program (TF_HTTPS_USER_AGENT)"
        ),
        (403, true) => {
            format!(
                "the credentials for {host} do not allow this; look at the URL and at their rights"
            )
        }
        (407, _) => "the proxy requires credentials; put them into HTTP_PROXY".to_owned(),
        (300..=399, _) => {
            format!("{host} names no place to follow (Location), or several; look at the URL")
        }
        (429, _) => {
            "the server limits requests; read fewer files at once, or try again later".to_owned()
        }
        (500.., _) => "the server is at fault; try again later".to_owned(),
        _ => return None,
    })
}

impl ObjectStore for Origin {
    type Error = HttpError;
    type Body = Part;

    const MIRRORS: Option<&'static str> = Some(
        "; if the nodes of the server send other ETags for the same bytes, set TF_HTTPS_VERSION_CHECK=size, which compares \
         the size alone",
    );

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn endpoint(&self) -> String {
        self.base.clone()
    }

    async fn get(&self, options: GetOptions<'_>) -> Result<(GetHead, Part), HttpError> {
        let response = self.request(Method::GET, options.key, Some(options)).await?;
        match answer::read(response, options, self.settings.version_check)? {
            Answer::Part(head, body) => Ok((head, Part(body))),
            Answer::Whole(response) => Err(self.whole(options.key, response)),
            Answer::Refused(response) => Err(self.error_of(response).await),
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
                    let (etag, modified) = answer::version(&response);
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
        match answer::read(response, options, self.settings.version_check)? {
            Answer::Part(head, body) => {
                self.prefers_get.store(true, Ordering::Relaxed);
                if let Some(body) = body {
                    // So that the connection can be used again.
                    let _ = body.collect(1, self.settings.stall_timeout).await;
                }
                Ok(head.meta())
            }
            Answer::Whole(response) => {
                self.prefers_get.store(false, Ordering::Relaxed);
                match response {
                    Some(response)
                        if response.content_length.is_some()
                            && response.compression().is_none() =>
                    {
                        let size = response.content_length.unwrap_or_default();
                        Ok(ObjectMeta::new(size).with_modified(answer::version(&response).1))
                    }
                    response => Err(self.whole(key, response)),
                }
            }
            Answer::Refused(response) => Err(self.error_of(response).await),
        }
    }
}

#[cfg(test)]
mod tests;

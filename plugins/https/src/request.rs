//! Requests to a server: redirects are followed, and secrets are added for whom they are.

use crate::bucket::{Origin, lock};
use crate::cookies::Cookies;
use crate::redirect::Location;
use crate::{name, redirect, response};
use tf_fs_object_store::GetOptions;
use tf_fs_object_store::http::{
    Chunks, HeaderValue, HttpError, Method, Request, Response, Uri as Url, header,
};
use tf_fs_plugin::prelude::*;

/// The most redirects that are followed to a file.
const REDIRECTS: usize = 10;
/// The most files whose redirects are remembered.
const LOCATIONS: usize = 4096;

/// The purpose of a request.
#[derive(Clone, Copy)]
struct Query<'a> {
    method: &'a Method,
    options: Option<GetOptions<'a>>,
    /// The URL that the user named.
    named: &'a Url,
}

impl Origin {
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
        let location = version.map(|version| (key.to_owned(), version));
        let known =
            location.as_ref().and_then(|location| lock(&self.locations).get(location).cloned());
        let query = Query { method: &method, options, named: &original };
        if let (Some(known), Some(location)) = (known, &location) {
            let response = self.once(query, &known).await?;
            if !matches!(response.status, 300..=399 | 401 | 403 | 404 | 410) {
                return Ok(response);
            }
            // The signature of such a URL expires after a while; the server provides another one.
            lock(&self.locations).remove(location);
        }
        let mut location =
            Location { url: original.clone(), cookies: Cookies::default(), reach: None };
        let mut first = None;
        for redirects in 0..=REDIRECTS {
            let response = self.once(query, &location).await?;
            let Some(target) = redirect::location(&response) else {
                if redirects > 0
                    && matches!(response.status, 200 | 206)
                    && let (Some(version), _) = response::version(&response)
                {
                    let mut locations = lock(&self.locations);
                    if locations.len() >= LOCATIONS {
                        locations.clear();
                    }
                    locations.insert((key.to_owned(), version), location);
                }
                return Ok(response);
            };
            location.cookies.keep(&location.url, &response);
            let zone = *first.get_or_insert_with(|| redirect::zone(&response));
            location.url = redirect::follow(&location.url, &target)?;
            let is_named = name::origin(&location.url) == name::origin(&original);
            location.reach = (!is_named).then(|| redirect::reach(zone, &location.url));
        }
        let text = format!(
            "more than {REDIRECTS} redirects, the last one to {}; look at the URL",
            name::origin(&location.url)
        );
        Err(HttpError::Other(Error::failed_precondition(text)))
    }

    /// Makes one request to one server.
    async fn once(&self, query: Query<'_>, location: &Location) -> Result<Response, HttpError> {
        let response = self.clients.of(location.reach).send(self.build(query, location)).await;
        response
            .map_err(|failed| redirect::explain(failed, &name::origin(query.named), &location.url))
    }

    /// Returns a request, with the secrets that its server may have.
    fn build(&self, query: Query<'_>, location: &Location) -> Request<Chunks> {
        let mut request = Request::new(Chunks::default());
        *request.method_mut() = query.method.clone();
        *request.uri_mut() = location.url.clone();
        let headers = request.headers_mut();
        if let Some(GetOptions { range, .. }) = query.options {
            let text = format!("bytes={}-{}", range.start, range.end - 1);
            headers.insert(header::RANGE, HeaderValue::try_from(text).expect("digits"));
        }
        let if_match = query.options.and_then(|options| options.if_match);
        if let Some(version) = if_match.and_then(|version| HeaderValue::try_from(version).ok()) {
            headers.insert(header::IF_MATCH, version);
        }
        if let Some(agent) = &self.user_agent {
            headers.insert(header::USER_AGENT, agent.clone());
        }
        if let Some(cookies) = location.cookies.header(&location.url) {
            headers.insert(header::COOKIE, cookies);
        }
        self.credentials.add(headers, &location.url, query.named);
        request
    }
}

#[cfg(test)]
mod tests;

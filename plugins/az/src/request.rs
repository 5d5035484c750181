//! One request: its URL, its signature, and what its response says.

use crate::account::Account;
use crate::credential::Credential;
use crate::error::explain;
use crate::settings::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write as _;
use std::time::SystemTime;
use tf_fs_object_store::http::{
    Chunks, HeaderMap, HeaderValue, HttpError, Method, Request, Response,
};
use tf_fs_plugin::prelude::*;

/// The version of the service's protocol: the first that supports all that is used here.
pub(crate) const VERSION: &str = "2021-12-02";

/// Characters that are sent unencoded in a URL, besides letters and digits.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/');

/// A request before it is sent.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    /// The path below the account, encoded.
    path: String,
    /// Names and values before they are encoded.
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Chunks,
}

impl Call {
    /// Creates a request for the account itself.
    pub(crate) fn account(method: Method) -> Self {
        Self {
            method,
            path: "/".to_owned(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Chunks::default(),
        }
    }

    /// Creates a request for a container.
    pub(crate) fn container(method: Method, container: &str) -> Self {
        Self { path: format!("/{container}"), ..Self::account(method) }
            .with_query("restype", "container")
    }

    /// Creates a request for a blob.
    pub(crate) fn blob(method: Method, container: &str, key: &str) -> Self {
        Self { path: blob_path(container, key), ..Self::account(method) }
    }

    pub(crate) fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds this header.
    ///
    /// # Errors
    /// If no header can have this value.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Result<Self, HttpError> {
        let wrong = || {
            HttpError::Other(Error::invalid_argument(format_args!(
                "the header {} cannot have this value",
                name.escape_debug()
            )))
        };
        let name: tf_fs_object_store::http::HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        // A SAS is a part of the URL.
        value.set_sensitive(name == "x-ms-copy-source");
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Does the same as [`with_header`](Self::with_header), with a value that `Debug` does not show.
    pub(crate) fn with_secret(
        mut self,
        name: &'static str,
        value: &str,
    ) -> Result<Self, HttpError> {
        self = self.with_header(name, value)?;
        if let Some(value) = self.headers.get_mut(name) {
            value.set_sensitive(true);
        }
        Ok(self)
    }

    /// Does the same as [`with_header`](Self::with_header), if there is a value.
    pub(crate) fn with_optional(self, name: &str, value: Option<&str>) -> Result<Self, HttpError> {
        match value {
            Some(value) => self.with_header(name, value),
            None => Ok(self),
        }
    }

    pub(crate) fn with_body(self, body: Chunks) -> Self {
        Self { body, ..self }
    }
}

/// Creates a unique ID for an upload.
pub(crate) fn new_id() -> Result<String, HttpError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        HttpError::Other(Error::internal("no random number").with_source(error))
    })?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Returns whether a response refuses the token, rather than what the token permits.
fn is_about_token(response: &Response) -> bool {
    let code = response.header("x-ms-error-code").unwrap_or_default();
    response.status == 401 || code == "InvalidAuthenticationInfo"
}

/// Returns the path of a blob in a URL. Its name is exact: no component of it leads up.
pub(crate) fn blob_path(container: &str, key: &str) -> String {
    // On the way to the store `a/../b` could become `b`. The store treats `%2F` as `/`.
    let leads_away = key.split('/').any(|part| matches!(part, "." | ".."));
    let set = if leads_away { IN_QUERY } else { IN_PATH };
    format!("/{container}/{}", utf8_percent_encode(key, set))
}

impl Account {
    /// Makes a request, and returns a response with one of the statuses in `expected`.
    ///
    /// # Errors
    /// Any other status is a failure.
    pub(crate) async fn send(&self, call: Call, expected: &[u16]) -> Result<Response, HttpError> {
        let response = self.attempt(&call).await?;
        if expected.contains(&response.status) {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// Makes a request, and returns the response whatever its status is.
    pub(crate) async fn attempt(&self, call: &Call) -> Result<Response, HttpError> {
        let Credential::Entra(tokens) = self.credential.get() else {
            let number = self.credential.number();
            let response = self.once(call, None).await?;
            let is_refused = matches!(response.status, 401 | 403);
            if is_refused && self.credential.renew(number) {
                return self.once(call, None).await;
            }
            return Ok(response);
        };
        let token = tokens.get().await?;
        let response = self.once(call, token.as_ref()).await?;
        match token {
            // It may have been withdrawn before its expiry.
            Some(token) if is_about_token(&response) => {
                tokens.forget(&token).await;
                self.once(call, tokens.get().await?.as_ref()).await
            }
            // A blob that may not be read looks as if it were missing.
            None if matches!(response.status, 401 | 403 | 404) => {
                tokens.look_again().await;
                Ok(response)
            }
            _ => Ok(response),
        }
    }

    async fn once(&self, call: &Call, token: Option<&Secret>) -> Result<Response, HttpError> {
        let (target, headers) = self.prepare(call, token, true)?;
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        let url = format!("{}{target}", self.endpoint);
        // The text is not shown: it may contain the signature.
        *request.uri_mut() = url.parse().map_err(|_| {
            HttpError::Other(Error::invalid_argument(format_args!(
                "no URL can be made of the endpoint {}; check the settings of the account",
                self.endpoint
            )))
        })?;
        *request.headers_mut() = headers;
        self.http.send(request).await
    }

    /// Returns path and query of a request, and its headers, with the authorization. `is_alone`: not within another
    /// request, which has the version for all.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` if no header can hold the credentials.
    pub(crate) fn prepare(
        &self,
        call: &Call,
        token: Option<&Secret>,
        is_alone: bool,
    ) -> Result<(String, HeaderMap), HttpError> {
        let mut headers = call.headers.clone();
        let date = httpdate::fmt_http_date(SystemTime::now());
        if is_alone {
            headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        }
        headers.insert("x-ms-date", HeaderValue::from_str(&date).expect("a date is ASCII"));
        if matches!(call.method, Method::PUT | Method::POST) {
            headers.insert("content-length", call.body.len().into());
        }
        let path = format!("{}{}", self.path, call.path);
        let mut query = String::new();
        for (name, value) in &call.query {
            let before = if query.is_empty() { '?' } else { '&' };
            query.push(before);
            query.push_str(name);
            query.push('=');
            query.extend(utf8_percent_encode(value, IN_QUERY));
        }
        let mut authorization = None;
        match self.credential.get() {
            Credential::Key(key) => {
                let (name, length) = (&*self.signed_name, call.body.len());
                let text =
                    key.authorization(name, &call.method, &path, &call.query, &headers, length);
                authorization = Some(text);
            }
            Credential::Sas(sas) => {
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(sas.expose());
            }
            Credential::Entra(_) => {
                authorization = token.map(|token| format!("Bearer {}", token.expose()));
            }
            Credential::Anonymous => {}
        }
        if let Some(text) = authorization {
            let unusable = |_| {
                Error::new(Code::Unauthenticated, "the credentials are not what a header can hold")
            };
            let mut value =
                HeaderValue::from_str(&text).map_err(unusable).map_err(HttpError::Other)?;
            value.set_sensitive(true);
            headers.insert("authorization", value);
        }
        Ok((path + &query, headers))
    }

    /// Returns the failure of a response whose status is not a success.
    #[cold]
    pub(crate) async fn refused(&self, response: Response) -> HttpError {
        let code = response.header("x-ms-error-code").map(str::to_owned);
        let date = response.header("date").and_then(tf_fs_object_store::http::date);
        response.into_error(|refusal, body| explain(refusal, code, date, body, self)).await
    }

    /// Returns the URL of a blob for the store to read, with a SAS if there is one.
    pub(crate) fn url(&self, container: &str, key: &str) -> String {
        let sas = match self.credential.get() {
            Credential::Sas(sas) => format!("?{}", sas.expose()),
            _ => String::new(),
        };
        format!("{}{}{}{sas}", self.endpoint, self.path, blob_path(container, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_exact() {
        for (key, path) in [
            ("a//b/d/", "/c/a//b/d/"),
            ("a b%41+é?#&=", "/c/a%20b%2541%2B%C3%A9%3F%23%26%3D"),
            ("./x", "/c/.%2Fx"),
            ("a/../b", "/c/a%2F..%2Fb"),
            ("a/...", "/c/a/..."),
            ("\\", "/c/%5C"),
        ] {
            assert_eq!(blob_path("c", key), path);
        }
    }
}

//! The Hugging Face Hub, to read: its API tells what is there, and the bytes come from where it leads to.

use crate::service::{Body, Done, Entry, Service, arriving};
use crate::settings::Settings;
use bytes::Bytes;
use futures_util::stream;
use http::header;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::{
    Chunks, ErrorResponse, Http, HttpError, Method, Request, Response, Uri, content_range,
    endpoint, unsatisfied_size,
};
use tf_fs_object_store::{
    ErrorKind, GetHead, GetOptions, ObjectMeta, StoreError as _, StreamBody, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// The most bytes of a page of a listing.
const LARGEST: usize = 128 << 20;
/// How often the Hub may lead on.
const REDIRECTS: usize = 5;
/// The most pages of a listing, of 1,000 names each.
const PAGES: usize = 10_000;
/// What stands for itself in the path of a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A repository at a revision.
pub(super) struct Hf {
    http: Http,
    origin: String,
    /// `models`, `datasets` or `spaces`.
    kind: &'static str,
    /// Owner and name.
    repository: String,
    /// Escaped for a URL.
    revision: String,
    token: Option<Secret>,
}

impl std::fmt::Debug for Hf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Hf");
        shown.field("repository", &self.repository).field("revision", &self.revision);
        shown.finish_non_exhaustive()
    }
}

impl Hf {
    /// Creates the repository `OWNER/NAME`, with `datasets/` or `spaces/` in front, and `@REVISION` behind.
    pub(super) fn new(remote: &str, settings: &Settings) -> Result<Self> {
        let (name, revision) = remote.split_once('@').unwrap_or((remote, "main"));
        let (kind, repository) = match name.split_once('/') {
            Some(("datasets", repository)) => ("datasets", repository),
            Some(("spaces", repository)) => ("spaces", repository),
            _ => ("models", name),
        };
        // As Hugging Face's own client has it, a revision with slashes is written with `%2F`.
        let revision = percent_decode_str(revision).decode_utf8();
        let revision =
            revision.map_err(|_| Error::invalid_argument("the revision is not UTF-8"))?;
        Ok(Self {
            http: super::http(settings)?,
            origin: settings.hf_endpoint.trim_end_matches('/').to_owned(),
            kind,
            repository: repository.to_owned(),
            revision: utf8_percent_encode(&revision, NON_ALPHANUMERIC).to_string(),
            token: settings.hf_token.clone(),
        })
    }

    /// Returns the URL of an operation of the API on this revision.
    fn api(&self, op: &str, path: &str) -> String {
        let Self { origin, kind, repository, revision, .. } = self;
        let path = utf8_percent_encode(path, PATH);
        format!("{origin}/api/{kind}/{repository}/{op}/{revision}/{path}")
            .trim_end_matches('/')
            .to_owned()
    }

    /// Sends a request. The token goes to the Hub alone.
    async fn send(
        &self,
        method: Method,
        url: &str,
        body: Vec<u8>,
        range: Option<&str>,
    ) -> Result<Response, HttpError> {
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = &self.token
            && url.parse().is_ok_and(|url: Uri| endpoint(&url) == self.hub())
        {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(range) = range {
            request = request.header(header::RANGE, range);
        }
        let request = request.body(Chunks::new([Bytes::from(body)])).map_err(|error| {
            HttpError::Other(Error::invalid_argument(format!("it makes no request: {error}")))
        })?;
        self.http.send(request).await
    }

    /// Returns scheme, host and port of the Hub.
    fn hub(&self) -> String {
        self.origin.parse().map(|url: Uri| endpoint(&url)).unwrap_or_default()
    }

    /// Returns the JSON of a response of the API, and the URL of its next page.
    async fn json(
        &self,
        method: Method,
        url: &str,
        body: Vec<u8>,
    ) -> Result<(Value, Option<String>), HttpError> {
        let response = self.send(method, url, body, None).await?;
        if response.status != 200 {
            return Err(refused(response).await);
        }
        let next = response.header("link").and_then(next_page);
        let body = response.collect(LARGEST).await?;
        let value = serde_json::from_slice(&body);
        Ok((value.map_err(|_| HttpError::invalid("it is not the JSON of the Hub"))?, next))
    }
}

/// Returns the URL of the next page, as `Link: <URL>; rel="next"` names it.
fn next_page(link: &str) -> Option<String> {
    let part = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    Some(part.split_once('<')?.1.split_once('>')?.0.to_owned())
}

/// Returns what the API says of a path. The id of its content is its version.
fn entry(info: &Value) -> Result<Entry, HttpError> {
    match info["type"].as_str() {
        Some("directory") => Ok(Entry::directory()),
        Some("file") => {
            let size =
                info["size"].as_u64().ok_or_else(|| HttpError::invalid("it tells no size"))?;
            let id = info["lfs"]["oid"].as_str().or(info["oid"].as_str());
            Ok(Entry::file(ObjectMeta::new(size).with_etag(id.map(|id| format!("\"{id}\"")))))
        }
        _ => Err(HttpError::invalid("it lists what is neither a file nor a directory")),
    }
}

/// Returns the error of a response.
async fn refused(response: Response) -> HttpError {
    let code = response.header("x-error-code").map(str::to_owned);
    let message = response.header("x-error-message").map(str::to_owned);
    let error = response.into_error(|refusal: &mut ErrorResponse, _| {
        let advice = match (code.as_deref(), refusal.status) {
            (Some("EntryNotFound"), _) => "",
            (Some("GatedRepo"), _) => "accept its conditions on its page, and set HF_TOKEN",
            // The Hub does not tell whether a private one is there.
            (Some("RepoNotFound"), _) | (None, 401) => {
                (refusal.kind, refusal.error_code) =
                    (Some(ErrorKind::Denied), Some(Code::NotFound));
                "correct the name of the repository, or set HF_TOKEN to a token that may see it"
            }
            (Some("RevisionNotFound"), _) => "correct the revision after the `@`",
            (_, 429) => "the Hub limits requests; set HF_TOKEN, or read fewer files at once",
            _ => "look at the status of the Hub",
        };
        (refusal.code, refusal.message) = (code, message);
        refusal.advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
    });
    error.await
}

impl Service for Hf {
    fn write_limits(&self) -> Option<WriteLimits> {
        None
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let Self { origin, kind, repository, revision, .. } = self;
            let kind = if *kind == "models" { String::new() } else { format!("{kind}/") };
            let path = utf8_percent_encode(options.key, PATH);
            let mut url = format!("{origin}/{kind}{repository}/resolve/{revision}/{path}");
            let range = format!("bytes={}-{}", options.range.start, options.range.end - 1);
            // The Hub itself names the version; the server of the bytes has names of its own.
            let mut version = None;
            for _ in 0..=REDIRECTS {
                let response = self.send(Method::GET, &url, Vec::new(), Some(&range)).await?;
                let id = response.header("x-linked-etag").or(response.header("etag"));
                if version.is_none() {
                    version = id.map(|id| id.trim_start_matches("W/").to_owned());
                }
                match response.status {
                    200 | 206 => return whole(response, options, version),
                    416 => return past_the_end(&response, version),
                    301 | 302 | 303 | 307 | 308 => {
                        let next = response.header("location").unwrap_or_default();
                        url = match next.starts_with('/') {
                            true => format!("{}{next}", self.hub()),
                            false => next.to_owned(),
                        };
                    }
                    _ => return Err(refused(response).await),
                }
            }
            Err(HttpError::invalid("it leads from one place to another without end"))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(async move {
            if path.is_empty() {
                let found = self.json(Method::GET, &self.api("revision", ""), Vec::new()).await;
                return found.map(|_| Some(Entry::directory()));
            }
            let body = json!({ "paths": [path], "expand": false }).to_string().into_bytes();
            let (found, _) = self.json(Method::POST, &self.api("paths-info", ""), body).await?;
            let found =
                found.as_array().and_then(|all| all.iter().find(|info| info["path"] == path));
            found.map(entry).transpose()
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(async move {
            let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
            let mut url = Some(self.api("tree", path));
            let mut entries = Vec::new();
            for _ in 0..PAGES {
                let Some(page) = url else { return Ok(entries) };
                // Only the Hub's own pages.
                if !page.parse().is_ok_and(|page: Uri| endpoint(&page) == self.hub()) {
                    return Err(HttpError::invalid("its next page is elsewhere"));
                }
                let (listed, next) = self.json(Method::GET, &page, Vec::new()).await?;
                let listed =
                    listed.as_array().ok_or_else(|| HttpError::invalid("it is not a listing"))?;
                for info in listed {
                    let name = info["path"].as_str().and_then(|path| path.strip_prefix(&*prefix));
                    entries.push((name.unwrap_or_default().to_owned(), entry(info)?));
                }
                url = next;
            }
            Err(HttpError::invalid("its listing has no end"))
        })
    }

    fn refuses(&self) -> HttpError {
        HttpError::unsupported("changes: hf:// is for reading; upload by `hf upload`")
    }
}

/// Returns the head of a response with bytes, and its body.
fn whole(
    response: Response,
    options: GetOptions<'_>,
    version: Option<String>,
) -> Result<(Option<GetHead>, Body), HttpError> {
    let linked = response.header("x-linked-size").and_then(|size| size.parse().ok());
    let (start, end, size) = match response.header("content-range").and_then(content_range) {
        Some((range, size)) if response.status == 206 => (range.start, range.end, size),
        _ => {
            let size = response.content_length.or(linked);
            let size = size.ok_or_else(|| HttpError::invalid("it tells no size"))?;
            (0, size, size)
        }
    };
    if start != options.range.start || end > size {
        return Err(HttpError::invalid("it sends other bytes than were requested"));
    }
    let end = end.min(options.range.end);
    let body = StreamBody::boxed(arriving(response.into_body(Some(end - start))));
    Ok((Some(GetHead::new(size, end).with_etag(version)), body))
}

/// Returns the head of a response that has no byte of the range.
fn past_the_end(
    response: &Response,
    version: Option<String>,
) -> Result<(Option<GetHead>, Body), HttpError> {
    let size = response.header("content-range").and_then(unsatisfied_size);
    let size = size.ok_or_else(|| HttpError::invalid("it tells no size"))?;
    let head = GetHead::new(size, size).with_etag(version);
    Ok((Some(head), StreamBody::boxed(stream::empty())))
}

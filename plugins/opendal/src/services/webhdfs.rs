//! HDFS, by the REST API of its name nodes. OpenDAL's client cannot rename.

use super::http;
use crate::place::Place;
use crate::service::{Body, Done, Entry, Service, Sink, arriving, failure, missing};
use crate::settings::Settings;
use crate::spool::Spool;
use ::http::request::Builder;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::time::{Duration, UNIX_EPOCH};
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::{
    Chunks, ErrorResponse, Http, HttpError, Method, Request, Response, Uri,
};
use tf_fs_object_store::{
    Content, ErrorKind, GetHead, GetOptions, ObjectMeta, Publication, Range, StoreError as _,
    StreamBody, WriteLimits,
};
use tf_fs_plugin::prelude::*;

/// The most bytes of a response that is not a file: a listing of about 500,000 names.
const LARGEST: usize = 128 << 20;
/// What stands for itself in the path of a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A directory of HDFS.
#[derive(Debug)]
pub(super) struct WebHdfs {
    client: HdfsClient,
}

#[derive(Clone)]
struct HdfsClient {
    http: Http,
    origin: String,
    /// Without a slash at its end.
    root: String,
    /// The part of a query that tells who asks.
    user: String,
}

// The query may have a token in it.
impl std::fmt::Debug for HdfsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdfsClient").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

impl WebHdfs {
    pub(super) fn new(place: &Place, settings: &Settings) -> Result<Self> {
        let token = settings.token.as_ref().filter(|_| place.is_known).map(Secret::expose);
        let user = settings.user.as_deref().filter(|_| place.is_known);
        let user = match (token, user) {
            (Some(token), _) => format!("&delegation={}", encoded(token)),
            (None, Some(user)) => format!("&user.name={}", encoded(user)),
            (None, None) => String::new(),
        };
        ensure!(
            settings.password.is_none() || !place.is_known,
            Error::invalid_argument(
                "HDFS takes no password; remove it, and set user, or bearer_token for a delegation token"
            )
        );
        let root = place.root.trim_end_matches('/').to_owned();
        Ok(Self {
            client: HdfsClient { http: http(settings)?, origin: place.origin(), root, user },
        })
    }
}

impl HdfsClient {
    fn path(&self, path: &str) -> String {
        match path {
            "" if self.root.is_empty() => "/".to_owned(),
            "" => self.root.clone(),
            path => format!("{}/{path}", self.root),
        }
    }

    /// Returns a request of an operation on a path. `query` begins with `&`, or is empty.
    fn request(&self, method: Method, path: &str, op: &str, query: &str) -> Builder {
        let path = encoded(&self.path(path));
        let Self { origin, user, .. } = self;
        Request::builder()
            .method(method)
            .uri(format!("{origin}/webhdfs/v1{path}?op={op}{query}{user}"))
    }

    /// Sends a request without a body, and returns its response if it is a success, or leads to a data node.
    async fn send(&self, request: Builder) -> Result<Response, HttpError> {
        let request = request.body(Chunks::default()).map_err(unusable)?;
        let response = self.http.send(request).await?;
        match response.status {
            200..=299 | 307 => Ok(response),
            _ => Err(refused(response).await),
        }
    }

    /// Sends a request, and returns the JSON of its response.
    async fn json(&self, request: Builder) -> Result<Value, HttpError> {
        let body = self.send(request).await?.collect(LARGEST).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|_| HttpError::invalid("it is not the JSON of HDFS"))
    }

    /// Sends a request that says whether it was done.
    async fn done(&self, request: Builder) -> Result<bool, HttpError> {
        Ok(self.json(request).await?["boolean"].as_bool().unwrap_or(true))
    }

    /// Returns the data node that a request leads to.
    async fn data_node(&self, request: Builder) -> Result<Uri, HttpError> {
        let response = self.send(request).await?;
        location(&response).ok_or_else(|| HttpError::invalid("it does not lead to a data node"))
    }

    async fn stat(&self, path: &str) -> Result<Option<Entry>, HttpError> {
        let request = self.request(Method::GET, path, "GETFILESTATUS", "");
        match self.json(request).await {
            Ok(found) => Ok(Some(entry(&found["FileStatus"])?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // Below a file.
            Err(HttpError::Status(refusal))
                if refusal.code.as_deref() == Some("ParentNotDirectoryException") =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &str) -> Builder {
        self.request(Method::PUT, path, "CREATE", "&overwrite=true")
    }
}

fn location(response: &Response) -> Option<Uri> {
    response.header("location")?.parse().ok()
}

fn unusable(error: ::http::Error) -> HttpError {
    HttpError::Other(Error::invalid_argument(format!("it makes no request: {error}")))
}

/// Returns what a status of a file says.
fn entry(status: &Value) -> Result<Entry, HttpError> {
    let number = |key: &str| status[key].as_u64();
    match status["type"].as_str() {
        Some("DIRECTORY") => Ok(Entry::directory()),
        Some("FILE") => {
            let size = number("length").ok_or_else(|| HttpError::invalid("it tells no size"))?;
            let time = number("modificationTime");
            let modified = time.map(|ms| UNIX_EPOCH + Duration::from_millis(ms));
            // Another file of the same name has another number.
            let etag = number("fileId").map(|id| format!("\"{id}-{}-{size}\"", time.unwrap_or(0)));
            Ok(Entry::file(ObjectMeta::new(size).with_etag(etag).with_modified(modified)))
        }
        _ => Err(HttpError::invalid("it is not the status of a file")),
    }
}

/// Returns the error of a response.
async fn refused(response: Response) -> HttpError {
    let error = response
        .into_error(|refusal: &mut ErrorResponse, body| {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let exception = &body["RemoteException"];
            let name = exception["exception"].as_str().unwrap_or_default();
            refusal.code = Some(name.to_owned()).filter(|name| !name.is_empty());
            let message = exception["message"].as_str().unwrap_or_default();
            refusal.message = message.lines().next().map(str::to_owned).filter(|text| !text.is_empty());
            let (kind, code, advice) = match name {
                "FileNotFoundException" => (Some(ErrorKind::NotFound), None, ""),
                "StandbyException" => (
                    Some(ErrorKind::Transient),
                    None,
                    "this name node is on standby; set url to the active one",
                ),
                "SafeModeException" | "RetriableException" => {
                    (Some(ErrorKind::Transient), None, "the cluster is starting; try it again later")
                }
                "AccessControlException" => {
                    (Some(ErrorKind::Denied), None, "look at the rights of the user in HDFS")
                }
                "SecurityException" => (
                    Some(ErrorKind::Denied),
                    Some(Code::Unauthenticated),
                    "set user, or bearer_token to a delegation token, beside the url of this cluster",
                ),
                "NSQuotaExceededException" | "DSQuotaExceededException" => (
                    Some(ErrorKind::Permanent),
                    Some(Code::ResourceExhausted),
                    "the directory's quota is used up; delete files there",
                ),
                "FileAlreadyExistsException"
                | "ParentNotDirectoryException"
                | "PathIsNotEmptyDirectoryException" => (Some(ErrorKind::Precondition), None, ""),
                _ => match refusal.status {
                    401 => (
                        None,
                        None,
                        "set user, or bearer_token to a delegation token: Kerberos itself is not supported",
                    ),
                    404 => (
                        Some(ErrorKind::Unsupported),
                        Some(Code::Unimplemented),
                        "look at the url: there is no WebHDFS; its port is usually 9870, or 50070 before Hadoop 3",
                    ),
                    _ => (None, None, "look at the log of the name node"),
                },
            };
            refusal.kind = kind.or(refusal.kind);
            refusal.error_code = code.or(refusal.error_code);
            refusal.advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
        })
        .await;
    match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => error,
    }
}

impl Service for WebHdfs {
    fn tells_versions(&self) -> bool {
        false
    }

    fn write_limits(&self) -> Option<WriteLimits> {
        Some(WriteLimits::new(Publication::Rename).without_conditions().with_upload())
    }

    fn read<'a>(&'a self, options: GetOptions<'a>) -> Done<'a, (Option<GetHead>, Body)> {
        Box::pin(async move {
            let Range { start, end } = options.range;
            let query = format!("&offset={start}&length={}", end - start);
            let client = &self.client;
            let mut response =
                client.send(client.request(Method::GET, options.key, "OPEN", &query)).await?;
            if let Some(node) = location(&response) {
                response = client.send(Request::builder().method(Method::GET).uri(node)).await?;
            }
            Ok((None, StreamBody::boxed(arriving(response.into_body(None)))))
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Done<'a, Option<Entry>> {
        Box::pin(self.client.stat(path))
    }

    fn list<'a>(&'a self, path: &'a str) -> Done<'a, Vec<(String, Entry)>> {
        Box::pin(async move {
            let request = self.client.request(Method::GET, path, "LISTSTATUS", "");
            let listed = self.client.json(request).await?;
            let all = listed["FileStatuses"]["FileStatus"].as_array();
            let all = all.ok_or_else(|| HttpError::invalid("it is not a listing"))?;
            // A file is listed as itself.
            if all.iter().any(|status| status["pathSuffix"] == "") {
                return Err(missing());
            }
            let named = all.iter().map(|status| {
                let name = status["pathSuffix"].as_str().unwrap_or_default();
                Ok((name.to_owned(), entry(status)?))
            });
            named.collect()
        })
    }

    fn create_dir<'a>(&'a self, path: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            // It would succeed, and it would create parents.
            if self.client.stat(path).await?.is_some() {
                return Err(failure(ErrorKind::Precondition, "something is there"));
            }
            let request = self.client.request(Method::PUT, path, "MKDIRS", "");
            match self.client.done(request).await? {
                true => Ok(()),
                false => Err(failure(ErrorKind::Permanent, "HDFS did not create the directory")),
            }
        })
    }

    fn delete<'a>(&'a self, path: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            let client = &self.client;
            // One operation deletes both.
            match client.stat(path).await? {
                None => return Err(missing()),
                Some(found) if found.is_directory != is_directory => {
                    return Err(failure(
                        ErrorKind::Precondition,
                        "it is not what is to be deleted",
                    ));
                }
                Some(_) => {}
            }
            let request = client.request(Method::DELETE, path, "DELETE", "&recursive=false");
            if client.done(request).await? { Ok(()) } else { Err(missing()) }
        })
    }

    fn rename<'a>(&'a self, from: &'a str, to: &'a str, is_directory: bool) -> Done<'a, ()> {
        Box::pin(async move {
            let options = if is_directory { "NONE" } else { "OVERWRITE" };
            let to = encoded(&self.client.path(to));
            let query = format!("&destination={to}&renameoptions={options}");
            let request = self.client.request(Method::PUT, from, "RENAME", &query);
            match self.client.done(request).await? {
                true => Ok(()),
                false => Err(failure(ErrorKind::Permanent, "HDFS did not rename it")),
            }
        })
    }

    fn start<'a>(&'a self, path: &'a str) -> Done<'a, Box<dyn Sink>> {
        Box::pin(async move {
            let (client, spool) = (self.client.clone(), Spool::new()?);
            Ok(Box::new(Uploading { client, path: path.to_owned(), spool }) as _)
        })
    }

    fn put<'a>(&'a self, path: &'a str, content: &'a Content) -> Done<'a, ObjectMeta> {
        Box::pin(async move {
            let node = self.client.data_node(self.client.create(path)).await?;
            let body = Chunks::new(content.chunks().iter().cloned());
            let request = Request::builder().method(Method::PUT).uri(node).body(body);
            let response = self.client.http.send(request.map_err(unusable)?).await?;
            created(response, content.len()).await
        })
    }
}

/// A file that is larger than memory.
struct Uploading {
    client: HdfsClient,
    path: String,
    spool: Spool,
}

impl Sink for Uploading {
    fn append<'a>(&'a mut self, chunks: &'a [Bytes]) -> Done<'a, ()> {
        self.spool.append(chunks)
    }

    fn commit(&mut self) -> Done<'_, ObjectMeta> {
        Box::pin(async move {
            let node = self.client.data_node(self.client.create(&self.path)).await?;
            let body = self.spool.body();
            let len = body.len();
            let request = Request::builder().method(Method::PUT).uri(node).body(body);
            let response = self.client.http.send_body(request.map_err(unusable)?).await?;
            created(response, len).await
        })
    }

    // Nothing was sent, unless the commit failed.
    fn abort(&mut self) -> Done<'_, ()> {
        Box::pin(async move {
            let request =
                self.client.request(Method::DELETE, &self.path, "DELETE", "&recursive=false");
            self.client.done(request).await.map(drop)
        })
    }
}

async fn created(response: Response, len: u64) -> Result<ObjectMeta, HttpError> {
    match response.status {
        200 | 201 => Ok(ObjectMeta::new(len)),
        _ => Err(refused(response).await),
    }
}

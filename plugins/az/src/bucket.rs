//! A container, which the engine calls a bucket; one without a name is the account, the directory of its containers.

use crate::account::Account;
use crate::request::Call;
use std::sync::Arc;
use std::time::SystemTime;
use tf_fs_object_store::http::{ErrorResponse, HttpError, Method, Response, date};
use tf_fs_object_store::{ObjectMeta, Settings};

/// The name of the metadata with which Azure's tools mark a blob as a directory; the value is `true`.
pub(crate) const FOLDER: &str = "hdi_isfolder";

/// A container; one without a name is the account.
#[derive(Debug)]
pub struct Container {
    pub(crate) account: Arc<Account>,
    pub(crate) name: String,
    pub(crate) settings: Settings,
    /// Names of one page of a listing.
    pub(crate) page: u32,
}

impl Container {
    /// Creates a request for a blob in it.
    pub(crate) fn call(&self, method: Method, key: &str) -> Call {
        Call::blob(method, &self.name, key)
    }

    /// Requests the properties of a blob.
    pub(crate) async fn properties(&self, key: &str) -> Result<Response, HttpError> {
        self.account.send(self.call(Method::HEAD, key), &[200]).await
    }
}

/// Returns whether a blob marks a directory. Azure's tools write such blobs, and an account with a hierarchical
/// namespace shows its directories as such. Their names do not end in `/`.
pub(crate) fn marks_directory(response: &Response) -> bool {
    response.header(&format!("x-ms-meta-{}", FOLDER)) == Some("true")
        || response.header("x-ms-resource-type") == Some("directory")
}

/// Returns NOT_FOUND for the marker of a directory, which is not a file.
pub(crate) fn refuse_directory(key: &str, response: &Response) -> Result<(), HttpError> {
    if key.ends_with('/') || !marks_directory(response) {
        return Ok(());
    }
    let message = Some("the blob is the marker of a directory".to_owned());
    Err(HttpError::Status(Box::new(ErrorResponse {
        status: 404,
        message,
        ..ErrorResponse::default()
    })))
}

/// Returns when the blob was last written.
fn modified(response: &Response) -> Option<SystemTime> {
    response.header("last-modified").and_then(date)
}

/// Returns what the headers tell of a blob of this size.
pub(crate) fn meta(response: &Response, size: Option<u64>) -> ObjectMeta {
    let mut meta = ObjectMeta::default().with_etag(response.header("etag").map(str::to_owned));
    meta.size = size;
    meta.with_modified(modified(response))
}

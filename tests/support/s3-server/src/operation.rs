//! Finds out which S3 operation a request is, from its first line and headers alone.

use http::{HeaderMap, Method, Uri};
use percent_encoding::percent_decode_str;

use crate::auth::bucket_of;

/// A request with its name in S3's reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// `GetObject`, `ListObjectsV2` …; `Unknown` for what this server does not support.
    pub(crate) name: &'static str,
    pub(crate) bucket: Option<String>,
    pub(crate) key: Option<String>,
}

/// Returns whether `query` has the parameter `name`.
fn has(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some(name))
}

/// Returns the operation of a request.
pub(crate) fn classify(method: &Method, uri: &Uri, headers: &HeaderMap) -> Operation {
    let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
    let path = percent_decode_str(uri.path()).decode_utf8_lossy();
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = match host.and_then(bucket_of) {
        Some(bucket) => (bucket, path),
        None => path.split_once('/').unwrap_or((path, "")),
    };
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    let (bucket, key) = (named(bucket), named(key));
    let query = uri.query().unwrap_or("");
    let has = |name| has(query, name);
    let copy = headers.contains_key("x-amz-copy-source");
    let name = match (method.as_str(), bucket.is_some(), key.is_some()) {
        ("GET", false, _) => "ListBuckets",
        ("GET", true, false) if has("list-type") => "ListObjectsV2",
        ("GET", true, false) => "ListObjects",
        ("HEAD", true, false) => "HeadBucket",
        ("POST", true, false) if has("delete") => "DeleteObjects",
        ("GET", true, true) => "GetObject",
        ("HEAD", true, true) => "HeadObject",
        ("PUT", true, true) if has("uploadId") && copy => "UploadPartCopy",
        ("PUT", true, true) if has("uploadId") => "UploadPart",
        ("PUT", true, true) if copy => "CopyObject",
        ("PUT", true, true) => "PutObject",
        ("POST", true, true) if has("uploads") => "CreateMultipartUpload",
        ("POST", true, true) if has("uploadId") => "CompleteMultipartUpload",
        ("DELETE", true, true) if has("uploadId") => "AbortMultipartUpload",
        ("DELETE", true, true) => "DeleteObject",
        _ => "Unknown",
    };
    Operation { name, bucket, key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = |method: &str, uri: &str, headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().expect("a value"));
            }
            let operation =
                classify(&method.parse().expect("a method"), &uri.parse().expect("a path"), &map);
            format!("{} {:?} {:?}", operation.name, operation.bucket, operation.key)
        };
        assert_eq!(name("GET", "/b/a%20b//", &[]), r#"GetObject Some("b") Some("a b//")"#);
        assert_eq!(name("GET", "/b?list-type=2&prefix=x", &[]), r#"ListObjectsV2 Some("b") None"#);
        assert_eq!(
            name("DELETE", "/x?uploadId=1", &[("host", "b.localhost:9")]),
            r#"AbortMultipartUpload Some("b") Some("x")"#
        );
        let copy = [("x-amz-copy-source", "b/y")];
        assert_eq!(name("PUT", "/b/x", &copy), r#"CopyObject Some("b") Some("x")"#);
        assert_eq!(
            name("PUT", "/b/x?partNumber=1&uploadId=2", &copy),
            r#"UploadPartCopy Some("b") Some("x")"#
        );
        assert_eq!(name("POST", "/b/?delete", &[]), r#"DeleteObjects Some("b") None"#);
    }
}

//! One request: its URL, its headers, and what its response says.

use crate::bucket::Bucket;
use crate::endpoint::{ESCAPED, Endpoint};
use crate::error::{S3Error, explain, is_overload};
use crate::metrics;
use crate::sign::{BodyHash, sign, unsendable};
use crate::write::checksum::Crc32;
use aws_credential_types::Credentials;
use bytes::Bytes;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use std::fmt::Write as _;
use std::time::{Instant, SystemTime};
use tf_fs_object_store::Name;
use tf_fs_object_store::http::{
    Chunks, HeaderMap, HeaderName, HeaderValue, HttpError, Method, Request, Response, xml,
};
use tf_fs_plugin::prelude::*;

/// The namespace of the documents that are sent.
pub(crate) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The most bytes of a body that is kept in memory. The largest that a store sends on purpose has about 4 MiB: a
/// listing of 1,000 keys of 1,024 bytes, each of them encoded in three.
const LARGEST: usize = 32 << 20;
/// The most bytes read of the body of a refused GET.
const REFUSAL: usize = 64 << 10;

/// A request before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// S3's name of it.
    pub(crate) op: &'static str,
    method: Method,
    /// The key, with `/` in front, encoded; empty for the bucket itself.
    path: String,
    /// Names and values before they are encoded.
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Chunks,
    /// The body, if it is signed.
    signed: Option<Bytes>,
}

impl Call {
    /// Creates a request for the bucket.
    pub(crate) fn bucket(op: &'static str, method: Method) -> Self {
        Self {
            op,
            method,
            path: String::new(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Chunks::default(),
            signed: Some(Bytes::new()),
        }
    }

    /// Creates a request for an object.
    pub(crate) fn object(op: &'static str, method: Method, key: &str) -> Self {
        let mut path = String::with_capacity(key.len() + 16);
        for part in key.split('/') {
            path.push('/');
            path.extend(utf8_percent_encode(part, ESCAPED));
        }
        Self { path, ..Self::bucket(op, method) }
    }

    pub(crate) fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a header. Some values come from others: an ETag from a listing, metadata of an object.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that is not valid in one header: a line break in it would begin another.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Result<Self> {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()))
        else {
            // Without the value, which may be a secret.
            return Err(unsendable(name));
        };
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds a header, if there is a value.
    ///
    /// # Errors
    /// As [`with_header`](Self::with_header).
    pub(crate) fn with_optional(self, name: &str, value: Option<&str>) -> Result<Self> {
        match value {
            Some(value) => self.with_header(name, value),
            None => Ok(self),
        }
    }

    /// Makes the request a copy of an object.
    pub(crate) fn with_copy_source(self, name: &Name) -> Result<Self> {
        self.with_header("x-amz-copy-source", &copy_source(name))
    }

    /// Sets a body that is not signed: a checksum protects it.
    pub(crate) fn with_body(self, body: Chunks, crc: Option<Crc32>) -> Result<Self> {
        let this = self.with_crc(crc)?;
        Ok(Self { body, signed: None, ..this })
    }

    /// Sets a document as the body.
    pub(crate) fn with_xml(self, xml: String) -> Result<Self> {
        let this = self.with_header("content-type", "application/xml")?;
        let xml = Bytes::from(xml);
        Ok(Self { body: Chunks::new([xml.clone()]), signed: Some(xml), ..this })
    }

    /// Adds the checksum of the body.
    pub(crate) fn with_crc(self, crc: Option<Crc32>) -> Result<Self> {
        self.with_optional("x-amz-checksum-crc32", crc.map(Crc32::to_base64).as_deref())
    }

    /// Returns the upload that the request is about.
    fn upload(&self) -> Option<&str> {
        let (_, id) = self.query.iter().find(|(name, _)| *name == "uploadId")?;
        Some(id)
    }

    /// Returns the request as it is sent, signed if there are credentials.
    fn compose(
        &self,
        endpoint: &Endpoint,
        credentials: Option<&Credentials>,
        now: SystemTime,
    ) -> Result<Request<Chunks>> {
        let mut url = String::with_capacity(endpoint.base.len() + self.path.len() + 128);
        url.push_str(&endpoint.base);
        url.push_str(if self.path.is_empty() { "/" } else { &self.path });
        for (i, (name, value)) in self.query.iter().enumerate() {
            let before = if i == 0 { '?' } else { '&' };
            let _ = write!(url, "{before}{name}={}", utf8_percent_encode(value, ESCAPED));
        }
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = url.parse().map_err(|_| {
            Error::invalid_argument(format_args!("{}: no URL can be made of it", endpoint.base))
        })?;
        *request.headers_mut() = self.headers.clone();
        let host = HeaderValue::from_str(&endpoint.authority).map_err(Error::internal)?;
        request.headers_mut().insert("host", host);
        if let Some(credentials) = credentials {
            let payload = self.signed.as_deref().map_or(BodyHash::Unsigned, BodyHash::Of);
            let (region, name) = (&endpoint.signing_region, endpoint.signing_name);
            sign(&mut request, payload, credentials, region, name, now)?;
        }
        Ok(request)
    }
}

/// Returns the source of a copy as a header has it. The `:` after a tenant of Ceph stays as it is.
pub(crate) fn copy_source(name: &Name) -> String {
    const KEPT: &AsciiSet = &ESCAPED.remove(b'/');
    let key = utf8_percent_encode(&name.key, KEPT);
    if name.bucket.starts_with("arn:") {
        return format!("{}/object/{key}", utf8_percent_encode(&name.bucket, KEPT));
    }
    format!("{}/{key}", name.bucket)
}

/// A response with a status of success, and all of its body.
#[derive(Debug)]
pub(crate) struct Success {
    pub(crate) headers: HeaderMap,
    pub(crate) content_length: Option<u64>,
    pub(crate) body: Bytes,
}

impl Success {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok().map(str::trim)
    }

    /// Calls `on` for each element of the document, which has to have this root.
    ///
    /// # Errors
    /// If it is another document, or cut off.
    pub(crate) fn read(
        &self,
        root: &str,
        mut on: impl FnMut(&[&str], Option<String>),
    ) -> Result<(), S3Error> {
        let mut is_root = false;
        let read = xml::elements(&self.body, |path, text| {
            is_root |= path == [root];
            on(&path[1..], text);
        });
        let read = read.and_then(|()| match is_root {
            true => Ok(()),
            false => Err(format!("it is no {root}")),
        });
        read.map_err(|how| HttpError::Invalid(how).into())
    }
}

impl Bucket {
    /// Sends a request, and returns with the head of the response, whatever its status.
    pub(crate) async fn attempt(&self, mut call: Call) -> Result<Response, S3Error> {
        let endpoint = self.resolve_endpoint().map_err(HttpError::Other)?;
        let credentials = self.credentials().await?;
        if self.settings.requester_pays {
            call = call.with_header("x-amz-request-payer", "requester")?;
        }
        let request =
            call.compose(&endpoint, credentials.as_ref(), self.now()).map_err(HttpError::Other)?;
        let began = Instant::now();
        let response = self.http.send(request).await;
        let status = response.as_ref().ok().map(|response| response.status);
        metrics::attempt(call.op, began.elapsed(), status);
        // 404: it was completed or aborted by an attempt whose response was lost.
        if status == Some(404)
            && matches!(call.op, "CompleteMultipartUpload" | "AbortMultipartUpload")
        {
            call.upload().inspect(|id| metrics::upload_ended(id));
        }
        Ok(response?)
    }

    /// Sends a request, and returns the response if its status is a success, and its body is not an error.
    pub(crate) async fn send(&self, call: Call) -> Result<Success, S3Error> {
        let (op, upload) = (call.op, call.upload().map(str::to_owned));
        let has_body = call.method != Method::HEAD;
        self.pace.wait().await;
        let response = self.attempt(call).await?;
        let (status, headers) = (response.status, response.headers.clone());
        let (content_length, endpoint) = (response.content_length, response.endpoint().to_owned());
        let body = match has_body {
            true => response.collect(LARGEST).await?,
            false => Bytes::new(),
        };
        // A store that responds before it is done tells of an error in the body.
        if !(200..300).contains(&status) || is_error(&body) {
            return Err(self.refused(op, status, &headers, &body, endpoint));
        }
        self.pace.succeeded();
        let is_last = matches!(op, "CompleteMultipartUpload" | "AbortMultipartUpload");
        upload.filter(|_| is_last).inspect(|id| metrics::upload_ended(id));
        Ok(Success { headers, content_length, body })
    }

    /// Returns why the store refused a request, from the head of its response and as much of its body as was read.
    #[cold]
    fn refused(
        &self,
        op: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        endpoint: String,
    ) -> S3Error {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let retry_now = self.may_try_again(status, header, body);
        let refused = explain(op, &self.name, self.checksums, status, header, body);
        let error = refused.into_error(endpoint, retry_now);
        if error.code().is_some_and(is_overload) {
            self.pace.overloaded();
        }
        error
    }

    /// Returns why a GET was refused.
    pub(crate) async fn refused_get(&self, op: &str, response: Response) -> S3Error {
        let (status, headers) = (response.status, response.headers.clone());
        let endpoint = response.endpoint().to_owned();
        let body = response.beginning(REFUSAL).await;
        self.refused(op, status, &headers, &body, endpoint)
    }
}

/// Returns whether a document is an error.
fn is_error(body: &[u8]) -> bool {
    let mut is_error = false;
    // A store may send blanks while it works. Only the declaration comes before the first element.
    let start = body.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(body.len());
    let document = &body[start..];
    let after = document.starts_with(b"<?").then(|| {
        let end =
            document.iter().position(|byte| *byte == b'>').map_or(document.len(), |end| end + 1);
        document[end..].trim_ascii_start()
    });
    if after.unwrap_or(document).starts_with(b"<Error") {
        let _ = xml::elements(body, |path, _| is_error |= path.first() == Some(&"Error"));
    }
    is_error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Rules;
    use std::sync::Arc;
    use std::time::Duration;

    fn get(key: &str) -> Call {
        Call::object("GetObject", Method::GET, key).with_header("range", "bytes=0-9").unwrap()
    }

    fn credentials(id: &str, token: Option<&str>) -> Credentials {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        Credentials::new(id, secret, token.map(str::to_owned), None, "documentation")
    }

    fn composed(call: &Call, credentials: Option<&Credentials>) -> Result<Request<Chunks>> {
        let mut endpoint =
            Rules::default().endpoint("examplebucket", &Arc::new("us-east-1".to_owned())).unwrap();
        endpoint.base = "https://examplebucket.s3.amazonaws.com".into();
        endpoint.authority = "examplebucket.s3.amazonaws.com".into();
        // Fri, 24 May 2013 00:00:00 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        call.compose(&endpoint, credentials, now)
    }

    fn header<'r>(request: &'r Request<Chunks>, name: &str) -> &'r str {
        request.headers()[name].to_str().unwrap()
    }

    #[test]
    fn no_value_can_add_a_header_or_a_request() {
        const EVIL: [&str; 6] =
            ["\r\nx-evil: 1", "\nx-evil: 1", "\rx", "\0", "\u{7f}", "\r\n\r\nGET /"];
        for evil in EVIL {
            assert!(get("k").with_header("if-match", &format!("\"e\"{evil}")).is_err(), "{evil:?}");
            for credentials in [
                credentials("id", Some(&format!("secret{evil}"))),
                credentials(&format!("secret{evil}"), None),
            ] {
                let error = composed(&get("k"), Some(&credentials)).unwrap_err();
                assert!(!format!("{error:#} {error:?}").contains("secret"), "{error:?}");
            }
            // A key may have any bytes: it is encoded.
            let request = composed(&get(evil), Some(&credentials("id", None))).unwrap();
            assert!(!request.headers().contains_key("x-evil"));
            assert!(!request.uri().path().contains(char::is_control));
        }
        // Valid characters of an ETag are accepted.
        let call = get("k").with_header("if-match", "\"é-_~\t\"").unwrap();
        assert!(composed(&call, None).is_ok());
    }

    /// "Example: GET Object" of "Authenticating Requests: Using the Authorization Header" in Amazon's documentation.
    #[test]
    fn a_request_is_signed_as_documented() {
        let request = composed(&get("test.txt"), Some(&credentials("AKIAIOSFODNN7EXAMPLE", None)));
        let request = request.unwrap();
        assert_eq!(request.uri().path(), "/test.txt");
        for (name, value) in [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-date", "20130524T000000Z"),
            (
                "x-amz-content-sha256",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                 SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
                 Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
        ] {
            assert_eq!(header(&request, name), value);
        }
    }

    #[test]
    fn all_that_matters_is_signed() {
        let call = get("a//b c+é").with_header("if-match", "\"e\"").unwrap();
        let call = call.with_header("x-amz-request-payer", "requester").unwrap();
        let call = call.with_query("uploadId", "a b+/");
        let request = composed(&call, Some(&credentials("id", Some("token")))).unwrap();
        let target = request.uri().path_and_query().unwrap();
        assert_eq!(target.as_str(), "/a//b%20c%2B%C3%A9?uploadId=a%20b%2B%2F");
        let signed = "SignedHeaders=host;if-match;range;x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-token,";
        assert!(header(&request, "authorization").contains(signed), "{request:?}");
        let shown = format!("{request:?}");
        assert!(!shown.contains("Signature") && !shown.contains("\"token\""), "{shown}");
    }

    #[test]
    fn errors_in_a_success_are_found() {
        assert!(is_error(b"<?xml version=\"1.0\"?>\n <Error><Code>SlowDown</Code></Error>"));
        assert!(is_error(b"   <Error><Code>SlowDown</Code></Error>"));
        let late = format!(
            "<?xml version=\"1.0\"?>{}<Error><Code>SlowDown</Code></Error>",
            " ".repeat(1000)
        );
        assert!(is_error(late.as_bytes()));
        for body in ["", "<Errors/>", "<R><Error><Key>k</Key></Error></R>", "<R>&lt;Error></R>"] {
            assert!(!is_error(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn sources_are_encoded() {
        let name = |bucket: &str| Name::new("s3", bucket, "a/ü +%?~.x");
        assert_eq!(copy_source(&name("b")), "b/a/%C3%BC%20%2B%25%3F~.x");
        let arn = "arn:aws:s3:us-west-2:123456789012:accesspoint/mine";
        let encoded = "arn%3Aaws%3As3%3Aus-west-2%3A123456789012%3Aaccesspoint/mine/object/a/%C3%BC%20%2B%25%3F~.x";
        assert_eq!(copy_source(&name(arn)), encoded);
    }
}

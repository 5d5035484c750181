//! A client of blocking sockets, which sees what is on the wire.

// Each test file uses its own part of it.
#![allow(dead_code, unreachable_pub)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use s3_server::{Options, Server};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a server with the bucket `bucket`.
pub fn server() -> Server {
    Server::start(Options { buckets: vec!["bucket".into()], ..Options::default() })
        .expect("a server")
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Why the body is not complete.
    pub broken: Option<io::Error>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    /// Returns the contents of all `<name>` elements.
    pub fn all(&self, name: &str) -> Vec<String> {
        let (text, open, close) = (self.text(), format!("<{name}>"), format!("</{name}>"));
        let pieces = text.split(&open).skip(1);
        pieces.map(|rest| rest.split(&close).next().expect("an end").to_owned()).collect()
    }

    /// Returns the content of the first `<name>` element.
    pub fn xml(&self, name: &str) -> String {
        self.all(name)
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("no <{name}> in {}", self.text()))
    }

    #[track_caller]
    pub fn ok(self) -> Answer {
        assert!(self.broken.is_none(), "{self:?}");
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        self
    }

    /// Checks that this is an error of S3.
    #[track_caller]
    pub fn fails(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.xml("Code").as_str()), (status, code));
    }
}

/// The client, and its connection.
pub struct Client {
    address: SocketAddr,
    credentials: Credentials,
    pub stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Client {
    pub fn new(server: &Server) -> Client {
        Client {
            address: server.address(),
            credentials: Credentials::new(
                server.access_key(),
                server.secret_key(),
                None,
                None,
                "test",
            ),
            stream: None,
            buffer: Vec::new(),
        }
    }

    /// Returns the head of a request, signed.
    pub fn head(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &SignableBody<'_>,
    ) -> String {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let identity = self.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .expect("parameters")
            .into();
        let uri = format!("http://{}{target}", self.address);
        let request = SignableRequest::new(method, uri, headers.iter().copied(), body.clone())
            .expect("a request");
        let (signed, _) = sign(request, &parameters).expect("signed").into_parts();
        let mut text = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers.iter().copied().chain(signed.headers()) {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n"
    }

    pub fn connect(&mut self) -> io::Result<&mut TcpStream> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            self.buffer.clear();
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("just connected"))
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connect()?.write_all(bytes)
    }

    /// Sends a request with its length and does not wait.
    pub fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        if !body.is_empty() || method == "PUT" {
            headers.push(("content-length", &length));
        }
        let head = self.head(method, target, &headers, &SignableBody::Bytes(body));
        self.write(head.as_bytes())?;
        self.write(body)
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut chunk = vec![0; 256 << 10];
        let n = self.connect()?.read(&mut chunk)?;
        self.buffer.extend_from_slice(&chunk[..n]);
        Ok(n)
    }

    /// Reads the head of the next response.
    pub fn read_head(&mut self) -> io::Result<Answer> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut response = httparse::Response::new(&mut headers);
            let parsed = response.parse(&self.buffer).map_err(io::Error::other)?;
            if let httparse::Status::Complete(length) = parsed {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let headers =
                    response.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value)));
                let (status, headers) = (response.code.expect("a status"), headers.collect());
                self.buffer.drain(..length);
                return Ok(Answer { status, headers, body: Vec::new(), broken: None });
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the rest of a response to `method`.
    pub fn read_body(&mut self, method: &str, answer: &mut Answer) {
        if method == "HEAD" || answer.status == 204 || answer.status == 304 {
            return;
        }
        let length: usize =
            answer.header("content-length").map_or(0, |value| value.parse().expect("a number"));
        while self.buffer.len() < length {
            match self.more() {
                Ok(0) => answer.broken = Some(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => continue,
                Err(error) => answer.broken = Some(error),
            }
            break;
        }
        answer.body = self.buffer.drain(..length.min(self.buffer.len())).collect();
    }

    /// Returns the received bytes that belong to no response.
    pub fn unclaimed(&mut self) -> &[u8] {
        &self.buffer
    }

    pub fn receive(&mut self, method: &str) -> io::Result<Answer> {
        let answer = self.read_head().inspect_err(|_| self.stream = None)?;
        let mut answer = answer;
        self.read_body(method, &mut answer);
        if answer.broken.is_some() || answer.header("connection") == Some("close") {
            self.stream = None;
        }
        Ok(answer)
    }

    /// Makes a request with headers and a body.
    pub fn try_call(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        self.send(method, target, headers, body).inspect_err(|_| self.stream = None)?;
        self.receive(method)
    }

    #[track_caller]
    pub fn call(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.try_call(method, target, headers, body).expect("an answer")
    }

    #[track_caller]
    pub fn get(&mut self, target: &str) -> Answer {
        self.call("GET", target, &[], b"")
    }

    #[track_caller]
    pub fn put(&mut self, target: &str, body: &[u8]) -> Answer {
        self.call("PUT", target, &[], body)
    }

    /// Begins an upload of `key` and returns its identifier.
    #[track_caller]
    pub fn begin(&mut self, key: &str) -> String {
        self.call("POST", &format!("/bucket/{key}?uploads="), &[], b"").ok().xml("UploadId")
    }

    /// Sends a part and returns its ETag.
    #[track_caller]
    pub fn part(&mut self, key: &str, id: &str, number: u32, body: &[u8]) -> String {
        let answer =
            self.put(&format!("/bucket/{key}?partNumber={number}&uploadId={id}"), body).ok();
        answer.header("etag").expect("an ETag").to_owned()
    }

    /// Completes an upload.
    pub fn complete(
        &mut self,
        key: &str,
        id: &str,
        parts: &[(u32, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let body = complete_body(parts);
        self.call("POST", &format!("/bucket/{key}?uploadId={id}"), headers, body.as_bytes())
    }
}

pub fn complete_body(parts: &[(u32, &str)]) -> String {
    let part = |(number, etag): &(u32, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

//! Services that give out credentials: STS, the agent of a container, and the metadata service of an EC2 instance.

use super::{Fields, Loaded, Outcome, Variant, absent, broken, credentials, date_time, of_json};
use crate::clock::{Clock, told};
use crate::endpoint::{ESCAPED, suffix};
use crate::profile::{Profiles, variable};
use crate::sign::{BodyHash, sign};
use aws_credential_types::Credentials;
use bytes::Bytes;
use percent_encoding::utf8_percent_encode;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tf_fs_object_store::http::{
    Chunks, HeaderMap, HeaderValue, Http, HttpError, HttpSettings, Method, Proxy, Request, Tls,
    Uri, is_confidential, printable, xml,
};
use tf_fs_object_store::redact::keep;
use tf_fs_object_store::{ErrorKind, StoreError as _, backoff};

/// How long the silence of the metadata service is remembered, so that not every request waits for it.
const IMDS_MEMORY: Duration = Duration::from_secs(30);
/// Attempts of a request to a service, but for the metadata service.
const ATTEMPTS: u32 = 3;
const LARGEST: usize = 1 << 20;

/// The services that the sources of all buckets share.
#[derive(Debug)]
pub(crate) struct Services {
    /// For Amazon's services.
    amazon: Http,
    /// Their time, which signatures for them and the expiry of their keys have to agree with.
    pub(super) clock: Clock,
    /// For services that only this machine can reach.
    local: Http,
    imds: Http,
    silence: Mutex<Option<Instant>>,
    /// Held while the token of a single sign-on is read and renewed: a token for renewals may be valid once.
    pub(super) renewal: tokio::sync::Mutex<()>,
}

/// Why the metadata service gave no value.
#[derive(Debug)]
pub(super) enum ImdsError {
    /// It did not respond.
    Silent(String),
    Refused(u16, &'static str),
}

impl std::fmt::Display for ImdsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent(why) => write!(f, "the metadata service does not respond: {why}"),
            Self::Refused(status, what) => {
                write!(f, "the metadata service responds with HTTP {status} for {what}")
            }
        }
    }
}

impl Services {
    pub(crate) fn new(tls: &Arc<rustls::ClientConfig>) -> Self {
        // How long the metadata service of an EC2 instance may take.
        Self::with_imds_timeout(tls, Duration::from_secs(1))
    }

    pub(super) fn with_imds_timeout(tls: &Arc<rustls::ClientConfig>, imds: Duration) -> Self {
        let client = |proxy, connect_timeout, stall_timeout| {
            let user_agent = crate::AGENT;
            let tls_settings = Tls::default();
            let settings = HttpSettings {
                tls: tls_settings,
                proxy,
                connect_timeout,
                stall_timeout,
                user_agent,
            };
            Http::with_config(Arc::clone(tls), settings)
        };
        let (connect, stall) = (Duration::from_secs(5), Duration::from_secs(10));
        Self {
            amazon: client(Proxy::Environment, connect, stall),
            clock: Clock::default(),
            local: client(Proxy::None, connect, stall),
            imds: client(Proxy::None, imds, imds),
            silence: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        }
    }

    /// Requests temporary credentials from STS.
    pub(super) async fn sts(
        &self,
        (region, use_fips, use_dualstack): &Variant,
        profiles: &Profiles,
        fields: &Fields,
        signed_by: Option<&Credentials>,
    ) -> Loaded {
        let flag = |key| profiles.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let url = endpoint(profiles, "STS", || {
            let use_fips = use_fips.unwrap_or_else(|| flag("use_fips_endpoint"));
            sts_url(
                region,
                use_fips,
                use_dualstack.unwrap_or_else(|| flag("use_dualstack_endpoint")),
            )
        });
        let encode = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let body = Bytes::from(body.join("&"));
        let mut may_correct = signed_by.is_some();
        let (status, body) = loop {
            let mut request = request(Method::POST, &format!("{url}/"), body.clone())?;
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            request.headers_mut().insert("content-type", form);
            let now = self.clock.now();
            if let Some(credentials) = signed_by {
                keep(credentials.secret_access_key());
                credentials.session_token().map(keep);
                let payload = BodyHash::Of(&body);
                sign(&mut request, payload, credentials, region, "sts", now)
                    .or_else(|error| broken(error.message().to_owned()))?;
            }
            let answer = self.ask_amazon(request).await?;
            // Refused for its time, of which STS says that the signature does not match.
            let is_refused = (400..=499).contains(&answer.0);
            if !(is_refused && may_correct && self.clock.was_wrong(now)) {
                break answer;
            }
            may_correct = false;
        };
        let (mut id, mut secret, mut token, mut expiry) = Default::default();
        let (mut code, mut message) = (String::new(), String::new());
        let read = xml::elements(&body, |path, text| {
            match (path, text) {
                ([.., "Credentials", name], Some(text)) => match *name {
                    "AccessKeyId" => id = Some(text),
                    "SecretAccessKey" => secret = Some(text),
                    "SessionToken" => token = Some(text),
                    "Expiration" => expiry = date_time(&text),
                    _ => {}
                },
                ([.., "Error", "Code"], Some(text)) => code = text,
                ([.., "Error", "Message"], Some(text)) => message = text,
                _ => {}
            };
        });
        match (status, read, id, secret) {
            (200..300, Ok(()), Some(id), Some(secret)) => {
                Ok(credentials(&id, &secret, token, expiry))
            }
            (200..300, ..) => broken("the response of STS has no credentials"),
            _ => Err(refused("STS", (status, &body), &format!("{code}: {message}"))),
        }
    }

    /// Sends a request to one of Amazon's services, and learns its time.
    pub(super) async fn ask_amazon(
        &self,
        request: Request<Chunks>,
    ) -> Result<(u16, Bytes), HttpError> {
        let (status, body, date) = ask(&self.amazon, request).await?;
        date.inspect(|date| self.clock.hear(*date));
        Ok((status, body))
    }

    /// Requests the credentials of a container, or of a pod.
    pub(super) async fn container(&self) -> Loaded {
        const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        let (name, url) = match (variable(RELATIVE), variable(FULL)) {
            (Some(path), _) => (RELATIVE, format!("http://169.254.170.2{path}")),
            (None, Some(url)) => (FULL, url),
            (None, None) => return absent(format!("{RELATIVE} or {FULL} is not set")),
        };
        let loaded = self.container_at(&url).await;
        loaded.map_err(|outcome| outcome.map(|reason| format!("{name}: {reason}")))
    }

    async fn container_at(&self, url: &str) -> Loaded {
        let mut request = request(Method::GET, url, Bytes::new())?;
        let host = request.uri().host().unwrap_or_default();
        if !is_confidential(request.uri()) && !is_agent(host) {
            return broken(
                "its host has no allowed IP address; without TLS only this machine and the agents of ECS and EKS are",
            );
        }
        let token = match variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(super::read_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &file)?),
            None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        if let Some(token) = token {
            keep(&token);
            let Ok(value) = HeaderValue::from_str(&token) else {
                return broken(
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN (or the file of …_FILE) cannot be sent: it has a line break or a control character",
                );
            };
            request.headers_mut().insert("authorization", value);
        }
        let (status, body, _) = ask(&self.local, request).await?;
        if !(200..300).contains(&status) {
            return Err(refused("the agent", (status, &body), &String::from_utf8_lossy(&body)));
        }
        of_json(&body).or_else(|why| broken(format!("the response has {why}")))
    }

    /// Requests the credentials of this EC2 instance.
    pub(super) async fn instance(&self, profiles: &Profiles) -> Loaded {
        if imds_is_disabled() {
            return absent("AWS_EC2_METADATA_DISABLED is set");
        }
        if self.is_silent() {
            return absent("the metadata service did not respond a moment ago");
        }
        let endpoint = imds_endpoint(profiles);
        let body = self.listen(|| self.instance_keys(&endpoint)).await.map_err(|error| {
            // 501 and 505 do not pass.
            match &error {
                ImdsError::Refused(429 | 500 | 502..=504 | 506..=599, _) => {
                    Outcome::Unanswered(error.to_string())
                }
                _ => Outcome::Absent(error.to_string()),
            }
        })?;
        let current = of_json(&body)
            .or_else(|why| absent(format!("the response of the metadata service has {why}")))?;
        // While the service is overloaded it gives out old ones, which stay valid.
        let (now, soon) = (SystemTime::now(), Duration::from_secs(15 * 60));
        if current.expiry().is_none_or(|expiry| now < expiry) {
            return Ok(current);
        }
        log::warn!("the EC2 metadata service has old credentials only, which are used");
        let token = current.session_token().map(str::to_owned);
        Ok(credentials(
            current.access_key_id(),
            current.secret_access_key(),
            token,
            Some(now + soon),
        ))
    }

    pub(super) async fn instance_keys(&self, endpoint: &str) -> Result<Bytes, ImdsError> {
        const ROLES: &str = "latest/meta-data/iam/security-credentials/";
        let token = self.imds_token(endpoint).await?;
        let get = async |path: &str, what| {
            self.imds_value(Method::GET, endpoint, path, &token, what).await
        };
        let role = get(ROLES, "the instance's role").await?;
        let role = String::from_utf8_lossy(&role);
        let role = role.lines().next().unwrap_or_default().trim();
        get(&format!("{ROLES}{role}"), "the keys of the instance's role").await
    }

    async fn imds_token(&self, endpoint: &str) -> Result<Bytes, ImdsError> {
        self.imds_value(Method::PUT, endpoint, "latest/api/token", b"", "a token").await
    }

    async fn imds_value(
        &self,
        method: Method,
        endpoint: &str,
        path: &str,
        token: &[u8],
        what: &'static str,
    ) -> Result<Bytes, ImdsError> {
        let silent = |failed: HttpError| ImdsError::Silent(failed.summary());
        let url = format!("{}/{path}", endpoint.trim_end_matches('/'));
        let mut request = request(method.clone(), &url, Bytes::new())
            .map_err(|_| ImdsError::Silent(format!("{endpoint} is not a URL")))?;
        let headers = request.headers_mut();
        if method == Method::PUT {
            let day = HeaderValue::from_static("21600");
            headers.insert("x-aws-ec2-metadata-token-ttl-seconds", day);
        } else if let Ok(token) = HeaderValue::from_bytes(token) {
            headers.insert("x-aws-ec2-metadata-token", token);
        }
        let limit = self.imds.settings().connect_timeout;
        let response = tokio::time::timeout(limit, once(&self.imds, request)).await;
        let late = |_| HttpError::Stalled(endpoint.to_owned(), limit);
        match response.map_err(late).flatten().map_err(silent)? {
            (200, body, _) => Ok(body),
            (status, ..) => Err(ImdsError::Refused(status, what)),
        }
    }

    /// Returns whether the metadata service did not respond a moment ago.
    pub(super) fn is_silent(&self) -> bool {
        let silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.is_some_and(|since| since.elapsed() < IMDS_MEMORY)
    }

    /// Queries the metadata service. If it does not respond, queries it once more, since a packet may be lost, and then
    /// remembers the silence.
    pub(super) async fn listen<T, R: Future<Output = Result<T, ImdsError>>>(
        &self,
        ask: impl Fn() -> R,
    ) -> Result<T, ImdsError> {
        match ask().await {
            Err(ImdsError::Silent(_)) => {}
            outcome => return outcome,
        }
        ask().await.inspect_err(|error| {
            if matches!(error, ImdsError::Silent(_)) {
                let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
                *silence = Some(Instant::now());
            }
        })
    }

    /// Returns the region of this EC2 instance.
    pub(crate) async fn region_of_instance(&self, profiles: &Profiles) -> Option<String> {
        if imds_is_disabled() || self.is_silent() {
            return None;
        }
        let endpoint = imds_endpoint(profiles);
        let found = self.listen(|| self.region_at(&endpoint)).await;
        let found = found
            .inspect_err(|error| log::debug!("the EC2 instance's region is not known: {error}"));
        Some(String::from_utf8_lossy(&found.ok()?).into_owned())
    }

    pub(super) async fn region_at(&self, endpoint: &str) -> Result<Bytes, ImdsError> {
        const PATH: &str = "latest/meta-data/placement/region";
        let token = self.imds_token(endpoint).await?;
        self.imds_value(Method::GET, endpoint, PATH, &token, "the region").await
    }
}

fn imds_is_disabled() -> bool {
    variable("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

fn imds_endpoint(profiles: &Profiles) -> String {
    let get = |name, key| variable(name).or_else(|| profiles.get(key).map(str::to_owned));
    let mode = get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode");
    let usual = match mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6")) {
        true => "http://[fd00:ec2::254]",
        false => "http://169.254.169.254",
    };
    get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint")
        .unwrap_or_else(|| usual.to_owned())
}

/// Returns the endpoint of one of Amazon's services: that of the environment, else of the profile, else the usual one.
pub(super) fn endpoint(
    profiles: &Profiles,
    service: &str,
    usual: impl FnOnce() -> String,
) -> String {
    let is_ignored = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let name = format!("AWS_ENDPOINT_URL_{service}");
    let of_environment = variable(&name).or_else(|| variable("AWS_ENDPOINT_URL"));
    of_environment
        .filter(|_| !is_ignored)
        .or_else(|| profiles.endpoint(&service.to_ascii_lowercase()).map(str::to_owned))
        .map_or_else(usual, |url| url.trim_end_matches('/').to_owned())
}

pub(super) fn request(method: Method, url: &str, body: Bytes) -> Result<Request<Chunks>, Outcome> {
    let url: Uri =
        url.parse().or_else(|_| broken(format!("{} is not a URL", printable(url, 200))))?;
    let mut request = Request::new(Chunks::new([body]));
    (*request.method_mut(), *request.uri_mut()) = (method, url);
    *request.headers_mut() = HeaderMap::new();
    Ok(request)
}

/// Returns the usual endpoint of STS. In GovCloud it is a FIPS endpoint; not every partition has dual-stack ones.
pub(super) fn sts_url(region: &str, use_fips: bool, use_dualstack: bool) -> String {
    let domain = match (use_dualstack, suffix(region)) {
        (true, "amazonaws.com") => "api.aws",
        (true, "amazonaws.com.cn") => "api.amazonwebservices.com.cn",
        (_, usual) => usual,
    };
    let has_fips = use_fips && (use_dualstack || !region.starts_with("us-gov-"));
    format!("https://sts{}.{region}.{domain}", if has_fips { "-fips" } else { "" })
}

/// Returns whether a host is the address of an agent of ECS or EKS.
pub(super) fn is_agent(host: &str) -> bool {
    const AGENTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.is_ok_and(|address| AGENTS.contains(&address.to_string().as_str()))
}

/// A response's status, body, and time.
type Answer = (u16, Bytes, Option<SystemTime>);

/// Sends a request, again where the service may respond later.
async fn ask(http: &Http, request: Request<Chunks>) -> Result<Answer, HttpError> {
    let mut attempts = 1;
    loop {
        let outcome = once(http, request.clone()).await;
        let class = match &outcome {
            Ok((200..300, ..)) => return outcome,
            Ok((status, body, _)) => class_of(*status, body),
            Err(failed) => failed.kind(),
        };
        if class != ErrorKind::Transient || attempts == ATTEMPTS {
            return outcome;
        }
        tokio::time::sleep(backoff(Duration::from_millis(500), attempts)).await;
        attempts += 1;
    }
}

async fn once(http: &Http, request: Request<Chunks>) -> Result<Answer, HttpError> {
    let response = http.send(request).await?;
    let (status, date) = (response.status, told(|name| response.header(name)));
    Ok((status, response.collect(LARGEST).await?, date))
}

/// The codes of errors that pass, which STS sends with HTTP 400 too.
const PASSING: [&str; 6] = [
    "IDPCommunicationError",
    "InternalFailure",
    "RequestLimitExceeded",
    "RequestTimeout",
    "Throttling",
    "ThrottlingException",
];

/// Classifies an error response, also by the code in its XML.
pub(super) fn class_of(status: u16, body: &[u8]) -> ErrorKind {
    let body = String::from_utf8_lossy(body);
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    match code {
        Some((code, _)) if PASSING.contains(&code.trim()) => ErrorKind::Transient,
        _ => ErrorKind::from_http_status(status),
    }
}

pub(super) fn refused(service: &str, (status, body): (u16, &[u8]), message: &str) -> Outcome {
    let reason = format!("{service} responds with HTTP {status}: {}", printable(message, 300));
    match class_of(status, body) {
        ErrorKind::Transient => Outcome::Unanswered(reason),
        _ => Outcome::Broken(reason),
    }
}

//! Tokens of Microsoft Entra, renewed before they expire.
//!
//! The environment decides: an application with a secret, a workload with a file of Kubernetes, the managed identity of
//! App Service. If it names none: the managed identity of this machine, then the user of `az login`.

mod login;

use self::login::cli;
use crate::account::is_confidential;
use crate::client::http_settings;
use crate::settings::{Secret, Settings};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tf_fs_object_store::http::{
    Chunks, HeaderValue, Http, HttpError, HttpSettings, Proxy, Request, Response, causes,
    is_lasting, is_timeout,
};
use tf_fs_object_store::{ErrorKind, StoreError as _};
use tf_fs_plugin::prelude::*;
use tokio::sync::Mutex;

/// The resource of the tokens.
const RESOURCE: &str = "https://storage.azure.com";
/// How long before its expiry a token is renewed.
const MARGIN: Duration = Duration::from_secs(5 * 60);
/// The wait between two renewals, whether or not there is a new token: a service that does not respond, or whose tokens
/// are short-lived, would delay each request.
const PAUSE: Duration = Duration::from_secs(30);
/// A machine in Azure accepts a connection at once.
const IMDS_CONNECT: Duration = Duration::from_secs(1);
/// The response may take longer, with the first token of an identity.
const IMDS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long no identity is looked for after none was found.
const NOBODY_FOR: Duration = Duration::from_secs(60);
/// The largest response of a token service, in bytes.
const LARGEST: usize = 1 << 20;

/// Where tokens come from.
enum Source {
    Secret { url: String, client: String, secret: Secret },
    Workload { url: String, client: String, file: PathBuf },
    AppService { endpoint: String, header: Secret, client: Option<String> },
    Imds { endpoint: String, client: Option<String>, is_named: bool },
    Cli { az: String, tenant: Option<String> },
}

/// The tokens of one identity.
pub(crate) struct Tokens {
    /// The first one that has a token is used from then on.
    sources: Vec<Source>,
    /// Whether it is an error if none has.
    is_required: bool,
    http: Http,
    /// For services that only this machine can reach.
    settings: HttpSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// The source that has tokens; `Err` if none had any then.
    chosen: Option<Result<usize, SystemTime>>,
    /// When a token was requested last.
    requested: Option<Instant>,
    /// The last search or renewal, if it failed, and when it began.
    failed: Option<(Instant, HttpError)>,
}

#[derive(Clone)]
struct Token {
    text: Secret,
    ends: SystemTime,
}

impl State {
    fn has_paused(&self) -> bool {
        self.requested.is_none_or(|requested| requested.elapsed() >= PAUSE)
    }
}

impl Tokens {
    /// Returns the identity that the settings name, or that this machine may have; `None` if they want none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an incomplete identity, or a place where its secret could be read on the way.
    pub(crate) fn find(settings: &Settings, http: &Http) -> Result<Option<Self>> {
        let text = |key| settings.text(key).map(str::to_owned);
        let (tenant, client) = (text("tenant_id"), text("client_id"));
        let authority =
            text("authority_host").unwrap_or_else(|| "login.microsoftonline.com".into());
        // Azure's SDKs accept it without the scheme, too.
        let scheme = if authority.contains("://") { "" } else { "https://" };
        let authority = format!("{scheme}{}", authority.trim_end_matches('/'));
        let needs = |what: &str| {
            Error::invalid_argument(format_args!(
                "{what} is set, but not AZURE_TENANT_ID and AZURE_CLIENT_ID; set them too"
            ))
        };
        let application = |what: &str| match (&tenant, &client) {
            _ if !is_confidential(&authority) => Err(Error::invalid_argument(
                "AZURE_AUTHORITY_HOST: a secret is not sent there without TLS; name a URL with https://",
            )),
            (Some(tenant), Some(client)) => {
                let tenant = utf8_percent_encode(tenant, NON_ALPHANUMERIC);
                let url = format!("{authority}/{tenant}/oauth2/v2.0/token");
                Ok((url.replace("%2D", "-").replace("%2E", "."), client.clone()))
            }
            _ => Err(needs(what)),
        };
        let sources = if let Some(secret) = settings.secret("client_secret") {
            let (url, client) = application("AZURE_CLIENT_SECRET")?;
            vec![Source::Secret { url, client, secret }]
        } else if let Some(file) = settings.path("federated_token_file") {
            let (url, client) = application("AZURE_FEDERATED_TOKEN_FILE")?;
            vec![Source::Workload { url, client, file }]
        } else if let Some((endpoint, header)) =
            text("identity_endpoint").zip(settings.secret("identity_header"))
        {
            ensure!(
                is_confidential(&endpoint) || is_link_local(&endpoint),
                Error::invalid_argument(
                    "IDENTITY_ENDPOINT: a secret is not sent to another machine without TLS; name a URL with https://",
                )
            );
            vec![Source::AppService { endpoint, header, client }]
        } else {
            let endpoint = text("imds_endpoint");
            // The settings say that there is one.
            let is_named = endpoint.is_some() || client.is_some();
            let endpoint = endpoint.unwrap_or_else(|| "http://169.254.169.254".to_owned());
            ensure!(
                is_confidential(&endpoint) || is_link_local(&endpoint),
                Error::invalid_argument(
                    "AZURE_POD_IDENTITY_AUTHORITY_HOST: a token does not come from another machine without TLS; name a URL with https://",
                )
            );
            let cli = Source::Cli { az: "az".to_owned(), tenant };
            vec![Source::Imds { endpoint, client, is_named }, cli]
        };
        Ok(Some(Self {
            sources,
            is_required: settings.text("auth") == Some("entra"),
            http: http.clone(),
            settings: http_settings(settings),
            state: Mutex::default(),
        }))
    }

    /// Returns a token that is valid for a while; `None` if no identity is found and none is required. A request that
    /// waited while another one searched in vain does not search again.
    ///
    /// # Errors
    /// By class; `UNAUTHENTICATED` if no identity is found.
    pub(crate) async fn get(&self) -> Result<Option<Secret>, HttpError> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        let now = SystemTime::now();
        let margin = if state.has_paused() { MARGIN } else { Duration::ZERO };
        if let Some(token) = state.token.as_ref().filter(|token| token.ends > now + margin) {
            return Ok(Some(token.text.clone()));
        }
        if self.is_required && state.has_paused() && state.chosen.is_some_and(|it| it.is_err()) {
            state.chosen = None;
        }
        if let Some((_, failed)) = state.failed.as_ref().filter(|(began, _)| *began >= asked)
            && let Some(failed) = copy_of(failed)
        {
            return Err(failed);
        }
        let began = Instant::now();
        let renewed = match state.chosen {
            Some(Ok(chosen)) => match self.request(&self.sources[chosen], true).await {
                Ok(None) => Err(HttpError::invalid("the identity is gone")),
                renewed => renewed,
            },
            Some(Err(_)) => return self.nobody(),
            None => {
                let (mut found, mut unreachable) = (Ok(None), None);
                for (index, source) in self.sources.iter().enumerate() {
                    found = self.request(source, false).await;
                    match &found {
                        Ok(None) => log::debug!("az://: {} has no identity", source.name()),
                        Ok(Some(_)) => {
                            log::debug!("az://: {} has an identity", source.name());
                            state.chosen = Some(Ok(index));
                            break;
                        }
                        // This may not be in Azure, and its user may be signed in.
                        Err(failed)
                            if matches!(source, Source::Imds { .. }) && !is_busy(failed) =>
                        {
                            unreachable = std::mem::replace(&mut found, Ok(None)).err();
                        }
                        Err(_) => break,
                    }
                }
                match (found, unreachable) {
                    (Ok(None), Some(failed)) => Err(failed),
                    (found, _) => found,
                }
            }
        };
        state.requested = Some(Instant::now());
        match renewed {
            Ok(Some(token)) => Ok(Some(state.token.insert(token).text.clone())),
            Ok(None) => {
                state.chosen = Some(Err(now));
                self.nobody()
            }
            // It is renewed early, so the old one may still be valid.
            Err(failed) => match state.token.as_ref().filter(|token| token.ends > now) {
                Some(token) => {
                    log::warn!("az://: the token could not be renewed: {}", failed.summary());
                    Ok(Some(token.text.clone()))
                }
                None => {
                    state.failed = copy_of(&failed).map(|failed| (began, failed));
                    Err(failed)
                }
            },
        }
    }

    /// Forgets this token, which is invalid. Another request may have done so already, and there is a new one.
    pub(crate) async fn forget(&self, used: &Secret) {
        let mut state = self.state.lock().await;
        state.token.take_if(|token| token.text == *used);
    }

    /// Lets the next request look for an identity again, unless that was just done. It is called when a request without
    /// a token was refused, so that a user who signs in now need not restart.
    pub(crate) async fn look_again(&self) {
        let now = SystemTime::now();
        let was = |chosen: &mut Result<usize, SystemTime>| {
            chosen.is_err_and(|then| now.duration_since(then).is_ok_and(|age| age > NOBODY_FOR))
        };
        self.state.lock().await.chosen.take_if(was);
    }

    /// Returns whose tokens they are, for errors.
    pub(crate) fn describe(&self) -> &'static str {
        match self.sources[..] {
            [ref only] => only.name(),
            _ => "the managed identity, or who is signed in by `az login`,",
        }
    }

    fn nobody(&self) -> Result<Option<Secret>, HttpError> {
        if !self.is_required {
            return Ok(None);
        }
        Err(HttpError::Other(Error::new(
            Code::Unauthenticated,
            "this machine has no managed identity, and nobody is signed in by `az login`; sign in, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
        )))
    }

    /// Requests a new token; `None` if the source does not exist. One that `was_chosen` had a token before.
    async fn request(&self, source: &Source, was_chosen: bool) -> Result<Option<Token>, HttpError> {
        match source {
            Source::Secret { url, client, secret } => {
                let form = [("client_id", &**client), ("client_secret", secret.expose())];
                self.application(url, &form, source).await.map(Some)
            }
            Source::Workload { url, client, file } => {
                let assertion = std::fs::read_to_string(file).map_err(|error| {
                    let text = "AZURE_FEDERATED_TOKEN_FILE cannot be read; check the workload identity of the pod";
                    HttpError::Other(Error::new(Code::Unauthenticated, text).with_source(error))
                })?;
                let form = [
                    ("client_id", &**client),
                    (
                        "client_assertion_type",
                        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                    ),
                    ("client_assertion", assertion.trim()),
                ];
                self.application(url, &form, source).await.map(Some)
            }
            Source::AppService { endpoint, header, client } => {
                let url = with_client(
                    format!("{endpoint}?api-version=2019-08-01&resource={RESOURCE}"),
                    client.as_deref(),
                );
                let mut request = get(&url)?;
                let mut value = HeaderValue::from_str(header.expose()).map_err(|_| unusable())?;
                value.set_sensitive(true);
                request.headers_mut().insert("x-identity-header", value);
                let response = self.near()?.send(request).await?;
                self.token(response, source).await.map(Some)
            }
            Source::Imds { endpoint, client, is_named } => {
                let url = with_client(
                    format!(
                        "{endpoint}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={RESOURCE}"
                    ),
                    client.as_deref(),
                );
                let mut request = get(&url)?;
                request.headers_mut().insert("metadata", HeaderValue::from_static("true"));
                let near = self.near()?;
                let answer = tokio::time::timeout(IMDS_TIMEOUT, near.send(request)).await;
                let stalled = |_| Err(HttpError::Stalled(endpoint.clone(), IMDS_TIMEOUT));
                let is_expected = *is_named || was_chosen;
                // Elsewhere nothing responds, or another cloud's service does.
                match answer.unwrap_or_else(stalled) {
                    Ok(response)
                        if is_expected || matches!(response.status, 200 | 410 | 429 | 500..) =>
                    {
                        self.token(response, source).await.map(Some)
                    }
                    Err(failed @ HttpError::Stalled(..)) if self.is_required => Err(failed),
                    Err(failed) if is_expected => Err(failed),
                    _ => Ok(None),
                }
            }
            Source::Cli { az, tenant } => cli(az, tenant.as_deref()).await,
        }
    }

    /// Creates a client without a proxy, for services of this machine.
    fn near(&self) -> Result<Http, HttpError> {
        let settings = HttpSettings {
            proxy: Proxy::None,
            connect_timeout: IMDS_CONNECT,
            ..self.settings.clone()
        };
        Http::new(settings).map_err(HttpError::Other)
    }

    async fn application(
        &self,
        url: &str,
        form: &[(&str, &str)],
        source: &Source,
    ) -> Result<Token, HttpError> {
        let mut body = format!("grant_type=client_credentials&scope={RESOURCE}/.default");
        for (name, value) in form {
            body.push_str(&format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        }
        let mut request =
            Request::post(url).body(Chunks::new([body.into()])).map_err(|_| unusable())?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert("content-type", form);
        self.token(self.http.send(request).await?, source).await
    }

    /// Reads the token of a response.
    async fn token(&self, response: Response, source: &Source) -> Result<Token, HttpError> {
        if response.status != 200 {
            return Err(response
                .into_error(|refusal, body| {
                    let body: Value = serde_json::from_slice(body).unwrap_or_default();
                    let text = |name: &str| body[name].as_str().map(str::to_owned);
                    (refusal.code, refusal.message) = (text("error"), text("error_description"));
                    let is_imds = matches!(source, Source::Imds { .. });
                    if is_imds && matches!(refusal.status, 404 | 410) {
                        // While the service is being updated.
                        refusal.kind = Some(ErrorKind::Transient);
                        refusal.error_code = Some(Code::Unavailable);
                    } else if !matches!(refusal.status, 408 | 429 | 500..) {
                        refusal.kind = Some(ErrorKind::Permanent);
                        refusal.error_code = Some(Code::Unauthenticated);
                    }
                    refusal.advice = Some(format!("no token for {}; check it", source.name()));
                })
                .await);
        }
        let json = response.collect(LARGEST).await?;
        token_of(&json).ok_or_else(|| HttpError::invalid("it has no token"))
    }
}

impl Source {
    fn name(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "the application of AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
            Self::Workload { .. } => {
                "the workload of AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE"
            }
            Self::AppService { .. } => "the managed identity of IDENTITY_ENDPOINT",
            Self::Imds { .. } => "the managed identity of this machine",
            Self::Cli { .. } => "`az login`",
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("of", &self.describe()).finish_non_exhaustive()
    }
}

/// Returns whether a metadata service said that it is busy, so there is an identity.
fn is_busy(failed: &HttpError) -> bool {
    matches!(failed, HttpError::Status(refusal) if matches!(refusal.status, 410 | 429 | 500..))
}

/// Returns the failure for another request; `None` if that request should try itself.
fn copy_of(failed: &HttpError) -> Option<HttpError> {
    Some(match failed {
        HttpError::Status(refusal) => HttpError::Status(refusal.clone()),
        HttpError::Stalled(endpoint, time) => HttpError::Stalled(endpoint.clone(), *time),
        HttpError::Transport(endpoint, error) if !is_lasting(&**error) => {
            let kind =
                if is_timeout(&**error) { io::ErrorKind::TimedOut } else { io::ErrorKind::Other };
            let copy = std::io::Error::new(kind, causes(&**error));
            HttpError::Transport(endpoint.clone(), Box::new(copy))
        }
        _ => return None,
    })
}

fn unusable() -> HttpError {
    let text = "a setting of the identity is not what a URL or a header can hold; check IDENTITY_ENDPOINT, IDENTITY_HEADER, AZURE_AUTHORITY_HOST and AZURE_TENANT_ID";
    HttpError::Other(Error::invalid_argument(text))
}

fn get(url: &str) -> Result<Request<Chunks>, HttpError> {
    Request::get(url).body(Chunks::default()).map_err(|_| unusable())
}

/// Returns whether the URL is in this machine's link-local network, where the services of its host are.
fn is_link_local(url: &str) -> bool {
    let host = url
        .parse::<tf_fs_object_store::http::Uri>()
        .ok()
        .and_then(|url| url.host().map(str::to_owned));
    host.and_then(|host| host.parse::<Ipv4Addr>().ok()).is_some_and(|host| host.is_link_local())
}

fn with_client(url: String, client: Option<&str>) -> String {
    match client {
        Some(client) => {
            format!("{url}&client_id={}", utf8_percent_encode(client, NON_ALPHANUMERIC))
        }
        None => url,
    }
}

/// Parses the responses of the services and of `az`, which have different names for the same fields.
fn token_of(json: &[u8]) -> Option<Token> {
    let json: Value = serde_json::from_slice(json).ok()?;
    let text = json.get("access_token").or(json.get("accessToken"))?.as_str()?;
    let number = |name: &str| {
        let value = json.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    let seconds = Duration::from_secs;
    let ends = match (number("expires_on"), number("expires_in")) {
        (Some(at), _) => UNIX_EPOCH.checked_add(seconds(at))?,
        (None, Some(left)) => SystemTime::now().checked_add(seconds(left))?,
        (None, None) => SystemTime::now() + 2 * MARGIN,
    };
    (!text.is_empty()).then(|| Token { text: Secret::new(text), ends })
}

#[cfg(test)]
mod tests;

//! Where credentials come from, and how long they are kept.

mod cache;

pub(crate) use cache::{Blame, Cache};

use super::http::{Unanswered, client};
use super::profile;
use crate::config::{BucketSettings, Profile};
use crate::failure::find;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::imds;
use aws_config::imds::client::error::{ImdsError, TokenError};
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_types::region::Region;
use http::HeaderValue;
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tf_fs_object_store::http::{Proxy, causes};
use tf_fs_object_store::redact::keep;
use tf_fs_object_store::{ErrorKind, StoreError as _};

/// How long the silence of the metadata service is remembered, so that not every request waits for it.
const IMDS_MEMORY: Duration = Duration::from_secs(30);

/// The sources of credentials, tried in the order of the AWS SDK.
pub(super) struct Chain {
    fixed: Option<Credentials>,
    profile: Option<Profile>,
    region: Region,
    sources: Arc<Sources>,
}

/// What the sources of all buckets share.
#[derive(Debug)]
pub(super) struct Sources {
    /// For Amazon's services.
    services: SharedHttpClient,
    /// For services that only this machine can reach.
    local: SharedHttpClient,
    silence: Mutex<Option<Instant>>,
    /// How long the metadata service of an EC2 instance may take.
    imds_timeout: Duration,
}

impl Sources {
    pub(super) fn new(tls: &Arc<rustls::ClientConfig>) -> Self {
        let (connect, stall) = (Duration::from_secs(5), Duration::from_secs(10));
        let client = |proxy| client(Arc::clone(tls), proxy, connect, stall);
        Self {
            services: client(Proxy::Environment),
            local: client(Proxy::None),
            silence: Mutex::default(),
            imds_timeout: Duration::from_secs(1),
        }
    }

    fn metadata_service(&self) -> imds::client::Builder {
        imds::Client::builder()
            .configure(&self.config(&self.local))
            .max_attempts(1)
            .connect_timeout(self.imds_timeout)
            .read_timeout(self.imds_timeout)
            .operation_attempt_timeout(self.imds_timeout)
            .operation_timeout(self.imds_timeout * 2)
    }

    fn config(&self, client: &SharedHttpClient) -> ProviderConfig {
        ProviderConfig::without_region().with_http_client(client.clone())
    }

    /// Returns whether the metadata service did not respond a moment ago.
    fn is_silent(&self) -> bool {
        let silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        silence.is_some_and(|since| since.elapsed() < IMDS_MEMORY)
    }

    /// Queries the metadata service. If it does not respond, queries it once more, since a packet may be lost, and then
    /// remembers the silence.
    async fn listen<T, E: StdError + 'static, R: Future<Output = Result<T, E>>>(
        &self,
        ask: impl Fn() -> R,
    ) -> Result<T, E> {
        match ask().await {
            Err(error) if is_silence(&error) => {}
            outcome => return outcome,
        }
        ask().await.inspect_err(|error| {
            if is_silence(error) {
                let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
                *silence = Some(Instant::now());
            }
        })
    }

    /// Returns the region in the profile, else that of this EC2 instance.
    pub(super) async fn region(
        &self,
        profile: Option<&Profile>,
        is_amazon: bool,
    ) -> Option<Region> {
        use aws_config::meta::region::ProvideRegion;
        let mut builder =
            ProfileFileRegionProvider::builder().configure(&self.config(&self.services));
        if let Some(profile) = profile {
            builder = builder.profile_name(&profile.name);
        }
        if let Some(region) = builder.build().region().await {
            return Some(region);
        }
        // The region of an instance says nothing about another store.
        if !is_amazon || imds_is_disabled() || self.is_silent() {
            return None;
        }
        let imds = self.metadata_service().build();
        match self.listen(|| imds.get("/latest/meta-data/placement/region")).await {
            Ok(region) => Some(Region::new(region.as_ref().to_owned())),
            Err(error) => {
                log::debug!("the EC2 metadata service names no region: {}", causes(&error));
                None
            }
        }
    }
}

/// Returns whether the metadata service did not respond, as far as the error tells.
fn is_silence(error: &(dyn StdError + 'static)) -> bool {
    let is_answer = match find::<ImdsError>(error) {
        Some(ImdsError::ErrorResponse(_)) | None => true,
        Some(_) => find::<TokenError>(error).is_some(),
    };
    !is_answer || find::<Unanswered>(error).is_some()
}

/// Returns whether the metadata service responded, and was only busy.
fn is_busy(error: &(dyn StdError + 'static)) -> bool {
    let status = match find::<ImdsError>(error) {
        Some(ImdsError::ErrorResponse(answer)) => Some(answer.response().status()),
        _ => find::<SdkError<TokenError, HttpResponse>>(error)
            .and_then(SdkError::raw_response)
            .map(HttpResponse::status),
    };
    // 501 and 505 do not pass.
    status.is_some_and(|status| matches!(status.as_u16(), 429 | 500 | 502..=504 | 506..=599))
}

fn imds_is_disabled() -> bool {
    std::env::var("AWS_EC2_METADATA_DISABLED")
        .is_ok_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Why there are no credentials: which sources were tried, with their results.
#[derive(Clone, Debug)]
pub(crate) struct NoCredentials {
    tried: Vec<(String, String)>,
    /// Whether a service did not respond, or was busy: it may respond later.
    pub(crate) may_pass: bool,
}

impl fmt::Display for NoCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no AWS credentials")?;
        for (i, (source, reason)) in self.tried.iter().enumerate() {
            write!(f, "{}{source}: {reason}", if i == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl StdError for NoCredentials {}

/// Why credentials are not used. The SDK panics at such a token.
const UNSENDABLE: &str =
    "the access key or the session token has a line break or a control character";

/// Returns whether the parts that go into headers can be sent.
fn is_sendable(credentials: &Credentials) -> bool {
    [Some(credentials.access_key_id()), credentials.session_token()]
        .into_iter()
        .flatten()
        .all(|text| HeaderValue::from_str(text).is_ok())
}

/// The result of a source without credentials.
enum Outcome {
    /// It is not set up: the next one is tried.
    Absent(String),
    /// It is set up but does not work. Going on would use credentials that nobody intended.
    Broken(String),
    /// The same, and its service did not respond, or was busy.
    Unanswered(String),
}

impl Outcome {
    /// Returns the outcome of a source that is set up.
    fn of(error: &CredentialsError, reason: String) -> Self {
        let is_unanswered = match find::<Unanswered>(error) {
            Some(Unanswered(failed)) => failed.kind() == ErrorKind::Transient,
            None => matches!(error, CredentialsError::ProviderTimedOut(_)),
        };
        if is_unanswered { Self::Unanswered(reason) } else { Self::Broken(reason) }
    }

    /// Returns the outcome of a source without a result in time.
    fn timed_out(source: Source, limit: Duration) -> Self {
        let reason = format!("no result in {} s", limit.as_secs());
        match source {
            // Another attempt would start its `credential_process` again, and the first may still run.
            Source::Profile => Self::Broken(reason),
            _ => Self::Unanswered(reason),
        }
    }
}

impl Chain {
    pub(super) fn new(settings: &BucketSettings, region: Region, sources: Arc<Sources>) -> Self {
        let fixed = settings.keys.as_ref().map(|keys| {
            Credentials::new(
                keys.access_key_id.expose(),
                keys.secret_access_key.expose(),
                keys.session_token.as_ref().map(|token| token.expose().to_owned()),
                None,
                "settings",
            )
        });
        Self { fixed, profile: settings.profile.clone(), region, sources }
    }

    /// Queries the sources, which together may take up to `limit`.
    async fn load(&self, limit: Duration) -> Result<Credentials, NoCredentials> {
        let end = tokio::time::Instant::now() + limit;
        if let Some(fixed) = &self.fixed {
            return match is_sendable(fixed) {
                true => Ok(fixed.clone()),
                false => {
                    let tried = vec![("settings".to_owned(), UNSENDABLE.to_owned())];
                    Err(NoCredentials { tried, may_pass: false })
                }
            };
        }
        // A user who sets a profile for this plugin means it.
        let skips_environment = self.profile.as_ref().is_some_and(|profile| profile.is_own);
        let mut tried = Vec::new();
        for source in Source::ALL {
            if source == Source::Environment && skips_environment {
                continue;
            }
            let asked = tokio::time::timeout_at(end, self.ask(source)).await;
            match asked.unwrap_or_else(|_| Err(Outcome::timed_out(source, limit))) {
                Ok(credentials) if !is_sendable(&credentials) => {
                    tried.push((self.name(source), UNSENDABLE.to_owned()));
                    break;
                }
                Ok(credentials) => {
                    log::debug!("credentials are from {}", self.name(source));
                    return Ok(credentials);
                }
                Err(Outcome::Absent(reason)) => tried.push((self.name(source), reason)),
                Err(Outcome::Broken(reason)) => {
                    tried.push((self.name(source), reason));
                    break;
                }
                Err(Outcome::Unanswered(reason)) => {
                    tried.push((self.name(source), reason));
                    return Err(NoCredentials { tried, may_pass: true });
                }
            }
        }
        Err(NoCredentials { tried, may_pass: false })
    }

    fn name(&self, source: Source) -> String {
        match source {
            Source::Environment => "environment".to_owned(),
            Source::Profile => format!("profile `{}`", self.profile_name()),
            Source::WebIdentity => "web identity".to_owned(),
            Source::Container => "container".to_owned(),
            Source::Instance => "EC2 instance".to_owned(),
        }
    }

    fn profile_name(&self) -> &str {
        self.profile.as_ref().map_or("default", |profile| profile.name.as_str())
    }

    async fn ask(&self, source: Source) -> Result<Credentials, Outcome> {
        let config =
            self.sources.config(&self.sources.services).with_region(Some(self.region.clone()));
        match source {
            Source::Environment => {
                match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
                    (None, None) => return absent("AWS_ACCESS_KEY_ID is not set"),
                    (Some(_), None) => {
                        return broken("AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not");
                    }
                    (None, Some(_)) => {
                        return broken("AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not");
                    }
                    (Some(_), Some(_)) => {}
                }
                let provider = EnvironmentVariableCredentialsProvider::new();
                provider
                    .provide_credentials()
                    .await
                    .map_err(|error| Outcome::Broken(causes(&error)))
            }
            Source::Profile => {
                self.has_profile().await?;
                let provider = ProfileFileCredentialsProvider::builder()
                    .configure(&config)
                    .profile_name(self.profile_name())
                    .build();
                provider.provide_credentials().await.map_err(|error| match error {
                    CredentialsError::CredentialsNotLoaded(_) => {
                        Outcome::Absent("it has no credentials".to_owned())
                    }
                    error => Outcome::of(&error, causes(&error)),
                })
            }
            Source::WebIdentity => {
                let Some(file) = variable("AWS_WEB_IDENTITY_TOKEN_FILE") else {
                    return absent("AWS_WEB_IDENTITY_TOKEN_FILE is not set");
                };
                if variable("AWS_ROLE_ARN").is_none() {
                    return broken("AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not");
                }
                match std::fs::read_to_string(&file) {
                    Ok(token) => keep(&token),
                    Err(error) => {
                        return broken(format!(
                            "cannot read AWS_WEB_IDENTITY_TOKEN_FILE {file}: {error}"
                        ));
                    }
                }
                let provider =
                    WebIdentityTokenCredentialsProvider::builder().configure(&config).build();
                let credentials = provider.provide_credentials().await;
                credentials.map_err(|error| Outcome::of(&error, causes(&error)))
            }
            Source::Container => {
                let variables = [
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                ];
                let Some(name) = variables.into_iter().find(|name| variable(name).is_some()) else {
                    return absent(format!("{} is not set", variables.join(" or ")));
                };
                variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").as_deref().map(keep);
                if let Some(file) = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
                    && let Ok(token) = std::fs::read_to_string(file)
                {
                    keep(&token);
                }
                let provider = EcsCredentialsProvider::builder()
                    .configure(&self.sources.config(&self.sources.local))
                    .build();
                provider.provide_credentials().await.map_err(|error| {
                    let causes = causes(&error);
                    // The SDK's text repeats the token.
                    let reason = if causes.contains("auth token") {
                        "AWS_CONTAINER_AUTHORIZATION_TOKEN (or the file of …_FILE) cannot be sent: it has a line break or a control character".to_owned()
                    } else {
                        format!("{name}: {causes}")
                    };
                    Outcome::of(&error, reason)
                })
            }
            Source::Instance => {
                if imds_is_disabled() {
                    return absent("AWS_EC2_METADATA_DISABLED is set");
                }
                if self.sources.is_silent() {
                    return absent("the metadata service did not respond a moment ago");
                }
                let provider = ImdsCredentialsProvider::builder()
                    .configure(&self.sources.config(&self.sources.local))
                    .imds_client(self.sources.metadata_service().build())
                    .build();
                let credentials = self.sources.listen(|| provider.provide_credentials()).await;
                credentials.map_err(|error| match is_busy(&error) {
                    true => Outcome::Unanswered(causes(&error)),
                    false => Outcome::Absent(causes(&error)),
                })
            }
        }
    }

    /// Checks that the profile exists. Without a file, the SDK treats a missing profile as if none was set.
    async fn has_profile(&self) -> Result<(), Outcome> {
        let name = self.profile_name();
        let profiles = profile::load(Some(name)).await;
        let profiles = profiles.map_err(|error| Outcome::Broken(causes(&error)))?;
        if profiles.get_profile(name).is_some() {
            return Ok(());
        }
        let place = |name: &str, usual: &str| variable(name).unwrap_or_else(|| usual.to_owned());
        let reason = format!(
            "not in {} and not in {}",
            place("AWS_CONFIG_FILE", "~/.aws/config"),
            place("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
        );
        Err(match &self.profile {
            None => Outcome::Absent(reason),
            Some(_) => Outcome::Broken(reason),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Environment,
    Profile,
    WebIdentity,
    Container,
    Instance,
}

impl Source {
    /// In the order of the AWS SDK's default chain.
    const ALL: [Self; 5] =
        [Self::Environment, Self::Profile, Self::WebIdentity, Self::Container, Self::Instance];
}

fn absent<T>(reason: impl Into<String>) -> Result<T, Outcome> {
    Err(Outcome::Absent(reason.into()))
}

fn broken<T>(reason: impl Into<String>) -> Result<T, Outcome> {
    Err(Outcome::Broken(reason.into()))
}

#[cfg(test)]
mod tests;

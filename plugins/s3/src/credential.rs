//! Where credentials come from, and how long they are kept.

mod cache;
mod services;
mod sso;

pub(crate) use cache::{Blame, Cache};
pub(crate) use services::Services;

use crate::profile::{Profiles, expand, variable, variable_or};
use crate::settings::{BucketSettings, Profile};
use aws_credential_types::Credentials;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tf_fs_object_store::http::{HeaderValue, HttpError, printable};
use tf_fs_object_store::redact::keep;
use tf_fs_object_store::{ErrorKind, StoreError as _};

/// Where STS is: the region, and the settings for FIPS and dual-stack endpoints.
type Variant = (String, Option<bool>, Option<bool>);

/// The sources of credentials, tried in the order of the AWS SDKs.
pub(crate) struct Chain {
    fixed: Option<Credentials>,
    profile: Option<Profile>,
    variant: Variant,
    services: Arc<Services>,
}

/// Why no source has credentials: the sources that were tried, with their results.
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

/// Why credentials are not used.
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
#[derive(Debug)]
enum Outcome {
    /// It is not set up: the next one is tried.
    Absent(String),
    /// It is set up but does not work. Going on would use credentials that nobody intended.
    Broken(String),
    /// The same, and its service did not respond, or was busy.
    Unanswered(String),
}

type Loaded = Result<Credentials, Outcome>;

impl From<HttpError> for Outcome {
    fn from(failed: HttpError) -> Self {
        match failed.kind() {
            ErrorKind::Transient => Self::Unanswered(failed.summary()),
            _ => Self::Broken(failed.summary()),
        }
    }
}

impl Outcome {
    /// Returns the outcome of a source without a result in time.
    fn timed_out(source: Source, limit: Duration) -> Self {
        let reason = format!("no result in {} s", limit.as_secs());
        match source {
            // Another attempt would start its `credential_process` again, and the first may still run.
            Source::Profile => Self::Broken(reason),
            _ => Self::Unanswered(reason),
        }
    }

    fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Absent(reason) => Self::Absent(change(reason)),
            Self::Broken(reason) => Self::Broken(change(reason)),
            Self::Unanswered(reason) => Self::Unanswered(change(reason)),
        }
    }
}

fn absent<T>(reason: impl Into<String>) -> Result<T, Outcome> {
    Err(Outcome::Absent(reason.into()))
}

fn broken<T>(reason: impl Into<String>) -> Result<T, Outcome> {
    Err(Outcome::Broken(reason.into()))
}

impl Chain {
    pub(crate) fn new(settings: &BucketSettings, region: &str, services: Arc<Services>) -> Self {
        let fixed = settings.keys.as_ref().map(|keys| {
            let token = keys.session_token.as_ref().map(|token| token.expose().to_owned());
            credentials(keys.access_key_id.expose(), keys.secret_access_key.expose(), token, None)
        });
        let variant = (region.to_owned(), settings.use_fips, settings.use_dualstack);
        Self { fixed, profile: settings.profile.clone(), variant, services }
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
            let loaded = tokio::time::timeout_at(end, self.load_from(source)).await;
            match loaded.unwrap_or_else(|_| Err(Outcome::timed_out(source, limit))) {
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

    fn profiles(&self) -> Result<Profiles, Outcome> {
        Profiles::load(self.profile.as_ref()).map_err(Outcome::Broken)
    }

    async fn load_from(&self, source: Source) -> Loaded {
        match source {
            Source::Environment => of_environment(),
            Source::Profile => self.of_profile().await,
            Source::WebIdentity => {
                let Some(file) = variable("AWS_WEB_IDENTITY_TOKEN_FILE") else {
                    return absent("AWS_WEB_IDENTITY_TOKEN_FILE is not set");
                };
                let Some(role) = variable("AWS_ROLE_ARN") else {
                    return broken("AWS_WEB_IDENTITY_TOKEN_FILE is set, AWS_ROLE_ARN is not");
                };
                let session = variable("AWS_ROLE_SESSION_NAME");
                let token = read_token("AWS_WEB_IDENTITY_TOKEN_FILE", &file)?;
                self.of_web_identity(&role, session.as_deref(), &token).await
            }
            Source::Container => self.services.container().await,
            Source::Instance => self.services.instance(&self.profiles()?).await,
        }
    }

    /// Loads the credentials of the profile, and of the roles in it.
    async fn of_profile(&self) -> Loaded {
        let (profiles, mut name) = (self.profiles()?, self.profile_name());
        if !profiles.has(name) {
            let reason = format!(
                "not in {} and not in {}",
                variable_or("AWS_CONFIG_FILE", "~/.aws/config"),
                variable_or("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
            );
            return if self.profile.is_none() { absent(reason) } else { broken(reason) };
        }
        let (mut roles, mut visited) = (Vec::new(), Vec::new());
        let base = loop {
            if !profiles.has(name) {
                return broken(format!("there is no profile `{name}`, which source_profile names"));
            }
            if visited.contains(&name) {
                return broken(format!("source_profile leads from `{name}` back to it"));
            }
            visited.push(name);
            let get = |key| profiles.of(name, key);
            if visited.len() > 1 && get("aws_access_key_id").is_some() {
                break keys_of_profile(&profiles, name);
            }
            // With a token the role needs no other credentials.
            let is_assumed = get("web_identity_token_file").is_none();
            let Some(role) = get("role_arn").filter(|_| is_assumed) else {
                break self.of_base(&profiles, name).await;
            };
            roles.push((name, role));
            match (get("source_profile"), get("credential_source")) {
                (Some(_), Some(_)) => {
                    return broken(format!(
                        "profile `{name}` has both source_profile and credential_source; remove one"
                    ));
                }
                (None, None) => {
                    return broken(format!(
                        "profile `{name}` has role_arn without source_profile or credential_source; add one"
                    ));
                }
                (Some(source), None) if source != name => name = source,
                _ => break self.of_base(&profiles, name).await,
            }
        };
        // Another source would give credentials without the role.
        let mut current = base.map_err(|outcome| match outcome {
            Outcome::Absent(reason) => match profiles.of(name, "credential_source") {
                Some(source) => Outcome::Broken(format!("credential_source {source}: {reason}")),
                None if roles.is_empty() => Outcome::Absent(reason),
                None => Outcome::Broken(format!("source profile `{name}`: {reason}")),
            },
            outcome => outcome,
        })?;
        for (name, role) in roles.into_iter().rev() {
            let session = profiles.of(name, "role_session_name");
            let external = profiles.of(name, "external_id");
            let mut fields = fields("AssumeRole", role, session);
            fields.extend(external.map(|id| ("ExternalId", id.to_owned())));
            current = self.services.sts(&self.variant, &profiles, &fields, Some(&current)).await?;
        }
        Ok(current)
    }

    /// Loads credentials that need no others.
    async fn of_base(&self, profiles: &Profiles, name: &str) -> Loaded {
        let get = |key| profiles.of(name, key);
        match (get("role_arn"), get("web_identity_token_file")) {
            (Some(role), Some(file)) => {
                let token = read_token("web_identity_token_file", file)?;
                return self.of_web_identity(role, get("role_session_name"), &token).await;
            }
            (None, Some(_)) => return broken("web_identity_token_file is set, role_arn is not"),
            _ => {}
        }
        if let Some(source) = get("credential_source") {
            return match source.to_ascii_lowercase().as_str() {
                "environment" => of_environment(),
                "ec2instancemetadata" => self.services.instance(profiles).await,
                "ecscontainer" => self.services.container().await,
                _ => broken(format!(
                    "credential_source `{}` is not Environment, Ec2InstanceMetadata or EcsContainer",
                    printable(source, 64)
                )),
            };
        }
        if ["sso_session", "sso_start_url", "sso_account_id", "sso_role_name", "sso_region"]
            .iter()
            .any(|key| get(key).is_some())
        {
            return self.services.sso(profiles, name).await;
        }
        if let Some(command) = get("credential_process") {
            return of_process(command).await;
        }
        keys_of_profile(profiles, name)
    }

    async fn of_web_identity(&self, role: &str, session: Option<&str>, token: &str) -> Loaded {
        let mut fields = fields("AssumeRoleWithWebIdentity", role, session);
        fields.push(("WebIdentityToken", token.to_owned()));
        self.services.sts(&self.variant, &self.profiles()?, &fields, None).await
    }
}

/// The fields of a request to STS.
type Fields = Vec<(&'static str, String)>;

fn fields(action: &str, role: &str, session: Option<&str>) -> Fields {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let session = session.map_or_else(|| format!("tf-s3-{}", since.as_millis()), str::to_owned);
    vec![
        ("Action", action.to_owned()),
        ("Version", "2011-06-15".to_owned()),
        ("RoleArn", role.to_owned()),
        ("RoleSessionName", session),
    ]
}

fn read_token(setting: &str, file: &str) -> Result<String, Outcome> {
    let read = expand(file).map_or_else(|| Ok(String::new()), std::fs::read_to_string);
    match read {
        Ok(token) => {
            keep(token.trim());
            Ok(token.trim().to_owned())
        }
        Err(error) => broken(format!("cannot read {setting} {file}: {error}")),
    }
}

fn credentials(
    id: &str,
    secret: &str,
    token: Option<String>,
    expiry: Option<SystemTime>,
) -> Credentials {
    Credentials::new(id, secret, token.filter(|token| !token.is_empty()), expiry, "s3")
}

fn of_environment() -> Loaded {
    let get = |name| variable(name).map(|value| value.trim().to_owned());
    match (get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")) {
        (None, None) => absent("AWS_ACCESS_KEY_ID is not set"),
        (Some(_), None) => broken("AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not"),
        (None, Some(_)) => broken("AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not"),
        (Some(id), Some(secret)) => Ok(credentials(&id, &secret, get("AWS_SESSION_TOKEN"), None)),
    }
}

fn keys_of_profile(profiles: &Profiles, name: &str) -> Loaded {
    let get = |key| profiles.of(name, key);
    let token = get("aws_session_token");
    match (get("aws_access_key_id"), get("aws_secret_access_key")) {
        (Some(id), Some(secret)) => Ok(credentials(id, secret, token.map(str::to_owned), None)),
        (None, None) if token.is_none() => absent("it has no credentials"),
        (None, _) => broken(format!("profile `{name}` has no aws_access_key_id")),
        (_, None) => broken(format!("profile `{name}` has no aws_secret_access_key")),
    }
}

/// Runs a `credential_process`.
async fn of_process(command: &str) -> Loaded {
    let mut shell = tokio::process::Command::new("sh");
    let output = shell.args(["-c", command]).kill_on_drop(true).output().await;
    let output =
        output.or_else(|error| broken(format!("credential_process does not start: {error}")))?;
    if !output.status.success() {
        let stderr = printable(&String::from_utf8_lossy(&output.stderr), 300);
        return broken(format!("credential_process failed with {}: {stderr}", output.status));
    }
    let parsed = of_json(&output.stdout);
    parsed.or_else(|why| broken(format!("what credential_process prints has {why}")))
}

/// Parses credentials as services and processes print them; the error says what is missing.
fn of_json(text: &[u8]) -> Result<Credentials, String> {
    let value: Value = serde_json::from_slice(text).map_err(|_| "no valid JSON".to_owned())?;
    let fields: HashMap<String, &Value> = value.as_object().map_or_else(HashMap::new, |fields| {
        fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
    });
    let text = |name: &str| fields.get(name).and_then(|value| value.as_str());
    if let Some(code) = text("code").filter(|code| *code != "Success") {
        let message = printable(text("message").unwrap_or_default(), 300);
        return Err(format!("the error {}: {message}", printable(code, 64)));
    }
    if fields.get("version").is_some_and(|version| version.as_u64() != Some(1)) {
        return Err("another Version than 1".to_owned());
    }
    let some = |name: &str, shown: &str| {
        text(name).filter(|text| !text.is_empty()).ok_or_else(|| format!("no {shown}"))
    };
    let (id, secret) =
        (some("accesskeyid", "AccessKeyId")?, some("secretaccesskey", "SecretAccessKey")?);
    let expiry = match fields.get("expiration") {
        None | Some(Value::Null) => None,
        Some(Value::Number(millis)) => millis
            .as_u64()
            .and_then(|millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis))),
        Some(text) => {
            Some(text.as_str().and_then(date_time).ok_or("an Expiration that is not a date")?)
        }
    };
    let token = text("sessiontoken").or_else(|| text("token"));
    Ok(credentials(id, secret, token.map(str::to_owned), expiry))
}

/// Parses a date such as `2026-01-01T00:00:00Z`, as XML and JSON have it.
pub(crate) fn date_time(text: &str) -> Option<SystemTime> {
    let time = DateTime::from_str(text, Format::DateTimeWithOffset).ok()?;
    SystemTime::try_from(time).ok()
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

#[cfg(test)]
mod tests;

//! Settings: environment, settings file, TensorFlow's options.
//!
//! [`tf_fs_object_store::config`] reads them. The settings file overrides an AWS profile.

mod table;

pub(crate) use tf_fs_object_store::config::Secret;

use std::path::PathBuf;
use std::time::Duration;
use table::TABLE;
use tf_fs_object_store::config::{self, ConfigScope, FromValues, Source, Table, Value, Values};
use tf_fs_plugin::prelude::*;

/// All settings.
pub(crate) type Settings = config::Configured<BucketSettings>;

/// The current settings.
pub(crate) type Config = config::Config<BucketSettings>;

/// The settings of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BucketSettings {
    pub(crate) region: Option<String>,
    /// With its scheme.
    pub(crate) endpoint_url: Option<String>,
    /// Whether the bucket is in the path of the URL rather than in the host; `None`: as the endpoint needs it.
    pub(crate) path_style: Option<bool>,
    pub(crate) use_fips: Option<bool>,
    pub(crate) use_dualstack: Option<bool>,
    pub(crate) profile: Option<Profile>,
    pub(crate) keys: Option<Keys>,
    pub(crate) anonymous: bool,
    pub(crate) requester_pays: bool,
    /// `AES256`, `aws:kms` …
    pub(crate) server_side_encryption: Option<String>,
    pub(crate) sse_kms_key_id: Option<String>,
    pub(crate) storage_class: Option<String>,
    /// A canned ACL of written objects, such as `bucket-owner-full-control`.
    pub(crate) acl: Option<String>,
    /// The media type of written objects.
    pub(crate) content_type: Option<String>,
    /// Whether uploads carry a checksum that the store verifies; `None`: as the AWS profile says.
    pub(crate) checksums: Option<bool>,
    /// How conditions are sent; `None`: as the store's responses show.
    pub(crate) put_conditions: Option<ConditionForm>,
    pub(crate) complete_conditions: Option<ConditionForm>,
    pub(crate) copy_conditions: Option<ConditionForm>,
    /// Whether CompleteMultipartUpload has the checksums of the parts; `None`: as the store's responses show.
    pub(crate) part_checksums: Option<bool>,
    /// How the engine uses the bucket.
    pub(crate) engine: tf_fs_object_store::Settings,
    /// Whether to slow down before the store demands it.
    pub(crate) adaptive_retries: bool,
    pub(crate) connect_timeout: Duration,
    /// Certificates to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// A directory of such certificates.
    pub(crate) ca_path: Option<PathBuf>,
    /// Whether the server's certificate is checked.
    pub(crate) verify_tls: bool,
}

/// A profile of the AWS configuration files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// Whether it is set for this plugin, not for all AWS tools: it then precedes credentials in the environment.
    pub(crate) is_own: bool,
}

/// The form in which a store accepts a condition with an ETag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionForm {
    /// As HTTP writes it.
    Quoted,
    /// Without the quotes.
    Unquoted,
    /// Not at all: the store does not check it.
    None,
}

/// Credentials of the settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Keys {
    pub(crate) access_key_id: Secret,
    pub(crate) secret_access_key: Secret,
    pub(crate) session_token: Option<Secret>,
}

impl Default for BucketSettings {
    fn default() -> Self {
        Self::from_values(&Values::defaults(&TABLE)).expect("the defaults fit together")
    }
}

impl FromValues for BucketSettings {
    const TABLE: &'static Table = &TABLE;

    fn from_values(values: &Values<'_>) -> Result<Self> {
        let flag = |key| values.flag(key).unwrap_or(false);
        let use_https = flag("use_https");
        let endpoint_url = values.text("endpoint_url").map(|url| {
            let scheme = match (url.contains("://"), use_https) {
                (true, _) => "",
                (false, true) => "https://",
                (false, false) => "http://",
            };
            format!("{scheme}{}", url.trim_end_matches('/'))
        });
        let profile = values.entry("profile").and_then(|entry| match entry.value {
            Value::Text(name) => {
                let is_own =
                    !matches!(&entry.source, Source::Variable(name) if name.starts_with("AWS_"));
                Some(Profile { name, is_own })
            }
            _ => None,
        });
        let (anonymous, keys) = credentials(values)?;
        let form = |key| match values.text(key).as_deref() {
            Some("quoted") => Some(ConditionForm::Quoted),
            Some("unquoted") => Some(ConditionForm::Unquoted),
            Some("none") => Some(ConditionForm::None),
            _ => None,
        };
        Ok(Self {
            region: values.text("region"),
            endpoint_url,
            path_style: match values.text("addressing_style").as_deref() {
                Some("path") => Some(true),
                Some("virtual") => Some(false),
                _ => None,
            },
            use_fips: values.flag("use_fips"),
            use_dualstack: values.flag("use_dualstack"),
            profile,
            keys,
            anonymous,
            requester_pays: flag("requester_pays"),
            server_side_encryption: values.text("server_side_encryption"),
            sse_kms_key_id: values.text("sse_kms_key_id"),
            storage_class: values.text("storage_class"),
            acl: values.text("acl"),
            content_type: values.text("content_type"),
            checksums: values.text("checksums").map(|when| when != "when_required"),
            put_conditions: form("put_conditions"),
            complete_conditions: form("complete_conditions"),
            copy_conditions: form("copy_conditions"),
            part_checksums: match values.text("part_checksums").as_deref() {
                Some("send") => Some(true),
                Some("omit") => Some(false),
                _ => None,
            },
            engine: values.engine(),
            adaptive_retries: values.text("retry_mode").as_deref() == Some("adaptive"),
            connect_timeout: values.time("connect_timeout_ms"),
            ca_file: values.text("ca_file").map(PathBuf::from),
            ca_path: values.text("ca_path").map(PathBuf::from),
            verify_tls: flag("verify_tls"),
        })
    }
}

/// Returns whether requests are anonymous, and the keys that sign them. All of it comes from the nearest place that
/// names credentials: those of another place may be for another store.
fn credentials(values: &Values<'_>) -> Result<(bool, Option<Keys>)> {
    let names_some = |place: &ConfigScope<'_>| {
        ["access_key_id", "secret_access_key", "session_token", "profile"]
            .iter()
            .any(|key| place.value(key).is_some())
            || place.value("anonymous") == Some(Value::Flag(true))
    };
    let places: Vec<_> = values.scopes().collect();
    let nearest = places.iter().position(names_some).unwrap_or(places.len() - 1);
    let anonymous = places[..=nearest].iter().find_map(|place| place.value("anonymous"));
    let secret = |key| match places[nearest].value(key) {
        Some(Value::Secret(secret)) => Some(secret),
        _ => None,
    };
    let half = |is, missing| {
        Err(Error::invalid_argument(format_args!("{is} is set without {missing}; set both")))
    };
    let keys = match (secret("access_key_id"), secret("secret_access_key")) {
        (Some(access_key_id), Some(secret_access_key)) => {
            Some(Keys { access_key_id, secret_access_key, session_token: secret("session_token") })
        }
        // A general token without keys is ignored: buckets may have their own keys.
        (None, None) if nearest + 1 < places.len() && secret("session_token").is_some() => {
            return half("session_token", "access_key_id");
        }
        (None, None) => None,
        (Some(_), None) => return half("access_key_id", "secret_access_key"),
        (None, Some(_)) => return half("secret_access_key", "access_key_id"),
    };
    Ok((anonymous == Some(Value::Flag(true)), keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the settings of bucket `b` and of others, after these options.
    fn of(options: &[(&str, &str)]) -> Result<[std::sync::Arc<BucketSettings>; 2]> {
        let config = Config::default();
        let option = |&(key, value): &(&str, &str)| {
            FilesystemOption::new(key, OptionValues::Buffer(vec![value.into()]))
        };
        config.set(&options.iter().map(option).collect::<Vec<_>>())?;
        let settings = config.settings()?;
        Ok(["b", "other"].map(|bucket| settings.bucket(bucket).clone()))
    }

    const GENERAL: [(&str, &str); 3] =
        [("access_key_id", "gi"), ("secret_access_key", "gs"), ("session_token", "gt")];

    #[test]
    fn credentials_are_from_one_place() {
        let with = |more: &[(&'static str, &'static str)]| of(&[&GENERAL[..], more].concat());
        let id = |settings: &BucketSettings| {
            let keys = settings.keys.as_ref()?;
            let token = keys.session_token.as_ref().map(|token| token.expose().to_owned());
            Some((keys.access_key_id.expose().to_owned(), token))
        };
        let general = Some(("gi".to_owned(), Some("gt".to_owned())));
        let own = [("bucket.b.access_key_id", "bi"), ("bucket.b.secret_access_key", "bs")];
        let [b, other] = with(&own).unwrap();
        assert_eq!((id(&b), id(&other)), (Some(("bi".to_owned(), None)), general.clone()));
        let [b, other] = with(&[("bucket.b.profile", "p")]).unwrap();
        assert_eq!((id(&b), id(&other)), (None, general.clone()));
        let [b, other] = of(&[&[("anonymous", "1")], &own[..]].concat()).unwrap();
        assert_eq!((b.anonymous, other.anonymous), (false, true));
        // Neither names other credentials.
        let [b, _] = with(&[("anonymous", "1"), ("bucket.b.anonymous", "0")]).unwrap();
        assert_eq!((b.anonymous, id(&b)), (false, general.clone()));
        let [b, _] = with(&[("bucket.b.region", "r")]).unwrap();
        assert_eq!(id(&b), general);
        for (key, _) in GENERAL {
            let half = with(&[(&*format!("bucket.b.{key}").leak(), "x")]).unwrap_err();
            assert!(half.message().contains(&format!("{key} is set without")), "{half}");
        }
    }
}

//! Settings: environment, settings file, TensorFlow's options.
//!
//! A bucket's own setting counts before a general one. Of either the later in this order counts: default,
//! AWS profile (where the AWS SDK reads it), settings file, environment, options.

mod environment;
mod file;
mod layer;
mod options;
mod table;
mod value;

pub(crate) use value::Secret;

use arc_swap::ArcSwapOption;
use file::Layers;
use layer::{Entry, Layer, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use table::{SETTINGS, Setting};
use tf_fs_plugin::prelude::*;
use value::Value;

/// Everything that can be set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Bytes held at a time for reading ahead and for uploads, over all files of the process.
    pub(crate) memory_budget: usize,
    /// Worker threads of the process.
    pub(crate) threads: usize,
    /// For buckets without settings of their own.
    pub(crate) default: Arc<BucketSettings>,
    pub(crate) buckets: BTreeMap<String, Arc<BucketSettings>>,
}

/// What can be set for each bucket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BucketSettings {
    pub(crate) region: Option<String>,
    /// With its scheme.
    pub(crate) endpoint_url: Option<String>,
    /// The bucket in the path of the URL rather than in the host; `None`: as the endpoint needs it.
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
    /// A canned ACL of what is written, such as `bucket-owner-full-control`.
    pub(crate) acl: Option<String>,
    /// The media type of what is written.
    pub(crate) content_type: Option<String>,
    /// Whether uploads carry a checksum that the store verifies.
    pub(crate) checksums: bool,
    /// How conditions are sent; `None`: as the store's answers show.
    pub(crate) put_conditions: Option<ConditionForm>,
    pub(crate) complete_conditions: Option<ConditionForm>,
    pub(crate) copy_conditions: Option<ConditionForm>,
    /// Whether CompleteMultipartUpload names the checksums of the parts; `None`: as the store's answers show.
    pub(crate) part_checksums: Option<bool>,
    /// How the engine uses the bucket.
    pub(crate) engine: tf_fs_object_store::Settings,
    /// Slow down before the store asks for it.
    pub(crate) adaptive_retries: bool,
    pub(crate) connect_timeout: Duration,
    /// Certificates to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// A directory of such certificates.
    pub(crate) ca_path: Option<PathBuf>,
    /// Whether the server has to prove who it is.
    pub(crate) verify_tls: bool,
}

/// A profile of the AWS configuration files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// Chosen for us rather than for all AWS tools: it then counts before credentials in the environment.
    pub(crate) is_own: bool,
}

/// A condition that names an ETag, as a store wants it.
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
        Self::from_values(&Values(Vec::new())).expect("the defaults fit together")
    }
}

impl Settings {
    pub(crate) fn bucket(&self, name: &str) -> &Arc<BucketSettings> {
        self.buckets.get(name).unwrap_or(&self.default)
    }
}

/// Layers, the one that counts most first.
struct Values<'a>(Vec<&'a Layer>);

impl Values<'_> {
    fn entry(&self, key: &'static str) -> Option<Entry> {
        debug_assert!(table::find(key).is_some(), "{key} is not in the table");
        self.0.iter().find_map(|layer| layer.get(key).cloned()).or_else(|| {
            let value = table::find(key)?.default_value()?;
            Some(Entry { value, source: Source::Default })
        })
    }

    fn value(&self, key: &'static str) -> Option<Value> {
        self.entry(key).map(|entry| entry.value)
    }

    fn text(&self, key: &'static str) -> Option<String> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn secret(&self, key: &'static str) -> Option<Secret> {
        match self.value(key) {
            Some(Value::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    fn flag(&self, key: &'static str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Flag(flag)) => Some(flag),
            _ => None,
        }
    }

    /// The number. The table gives every number a default and bounds.
    fn number(&self, key: &'static str) -> u64 {
        match self.value(key) {
            Some(Value::Number(number)) => number,
            _ => 0,
        }
    }

    fn size(&self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn time(&self, key: &'static str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    fn engine(&self) -> tf_fs_object_store::Settings {
        let flag = |key| self.flag(key).unwrap_or(false);
        let mut engine = tf_fs_object_store::Settings::default();
        engine.max_attempts = self.number("max_attempts").try_into().unwrap_or(u32::MAX);
        engine.retry_timeout = self.time("retry_timeout_ms");
        engine.retry_backoff = self.time("retry_backoff_ms");
        engine.stall_timeout = self.time("stall_timeout_ms");
        engine.read_part = self.size("read_part_bytes");
        engine.read_concurrency = self.size("read_concurrency");
        engine.write_part = self.size("write_part_bytes");
        engine.write_parts_equal = flag("write_parts_equal");
        engine.publish_on_flush = flag("publish_on_flush");
        engine.flush_interval = self.time("flush_interval_ms");
        engine.write_concurrency = self.size("write_concurrency");
        engine.listing_ttl = self.time("listing_ttl_ms");
        engine.max_listed_names = self.size("max_listed_names");
        engine
    }
}

impl BucketSettings {
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
        let keys = match (values.secret("access_key_id"), values.secret("secret_access_key")) {
            (Some(access_key_id), Some(secret_access_key)) => Some(Keys {
                access_key_id,
                secret_access_key,
                session_token: values.secret("session_token"),
            }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(Error::invalid_argument(
                    "access_key_id is set without secret_access_key; set both",
                ));
            }
            (None, Some(_)) => {
                return Err(Error::invalid_argument(
                    "secret_access_key is set without access_key_id; set both",
                ));
            }
        };
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
            anonymous: flag("anonymous"),
            requester_pays: flag("requester_pays"),
            server_side_encryption: values.text("server_side_encryption"),
            sse_kms_key_id: values.text("sse_kms_key_id"),
            storage_class: values.text("storage_class"),
            acl: values.text("acl"),
            content_type: values.text("content_type"),
            checksums: values.text("checksums").as_deref() != Some("when_required"),
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

/// The settings of now. It holds no lock, so that a fork finds none held.
#[derive(Debug, Default)]
pub(crate) struct Config(ArcSwapOption<Loaded>);

/// What the sources said, and what comes of it.
#[derive(Debug)]
struct Loaded {
    sources: Sources,
    settings: Arc<Settings>,
}

/// What each source said.
#[derive(Clone, Debug, Default)]
struct Sources {
    file: Layers,
    environment: Layer,
    options: Layers,
}

impl Default for Settings {
    fn default() -> Self {
        Sources::default().settings(None).expect("the defaults fit together")
    }
}

impl Sources {
    /// Reads the environment and the file.
    fn read(warnings: &mut Vec<String>) -> Result<Self> {
        let lookup: environment::Lookup<'_> = &|name| std::env::var_os(name);
        let environment = environment::read(lookup, warnings)?;
        environment::unknown(std::env::vars_os().map(|(name, _)| name), warnings);
        let file = match environment::file_path(lookup) {
            Some(path) => file::read(Path::new(&path))?,
            None => Layers::default(),
        };
        Ok(Self { file, environment, options: Layers::default() })
    }

    /// What counts for this bucket, or for all others.
    fn values(&self, bucket: Option<&str>) -> Values<'_> {
        let mut layers = Vec::with_capacity(5);
        if let Some(bucket) = bucket {
            layers.extend(self.options.buckets.get(bucket));
            layers.extend(self.file.buckets.get(bucket));
        }
        layers.extend([&self.options.general, &self.environment, &self.file.general]);
        Values(layers)
    }

    /// The buckets with settings of their own.
    fn buckets(&self) -> impl Iterator<Item = &str> {
        let names = self.file.buckets.keys().chain(self.options.buckets.keys());
        names.map(String::as_str).collect::<std::collections::BTreeSet<_>>().into_iter()
    }

    /// The settings that come of it. A bucket whose settings stay the same keeps those of `before`, and
    /// with them its connections.
    fn settings(&self, before: Option<&Settings>) -> Result<Settings> {
        let general = self.values(None);
        let keep = |new: BucketSettings, old: Option<&Arc<BucketSettings>>| match old {
            Some(old) if **old == new => Arc::clone(old),
            _ => Arc::new(new),
        };
        let buckets = self
            .buckets()
            .map(|bucket| {
                let new = BucketSettings::from_values(&self.values(Some(bucket)))
                    .context(format_args!("settings of bucket {bucket}"))?;
                Ok((bucket.to_owned(), keep(new, before.map(|before| before.bucket(bucket)))))
            })
            .collect::<Result<_>>()?;
        Ok(Settings {
            memory_budget: general.size("memory_budget_bytes"),
            threads: general.size("threads"),
            default: keep(
                BucketSettings::from_values(&general)?,
                before.map(|before| &before.default),
            ),
            buckets,
        })
    }
}

impl Config {
    /// The settings; the first call reads the environment.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the variable and what it may be.
    pub(crate) fn settings(&self) -> Result<Arc<Settings>> {
        match &*self.0.load() {
            Some(loaded) => Ok(Arc::clone(&loaded.settings)),
            None => Ok(Arc::clone(&self.loaded()?.settings)),
        }
    }

    fn loaded(&self) -> Result<Arc<Loaded>> {
        if let Some(loaded) = self.0.load_full() {
            return Ok(loaded);
        }
        let mut warnings = Vec::new();
        let sources = Sources::read(&mut warnings)?;
        let settings = Arc::new(sources.settings(None)?);
        let new = Arc::new(Loaded { sources, settings });
        match &*self.0.compare_and_swap(&None::<Arc<Loaded>>, Some(Arc::clone(&new))) {
            // Another thread was first, and warned.
            Some(loaded) => Ok(Arc::clone(loaded)),
            None => {
                for warning in warnings {
                    log::warn!("{warning}");
                }
                Ok(new)
            }
        }
    }

    /// All settings as options of TensorFlow's.
    pub(crate) fn options(&self) -> Result<Vec<FilesystemOption>> {
        let loaded = self.loaded()?;
        let general = loaded.sources.values(None);
        let mut shown: Vec<_> = SETTINGS
            .iter()
            .map(|setting| {
                options::show(setting.key.to_owned(), setting, general.value(setting.key).as_ref())
            })
            .collect();
        for bucket in loaded.sources.buckets() {
            for (setting, entry) in loaded.sources.own(bucket) {
                let key = options::bucket_key(bucket, setting.key);
                shown.push(options::show(key, setting, Some(&entry.value)));
            }
        }
        Ok(shown)
    }

    /// Sets options of TensorFlow's: all of them or, with an error, none.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for a value that it cannot have.
    pub(crate) fn set(&self, options: &[FilesystemOption]) -> Result<()> {
        let mut current = self.loaded()?;
        loop {
            let mut sources = current.sources.clone();
            options::add(&mut sources.options, options)?;
            let settings = Arc::new(sources.settings(Some(&current.settings))?);
            let new = Arc::new(Loaded { sources, settings });
            let before = self.0.compare_and_swap(&current, Some(new));
            match &*before {
                Some(before) if !Arc::ptr_eq(before, &current) => current = Arc::clone(before),
                _ => return Ok(()),
            }
        }
    }

    /// What counts and where it is from, as the text of `s3:///config.json`. Secrets are not shown.
    pub(crate) fn json(&self) -> Result<String> {
        let loaded = self.loaded()?;
        let sources = &loaded.sources;
        let shown = |entry: Option<Entry>| match entry {
            None => serde_json::json!({ "value": null, "source": "not set" }),
            Some(Entry { value, source }) => {
                let value = match value {
                    Value::Flag(flag) => flag.into(),
                    Value::Number(number) => number.into(),
                    text => serde_json::Value::from(text.to_string()),
                };
                serde_json::json!({ "value": value, "source": source.to_string() })
            }
        };
        let general = sources.values(None);
        let settings: serde_json::Map<_, _> = SETTINGS
            .iter()
            .map(|setting| (setting.key.to_owned(), shown(general.entry(setting.key))))
            .collect();
        let buckets: serde_json::Map<_, _> = sources
            .buckets()
            .map(|bucket| {
                let own: serde_json::Map<_, _> = sources
                    .own(bucket)
                    .map(|(setting, entry)| (setting.key.to_owned(), shown(Some(entry))))
                    .collect();
                (bucket.to_owned(), own.into())
            })
            .collect();
        let text = serde_json::json!({ "settings": settings, "buckets": buckets });
        Ok(format!("{text:#}\n"))
    }
}

impl Sources {
    /// The settings of this bucket's own.
    fn own(&self, bucket: &str) -> impl Iterator<Item = (&'static Setting, Entry)> {
        let layers: Vec<_> = [&self.options, &self.file]
            .into_iter()
            .filter_map(|layers| layers.buckets.get(bucket))
            .collect();
        SETTINGS.iter().filter_map(move |setting| {
            let entry = layers.iter().find_map(|layer| layer.get(setting.key))?;
            Some((setting, entry.clone()))
        })
    }
}

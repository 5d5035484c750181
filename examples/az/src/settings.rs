//! What can be set: by environment variables, read at the first use, and by TensorFlow's options, which count before them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::DiskCache;
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// A text that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(Arc<str>);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Something that can be set.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The first that is set and not empty counts.
    pub(crate) variables: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Secret,
    /// Any text but `0`, `false`, `no` and `off`, in any case, is yes.
    Flag,
    /// A number in these bounds.
    Number(u64, u64),
    /// A directory and a size.
    DiskCache,
}

const fn setting(
    key: &'static str,
    variables: &'static [&'static str],
    kind: Kind,
    about: &'static str,
) -> Setting {
    Setting { key, variables, kind, about }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All of them, in the order of the README.
#[rustfmt::skip]
pub(crate) const SETTINGS: &[Setting] = &[
    setting("connection_string", &["AZURE_STORAGE_CONNECTION_STRING"], Kind::Secret, "account, key or SAS, and endpoint in one"),
    setting("account", &["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"], Kind::Text, "the account that key, SAS and endpoint are for; else the account of each name"),
    setting("account_key", &["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "TF_AZURE_STORAGE_KEY"], Kind::Secret, "the account's key"),
    setting("sas_token", &["AZURE_STORAGE_SAS_TOKEN"], Kind::Secret, "a shared access signature"),
    setting("auth", &["TF_AZ_AUTH"], Kind::Text, "`key`, `sas`, `entra` or `anonymous`; else the first of these that there is"),
    setting("blob_endpoint", &["TF_AZ_BLOB_ENDPOINT", "TF_AZURE_STORAGE_BLOB_ENDPOINT"], Kind::Text, "the URL of the blob service, in place of https://ACCOUNT.blob.core.windows.net"),
    setting("use_http", &["TF_AZURE_STORAGE_USE_HTTP"], Kind::Flag, "no TLS, for an endpoint without scheme"),
    setting("use_dev_storage", &["TF_AZURE_USE_DEV_STORAGE"], Kind::Flag, "Azurite at 127.0.0.1:10000, whatever the account"),
    setting("ca_file", &["TF_AZ_CA_FILE"], Kind::Text, "trusted certificates in PEM, in place of the system's"),
    setting("tenant_id", &["AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID"], Kind::Text, "the Entra tenant"),
    setting("client_id", &["AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"], Kind::Text, "the Entra application, or the managed identity"),
    setting("client_secret", &["AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"], Kind::Secret, "the application's secret"),
    setting("federated_token_file", &["AZURE_FEDERATED_TOKEN_FILE"], Kind::Text, "a workload's token, which Kubernetes writes"),
    setting("authority_host", &["AZURE_AUTHORITY_HOST"], Kind::Text, "where Entra is, in place of https://login.microsoftonline.com"),
    setting("identity_endpoint", &["IDENTITY_ENDPOINT"], Kind::Text, "a managed identity's endpoint, which App Service sets"),
    setting("identity_header", &["IDENTITY_HEADER"], Kind::Secret, "what that endpoint requires"),
    setting("imds_endpoint", &["AZURE_POD_IDENTITY_AUTHORITY_HOST"], Kind::Text, "the managed identity of a machine, in place of http://169.254.169.254"),
    setting("memory_budget_bytes", &["TF_AZ_MEMORY_BUDGET_BYTES"], Kind::Number(16 << 20, 1 << 40), "memory for all open files of the process; 256 MiB"),
    setting("threads", &["TF_AZ_THREADS"], Kind::Number(1, 64), "worker threads of the process; 4"),
    setting("read_part_bytes", &["TF_AZ_READ_PART_BYTES"], Kind::Number(64 << 10, 1 << 30), "bytes of a ranged read; 8 MiB"),
    setting("read_concurrency", &["TF_AZ_READ_CONCURRENCY"], Kind::Number(1, 256), "ranged reads in flight for one file; 32"),
    setting("write_part_bytes", &["TF_AZ_WRITE_PART_BYTES"], Kind::Number(64 << 10, 1 << 30), "bytes of a block, and of the largest file that is one request; 8 MiB"),
    setting("write_concurrency", &["TF_AZ_WRITE_CONCURRENCY"], Kind::Number(1, 256), "blocks in flight for one file; 16"),
    setting("retry_timeout_ms", &["TF_AZ_RETRY_TIMEOUT_MS"], Kind::Number(0, DAY_MS), "how long a failing request is repeated; 60,000"),
    setting("retry_backoff_ms", &["TF_AZ_RETRY_BACKOFF_MS"], Kind::Number(1, 60_000), "the longest wait before the second attempt; 100"),
    setting("stall_timeout_ms", &["TF_AZ_STALL_TIMEOUT_MS"], Kind::Number(100, DAY_MS), "how long a request may make no progress; 20,000"),
    setting("connect_timeout_ms", &["TF_AZ_CONNECT_TIMEOUT_MS"], Kind::Number(10, DAY_MS), "how long a connection may take; 5,000"),
    setting("list_page_names", &["TF_AZ_LIST_PAGE_NAMES"], Kind::Number(2, 5000), "names of one page of a listing; 5,000"),
    setting("listing_ttl_ms", &["TF_AZ_LISTING_TTL_MS"], Kind::Number(0, DAY_MS), "how long a listing is believed; 1,000"),
    setting("disk_cache", &["TF_AZ_DISK_CACHE"], Kind::DiskCache, "a local directory and a size, `/mnt/cache:100GiB`, in which what is read is kept for the next time; none"),
];

/// The values that are set.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings(BTreeMap<&'static str, Arc<str>>);

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |setting: &&Setting| setting.kind != Kind::Secret && self.0.contains_key(setting.key);
        f.debug_map()
            .entries(
                SETTINGS.iter().filter(shown).map(|setting| (setting.key, &self.0[setting.key])),
            )
            .finish()
    }
}

impl Settings {
    /// Those of these variables.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a value that cannot be, naming its variable.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut settings = Self::default();
        for setting in SETTINGS {
            let mut set = setting.variables.iter().filter_map(|name| Some((name, variable(name)?)));
            if let Some((name, value)) = set.find(|(_, value)| !value.trim().is_empty()) {
                settings.set(setting, name, &value)?;
            }
        }
        Ok(settings)
    }

    fn set(&mut self, setting: &Setting, place: &str, value: &str) -> Result<()> {
        let value = value.trim();
        if setting.kind == Kind::DiskCache {
            value.parse::<DiskCache>().context(place)?;
        }
        if let Kind::Number(least, most) = setting.kind {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            ensure!(
                number.is_some() && !value.starts_with('+'),
                Error::invalid_argument(format_args!(
                    "{place}: `{}` is not a number from {least} to {most}; correct or unset it",
                    value.escape_debug()
                ))
            );
        }
        ensure!(
            !value.contains(['\r', '\n', '\0']),
            Error::invalid_argument(format_args!(
                "{place}: the value has more than one line; correct or unset it"
            ))
        );
        self.0.insert(setting.key, value.into());
        Ok(())
    }

    /// A text, if it is set.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|text| &**text)
    }

    pub(crate) fn secret(&self, key: &str) -> Option<Secret> {
        self.0.get(key).map(|text| Secret(Arc::clone(text)))
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        let is_no =
            |text: &str| ["0", "false", "no", "off"].iter().any(|no| text.eq_ignore_ascii_case(no));
        self.text(key).is_some_and(|text| !is_no(text))
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.text(key).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Names of one page of a listing.
    pub(crate) fn page(&self) -> u32 {
        u32::try_from(self.number("list_page_names", 5000)).unwrap_or(5000)
    }

    pub(crate) fn size(&self, key: &str, default: usize) -> usize {
        usize::try_from(self.number(key, default as u64)).unwrap_or(usize::MAX)
    }

    pub(crate) fn time(&self, key: &str, default: Duration) -> Duration {
        Duration::from_millis(self.number(key, default.as_millis() as u64))
    }

    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }

    /// How the engine uses each container.
    pub(crate) fn engine(&self) -> tf_fs_object_store::Settings {
        let mut engine = tf_fs_object_store::Settings::default();
        engine.retry_timeout = self.time("retry_timeout_ms", engine.retry_timeout);
        engine.retry_backoff = self.time("retry_backoff_ms", engine.retry_backoff);
        engine.stall_timeout = self.time("stall_timeout_ms", engine.stall_timeout);
        engine.read_part = self.size("read_part_bytes", engine.read_part);
        engine.read_concurrency = self.size("read_concurrency", engine.read_concurrency);
        engine.write_part = self.size("write_part_bytes", engine.write_part);
        engine.write_concurrency = self.size("write_concurrency", engine.write_concurrency);
        engine.listing_ttl = self.time("listing_ttl_ms", engine.listing_ttl);
        engine.disk_cache = self.text("disk_cache").and_then(|text| text.parse().ok());
        engine
    }
}

/// The settings of now, which options may change.
#[derive(Debug, Default)]
pub(crate) struct Config(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Read at the first use.
    current: Option<Arc<Settings>>,
    options: Settings,
}

impl Config {
    /// The settings of now. They are the same value until an option changes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a variable that has a wrong value.
    pub(crate) fn get(&self) -> Result<Arc<Settings>> {
        let mut state = self.0.lock()?;
        if let Some(settings) = &state.current {
            return Ok(Arc::clone(settings));
        }
        let mut settings = Settings::from_variables(|name| std::env::var(name).ok())?;
        settings.0.extend(state.options.0.iter().map(|(key, value)| (*key, Arc::clone(value))));
        Ok(Arc::clone(state.current.insert(Arc::new(settings))))
    }

    /// Sets options; one without a value takes back what an option set.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown key, `INVALID_ARGUMENT` for a value that it cannot have. Then none is set.
    pub(crate) fn set(&self, options: &[FilesystemOption]) -> Result<()> {
        let mut state = self.0.lock()?;
        let mut new = state.options.clone();
        for option in options {
            let place = format!("option {}", option.name);
            let setting = SETTINGS.iter().find(|setting| *setting.key == *option.name);
            let setting = setting.ok_or_else(|| {
                Error::not_found(format_args!("{place}: az:// has no such setting; see its README"))
            })?;
            match &option.values {
                OptionValues::Int(values) if values.len() == 1 => {
                    new.set(setting, &place, &values[0].to_string())?;
                }
                OptionValues::Buffer(values) if values.len() == 1 => {
                    new.set(setting, &place, &String::from_utf8_lossy(&values[0]))?;
                }
                OptionValues::Int(values) if values.is_empty() => drop(new.0.remove(setting.key)),
                OptionValues::Buffer(values) if values.is_empty() => {
                    drop(new.0.remove(setting.key));
                }
                _ => {
                    return Err(Error::invalid_argument(format_args!(
                        "{place}: give one integer or one string"
                    )));
                }
            }
        }
        (state.options, state.current) = (new, None);
        Ok(())
    }

    /// All settings with their values; secrets have none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn options(&self) -> Result<Vec<FilesystemOption>> {
        let settings = self.get()?;
        let option = |setting: &Setting| {
            let value = settings.text(setting.key);
            let values = match setting.kind {
                Kind::Number(..) => OptionValues::Int(
                    value.and_then(|text| text.parse().ok()).into_iter().collect(),
                ),
                Kind::Secret => OptionValues::Buffer(Vec::new()),
                Kind::Text | Kind::Flag | Kind::DiskCache => OptionValues::Buffer(
                    value.map(|text| text.as_bytes().to_vec()).into_iter().collect(),
                ),
            };
            FilesystemOption::new(setting.key.to_owned(), values).with_description(setting.about)
        };
        Ok(SETTINGS.iter().map(option).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, value: &'static str) -> Result<Settings> {
        Settings::from_variables(move |wanted| (wanted == name).then(|| value.to_owned()))
    }

    #[test]
    fn variables_are_read_and_mistakes_are_named() {
        assert_eq!(of("", "").unwrap(), Settings::default());
        assert_eq!(of("TF_AZURE_STORAGE_KEY", " k ").unwrap().text("account_key"), Some("k"));
        assert_eq!(of("TF_AZ_THREADS", "7").unwrap().size("threads", 4), 7);
        assert!(of("TF_AZURE_STORAGE_USE_HTTP", "yes").unwrap().flag("use_http"));
        assert!(!of("TF_AZURE_STORAGE_USE_HTTP", "0").unwrap().flag("use_http"));
        let cache = of("TF_AZ_DISK_CACHE", "/c:1GiB").unwrap().engine().disk_cache;
        assert_eq!(cache, Some(DiskCache::new("/c", 1 << 30)));
        assert!(of("TF_AZ_DISK_CACHE", "/c").unwrap_err().to_string().contains("TF_AZ_DISK_CACHE"));
        for value in ["0", "-1", "+4", "4 MiB", "65"] {
            let error = of("TF_AZ_THREADS", value).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            let text = format!(
                "TF_AZ_THREADS: `{value}` is not a number from 1 to 64; correct or unset it"
            );
            assert_eq!(error.message(), text);
        }
    }

    #[test]
    fn options_count_before_variables_and_can_be_taken_back() {
        let config = Config::default();
        let option = |name: &str, values| FilesystemOption::new(name, values);
        config.set(&[option("threads", OptionValues::Int(vec![9]))]).unwrap();
        assert_eq!(config.get().unwrap().size("threads", 4), 9);
        let wrong = [
            (option("colour", OptionValues::Int(vec![1])), Code::NotFound),
            (option("threads", OptionValues::Int(vec![1, 2])), Code::InvalidArgument),
            (option("threads", OptionValues::Int(vec![0])), Code::InvalidArgument),
            (option("threads", OptionValues::Real(vec![1.0])), Code::InvalidArgument),
        ];
        for (option, code) in wrong {
            assert_eq!(config.set(&[option]).unwrap_err().code(), code);
        }
        assert_eq!(config.get().unwrap().size("threads", 4), 9);
        config.set(&[option("threads", OptionValues::Int(vec![]))]).unwrap();
        assert_eq!(config.get().unwrap().size("threads", 4), 4);
    }

    #[test]
    fn secrets_do_not_show() {
        let config = Config::default();
        let secrets: Vec<_> = SETTINGS.iter().filter(|s| s.kind == Kind::Secret).collect();
        assert_eq!(secrets.len(), 5);
        for setting in secrets {
            let values = OptionValues::Buffer(vec![b"sesame".to_vec()]);
            config.set(&[FilesystemOption::new(setting.key, values)]).unwrap();
        }
        let settings = config.get().unwrap();
        assert_eq!(settings.secret("account_key").unwrap().expose(), "sesame");
        for text in [
            format!("{config:?}"),
            format!("{settings:?} {:?}", settings.secret("account_key")),
            format!("{:?}", config.options().unwrap()),
        ] {
            assert!(!text.contains("sesame"), "{text}");
        }
    }
}

//! Settings: environment, settings file, TensorFlow's options. [`tf_fs_object_store::config`] reads them.

pub(crate) use tf_fs_object_store::config::Secret;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tf_fs_object_store::config::{self, FromValues, Kind, Setting, Table, Value, Values};
use tf_fs_plugin::prelude::*;

/// All settings.
pub(crate) type Configured = config::Configured<Settings>;

/// The current settings.
pub(crate) type Config = config::Config<Settings>;

static TABLE: Table = Table {
    scheme: "az",
    prefix: "TF_AZ_",
    file_variable: "TF_AZ_CONFIG",
    help: "az:///config.json shows all settings",
    settings: SETTINGS,
    section: "bucket",
    bucket: crate::name::canonical,
    parent: |bucket| Some(bucket.split_once('/')?.0),
    ignores: |_, _| false,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All of them, in the order of the README.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting::new("connection_string", &["AZURE_STORAGE_CONNECTION_STRING"], Kind::Secret, "",
        "Account, key or SAS, and endpoint in one."),
    Setting::new("account", &["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"], Kind::Text, "",
        "The account that key, SAS and endpoint are for; else the account of each name."),
    Setting::new("account_key", &["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "TF_AZURE_STORAGE_KEY"], Kind::Secret, "",
        "The account's key."),
    Setting::new("sas_token", &["AZURE_STORAGE_SAS_TOKEN"], Kind::Secret, "",
        "A shared access signature."),
    Setting::new("auth", &[], Kind::OneOf(&["key", "sas", "entra", "anonymous"]), "",
        "How requests are authorized; else by the first of these that there is.").vital(),
    Setting::new("blob_endpoint", &["TF_AZURE_STORAGE_BLOB_ENDPOINT"], Kind::Url, "",
        "The URL of the blob service, in place of https://ACCOUNT.blob.core.windows.net."),
    Setting::new("use_http", &["TF_AZURE_STORAGE_USE_HTTP"], Kind::Flag, "0",
        "No TLS, for an endpoint without scheme."),
    Setting::new("use_dev_storage", &["TF_AZURE_USE_DEV_STORAGE"], Kind::Flag, "0",
        "Azurite at 127.0.0.1:10000, whatever the account.").vital(),
    Setting::new("ca_file", &[], Kind::File, "",
        "Trusted certificates in PEM, in place of the system's."),
    Setting::new("tenant_id", &["AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID"], Kind::Text, "",
        "The Entra tenant."),
    Setting::new("client_id", &["AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"], Kind::Text, "",
        "The Entra application, or the managed identity."),
    Setting::new("client_secret", &["AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"], Kind::Secret, "",
        "The application's secret."),
    Setting::new("federated_token_file", &["AZURE_FEDERATED_TOKEN_FILE"], Kind::Text, "",
        "A workload's token, which Kubernetes writes."),
    Setting::new("authority_host", &["AZURE_AUTHORITY_HOST"], Kind::Text, "",
        "The URL of Entra, in place of https://login.microsoftonline.com."),
    Setting::new("identity_endpoint", &["IDENTITY_ENDPOINT"], Kind::Text, "",
        "A managed identity's endpoint, which App Service sets."),
    Setting::new("identity_header", &["IDENTITY_HEADER"], Kind::Secret, "",
        "The header that this endpoint requires."),
    Setting::new("imds_endpoint", &["AZURE_POD_IDENTITY_AUTHORITY_HOST"], Kind::Text, "",
        "The managed identity of a machine, in place of http://169.254.169.254."),
    Setting::new("memory_budget_bytes", &[], Kind::Bytes { min: 16 * MIB, max: 1 << 40 }, "256MiB",
        "Memory for all open files of the process.").of_process(),
    Setting::new("threads", &[], Kind::Count { min: 1, max: 64 }, "4",
        "Worker threads of the process.").of_process(),
    Setting::new("read_part_bytes", &[], Kind::Bytes { min: 64 << 10, max: GIB }, "8MiB",
        "Bytes of a ranged read."),
    Setting::new("read_concurrency", &[], Kind::Count { min: 1, max: 256 }, "32",
        "Ranged reads in flight for one file."),
    Setting::new("write_part_bytes", &[], Kind::Bytes { min: 64 << 10, max: GIB }, "8MiB",
        "Bytes of a block, and of the largest file that is one request."),
    Setting::new("write_concurrency", &[], Kind::Count { min: 1, max: 256 }, "16",
        "Blocks in flight for one file."),
    Setting::new("retry_timeout_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "60000",
        "How long a failing request is repeated."),
    Setting::new("retry_backoff_ms", &[], Kind::Milliseconds { min: 1, max: 60_000 }, "100",
        "The longest wait before the second attempt."),
    Setting::new("stall_timeout_ms", &[], Kind::Milliseconds { min: 100, max: DAY_MS }, "20000",
        "How long a request may make no progress."),
    Setting::new("connect_timeout_ms", &[], Kind::Milliseconds { min: 10, max: DAY_MS }, "5000",
        "How long a connection may take."),
    Setting::new("list_page_names", &[], Kind::Count { min: 2, max: 5000 }, "5000",
        "Names of one page of a listing."),
    Setting::new("listing_ttl_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "1000",
        "How long a listing is cached."),
    Setting::new("disk_cache", &[], Kind::DiskCache, "",
        "Cache the bytes that are read in this directory on a local disk, up to this size."),
];

/// The settings of a container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Value>,
    /// Where accounts are named, the nearest scope first.
    pub(crate) scopes: Vec<AccountScope>,
    /// The index of the one whose credentials are used.
    pub(crate) credentials: usize,
    /// How the engine uses it.
    pub(crate) engine: tf_fs_object_store::Settings,
}

/// The settings of an account in the section of a container, in that of its account, or in the general ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AccountScope {
    pub(crate) account: Option<String>,
    pub(crate) connection_string: Option<Secret>,
    pub(crate) endpoint: Option<String>,
}

impl AccountScope {
    fn new(scope: config::ConfigScope<'_>) -> Self {
        Self {
            account: scope.value("account").and_then(text),
            connection_string: scope.value("connection_string").and_then(secret),
            endpoint: scope.value("blob_endpoint").and_then(text),
        }
    }
}

/// Settings that authorize requests. All are from one place, or secrets would go where another place says.
const CREDENTIALS: [&str; 9] = [
    "connection_string",
    "account_key",
    "sas_token",
    "tenant_id",
    "client_id",
    "client_secret",
    "federated_token_file",
    "identity_endpoint",
    "identity_header",
];

impl FromValues for Settings {
    const TABLE: &'static Table = &TABLE;

    fn from_values(values: &Values<'_>) -> Result<Self> {
        let scopes: Vec<_> = values.scopes().collect();
        let has_some = |scope: &config::ConfigScope<'_>| {
            CREDENTIALS.iter().any(|key| scope.value(key).is_some())
        };
        let credentials = scopes.iter().position(has_some).unwrap_or(scopes.len() - 1);
        let value = |key| match key {
            key if CREDENTIALS.contains(&key) => scopes[credentials].value(key),
            // A scope farther away is about credentials that are not used.
            "auth" => scopes[..=credentials].iter().find_map(|scope| scope.value(key)),
            key => values.value(key),
        };
        let set = SETTINGS.iter().filter_map(|setting| Some((setting.key, value(setting.key)?)));
        Ok(Self {
            values: set.collect(),
            scopes: scopes.iter().map(|&scope| AccountScope::new(scope)).collect(),
            credentials,
            engine: values.engine(),
        })
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn secret(value: Value) -> Option<Secret> {
    match value {
        Value::Secret(secret) => Some(secret),
        _ => None,
    }
}

impl Settings {
    /// Returns a text, if it is set.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn secret(&self, key: &str) -> Option<Secret> {
        secret(self.values.get(key)?.clone())
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.values.get(key) == Some(&Value::Flag(true))
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        match self.values.get(key) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    pub(crate) fn time(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from)
    }
}

/// Returns the settings of these variables, for tests.
#[cfg(test)]
pub(crate) fn of_variables(variables: &[(&str, &str)]) -> Result<Settings> {
    let find = |wanted: &str| variables.iter().find(|(name, _)| *name == wanted);
    let configured = Configured::of_variables(&|name| find(name).map(|(_, value)| value.into()))?;
    Ok((*configured.default).clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_fs_object_store::DiskCache;

    #[test]
    fn variables_are_read_and_mistakes_are_named() {
        let of = |name, value| of_variables(&[(name, value)]);
        let key = of("TF_AZURE_STORAGE_KEY", " k ").unwrap().secret("account_key");
        assert_eq!(key.unwrap().expose(), "k");
        assert!(of("TF_AZURE_STORAGE_USE_HTTP", "yes").unwrap().flag("use_http"));
        assert!(!of("TF_AZURE_STORAGE_USE_HTTP", "0").unwrap().flag("use_http"));
        assert_eq!(of("TF_AZ_WRITE_PART_BYTES", "4MiB").unwrap().engine.write_part, 4 << 20);
        let cache = of("TF_AZ_DISK_CACHE", "/c:1GiB").unwrap().engine.disk_cache;
        assert_eq!(cache, Some(DiskCache::new("/c", 1 << 30)));
        let error = of("TF_AZ_CA_FILE", "/no/such/file").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("TF_AZ_CA_FILE"), "{error}");
        for name in ["TF_AZURE_USE_DEV_STORAGE", "AZURE_STORAGE_ACCOUNT"] {
            let error = of(name, "wrong\nwrong").unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{name}");
        }
        let blank = [("AZURE_TENANT_ID", " "), ("AZURE_STORAGE_TENANT_ID", "t")];
        assert_eq!(of_variables(&blank).unwrap().text("tenant_id"), Some("t"));
    }

    #[test]
    fn defaults_are_the_engines() {
        let ours = of_variables(&[]).unwrap().engine;
        assert_eq!(ours, tf_fs_object_store::Settings::default());
    }

    #[test]
    fn the_readme_has_this_table() {
        let readme = include_str!("../README.md");
        let (_, rest) =
            readme.split_once("<!-- settings -->\n").expect("the mark before the table");
        let (table, _) = rest.split_once("<!-- end of settings -->").expect("the mark after it");
        let ours = TABLE.markdown();
        assert_eq!(table, ours, "put this into README.md:\n{ours}");
    }
}

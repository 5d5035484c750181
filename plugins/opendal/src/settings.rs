//! Settings: environment, settings file, TensorFlow's options. [`tf_fs_object_store::config`] reads them.

use std::path::PathBuf;
use std::time::Duration;
use tf_fs_object_store::config::{self, FromValues, Kind, Secret, Setting, Table, Value, Values};
use tf_fs_plugin::prelude::*;

/// All settings.
pub(crate) type Configured = config::Configured<Settings>;

/// The current settings.
pub(crate) type Config = config::Config<Settings>;

static TABLE: Table = Table {
    scheme: "webdav",
    prefix: "TF_OPENDAL_",
    file_variable: "TF_OPENDAL_CONFIG",
    help: "webdav:///config.json shows all settings",
    settings: SETTINGS,
    section: "remote",
    bucket: crate::name::canonical,
    parent: |_| None,
    ignores: |_, _| false,
};

const MIB: u64 = 1 << 20;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All of them, in the order of the README.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting::new("type", &[], Kind::OneOf(&["webdav", "sftp", "ftp", "webhdfs", "b2"]), "",
        "The protocol of the remote. Without it, that of the scheme in names."),
    Setting::new("url", &[], Kind::UrlOf(&["http", "https", "sftp", "ftp", "ftps"]), "",
        "Where the remote is: scheme, host, and the path that its names begin at."),
    Setting::new("user", &[], Kind::Text, "", "The user, for the server of the `url` beside it."),
    Setting::new("password", &["TF_OPENDAL_PASSWORD"], Kind::Secret, "", "The user's password."),
    Setting::new("bearer_token", &["TF_OPENDAL_BEARER_TOKEN"], Kind::Secret, "",
        "A token in place of user and password: WebDAV's, or a delegation token of HDFS."),
    Setting::new("key_file", &[], Kind::File, "",
        "For SFTP: the user's private key. Without it and a password, `~/.ssh/id_ed25519` and `~/.ssh/id_ecdsa`."),
    Setting::new("key_passphrase", &["TF_OPENDAL_KEY_PASSPHRASE"], Kind::Secret, "", "The passphrase of `key_file`."),
    Setting::new("known_hosts", &[], Kind::File, "",
        "For SFTP: the keys of hosts that are trusted. Without it, `~/.ssh/known_hosts`."),
    Setting::new("host_key", &[], Kind::Text, "",
        "For SFTP: the fingerprint of the host's key, such as `SHA256:…`, in place of `known_hosts`.").vital(),
    Setting::new("connections", &[], Kind::Count { min: 1, max: 64 }, "4", "Connections to a server of SFTP or FTP."),
    Setting::new("atomic_put", &[], Kind::Flag, "0",
        "For WebDAV: the server shows an uploaded file only when it has all of it, as Apache and nginx do. Then no temporary name is needed.").vital(),
    Setting::new("implicit_tls", &[], Kind::Flag, "0",
        "For `ftps://`: TLS begins with the first byte, as it always does on port 990."),
    Setting::new("hf_endpoint", &["HF_ENDPOINT"], Kind::Url, "https://huggingface.co", "For `hf://`: the Hub."),
    Setting::new("hf_token", &["TF_OPENDAL_HF_TOKEN", "HF_TOKEN"], Kind::Secret, "",
        "For `hf://`: a token of the Hub, which gets it and nobody else."),
    Setting::new("bucket_id", &[], Kind::Text, "", "For `b2://`: the id of the bucket."),
    Setting::new("github_endpoint", &[], Kind::Url, "https://api.github.com",
        "For `github://`: the API. That of an own server is `https://HOST/api/v3`."),
    Setting::new("github_token", &["TF_OPENDAL_GITHUB_TOKEN", "GITHUB_TOKEN"], Kind::Secret, "",
        "For `github://`: a token, which the API gets and nobody else."),
    Setting::new("ipfs_gateway", &[], Kind::Url, "https://ipfs.io", "For `ipfs://`: the gateway."),
    Setting::new("ca_file", &[], Kind::File, "",
        "Certificates (PEM) to trust instead of the system's. `SSL_CERT_FILE` and `SSL_CERT_DIR` work too."),
    Setting::new("memory_budget_bytes", &[], Kind::Bytes { min: 16 * MIB, max: 1 << 40 }, "512MiB",
        "Memory for read-ahead and for files that are written, for all files together.").of_process(),
    Setting::new("threads", &[], Kind::Count { min: 1, max: 64 }, "4", "Worker threads of the process.").of_process(),
    Setting::new("read_part_bytes", &[], Kind::Bytes { min: 64 << 10, max: 1 << 30 }, "8MiB", "Bytes of one request of a read."),
    Setting::new("write_part_bytes", &[], Kind::Bytes { min: 64 << 10, max: 1 << 30 }, "16MiB",
        "The largest file that is held in memory until it is sent."),
    Setting::new("read_concurrency", &[], Kind::Count { min: 1, max: 256 }, "16", "Requests in flight for one file."),
    Setting::new("retry_timeout_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "60000",
        "How long a failing request is tried again."),
    Setting::new("retry_backoff_ms", &[], Kind::Milliseconds { min: 1, max: DAY_MS }, "100",
        "The longest wait before the second attempt. It doubles with each further one."),
    Setting::new("stall_timeout_ms", &[], Kind::Milliseconds { min: 1, max: DAY_MS }, "20000",
        "How long a request may make no progress."),
    Setting::new("connect_timeout_ms", &[], Kind::Milliseconds { min: 1, max: DAY_MS }, "10000",
        "How long a connection may take."),
    Setting::new("listing_ttl_ms", &[], Kind::Milliseconds { min: 0, max: DAY_MS }, "1000",
        "How long a listing is cached."),
];

/// The settings of a remote.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// The protocol, if it is set.
    pub(crate) protocol: Option<String>,
    /// Where the credentials are for.
    pub(crate) url: Option<String>,
    /// Whether `url` is set for this remote itself, so that its name is not that of a host.
    pub(crate) is_named: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) token: Option<Secret>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) key_passphrase: Option<Secret>,
    pub(crate) known_hosts: Option<PathBuf>,
    /// The fingerprint of the server's key.
    pub(crate) host_key: Option<String>,
    pub(crate) connections: usize,
    pub(crate) hf_endpoint: String,
    pub(crate) hf_token: Option<Secret>,
    pub(crate) bucket_id: Option<String>,
    pub(crate) github_endpoint: String,
    pub(crate) github_token: Option<Secret>,
    pub(crate) ipfs_gateway: String,
    /// Whether the server replaces a file in one step when it is uploaded.
    pub(crate) atomic_put: bool,
    pub(crate) implicit_tls: bool,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) connect_timeout: Duration,
    pub(crate) engine: tf_fs_object_store::Settings,
}

impl FromValues for Settings {
    const TABLE: &'static Table = &TABLE;

    fn from_values(values: &Values<'_>) -> Result<Self> {
        let scopes: Vec<_> = values.scopes().collect();
        for scope in &scopes {
            let set = ["user", "password", "bearer_token", "host_key"]
                .map(|key| (key, scope.value(key).is_some()));
            if let Some((key, _)) = set.iter().find(|(_, is_set)| *is_set)
                && scope.value("url").is_none()
            {
                return Err(Error::invalid_argument(format_args!(
                    "{key} is set without url, so it is not known which server may see it; set url beside it"
                )));
            }
            ensure!(
                !(set[2].1 && (set[0].1 || set[1].1)),
                Error::invalid_argument(
                    "bearer_token and user or password are set; remove one of them"
                )
            );
        }
        // Only what stands beside the nearest URL: the credentials of another server stay there.
        let nearest = scopes.iter().position(|scope| scope.value("url").is_some());
        let value = |key| scopes[nearest?].value(key);
        let text = |key| match value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        let secret = |key| match value(key) {
            Some(Value::Secret(secret)) => Some(secret),
            _ => None,
        };
        Ok(Self {
            url: text("url"),
            is_named: nearest == Some(0) && scopes.len() > 1,
            user: text("user"),
            password: secret("password"),
            token: secret("bearer_token"),
            protocol: values.text("type"),
            key_file: values.text("key_file").map(PathBuf::from),
            key_passphrase: values.secret("key_passphrase"),
            known_hosts: values.text("known_hosts").map(PathBuf::from),
            host_key: text("host_key"),
            connections: values.size("connections"),
            hf_endpoint: values.text("hf_endpoint").unwrap_or_default(),
            hf_token: values.secret("hf_token"),
            bucket_id: values.text("bucket_id"),
            github_endpoint: values.text("github_endpoint").unwrap_or_default(),
            github_token: values.secret("github_token"),
            ipfs_gateway: values.text("ipfs_gateway").unwrap_or_default(),
            atomic_put: values.flag("atomic_put").unwrap_or(false),
            implicit_tls: values.flag("implicit_tls").unwrap_or(false),
            ca_file: values.text("ca_file").map(PathBuf::from),
            connect_timeout: values.time("connect_timeout_ms"),
            engine: values.engine(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Configured> {
        let lookup = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into())
        };
        Configured::of_variables(&lookup)
    }

    #[test]
    fn credentials_belong_to_the_url_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("opendal.toml");
        let text = "[remote.nas]\nurl = \"http://nas.example\"\nuser = \"me\"\npassword = \"planted\"\n\
                    [remote.other]\nurl = \"http://other.example\"\n[remote.slow]\nread_concurrency = 1\n";
        std::fs::write(&file, text).unwrap();
        let all = of(&[
            ("TF_OPENDAL_CONFIG", file.to_str().unwrap()),
            ("TF_OPENDAL_URL", "https://cloud.example/dav"),
            ("TF_OPENDAL_BEARER_TOKEN", "planted-too"),
        ])
        .unwrap();
        let nas = all.bucket("nas");
        assert_eq!((nas.user.as_deref(), nas.is_named), (Some("me"), true));
        assert!(nas.password.is_some() && nas.token.is_none());
        let other = all.bucket("other");
        assert!(other.is_named && other.token.is_none() && other.password.is_none());
        for host in ["slow", "another"] {
            let settings = all.bucket(host);
            assert_eq!(settings.url.as_deref(), Some("https://cloud.example/dav"), "{host}");
            assert!(!settings.is_named && settings.token.is_some(), "{host}");
        }
        assert_eq!(all.bucket("slow").engine.read_concurrency, 1);
        assert!(!format!("{all:?}").contains("planted"));
    }

    #[test]
    fn credentials_for_no_server_or_of_two_kinds_are_refused() {
        let url = ("TF_OPENDAL_URL", "https://h");
        for (variables, part) in [
            (&[("TF_OPENDAL_PASSWORD", "planted")][..], "password is set without url"),
            (&[("TF_OPENDAL_USER", "u")], "user is set without url"),
            (
                &[url, ("TF_OPENDAL_USER", "u"), ("TF_OPENDAL_BEARER_TOKEN", "planted")],
                "remove one of them",
            ),
        ] {
            let error = of(variables).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(
                error.message().contains(part) && !error.message().contains("planted"),
                "{error}"
            );
        }
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

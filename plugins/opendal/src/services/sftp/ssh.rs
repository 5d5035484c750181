//! Connections of SSH: the server's key is checked, then the user logs in.

use crate::place::Place;
use crate::service::failure;
use crate::settings::Settings;
use russh::client::{self, AuthResult, Handle, Handler, Msg};
use russh::keys::{
    HashAlg, PrivateKeyWithHashAlg, PublicKey, check_known_hosts_path, load_secret_key,
};
use russh::{ChannelStream, Error as SshError, Preferred, cipher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::config::Secret;
use tf_fs_object_store::http::HttpError;
use tf_fs_object_store::redact::redacted;
use tf_fs_object_store::{ErrorKind, RequestError};
use tf_fs_plugin::prelude::*;
use tokio::net::TcpStream;

/// How long a connection may be idle before it is checked, and how often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVES: usize = 3;
/// Bytes that a server may send before they are read.
const WINDOW: u32 = 8 << 20;

/// What is encrypted with, the first one that the server has: CPUs have instructions for AES.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

/// A connection. It ends when it is dropped.
pub(super) type Connection = Handle<Known>;

/// Where to connect, and as whom.
pub(super) struct Login {
    pub(super) endpoint: String,
    host: String,
    port: u16,
    user: String,
    password: Option<Secret>,
    /// Files of private keys, each of which may be missing unless it is set.
    keys: Vec<PathBuf>,
    is_key_set: bool,
    passphrase: Option<Secret>,
    trust: Trust,
    connect_timeout: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Login {
    pub(super) fn new(place: &Place, settings: &Settings) -> Self {
        let home = std::env::home_dir().unwrap_or_default().join(".ssh");
        let (host, port) = place.address();
        let user = settings.user.clone().filter(|_| place.is_known);
        let password = settings.password.clone().filter(|_| place.is_known);
        let keys = match &settings.key_file {
            Some(file) => vec![file.clone()],
            None if password.is_some() => Vec::new(),
            None => vec![home.join("id_ed25519"), home.join("id_ecdsa")],
        };
        let fingerprint = settings.host_key.clone().filter(|_| place.is_known);
        Self {
            endpoint: place.origin(),
            host: host.to_owned(),
            port,
            user: user.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "root".to_owned()),
            password,
            keys,
            is_key_set: settings.key_file.is_some(),
            passphrase: settings.key_passphrase.clone(),
            trust: match fingerprint {
                Some(fingerprint) => Trust::Fingerprint(fingerprint),
                None => Trust::File(
                    settings.known_hosts.clone().unwrap_or_else(|| home.join("known_hosts")),
                ),
            },
            connect_timeout: settings.connect_timeout,
        }
    }
}

/// Which keys of the server are trusted.
#[derive(Clone, Debug)]
enum Trust {
    /// That with this fingerprint.
    Fingerprint(String),
    /// Those of a file in the format of OpenSSH.
    File(PathBuf),
}

/// Checks the server's key.
pub(super) struct Known {
    host: String,
    port: u16,
    trust: Trust,
}

/// Why a connection fails.
#[derive(Debug)]
pub(super) enum Failed {
    Ssh(SshError),
    /// The server's key is not trusted, for this reason.
    NotTrusted(String),
}

impl From<SshError> for Failed {
    fn from(error: SshError) -> Self {
        Self::Ssh(error)
    }
}

impl Handler for Known {
    type Error = Failed;

    async fn check_server_key(&mut self, key: &PublicKey) -> Result<bool, Failed> {
        let shown = key.fingerprint(HashAlg::Sha256).to_string();
        let Self { host, port, trust } = self;
        match trust {
            Trust::Fingerprint(wanted) if *wanted == shown => Ok(true),
            Trust::Fingerprint(wanted) => Err(Failed::NotTrusted(format!(
                "its key is {shown}, not {wanted}; somebody may be between here and the server, or it has a new key: ask who \
                 runs it, and correct host_key"
            ))),
            Trust::File(file) => match check_known_hosts_path(host, *port, key, &*file) {
                Ok(true) => Ok(true),
                Ok(false) => Err(Failed::NotTrusted(format!(
                    "its key is {shown}, and {} has none for it; compare the key with that of the server, then run `ssh-keyscan \
                     -p {port} {host} >> {0}`, or set host_key",
                    file.display()
                ))),
                Err(error) => Err(Failed::NotTrusted(format!(
                    "its key is {shown}, and {} says otherwise ({error}); somebody may be between here and the server, or it \
                     has a new key: ask who runs it",
                    file.display()
                ))),
            },
        }
    }
}

/// Connects, logs in, and begins SFTP.
pub(super) async fn connect(login: &Login) -> Result<(Connection, ChannelStream<Msg>), HttpError> {
    let connected = tokio::time::timeout(login.connect_timeout, connect_now(login)).await;
    connected.unwrap_or_else(|_| {
        let error = io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        Err(HttpError::Transport(login.endpoint.clone(), error.into()))
    })
}

async fn connect_now(login: &Login) -> Result<(Connection, ChannelStream<Msg>), HttpError> {
    let no_connection =
        |error: io::Error| HttpError::Transport(login.endpoint.clone(), error.into());
    let broken = |error: SshError| {
        HttpError::Transport(login.endpoint.clone(), redacted(&error.to_string()).into())
    };
    let address = (&*login.host, login.port);
    let stream = TcpStream::connect(address).await.map_err(no_connection)?;
    stream.set_nodelay(true).map_err(no_connection)?;
    let config = client::Config {
        keepalive_interval: Some(KEEP_ALIVE),
        keepalive_max: KEEP_ALIVES,
        window_size: WINDOW,
        preferred: Preferred { cipher: CIPHERS.into(), ..Preferred::default() },
        ..client::Config::default()
    };
    let known = Known { host: login.host.clone(), port: login.port, trust: login.trust.clone() };
    let connection = client::connect_stream(Arc::new(config), stream, known).await;
    let mut connection = connection.map_err(|failed| match failed {
        Failed::Ssh(error) => broken(error),
        Failed::NotTrusted(reason) => {
            let reason = format!("{} is not trusted: {reason}", login.endpoint);
            let error = RequestError::new(ErrorKind::Permanent, reason);
            HttpError::from(error.with_code(Code::Unavailable))
        }
    })?;
    log_in(login, &mut connection).await?;
    let channel = connection.channel_open_session().await.map_err(broken)?;
    channel.request_subsystem(true, "sftp").await.map_err(broken)?;
    Ok((connection, channel.into_stream()))
}

async fn log_in(login: &Login, connection: &mut Connection) -> Result<(), HttpError> {
    let broken = |error: SshError| {
        HttpError::Transport(login.endpoint.clone(), redacted(&error.to_string()).into())
    };
    let mut tried = Vec::new();
    for file in &login.keys {
        if !login.is_key_set && !file.is_file() {
            continue;
        }
        tried.push(file.display().to_string());
        let passphrase = login.passphrase.as_ref().map(Secret::expose);
        let key = load_secret_key(file, passphrase).map_err(|error| {
            let text = format!(
                "{}: the private key cannot be used: {error}; Ed25519 and ECDSA are supported, and a key with a passphrase needs \
                 key_passphrase",
                file.display()
            );
            failure(ErrorKind::Permanent, redacted(&text))
        })?;
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
        let outcome = connection.authenticate_publickey(&*login.user, key).await;
        if matches!(outcome.map_err(broken)?, AuthResult::Success) {
            return Ok(());
        }
    }
    if let Some(password) = &login.password {
        tried.push("the password".to_owned());
        let outcome = connection.authenticate_password(&*login.user, password.expose()).await;
        if matches!(outcome.map_err(broken)?, AuthResult::Success) {
            return Ok(());
        }
    }
    let tried = if tried.is_empty() { "nothing".to_owned() } else { tried.join(" and ") };
    let reason = format!(
        "{} does not let {} in with {tried}; set user, and key_file or password, beside the url of this server",
        login.endpoint, login.user
    );
    let error = RequestError::new(ErrorKind::Denied, reason).with_code(Code::Unauthenticated);
    Err(error.into())
}

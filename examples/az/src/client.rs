//! Opens containers: one client and one identity for all of them.

use crate::account::Account;
use crate::container::Container;
use crate::credential::Tokens;
use crate::settings::Settings;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tf_fs_object_store::Name;
use tf_fs_object_store::http::{Http, HttpSettings, Proxy, Tls};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// What containers are opened with.
#[derive(Debug)]
pub struct Client {
    settings: Arc<Settings>,
    http: Http,
    /// By name.
    accounts: Mutex<HashMap<Arc<str>, Arc<Account>>>,
    /// Who this process is to Entra; found out at the first need.
    tokens: Mutex<Option<Arc<Tokens>>>,
}

/// The client of all requests.
pub(crate) fn http(settings: &Settings) -> Result<Http> {
    Http::new(http_settings(settings))
}

/// How requests are made, to stores and to Entra.
pub(crate) fn http_settings(settings: &Settings) -> HttpSettings {
    HttpSettings {
        tls: Tls { file: settings.path("ca_file"), ..Tls::default() },
        proxy: Proxy::Environment,
        connect_timeout: settings.time("connect_timeout_ms", Duration::from_secs(5)),
        stall_timeout: settings.time("stall_timeout_ms", Duration::from_secs(20)),
        user_agent: concat!("tensorflow-az/", env!("CARGO_PKG_VERSION")),
    }
}

impl Client {
    /// One with these settings. It makes no connection yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for certificates that cannot be used.
    pub(crate) fn new(settings: Arc<Settings>) -> Result<Self> {
        let http = http(&settings)?;
        Ok(Self { settings, http, accounts: Mutex::default(), tokens: Mutex::default() })
    }

    /// What it was made with.
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    fn account(&self, name: &str) -> Result<Arc<Account>> {
        if let Some(account) = self.accounts.lock()?.get(name) {
            return Ok(Arc::clone(account));
        }
        let tokens = || {
            let mut tokens = self.tokens.lock()?;
            if tokens.is_none() {
                *tokens = Tokens::find(&self.settings, &self.http)?.map(Arc::new);
            }
            Ok(tokens.clone())
        };
        let account = Arc::new(Account::new(name, &self.settings, &self.http, tokens)?);
        Ok(Arc::clone(self.accounts.lock()?.entry(name.into()).or_insert(account)))
    }
}

impl tf_fs_object_store::Client for Client {
    type Store = Container;

    const SCHEME: &'static str = crate::name::SCHEME;

    async fn open(&self, bucket: &Arc<str>) -> Result<Container> {
        let (account, container) = bucket.split_once('/').unwrap_or((bucket, ""));
        ensure!(
            !account.is_empty(),
            Error::unimplemented("az://: there is no list of accounts; write az://account")
        );
        Ok(Container {
            account: self.account(account)?,
            name: container.to_owned(),
            settings: self.settings.engine(),
            page: self.settings.page(),
        })
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        crate::name::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        crate::name::new(bucket, key)
    }
}

//! Opens containers: one client and one identity for all of them.

use crate::account::Account;
use crate::bucket::Container;
use crate::credential::Tokens;
use crate::settings::{Config, Configured, Settings};
use std::collections::HashMap;
use std::sync::Arc;
use tf_fs_object_store::Name;
use tf_fs_object_store::http::{Http, HttpSettings, Proxy, Tls};
use tf_fs_plugin::prelude::*;
use tf_fs_plugin::sync::Mutex;

/// Opens containers.
#[derive(Debug)]
pub struct Client {
    settings: Arc<Configured>,
    config: Arc<Config>,
    /// One for each value of the settings that was used.
    accesses: Mutex<Vec<Arc<Access>>>,
}

/// The state that containers with the same settings share.
#[derive(Debug)]
struct Access {
    /// The bucket for which it was made.
    bucket: String,
    config: Arc<Config>,
    settings: Arc<Settings>,
    http: Http,
    /// By name.
    accounts: Mutex<HashMap<Arc<str>, Arc<Account>>>,
    /// The identity of this process for Entra; looked for at the first use.
    tokens: Mutex<Option<Arc<Tokens>>>,
}

/// Creates the client of all requests.
pub(crate) fn http(settings: &Settings) -> Result<Http> {
    Http::new(http_settings(settings))
}

/// Returns the HTTP settings of requests to stores and to Entra.
pub(crate) fn http_settings(settings: &Settings) -> HttpSettings {
    HttpSettings {
        tls: Tls { file: settings.path("ca_file"), ..Tls::default() },
        proxy: Proxy::Environment,
        connect_timeout: settings.time("connect_timeout_ms"),
        stall_timeout: settings.engine.stall_timeout,
        user_agent: concat!("tensorflow-az/", env!("CARGO_PKG_VERSION")),
    }
}

impl Client {
    /// Creates a client with these settings. It keeps what the one before it made with settings that stay the same. It
    /// makes no connection yet.
    pub(crate) fn new(
        settings: Arc<Configured>,
        config: &Arc<Config>,
        before: Option<&Self>,
    ) -> Self {
        let all = |access: &&Arc<Access>| {
            let mut current = settings.buckets.values().chain([&settings.default]);
            current.any(|settings| **settings == *access.settings)
        };
        let kept = before.and_then(|before| {
            Some(before.accesses.lock().ok()?.iter().filter(all).cloned().collect())
        });
        let config = Arc::clone(config);
        Self { accesses: Mutex::new(kept.unwrap_or_default()), config, settings }
    }

    /// Returns whether it was made with these settings.
    pub(crate) fn has(&self, settings: &Arc<Configured>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// Returns the access of a container, or an account: by its own settings, else by those of the account.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for certificates that cannot be used.
    fn access(&self, bucket: &str) -> Result<Arc<Access>> {
        let settings = settings_of(&self.settings, bucket);
        let find = || {
            let accesses = self.accesses.lock()?;
            let found = accesses.iter().find(|access| *access.settings == **settings).cloned();
            Ok::<_, Error>(found)
        };
        if let Some(access) = find()? {
            return Ok(access);
        }
        // This reads certificates, without holding a lock.
        let access = Arc::new(Access {
            bucket: bucket.to_owned(),
            config: Arc::clone(&self.config),
            settings: Arc::clone(settings),
            http: http(settings)?,
            accounts: Mutex::default(),
            tokens: Mutex::default(),
        });
        if let Some(first) = find()? {
            return Ok(first);
        }
        self.accesses.lock()?.push(Arc::clone(&access));
        Ok(access)
    }
}

/// Returns the settings of a container or an account.
fn settings_of<'a>(all: &'a Configured, bucket: &str) -> &'a Arc<Settings> {
    let account = bucket.split('/').next().unwrap_or_default();
    let own = all.buckets.get(bucket).or_else(|| all.buckets.get(account));
    own.unwrap_or(&all.default)
}

impl Access {
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
        let mut account = Account::new(name, &self.settings, &self.http, tokens)?;
        let (config, bucket, http) =
            (Arc::clone(&self.config), self.bucket.clone(), self.http.clone());
        let (name_now, identity) = (account.name.clone(), account.identity());
        let reread = move || {
            let all = config.reread().inspect_err(|error| log::warn!("az://: {error:#}")).ok()?;
            let settings = settings_of(&all, &bucket);
            let now = Account::new(&name_now, settings, &http, || Ok(None)).ok()?;
            // Another place is another store, which this credential is not for.
            (now.identity() == identity).then(|| now.credential.get())
        };
        account.credential = account.credential.with_reread(Box::new(reread));
        let account = Arc::new(account);
        Ok(Arc::clone(self.accounts.lock()?.entry(name.into()).or_insert(account)))
    }
}

impl tf_fs_object_store::Client for Client {
    type Store = Container;

    const SCHEMES: &'static [&'static str] = &[crate::name::SCHEME];

    async fn open(&self, bucket: &Arc<str>) -> Result<Container> {
        let (account, container) = bucket.split_once('/').unwrap_or((bucket, ""));
        ensure!(
            !account.is_empty(),
            Error::new(
                Code::Unimplemented,
                "az://: there is no list of accounts; write az://account"
            )
        );
        let access = self.access(bucket)?;
        let page = access.settings.number("list_page_names");
        Ok(Container {
            account: access.account(account)?,
            name: container.to_owned(),
            settings: access.settings.engine.clone(),
            page: page.try_into().unwrap_or(u32::MAX),
        })
    }

    fn split(uri: Uri<'_>) -> Result<(&str, &str)> {
        crate::name::split(uri)
    }

    fn name(bucket: &str, key: &str) -> Result<Name> {
        crate::name::new(bucket, key)
    }
}

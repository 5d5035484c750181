//! An account: where it is, and how requests to it are authorized.

use crate::credential::{Credential, CurrentCredential, Tokens};
use crate::name::{HOSTS, PUBLIC};
use crate::settings::{Secret, Settings};
use crate::sign::SharedKey;
use std::collections::HashMap;
use std::sync::Arc;
use tf_fs_object_store::http::{Http, Uri as Url, names_server};
use tf_fs_plugin::prelude::*;

/// Azurite's account and key, which its documentation publishes.
const DEV_ACCOUNT: &str = "devstoreaccount1";
const DEV_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const DEV_ENDPOINT: &str = "http://127.0.0.1:10000/devstoreaccount1";

/// An account of Azure Blob Storage.
#[derive(Debug)]
pub(crate) struct Account {
    /// In the form of names.
    pub(crate) name: Arc<str>,
    /// In the form of signatures: without a host.
    pub(crate) signed_name: String,
    /// Scheme, host and port.
    pub(crate) endpoint: String,
    /// The beginning of each path: empty, or `/account` in Azurite.
    pub(crate) path: String,
    pub(crate) credential: CurrentCredential,
    pub(crate) http: Http,
}

/// One place's settings of an account: a connection string, or single settings.
#[derive(Debug, Default)]
pub(crate) struct AccountInfo {
    account: Option<String>,
    key: Option<Secret>,
    sas: Option<Secret>,
    endpoint: Option<String>,
}

impl AccountInfo {
    /// Returns the account of `https://account.blob.core.windows.net`, a host that serves only this account.
    fn account_of_host(&self) -> Option<String> {
        let url: Url = self.endpoint.as_ref()?.parse().ok()?;
        let host = url.host().filter(|host| HOSTS.iter().any(|azure| host.ends_with(azure)))?;
        Some(host.split('.').next()?.to_owned())
    }
}

impl Account {
    /// Finds out from the settings where this account is, and how requests are authorized.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the setting that is wrong.
    pub(crate) fn new(
        name: &str,
        settings: &Settings,
        http: &Http,
        tokens: impl FnOnce() -> Result<Option<Arc<Tokens>>>,
    ) -> Result<Self> {
        let short = name.split('.').next().unwrap_or_default();
        let is_dev = settings.flag("use_dev_storage");
        let info = if is_dev {
            vec![AccountInfo {
                account: Some(short.to_owned()),
                key: Some(Secret::new(DEV_KEY)),
                endpoint: Some(DEV_ENDPOINT.to_owned()),
                sas: None,
            }]
        } else {
            account_infos(short, settings)?
        };
        let key = info.iter().find_map(|info| info.key.clone());
        let sas = info.iter().find_map(|info| info.sas.clone());
        let url = info.into_iter().find_map(|info| info.endpoint);
        let url = url.unwrap_or_else(|| match name.contains('.') {
            true => format!("https://{name}"),
            false => format!("https://{name}{PUBLIC}"),
        });
        let (endpoint, path) = parse_endpoint(&url)?;
        let needs = |what: &str| {
            Error::invalid_argument(format_args!(
                "az://{name}: TF_AZ_AUTH requires {what} for this account, but there is none; set it"
            ))
        };
        let parse_key = |key: &Secret| {
            SharedKey::parse(key).map(Credential::Key).ok_or_else(|| {
                Error::invalid_argument(format_args!(
                    "az://{name}: the account's key is not base64; copy it again, as `az storage account keys list` shows it"
                ))
            })
        };
        let parse_sas =
            |sas: &Secret| Credential::Sas(Secret::new(sas.expose().trim_start_matches('?')));
        let credential = match (settings.text("auth"), &key, &sas) {
            (Some("anonymous"), ..) => Credential::Anonymous,
            (Some("key"), None, _) => return Err(needs("a key")),
            (Some("sas"), _, None) => return Err(needs("a SAS")),
            (Some("key") | None, Some(key), _) => parse_key(key)?,
            (Some("sas") | None, _, Some(sas)) => parse_sas(sas),
            // `entra`, or none of the others.
            _ => match tokens()? {
                Some(tokens) => Credential::Entra(tokens),
                None => Credential::Anonymous,
            },
        };
        // A key only signs. These are sent as they are.
        let sent = match credential {
            Credential::Entra(_) => Some("a token"),
            Credential::Sas(_) => Some("a SAS"),
            Credential::Key(_) | Credential::Anonymous => None,
        };
        if let Some(sent) = sent.filter(|_| !is_confidential(&endpoint)) {
            return Err(Error::invalid_argument(format_args!(
                "az://{name}: {sent} is not sent to {endpoint} without TLS; name an endpoint with https://, or use an account key, which is not sent"
            )));
        }
        let signed_name = if is_dev { DEV_ACCOUNT } else { short }.to_owned();
        let (name, credential) = (name.into(), CurrentCredential::new(credential));
        Ok(Self { name, signed_name, endpoint, path, credential, http: http.clone() })
    }
}

impl Account {
    /// Returns where it is: a key or a token of one account is not valid for another, nor at another endpoint.
    pub(crate) fn identity(&self) -> (Arc<str>, String, String) {
        (self.name.clone(), self.endpoint.clone(), self.path.clone())
    }
}

/// Returns what is said of the account of this name, the nearest place first.
fn account_infos(short: &str, settings: &Settings) -> Result<Vec<AccountInfo>> {
    let mut all = Vec::new();
    for (i, scope) in settings.scopes.iter().enumerate() {
        let string = scope.connection_string.as_ref();
        let string = string.map(|text| parse_connection_string(text.expose())).transpose()?;
        let mut string = string.unwrap_or_default();
        string.account = string.account.or_else(|| scope.account.clone());
        let mut single = AccountInfo {
            account: scope.account.clone(),
            key: settings.secret("account_key"),
            sas: settings.secret("sas_token"),
            endpoint: scope.endpoint.as_ref().map(|text| {
                let scheme = if settings.flag("use_http") { "http" } else { "https" };
                if text.contains("://") { text.clone() } else { format!("{scheme}://{text}") }
            }),
        };
        if i != settings.credentials {
            for info in [&mut string, &mut single] {
                (info.key, info.sas) = (None, None);
            }
        }
        all.extend([string, single]);
    }
    // Settings of another account are not for this one: a SAS is visible to whom it is sent.
    all.retain(|info| {
        let account = info.account.clone().or_else(|| info.account_of_host());
        account.is_none_or(|account| account == short)
    });
    Ok(all)
}

/// Returns whether nobody on the way can read what is sent there.
pub(crate) fn is_confidential(url: &str) -> bool {
    url.parse().is_ok_and(|url| tf_fs_object_store::http::is_confidential(&url))
}

/// Returns scheme, host and port; and the path, without `/` at its end.
pub(crate) fn parse_endpoint(text: &str) -> Result<(String, String)> {
    let wrong = |why: &str| {
        // Not shown: some users write a SAS into it.
        Error::invalid_argument(format_args!(
            "the blob endpoint {why}; write https://ACCOUNT.blob.core.windows.net"
        ))
    };
    let url: Url = text.trim().parse().map_err(|_| wrong("is not a URL"))?;
    let scheme = url.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
    let scheme = scheme.ok_or_else(|| wrong("is neither http:// nor https://"))?;
    let authority = url.authority().filter(|_| names_server(&url));
    let authority = authority.ok_or_else(|| wrong("names no host, or its port is not a number"))?;
    ensure!(!authority.as_str().contains('@'), wrong("has credentials in it"));
    ensure!(url.query().is_none(), wrong("has a query; set AZURE_STORAGE_SAS_TOKEN for a SAS"));
    Ok((format!("{scheme}://{authority}"), url.path().trim_end_matches('/').to_owned()))
}

/// Parses `AccountName=…;AccountKey=…`, as Azure's portal shows it.
pub(crate) fn parse_connection_string(text: &str) -> Result<AccountInfo> {
    let wrong = |why: &str| {
        Error::invalid_argument(format_args!(
            "AZURE_STORAGE_CONNECTION_STRING {why}; copy it again, as `az storage account show-connection-string` shows it"
        ))
    };
    let mut fields = HashMap::new();
    for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, value) =
            field.split_once('=').ok_or_else(|| wrong("has a field without `=`"))?;
        fields.insert(name.trim().to_ascii_lowercase(), value.trim());
    }
    let field = |name: &str| fields.get(name).copied().filter(|value| !value.is_empty());
    if field("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(AccountInfo {
            account: Some(DEV_ACCOUNT.to_owned()),
            key: Some(Secret::new(DEV_KEY)),
            endpoint: Some(DEV_ENDPOINT.to_owned()),
            sas: None,
        });
    }
    let account = field("accountname").map(str::to_owned);
    let scheme = field("defaultendpointsprotocol").unwrap_or("https");
    let suffix = field("endpointsuffix");
    let made = account.as_ref().zip(suffix);
    let made = made.map(|(account, suffix)| format!("{scheme}://{account}.blob.{suffix}"));
    let endpoint = field("blobendpoint").map(str::to_owned).or(made);
    ensure!(
        account.is_some() || endpoint.is_some(),
        wrong("has neither AccountName nor BlobEndpoint")
    );
    Ok(AccountInfo {
        account,
        key: field("accountkey").map(Secret::new),
        sas: field("sharedaccesssignature").map(Secret::new),
        endpoint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client;
    use crate::settings::{Config, of_variables};

    fn account(name: &str, variables: &[(&str, &str)]) -> Result<Account> {
        let settings = of_variables(variables)?;
        Account::new(name, &settings, &client::http(&settings)?, || Ok(None))
    }

    fn kind(account: &Account) -> &'static str {
        match account.credential.get() {
            Credential::Key(_) => "key",
            Credential::Sas(sas) if sas.expose() == "sv=1&sig=a%2Bb" => "sas",
            Credential::Sas(_) => "another sas",
            Credential::Entra(_) => "entra",
            Credential::Anonymous => "anonymous",
        }
    }

    const SAS: (&str, &str) = ("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=a%2Bb");
    const KEY: (&str, &str) = ("AZURE_STORAGE_KEY", "c2VzYW1l");

    #[test]
    fn a_key_comes_first_and_is_for_its_account_only() {
        let of = |name, variables: &[_]| kind(&account(name, variables).unwrap());
        assert_eq!(of("acc", &[]), "anonymous");
        assert_eq!(of("acc", &[SAS]), "sas");
        assert_eq!(of("acc", &[SAS, KEY]), "key");
        assert_eq!(of("acc", &[SAS, KEY, ("TF_AZ_AUTH", "sas")]), "sas");
        assert_eq!(of("acc", &[SAS, KEY, ("TF_AZ_AUTH", "anonymous")]), "anonymous");
        assert_eq!(of("acc", &[KEY, ("AZURE_STORAGE_ACCOUNT", "acc")]), "key");
        assert_eq!(of("acc", &[KEY, ("AZURE_STORAGE_ACCOUNT", "other")]), "anonymous");
        let other = account(
            "acc",
            &[("AZURE_STORAGE_ACCOUNT", "other"), ("TF_AZ_BLOB_ENDPOINT", "https://elsewhere")],
        );
        assert_eq!(other.unwrap().endpoint, "https://acc.blob.core.windows.net");
        // An endpoint of one account has only the blobs of that one.
        let of = |name| {
            let at = ("TF_AZ_BLOB_ENDPOINT", "https://one.blob.core.windows.net");
            account(name, &[at, SAS]).map(|account| (kind(&account), account.endpoint)).unwrap()
        };
        assert_eq!(of("one"), ("sas", "https://one.blob.core.windows.net".to_owned()));
        assert_eq!(of("two"), ("anonymous", "https://two.blob.core.windows.net".to_owned()));
    }

    #[test]
    fn no_sas_is_sent_where_it_can_be_read_on_the_way() {
        let at = |endpoint, more: &[_]| {
            let all = [&[("TF_AZ_BLOB_ENDPOINT", endpoint)], more].concat();
            account("acc", &all).map(|account| kind(&account))
        };
        for endpoint in
            ["http://h", "http://169.254.169.254:1/acc", "http://acc.blob.core.windows.net"]
        {
            let error = at(endpoint, &[SAS]).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{error}");
            assert!(error.message().contains("a SAS is not sent to http://"), "{error}");
            assert!(!error.to_string().contains("sig"), "{error}");
            // A key is not sent, and a public container needs nothing.
            assert_eq!(at(endpoint, &[KEY]).unwrap(), "key");
            assert_eq!(at(endpoint, &[SAS, ("TF_AZ_AUTH", "anonymous")]).unwrap(), "anonymous");
        }
        let connection = "BlobEndpoint=http://h/;SharedAccessSignature=sv=1&sig=a%2Bb";
        assert!(account("acc", &[("AZURE_STORAGE_CONNECTION_STRING", connection)]).is_err());
        assert_eq!(at("http://127.0.0.1:1/acc", &[SAS]).unwrap(), "sas");
    }

    #[test]
    fn connection_strings() {
        let of = |text: &str| account("acc", &[("AZURE_STORAGE_CONNECTION_STRING", text)]);
        for (text, endpoint, path, credential) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=c2VzYW1l;EndpointSuffix=core.chinacloudapi.cn",
                "https://acc.blob.core.chinacloudapi.cn",
                "",
                "key",
            ),
            (
                "accountname=acc;accountkey=c2VzYW1l;BlobEndpoint=http://127.0.0.1:1/acc/;",
                "http://127.0.0.1:1",
                "/acc",
                "key",
            ),
            (
                "BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=a%2Bb",
                "https://acc.blob.core.windows.net",
                "",
                "sas",
            ),
            (
                "BlobEndpoint=https://other.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=a%2Bb",
                "https://acc.blob.core.windows.net",
                "",
                "anonymous",
            ),
        ] {
            let account = of(text).unwrap();
            assert_eq!(
                (&*account.endpoint, &*account.path, kind(&account)),
                (endpoint, path, credential)
            );
        }
        for text in ["AccountKey=sesame", "sesame", "AccountName=acc;AccountKey=sesame!"] {
            let error = of(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
        let text = "UseDevelopmentStorage=true";
        let account = account("devstoreaccount1", &[("AZURE_STORAGE_CONNECTION_STRING", text)]);
        assert_eq!(account.unwrap().path, "/devstoreaccount1");
    }

    #[test]
    fn settings_that_cannot_be_are_refused_without_a_secret() {
        for (variables, part) in [
            (vec![("TF_AZ_BLOB_ENDPOINT", "https://h?sig=sesame")], "end with the path"),
            (vec![("TF_AZ_BLOB_ENDPOINT", "https://u:sesame@h")], "credentials"),
            (vec![("TF_AZ_BLOB_ENDPOINT", "ftp://h")], "is not `http` or `https`"),
            (vec![("AZURE_STORAGE_KEY", "sesame!")], "not base64"),
            (vec![("TF_AZ_AUTH", "key")], "requires a key"),
            (vec![("TF_AZ_AUTH", "sas"), KEY], "requires a SAS"),
            (vec![("TF_AZ_AUTH", "magic")], "`key`, `sas`, `entra` or `anonymous`"),
        ] {
            let error = account("acc", &variables).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{error}");
            assert!(error.to_string().contains(part), "{error}");
            assert!(!error.to_string().contains("sesame"), "{error}");
        }
    }

    /// Returns the kind of credential and the endpoint of a container of `acc`, with these options.
    fn with(options: &[(&str, &str)]) -> (&'static str, String) {
        let config = Config::default();
        for (key, value) in options {
            let values = OptionValues::Buffer(vec![value.as_bytes().to_vec()]);
            config.set(&[FilesystemOption::new(*key, values)]).unwrap();
        }
        let settings = config.settings().unwrap();
        let own = ["acc/c", "acc"].iter().find_map(|name| settings.buckets.get(*name));
        let own = own.unwrap_or(&settings.default);
        let account = Account::new("acc", own, &client::http(own).unwrap(), || Ok(None)).unwrap();
        (kind(&account), account.endpoint)
    }

    #[test]
    fn a_section_and_what_is_set_for_all_do_not_mix() {
        const PUBLIC: &str = "https://acc.blob.core.windows.net";
        let (sas, key) = (("bucket.acc/c.sas_token", SAS.1), ("account_key", KEY.1));
        for (options, credential, endpoint) in [
            // The gateway is that of another account.
            (&[("account", "main"), ("blob_endpoint", "https://gw"), sas][..], "sas", PUBLIC),
            (&[("blob_endpoint", "https://gw"), sas], "sas", "https://gw"),
            (
                &[("account", "main"), ("bucket.acc.blob_endpoint", "https://own")],
                "anonymous",
                "https://own",
            ),
            // The nearest endpoint, also against a connection string.
            (
                &[
                    (
                        "connection_string",
                        "AccountName=acc;AccountKey=c2VzYW1l;BlobEndpoint=https://gw",
                    ),
                    ("bucket.acc/c.blob_endpoint", "https://own"),
                ],
                "key",
                "https://own",
            ),
            // The nearest section, not the strongest credential.
            (&[("bucket.acc.account_key", KEY.1), sas], "sas", PUBLIC),
            (
                &[("bucket.acc.connection_string", "AccountName=acc;AccountKey=c2VzYW1l"), sas],
                "sas",
                PUBLIC,
            ),
            // Identities are credentials too.
            (&[key, ("bucket.acc.client_id", "app")], "anonymous", PUBLIC),
            // How to sign in is not set farther away.
            (&[("auth", "anonymous"), sas], "sas", PUBLIC),
            (
                &[("bucket.acc/c.auth", "anonymous"), ("bucket.acc.sas_token", SAS.1)],
                "anonymous",
                PUBLIC,
            ),
            (&[key, ("bucket.acc/c.auth", "anonymous")], "anonymous", PUBLIC),
            (&[key, ("bucket.acc/c.auth", "key")], "key", PUBLIC),
        ] {
            assert_eq!(with(options), (credential, endpoint.to_owned()), "{options:?}");
        }
    }

    #[test]
    fn the_credentials_of_a_section_count_alone() {
        let config = Config::default();
        let set = |key: &str, value: &str| {
            let values = OptionValues::Buffer(vec![value.as_bytes().to_vec()]);
            config.set(&[FilesystemOption::new(key, values)])
        };
        set("account", "other").unwrap();
        set("account_key", "c2VzYW1l").unwrap();
        let string = "AccountName=acc;AccountKey=c2VzYW1l;BlobEndpoint=http://127.0.0.1:1/acc";
        set("connection_string", string).unwrap();
        // In another spelling, and of the account.
        set("bucket.c@acc.dfs.core.windows.net.sas_token", SAS.1).unwrap();
        set("bucket.acc.read_concurrency", "64").unwrap();
        let settings = config.settings().unwrap();
        for (bucket, credential) in [("acc/c", "sas"), ("acc", "key")] {
            let own = &settings.buckets[bucket];
            assert_eq!(own.engine.read_concurrency, 64, "{bucket}");
            let http = client::http(own).unwrap();
            let account = Account::new("acc", own, &http, || Ok(None)).unwrap();
            let found = (kind(&account), account.endpoint);
            assert_eq!(found, (credential, "http://127.0.0.1:1".to_owned()), "{bucket}");
        }
        for wrong in ["acc/c/", "ACC", "acc.example.com/c"] {
            let error = set(&format!("bucket.{wrong}.auth"), "key").unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{wrong}: {error}");
        }
    }
}

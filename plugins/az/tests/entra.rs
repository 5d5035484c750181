//! Tokens of Entra: requested as each service documents it, accepted by Azurite over TLS, renewed before they expire.

use crate::common::{AZURITE, endpoint, plugin, read};
use azurite::{ACCOUNT, Azurite, Fault, Proxy};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use tf_fs_plugin::prelude::*;

struct Tls {
    azurite: Azurite,
    certificate: String,
    _files: tempfile::TempDir,
}

static TLS: LazyLock<Tls> = LazyLock::new(|| {
    let files = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let azurite = Azurite::with_tls(&certificate, &key);
    azurite.create_container("entra");
    azurite.script(
        "await service.getContainerClient('entra').getBlockBlobClient('k').upload('bytes', 5)",
    );
    Tls { azurite, certificate, _files: files }
});

/// A service of tokens, which are valid for `seconds`.
struct Service {
    url: String,
    /// Head and body of each request.
    log: Arc<Mutex<Vec<String>>>,
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

/// Returns a token like Entra's, except for the signature, which Azurite does not check.
fn token(seconds: i64) -> String {
    let claims = serde_json::json!({
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/t/",
        "iat": now() - 100, "nbf": now() - 100, "exp": now() + seconds,
    });
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.{}",
        part(r#"{"alg":"RS256","typ":"JWT"}"#),
        part(&claims.to_string()),
        part("sesame")
    )
}

impl Service {
    /// Starts a service. `lives`: the lifetime that each token in turn claims, the last one for all others.
    fn new(status: &'static str, lives: &'static [i64]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let shared = Arc::clone(&log);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                serve(connection, status, lives, &shared);
            }
        });
        Self { url, log }
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(connection: TcpStream, status: &str, lives: &[i64], log: &Mutex<Vec<String>>) {
    let mut from = BufReader::new(&connection);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        text.push_str(&line);
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).unwrap();
    text.push_str(&String::from_utf8(body).unwrap());
    let mut log = log.lock().unwrap();
    let seconds = lives[log.len().min(lives.len() - 1)];
    log.push(text);
    let body = if status.starts_with("200") {
        // The plugin believes the response; the store reads the token.
        let ends = now() + seconds.abs();
        serde_json::json!({"access_token": token(seconds), "expires_on": ends.to_string()})
    } else {
        serde_json::json!({"error": "invalid_client", "error_description": "AADSTS7000215: wrong secret"})
    };
    let body = body.to_string();
    write!(
        &connection,
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
}

fn read_by(options: &[(&str, &str)]) -> Result<Vec<u8>> {
    let all = [
        &[("ca_file", &*TLS.certificate), ("auth", "entra"), ("retry_timeout_ms", "200")],
        options,
    ]
    .concat();
    let az = plugin(TLS.azurite.endpoint(), &all);
    let name = format!("az://{ACCOUNT}/entra/k");
    read(&az, &name)?;
    read(&az, &name)
}

const APPLICATION: [(&str, &str); 3] =
    [("tenant_id", "my-tenant"), ("client_id", "my client"), ("client_secret", "se&same")];

#[test]
fn each_source_is_queried_once_as_documented() {
    let service = Service::new("200 OK", &[3600]);
    let url = &*service.url;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "assertion\n").unwrap();
    let file = file.path().to_str().unwrap();
    let application = [&APPLICATION[..], &[("authority_host", url)]].concat();
    let workload =
        [&APPLICATION[..2], &[("authority_host", url), ("federated_token_file", file)]].concat();
    let identity = format!("{url}/msi/token");
    let scope = "grant_type=client_credentials&scope=https://storage.azure.com/.default";
    for (options, parts) in [
        (
            application,
            vec![
                "POST /my-tenant/oauth2/v2.0/token HTTP",
                scope,
                "&client_id=my%20client&client_secret=se%26same",
            ],
        ),
        (
            workload,
            vec![
                "POST /my-tenant/oauth2/v2.0/token HTTP",
                scope,
                "&client_assertion=assertion",
                "jwt%2Dbearer",
            ],
        ),
        (
            vec![("identity_endpoint", &*identity), ("identity_header", "sesame")],
            vec![
                "GET /msi/token?api-version=2019-08-01&resource=https://storage.azure.com HTTP",
                "x-identity-header: sesame",
            ],
        ),
        (
            vec![("imds_endpoint", url), ("client_id", "me")],
            vec![
                "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://storage.azure.com&client_id=me HTTP",
                "metadata: true",
            ],
        ),
    ] {
        service.log.lock().unwrap().clear();
        assert_eq!(read_by(&options).unwrap(), b"bytes", "{options:?}");
        let log = service.log();
        assert_eq!(log.len(), 1, "one token for all requests: {log:?}");
        for part in parts {
            assert!(log[0].contains(part), "{part} is not in {}", log[0]);
        }
    }
}

#[test]
fn a_token_that_ends_soon_is_used_for_a_while() {
    let service = Service::new("200 OK", &[100]);
    let options = [&APPLICATION[..], &[("authority_host", &*service.url)]].concat();
    assert_eq!(read_by(&options).unwrap(), b"bytes");
    assert_eq!(service.log().len(), 1, "{:?}", service.log());
}

#[test]
fn a_token_that_the_store_refuses_is_replaced_once() {
    let service = Service::new("200 OK", &[3600]);
    // Azure's response to a token that was withdrawn. Without TLS Azurite then accepts no token at all: 403.
    let proxy = Proxy::new(AZURITE.endpoint());
    proxy.fault(0, 1, Fault::Unauthorized);
    let at = endpoint(&proxy.endpoint());
    let options =
        [&APPLICATION[..], &[("authority_host", &*service.url), ("blob_endpoint", &*at)]].concat();
    let error = read_by(&options).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
    assert_eq!((proxy.log().len(), service.log().len()), (2, 2));
}

#[test]
fn refusals_are_reported_without_secrets() {
    let service = Service::new("401 Unauthorized", &[1]);
    let options = [&APPLICATION[..], &[("authority_host", &*service.url)]].concat();
    let error = read_by(&options).unwrap_err();
    let text = format!("{error:#} {error:?}");
    assert_eq!(error.code(), Code::Unauthenticated, "{text}");
    for part in ["AADSTS7000215: wrong secret", "no token for the application of AZURE_CLIENT_ID"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("same") && !text.contains("client_secret="), "{text}");
    // No TLS, no token.
    let at = endpoint("http://store.example.com");
    let error = read_by(&[&options[..], &[("blob_endpoint", &at)]].concat()).unwrap_err();
    assert!(
        error.message().contains("is not sent to http://store.example.com without TLS"),
        "{error:#}"
    );
}

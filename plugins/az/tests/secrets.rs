//! Where secrets go, what of them is shown, and that renewed ones are read again: with a server that echoes what it gets.

use crate::common::read;
use az::{Azure, BlobFilesystem};
use azurite::KEY;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use tf_fs_plugin::prelude::*;

const SAS: &str = "sv=2022&sp=rl&sig=planted%2Bsas%3D";

/// A server that answers requests by `answer`: status, further headers and body.
struct Server {
    url: String,
    /// The head of each request.
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answer: impl Fn(&str) -> (u16, &'static str, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/acc", listener.local_addr().unwrap());
        let (log, answer) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(answer));
        let shared = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut writer = stream.try_clone().unwrap();
                    let mut reader = BufReader::new(stream);
                    loop {
                        let lines = reader.by_ref().lines().map_while(Result::ok);
                        let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                        if head.is_empty() {
                            return;
                        }
                        let sent =
                            head.iter().find_map(|line| line.strip_prefix("content-length: "));
                        let sent = sent.map_or(0, |length| length.parse().unwrap());
                        reader.read_exact(&mut vec![0; sent]).unwrap();
                        let head = head.join("\n");
                        let (status, headers, body) = answer(&head);
                        log.lock().unwrap().push(head.clone());
                        let length = body.len();
                        let body = if head.starts_with("HEAD") { "" } else { &*body };
                        let _ = write!(
                            writer,
                            "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}"
                        );
                    }
                });
            }
        });
        Self { url, log }
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

/// Refuses all, and writes the request into the error as a gateway might, encoded and not.
fn echo(head: &str) -> (u16, &'static str, String) {
    let decoded = head.replace("%2B", "+").replace("%3D", "=");
    let twice = head.replace('%', "%25");
    let message = format!("{head} {decoded} {twice}").replace('\n', " ").replace('&', "&amp;");
    let body =
        format!("<Error><Code>AuthenticationFailed</Code><Message>{message}</Message></Error>");
    (403, "x-ms-error-code: AuthenticationFailed\r\n", body)
}

fn plugin(options: &[(&str, &str)]) -> BlobFilesystem {
    let all = [&[("retry_timeout_ms", "0")], options].concat();
    BlobFilesystem::new_with(Azure::with(&all).expect("the options are accepted"))
}

/// Returns the errors of one operation of each kind.
fn errors(az: &BlobFilesystem) -> String {
    let uri = |key: &str| format!("az://acc/c/{key}");
    let (from, to) = (uri("a"), uri("b"));
    let write = || {
        let mut file = az.new_writable_file(Uri::new(to.as_bytes()))?;
        file.append(b"x")?;
        file.close()
    };
    let all = [
        read(az, &from).map(drop),
        az.get_children(Uri::new(uri("").as_bytes())).map(drop),
        az.copy_file(Uri::new(from.as_bytes()), Uri::new(to.as_bytes())),
        az.delete_file(Uri::new(from.as_bytes())),
        write(),
    ];
    let all = all.map(|outcome: Result<()>| {
        let error = outcome.expect_err("all is refused");
        assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
        format!("{error:#} {error:?}")
    });
    all.join("\n")
}

#[test]
fn a_sas_is_sent_and_not_shown() {
    let server = Server::new(echo);
    let shown = errors(&plugin(&[("blob_endpoint", &server.url), ("sas_token", SAS)]));
    assert!(shown.contains("** redacted **") && !shown.contains("planted"), "{shown}");
    for head in server.log() {
        assert!(head.contains("sig=planted%2Bsas%3D"), "{head}");
    }
}

#[test]
fn a_key_signs_and_is_not_sent() {
    let server = Server::new(echo);
    let shown = errors(&plugin(&[("blob_endpoint", &server.url), ("account_key", KEY)]));
    assert!(!shown.contains(&KEY[..20]), "{shown}");
    for head in server.log() {
        assert!(head.contains("SharedKey acc:") && !head.contains(&KEY[..20]), "{head}");
        let signature = head.split_once("SharedKey acc:").unwrap().1.split('\n').next().unwrap();
        assert!(!shown.contains(signature), "{shown}");
    }
}

const CHILD: &str = "AZ_RENEWAL_CHILD";

/// Another program writes a new SAS into the settings file while a process has the old one.
#[test]
fn a_sas_that_is_renewed_is_read_again() {
    if std::env::var_os(CHILD).is_some() {
        let az = BlobFilesystem::new_with(Azure::default());
        assert_eq!(read(&az, "az://acc/c/k").unwrap(), b"bytes");
        assert_eq!(read(&az, "az://acc/c/k").unwrap(), b"bytes");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("az.toml");
    let path = file.clone();
    let write = move |url: &str, sas: &str| {
        let text =
            format!("account = \"acc\"\nblob_endpoint = \"{url}\"\nsas_token = \"sig={sas}\"\n");
        std::fs::write(&path, text).unwrap();
    };
    let (again, url) = (write.clone(), Arc::new(Mutex::new(String::new())));
    let shared = Arc::clone(&url);
    let served = Mutex::new(0);
    let server = Server::new(move |head| {
        let mut served = served.lock().unwrap();
        if *served > 0 && head.contains("sig=planted-old") {
            again(&shared.lock().unwrap(), "planted-new");
            return echo(head);
        }
        *served += 1;
        let headers = "content-range: bytes 0-4/5\r\netag: \"e\"\r\n";
        (206, headers, "bytes".to_owned())
    });
    *url.lock().unwrap() = server.url.clone();
    write(&server.url, "planted-old");
    let name = "secrets::a_sas_that_is_renewed_is_read_again";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("TF_AZ_CONFIG", &file)
        .env("TF_AZ_RETRY_TIMEOUT_MS", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{text}\n{:?}", server.log());
    assert!(server.log().last().unwrap().contains("sig=planted-new"), "{:?}", server.log());
}

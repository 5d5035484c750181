//! Settings from every source, and what they do: endpoints, regions, TLS, proxies.

use s3_server::{Options, Tls};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tf_fs_plugin::{Code, FilesystemOption, OptionValues};
use tf_plugin_s3_tests::fake::Fake;
use tf_plugin_s3_tests::probe::{Probe, is_child, probe};
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, host};

/// A file of the test's own, gone with the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(content: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("s3-config-{}-{number}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn server(options: Options) -> Store {
    let store = Store::hidden("config", Options { fast: true, threads: 1, ..options });
    store.put("k", "content");
    store
}

/// A store with one object, of which this process's plugin knows nothing.
fn store() -> Store {
    server(Options::default())
}

/// Writes an object into another bucket of the store.
fn put(store: &s3_server::Handle, bucket: &str, key: &str, content: &'static str) {
    store.put(bucket, key, content);
}

fn read(test: &str, store: &Store, change: &[(&str, Option<&str>)]) -> Probe {
    probe(test, &store.uri("k"), store, change)
}

fn option(name: &str, value: &str) -> FilesystemOption {
    FilesystemOption::new(name, OptionValues::Buffer(vec![value.into()]))
}

#[test]
fn options_are_set_and_shown() {
    let fs = host().filesystem("s3").unwrap();
    let value = |key: &str| fs.get_filesystem_configuration_option(key).map(|option| option.values);
    fs.set_filesystem_configuration(&[
        FilesystemOption::new("bucket.shown.read_part_bytes", OptionValues::Int(vec![1 << 20])),
        option("bucket.shown.region", "eu-west-3"),
        option("bucket.shown.secret_access_key", "planted"),
        option("bucket.shown.access_key_id", "planted"),
    ])
    .unwrap();
    assert_eq!(value("bucket.shown.read_part_bytes").unwrap(), OptionValues::Int(vec![1 << 20]));
    assert_eq!(
        value("bucket.shown.region").unwrap(),
        OptionValues::Buffer(vec!["eu-west-3".into()])
    );
    assert_eq!(value("bucket.shown.secret_access_key").unwrap(), OptionValues::Buffer(vec![]));
    assert_eq!(value("bucket.other.region").unwrap_err().code(), Code::NotFound);
    assert!(matches!(value("read_part_bytes").unwrap(), OptionValues::Int(_)));
    let keys = fs.get_filesystem_configuration_keys().unwrap();
    assert!(
        keys.contains(&"memory_budget_bytes".to_owned())
            && keys.contains(&"bucket.shown.region".to_owned())
    );
    for option in fs.get_filesystem_configuration().unwrap() {
        assert!(!option.description.is_empty(), "{}", option.name);
        assert!(!format!("{option:?}").contains("planted"));
    }
    fs.set_filesystem_configuration_option(&option("bucket.shown.region", "eu-west-4")).unwrap();
    assert_eq!(
        value("bucket.shown.region").unwrap(),
        OptionValues::Buffer(vec!["eu-west-4".into()])
    );
}

#[test]
fn wrong_options_change_nothing() {
    let fs = host().filesystem("s3").unwrap();
    let real = |name: &str| FilesystemOption::new(name, OptionValues::Real(vec![1.5]));
    for (wrong, code) in [
        (option("bucket.wrong.no_such_key", "1"), Code::NotFound),
        (option("bucket.wrong.max_attempts", "junk"), Code::InvalidArgument),
        (option("bucket.wrong.max_attempts", "-1"), Code::InvalidArgument),
        (option("bucket.wrong.threads", "1"), Code::InvalidArgument),
        (option("bucket.wrong.endpoint_url", "ftp://x"), Code::InvalidArgument),
        (option("bucket.wrong.ca_file", "/nonexistent"), Code::InvalidArgument),
        (real("bucket.wrong.max_attempts"), Code::InvalidArgument),
        (option("bucket.wrong.access_key_id", "without-the-secret"), Code::InvalidArgument),
    ] {
        let good = option("bucket.wrong.region", "eu-west-3");
        let error = fs.set_filesystem_configuration(&[good, wrong.clone()]).unwrap_err();
        assert_eq!(error.code(), code, "{wrong:?}: {error}");
        assert!(error.message().contains("wrong"), "{error}");
        let region = fs.get_filesystem_configuration_option("bucket.wrong.region");
        assert_eq!(region.unwrap_err().code(), Code::NotFound, "all or nothing");
    }
}

#[test]
fn every_name_of_the_endpoint_works() {
    if is_child() {
        return;
    }
    let store = store();
    let url = store.endpoint();
    let bare = url.strip_prefix("http://").unwrap().to_owned();
    let none = ("AWS_ENDPOINT_URL", None);
    for change in [
        vec![],
        vec![none, ("AWS_ENDPOINT_URL_S3", Some(&*url))],
        vec![none, ("TF_S3_ENDPOINT_URL", Some(&*url))],
        vec![none, ("S3_ENDPOINT", Some(&*url))],
        vec![none, ("S3_ENDPOINT", Some(&*bare)), ("S3_USE_HTTPS", Some("0"))],
        vec![
            ("AWS_ENDPOINT_URL", Some("http://127.0.0.1:9")),
            ("AWS_ENDPOINT_URL_S3", Some(&*url)),
        ],
        vec![("AWS_ENDPOINT_URL", Some("http://127.0.0.1:9")), ("TF_S3_ENDPOINT_URL", Some(&*url))],
    ] {
        let answer = read(this_test!(), &store, &change);
        assert_eq!(answer.content(), "content", "{change:?}");
    }
    let https = [none, ("S3_ENDPOINT", Some(&*bare)), ("AWS_MAX_ATTEMPTS", Some("1"))];
    let answer = read(this_test!(), &store, &https);
    assert!(answer.error("Unavailable").contains(&format!("https://{bare}")), "{answer:?}");
}

#[test]
fn the_file_sets_buckets_and_the_environment_counts_more() {
    if is_child() {
        return;
    }
    let (store, other) = (store(), store());
    let file = Temporary::new(&format!(
        "endpoint_url = \"http://127.0.0.1:9\"\nregion = \"from-file\"\nmax_attempts = 2\n[bucket.\"{}\"]\nendpoint_url = \"{}\"\naccess_key_id = \"planted\"\nsecret_access_key = \"planted\"\n",
        other.bucket(),
        other.endpoint()
    ));
    let change = [("TF_S3_CONFIG", Some(file.path())), ("AWS_MAX_ATTEMPTS", Some("4"))];
    let name = this_test!();
    assert_eq!(read(name, &store, &change).content(), "content", "the environment's endpoint");
    // The bucket's own endpoint and keys, whatever the environment says.
    let text = read(name, &other, &change);
    assert!(text.error("PermissionDenied").contains("InvalidAccessKeyId"), "{text:?}");
    assert_eq!((store.log().len(), other.log().len()), (1, 1));
    let shown = probe(name, "s3:///config.json", &store, &change);
    let text = shown.content().replace("\\n", "\n").replace("\\\"", "\"");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let settings = &json["settings"];
    assert_eq!(settings["max_attempts"]["value"], 4);
    assert_eq!(settings["max_attempts"]["source"], "environment variable AWS_MAX_ATTEMPTS");
    assert_eq!(settings["region"]["source"], "environment variable AWS_REGION");
    assert_eq!(settings["threads"], serde_json::json!({"value": 2, "source": "default"}));
    assert_eq!(settings["profile"], serde_json::json!({"value": null, "source": "not set"}));
    let own = &json["buckets"][other.bucket()];
    assert_eq!(own["endpoint_url"]["source"], format!("settings file {}", file.path()));
    assert_eq!(own["secret_access_key"]["value"], "** redacted **");
    assert!(!text.contains("planted"), "{text}");
}

#[test]
fn a_broken_file_is_an_error() {
    if is_child() {
        return;
    }
    let store = store();
    for (content, part) in [
        ("[bucket", "line 1"),
        ("no_such = 1", "no_such"),
        ("max_attempts = \"x\"", "from 1 to 100"),
    ] {
        let file = Temporary::new(content);
        let answer = read(this_test!(), &store, &[("TF_S3_CONFIG", Some(file.path()))]);
        let text = answer.error("InvalidArgument");
        assert!(text.contains(file.path()) && text.contains(part), "{text}");
    }
    let answer = read(this_test!(), &store, &[("TF_S3_CONFIG", Some("/nonexistent"))]);
    assert!(answer.error("InvalidArgument").contains("TF_S3_CONFIG"), "{answer:?}");
    assert!(store.log().is_empty());
}

#[test]
fn junk_is_warned_of_once() {
    if is_child() {
        return;
    }
    let store = store();
    let change = [
        ("AWS_MAX_ATTEMPTS", Some("many")),
        ("S3_VERIFY_SSL", Some("maybe")),
        ("S3_MULTI_PART_UPLOAD_CHUNK_SIZE", Some("1000")),
        ("TF_S3_READ_PART_BYTE", Some("1")),
    ];
    let uri = store.uri("k");
    let answer = probe(this_test!(), &format!("{uri} {uri}"), &store, &change);
    assert_eq!(answer.content(), "content");
    for line in [
        "AWS_MAX_ATTEMPTS: the value `many` cannot be used; write a number from 1 to 1000000; using 1000000 now",
        "S3_VERIFY_SSL: the value `maybe` cannot be used",
        "S3_MULTI_PART_UPLOAD_CHUNK_SIZE: the value `1000` cannot be used",
        "TF_S3_READ_PART_BYTE is set but is not a setting of s3://; did you mean TF_S3_READ_PART_BYTES?",
    ] {
        assert_eq!(answer.log.matches(line).count(), 1, "{line}\n{}", answer.log);
    }
    let wrong = read(this_test!(), &store, &[("AWS_CA_BUNDLE", Some("/nonexistent"))]);
    assert!(wrong.error("InvalidArgument").contains("AWS_CA_BUNDLE"), "{wrong:?}");
}

#[test]
fn the_profile_names_endpoint_and_region() {
    if is_child() {
        return;
    }
    let store = store();
    store.create_bucket_in("in-the-north", "eu-north-1");
    put(&store, "in-the-north", "k", "north");
    for profile in [
        format!("[default]\nregion = eu-north-1\nendpoint_url = {}\n", store.endpoint()),
        format!(
            "[default]\nregion = eu-north-1\nservices = here\n[services here]\ns3 =\n  endpoint_url = {}\n",
            store.endpoint()
        ),
    ] {
        let file = Temporary::new(&profile);
        let change = [
            ("AWS_ENDPOINT_URL", None),
            ("AWS_REGION", None),
            ("AWS_CONFIG_FILE", Some(file.path())),
        ];
        store.reset_log();
        let answer = probe(this_test!(), "s3://in-the-north/k", &store, &change);
        assert_eq!(answer.content(), "north");
        assert_eq!(store.log().len(), 1, "the region was right at once");
    }
}

#[test]
fn the_region_is_found_once() {
    if is_child() {
        return;
    }
    let store = store();
    store.create_bucket_in("far-away", "ap-south-2");
    put(&store, "far-away", "k", "far");
    let uris = "s3://far-away/k s3://far-away/k";
    let answer = probe(this_test!(), uris, &store, &[("AWS_MAX_ATTEMPTS", Some("2"))]);
    assert_eq!(answer.content(), "far");
    let statuses: Vec<u16> = store.log().iter().map(|request| request.status).collect();
    assert_eq!(statuses[0], 400, "{statuses:?}");
    assert!(
        statuses[1..].iter().all(|&status| status < 300),
        "the region is remembered: {statuses:?}"
    );
}

#[test]
fn certificates() {
    if is_child() {
        return;
    }
    let tls = |tls| server(Options { tls: Some(tls), ..Options::default() });
    let name = this_test!();
    let store = tls(Tls::Valid);
    let ca = Temporary::new(store.ca_pem().unwrap());
    for variable in ["AWS_CA_BUNDLE", "S3_CA_FILE", "TF_S3_CA_FILE", "SSL_CERT_FILE"] {
        assert_eq!(
            read(name, &store, &[(variable, Some(ca.path()))]).content(),
            "content",
            "{variable}"
        );
    }
    let once = ("AWS_MAX_ATTEMPTS", Some("1"));
    let unknown = read(name, &store, &[once]);
    let text = unknown.error("Unavailable");
    assert!(text.contains(&store.endpoint()) && text.contains("certificate"), "{text}");
    // Waiting does not help, so it is not done for long.
    let unknown = read(name, &store, &[]);
    assert!(unknown.error("Unavailable").contains("6 attempts"), "{unknown:?}");
    assert!(unknown.took < Duration::from_secs(20), "{unknown:?}");
    // A bundle replaces the system's certificates, as for all AWS tools.
    let other = tls(Tls::Valid);
    let others = Temporary::new(other.ca_pem().unwrap());
    let both = [once, ("SSL_CERT_FILE", Some(ca.path())), ("AWS_CA_BUNDLE", Some(others.path()))];
    let replaced = read(name, &store, &both);
    assert!(replaced.error("Unavailable").contains("certificate"), "{replaced:?}");
    assert_eq!(read(name, &other, &both).content(), "content");
    // The profile may name one, for which the variable counts before it.
    let config = Temporary::new(&format!("[default]\nca_bundle = {}\n", ca.path()));
    let profile = ("AWS_CONFIG_FILE", Some(config.path()));
    assert_eq!(read(name, &store, &[profile]).content(), "content");
    let variable = read(name, &store, &[once, profile, ("AWS_CA_BUNDLE", Some(others.path()))]);
    assert!(variable.error("Unavailable").contains("certificate"), "{variable:?}");
    let off = read(name, &store, &[("S3_VERIFY_SSL", Some("0"))]);
    assert_eq!(off.content(), "content");
    assert!(off.log.contains("any certificate is accepted"), "{}", off.log);
    for kind in [Tls::Expired, Tls::WrongHost] {
        let store = tls(kind);
        let ca = Temporary::new(store.ca_pem().unwrap());
        let answer = read(name, &store, &[once, ("AWS_CA_BUNDLE", Some(ca.path()))]);
        assert!(answer.error("Unavailable").contains("certificate"), "{kind:?}: {answer:?}");
        assert!(store.log().is_empty(), "nothing was sent to a stranger");
    }
    let junk = Temporary::new("no certificate");
    let answer = read(name, &store, &[("AWS_CA_BUNDLE", Some(junk.path()))]);
    assert!(answer.error("InvalidArgument").contains("it holds no certificate"), "{answer:?}");
}

#[test]
fn proxies() {
    if is_child() {
        return;
    }
    let store = store();
    let proxy = Fake::start(|_| Some((407, String::new())));
    let url = format!("http://user:planted@{}", proxy.url().strip_prefix("http://").unwrap());
    let through = read(this_test!(), &store, &[("HTTP_PROXY", Some(&url))]);
    let text = through.error("Unauthenticated");
    assert!(text.contains("the proxy requires credentials"), "{text}");
    assert!(!text.contains("planted") && !through.log.contains("planted"), "{through:?}");
    let asked = proxy.asked();
    assert!(
        asked[0].line.starts_with(&format!("GET {}/{}/k", store.endpoint(), store.bucket())),
        "{asked:?}"
    );
    assert!(asked[0].header("proxy-authorization").is_some(), "{asked:?}");
    assert!(store.log().is_empty());
    let past =
        read(this_test!(), &store, &[("HTTP_PROXY", Some(&url)), ("NO_PROXY", Some("127.0.0.1"))]);
    assert_eq!(past.content(), "content");
    let unverified =
        read(this_test!(), &store, &[("HTTP_PROXY", Some(&url)), ("S3_VERIFY_SSL", Some("0"))]);
    assert!(unverified.error("Unauthenticated").contains("the proxy requires"), "{unverified:?}");
}

/// A proxy that opens tunnels for clients that know the password. Its address, and its requests.
fn tunnel() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || serve_tunnel(client, &log));
        }
    });
    (address, asked)
}

fn serve_tunnel(mut client: TcpStream, log: &Mutex<Vec<String>>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    // user:planted
    let is_known =
        head.to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpwbgfudgvk");
    log.lock().unwrap().push(head);
    let Ok(server) = TcpStream::connect(target) else { return };
    if !is_known {
        let _ = client.write_all(b"HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let _ = std::io::copy(&mut &server, &mut client);
}

#[test]
fn tunnels() {
    if is_child() {
        return;
    }
    let store = server(Options { tls: Some(Tls::Valid), ..Options::default() });
    let ca = Temporary::new(store.ca_pem().unwrap());
    let ca = ("AWS_CA_BUNDLE", Some(ca.path()));
    let (address, asked) = tunnel();
    let with_password = format!("http://user:planted@{address}");
    for trust in [ca, ("S3_VERIFY_SSL", Some("0"))] {
        let through = read(this_test!(), &store, &[trust, ("HTTPS_PROXY", Some(&with_password))]);
        assert_eq!(through.content(), "content");
        assert!(!through.log.contains("planted"), "{through:?}");
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        let connect = format!("CONNECT {} HTTP/1.1\r\n", store.endpoint().replace("https://", ""));
        assert!(!asked.is_empty(), "past the proxy");
        assert!(asked.iter().all(|head| head.starts_with(&connect)), "{asked:?}");
    }
    let without = format!("http://{address}");
    let refused = read(this_test!(), &store, &[ca, ("HTTPS_PROXY", Some(&without))]);
    assert!(refused.error("Unauthenticated").contains("put them into HTTPS_PROXY"), "{refused:?}");
    let before = asked.lock().unwrap().len();
    let socks = format!("socks5://{address}");
    let refused = read(this_test!(), &store, &[ca, ("HTTPS_PROXY", Some(&socks))]);
    let text = refused.error("Unavailable");
    assert!(text.contains("socks5://: proxies with this scheme are not supported; set"), "{text}");
    assert_eq!(asked.lock().unwrap().len(), before, "asked all the same");
    let stranger = read(this_test!(), &store, &[("HTTPS_PROXY", Some(&with_password))]);
    assert!(stranger.error("Unavailable").contains("certificate"), "{stranger:?}");
}

#[test]
fn other_settings_end_what_is_remembered() {
    let ttl = ("listing_ttl_ms", "3600000");
    let [store, other] = ["forget", "remember"].map(|name| Store::with(name, &[ttl]));
    for store in [&store, &other] {
        store.put("d/k", "x");
        host().get_children(store.uri("d")).unwrap();
        host().path_exists(store.uri("d/k")).unwrap();
        assert!(store.delete(store.bucket(), "d/k"));
        host().path_exists(store.uri("d/k")).expect("it is remembered");
    }
    store.set(&[ttl, ("stall_timeout_ms", "9000")]);
    assert_eq!(host().path_exists(store.uri("d/k")).unwrap_err().code(), Code::NotFound);
    host().path_exists(other.uri("d/k")).expect("nothing has changed there");
}

#[test]
fn whoever_asks_pays_where_that_is_set() {
    let store = Store::with("payer", &[("requester_pays", "1")]);
    store.put("k", "x");
    host().path_exists(store.uri("k")).unwrap();
    host().read_file(store.uri("k")).unwrap();
    host().write_file(store.uri("new"), b"y").unwrap();
    let log = store.log();
    assert!(log.len() >= 3, "{log:?}");
    for request in log {
        assert_eq!(
            request.headers.get("x-amz-request-payer").map(String::as_str),
            Some("requester"),
            "{request:?}"
        );
    }
}

#[test]
fn nothing_is_read_before_the_first_use() {
    if is_child() {
        return;
    }
    // Junk that would be an error, in a process that registers the plugin and uses no name of it.
    let store = store();
    let answer = probe(this_test!(), "s3a://", &store, &[("AWS_CA_BUNDLE", Some("/nonexistent"))]);
    assert!(!answer.log.contains("AWS_CA_BUNDLE"), "{}", answer.log);
}

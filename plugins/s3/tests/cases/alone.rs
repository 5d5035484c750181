//! Other hosts, secrets, and what many failures leave behind.
//!
//! Each test runs again in a process of its own, since what it looks at belongs to a process.

use s3_server::{At, Credentials, Fault, Options, Reply, What, When};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tf_fs_plugin::Error;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::faults::kinds;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{IMPATIENT, Store, content, eventually, host, logs};

#[test]
fn a_redirect_takes_no_credentials_elsewhere() {
    alone(this_test!(), || {
        let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = elsewhere.local_addr().expect("an address");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listening = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in elsewhere.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
                let mut bytes = [0; 4096];
                let n = stream.read(&mut bytes).unwrap_or(0);
                listening
                    .lock()
                    .expect("no panic")
                    .push(String::from_utf8_lossy(&bytes[..n]).into_owned());
            }
        });
        let store = Store::with("redirect", IMPATIENT);
        let file = || store.put("f", content(1_000, 1));
        file();
        let operations: [(&str, Run<'_>); 6] = [
            ("read", &|| host().read_file(store.uri("f")).map(drop)),
            ("stat", &|| host().stat(store.uri("f")).map(drop)),
            ("list", &|| host().get_children(store.uri("")).map(drop)),
            ("write", &|| host().write_file(store.uri("g"), "x")),
            ("copy", &|| host().copy_file(store.uri("f"), store.uri("g"))),
            ("delete", &|| host().delete_file(store.uri("f"))),
        ];
        for status in [301, 302, 303, 307, 308] {
            for region in [false, true] {
                for (name, run) in operations {
                    file();
                    let location = format!("http://{address}/{}/f", store.bucket());
                    let mut reply =
                        Reply::new(status, "TemporaryRedirect").header("location", location);
                    if region {
                        reply = reply.header("x-amz-bucket-region", "eu-west-1");
                    }
                    let fault = store.inject(Fault::new(When::All, What::Status(reply)));
                    let start = Instant::now();
                    let answer = run();
                    assert!(store.met(fault) > 0, "{name}: no request");
                    store.clear_faults();
                    assert!(answer.is_err(), "{name}: {status} as if there had been none");
                    assert!(
                        start.elapsed() < Duration::from_secs(6),
                        "{name}: {status}: {:?}",
                        start.elapsed()
                    );
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        let heard = heard.lock().expect("no panic");
        assert!(heard.is_empty(), "another host was asked: {heard:?}");
    });
}

/// An operation.
type Run<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Operations of all kinds, with their errors.
fn everything(store: &Store) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut note = |answer: Result<(), Error>| errors.extend(answer.err());
    let host = host();
    note(host.read_file(store.uri("f")).map(drop));
    note(host.stat(store.uri("f")).map(drop));
    note(host.get_children(store.uri("d")).map(drop));
    note(host.get_matching_paths(store.uri("d/*")).map(drop));
    note(host.write_file(store.uri("g"), "x"));
    note((|| {
        let mut file = host.new_writable_file(store.uri("h"))?;
        file.append(&content(11 << 20, 1))?;
        file.close()
    })());
    note((|| {
        let mut file = host.new_appendable_file(store.uri("f"))?;
        file.append(b"x")?;
        file.close()
    })());
    note(host.copy_file(store.uri("f"), store.uri("c")));
    note(host.rename_file(store.uri("c"), store.uri("e")));
    note(host.create_dir(store.uri("new")));
    note(host.delete_file(store.uri("e")));
    note(host.delete_recursively(store.uri("d")).map_err(|left| left.error));
    errors
}

fn fill(store: &Store) {
    store.put("f", content(100_000, 1));
    store.put("d/a", "1");
    store.put("d/b", "2");
    store.delete(store.bucket(), "new/");
}

#[test]
fn secrets_are_shown_nowhere() {
    const SECRET: &str = "PlantedSecretKey/0123456789+abcdefghijk";
    const TOKEN: &str = "PlantedSessionToken//0123456789==";
    alone(this_test!(), || {
        logs::keep();
        let stores: Vec<_> = (0..8)
            .map(|_| {
                let options = Options {
                    secret_key: SECRET.into(),
                    fast: true,
                    threads: 1,
                    ..Options::default()
                };
                let store = Store::start("secrets", options, IMPATIENT);
                store.set(&[
                    ("session_token", TOKEN),
                    ("write_part_bytes", "5MiB"),
                    ("stall_timeout_ms", "200"),
                ]);
                let known = Credentials::new(store.access_key(), SECRET);
                store.set_credentials([known.session_token(TOKEN)]);
                store
            })
            .collect();
        // A fault at a time in each store; most of it is waiting.
        let (kinds, next, texts) = (kinds(), AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for store in &stores {
                scope.spawn(|| {
                    while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
                        fill(store);
                        store.inject(Fault::new(When::Every(2), kind.what.clone()));
                        let errors = everything(store);
                        store.clear_faults();
                        let said = errors.iter().flat_map(|e| [format!("{e:#}"), format!("{e:?}")]);
                        texts.lock().expect("no panic").extend(said);
                    }
                });
            }
        });
        let (store, mut texts) = (&stores[0], texts.into_inner().expect("no panic"));
        assert!(texts.len() > 200, "only {} errors", texts.len());
        // Credentials that are wrong, without a fault.
        store.set_credentials([Credentials::new("other", "other")]);
        texts.extend(everything(store).into_iter().map(|error| format!("{error:#} {error:?}")));
        let fs = host().filesystem("s3").expect("registered");
        texts.extend(
            fs.get_filesystem_configuration()
                .expect("options")
                .iter()
                .map(|option| format!("{option:?}")),
        );
        for name in ["s3:///config.json", "s3:///metrics.json"] {
            texts.push(String::from_utf8(host().read_file(name).expect("readable")).expect("text"));
        }
        let logged = logs::lines();
        assert!(!logged.is_empty(), "nothing is logged");
        texts.extend(logged);
        for text in &texts {
            // As it is, and as it would stand in a URL.
            for planted in [SECRET, TOKEN, "PlantedSecretKey", "PlantedSessionToken"] {
                assert!(!text.contains(planted), "a secret is in: {text}");
            }
        }
    });
}

/// Threads of this process, and the plugin's open connections to the stores.
fn resources(stores: &[(Store, What)]) -> (usize, usize) {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc").count();
    // ":1F90", the peer's port, in lines of which the tenth field is the inode of the socket; 0: nobody holds it any
    // more, and the kernel waits for the other end, which a server that stalls never closes.
    let ports = stores.iter().map(|(store, _)| format!(":{:04X}", store.address().port()));
    let ports: Vec<_> = ports.collect();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc");
    let is_open = |line: &&str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_ours = || ports.iter().any(|port| fields[2].ends_with(port));
        fields.len() > 9 && is_ours() && fields[9] != "0"
    };
    (threads, table.lines().filter(is_open).count())
}

/// All numbers of the metrics, by their path.
fn metrics() -> BTreeMap<String, f64> {
    fn walk(path: &str, value: &serde_json::Value, numbers: &mut BTreeMap<String, f64>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    walk(&format!("{path}/{key}"), value, numbers);
                }
            }
            serde_json::Value::Number(number) => {
                numbers.insert(path.to_owned(), number.as_f64().unwrap_or(0.0));
            }
            _ => {}
        }
    }
    let text = host().read_file("s3:///metrics.json").expect("readable");
    let mut numbers = BTreeMap::new();
    walk("", &serde_json::from_slice(&text).expect("JSON"), &mut numbers);
    numbers
}

#[test]
fn failures_leave_nothing_behind() {
    alone(this_test!(), || {
        // A store for each, since most of it is waiting.
        let faults = [
            What::Reset,
            What::Stall,
            What::HalfClose,
            What::ResetBody(At::Middle),
            What::StallBody(At::Middle),
            What::status(503, "SlowDown"),
            What::LoseAck,
            What::CutBody(At::Last),
        ];
        let stores = faults.map(|fault| {
            let store = Store::with("leaks", IMPATIENT);
            store.set(&[
                ("read_part_bytes", "65536"),
                ("write_part_bytes", "5MiB"),
                ("stall_timeout_ms", "200"),
            ]);
            (store, fault)
        });
        let round = || {
            std::thread::scope(|scope| {
                for (store, fault) in &stores {
                    scope.spawn(|| {
                        fill(store);
                        store.inject(Fault::new(When::Every(2), fault.clone()));
                        drop(everything(store));
                        store.clear_faults();
                    });
                }
            });
            std::thread::sleep(Duration::from_millis(500));
            resources(&stores)
        };
        let rounds = [round(), round()];
        assert!(rounds[1].0 <= rounds[0].0, "threads and connections: {rounds:?}");
        // Idle connections are kept for some seconds, broken ones are not.
        assert!(
            eventually(Duration::from_secs(40), || resources(&stores).1 == 0),
            "threads and connections: {rounds:?}, and later {:?}",
            resources(&stores)
        );
        let free = || {
            let numbers = metrics();
            let used: Vec<_> = numbers
                .iter()
                .filter(|(name, _)| name.contains("budget") && name.contains("use"))
                .collect();
            assert!(!used.is_empty(), "no budget in {:?}", numbers.keys());
            used.iter().all(|(_, bytes)| **bytes == 0.0)
        };
        assert!(eventually(Duration::from_secs(5), free), "memory is still held: {:?}", metrics());
        // Uploads stay of which the store's response, with their names, was lost: `sweeps/faults/writing` has which.
    });
}

//! What a failure says and which code it has: the contract, through the C tables.

use s3_server::{Fault, Options, Reply, What, When};
use std::time::{Duration, Instant};
use tf_fs_plugin::{Code, Error, FilesystemOption, OptionValues};
use tf_plugin_s3_tests::{IMPATIENT, Store, host};

fn store(topic: &str) -> Store {
    let store = Store::with(topic, IMPATIENT);
    store.put("k", "content");
    store
}

/// What each kind of operation returns when every request meets this.
fn failures(store: &Store, what: &What) -> Vec<(&'static str, Error)> {
    store.clear_faults();
    store.inject(Fault::new(When::All, what.clone()));
    let host = host();
    let mut failures = Vec::new();
    let mut note = |operation, result: Result<(), Error>| {
        if let Err(error) = result {
            failures.push((operation, error));
        }
    };
    note("read", host.read_file(store.uri("k")).map(drop));
    note("write", host.write_file(store.uri("new"), b"x"));
    note("stat", host.stat(store.uri("k")).map(drop));
    note("list", host.get_children(store.uri("")).map(drop));
    note("copy", host.copy_file(store.uri("k"), store.uri("copy")));
    note("delete", host.delete_file(store.uri("k")));
    store.clear_faults();
    failures
}

#[test]
fn answers_have_the_codes_of_the_contract() {
    let store = store("codes");
    let ours = Duration::from_secs(10);
    for (reply, code, attempts) in [
        (Reply::new(403, "AccessDenied"), Code::PermissionDenied, 1),
        (Reply::new(403, "SignatureDoesNotMatch"), Code::PermissionDenied, 1),
        (Reply::new(403, "RequestTimeTooSkewed"), Code::PermissionDenied, 1),
        (Reply::new(404, "NoSuchBucket"), Code::NotFound, 1),
        (Reply::new(401, "Unauthorized"), Code::Unauthenticated, 1),
        (Reply::new(400, "ExpiredToken"), Code::Unauthenticated, 0),
        (Reply::new(400, "InvalidRequest"), Code::InvalidArgument, 1),
        (Reply::new(429, "TooManyRequests"), Code::Unavailable, 3),
        (Reply::new(503, "SlowDown"), Code::Unavailable, 3),
        (Reply::new(500, "InternalError"), Code::Unavailable, 3),
        (Reply::new(502, "BadGateway"), Code::Unavailable, 3),
        (Reply::new(504, "GatewayTimeout"), Code::Unavailable, 3),
        (Reply::new(501, "NotImplemented"), Code::Unimplemented, 1),
        (Reply::new(507, "XMinioStorageFull"), Code::ResourceExhausted, 1),
    ] {
        let name = format!("{reply:?}");
        let start = Instant::now();
        let failures = failures(&store, &What::Status(reply));
        assert_eq!(failures.len(), 6, "{name}: {failures:?}");
        assert!(start.elapsed() < ours, "{name}");
        for (operation, error) in failures {
            let text = format!("{error:#}");
            assert_eq!(error.code(), code, "{name}: {operation}: {text}");
            assert!(
                text.contains(&store.uri("")[..store.uri("").len() - 1]),
                "{name}: {operation}: {text}"
            );
            assert!(text.contains("HTTP "), "{name}: {operation}: {text}");
            match attempts {
                0 => assert!(text.contains("attempt"), "{name}: {operation}: {text}"),
                1 => assert!(text.contains("1 attempt"), "{name}: {operation}: {text}"),
                n => {
                    assert!(text.contains(&format!("{n} attempts")), "{name}: {operation}: {text}")
                }
            }
        }
    }
}

#[test]
fn a_missing_bucket_is_named() {
    let store = store("bucketless");
    let uri = store.uri("k").replace(store.bucket(), "gone-by-now");
    let fs = host().filesystem("s3").unwrap();
    let endpoint = store.endpoint();
    let options = [
        ("endpoint_url", endpoint.as_str()),
        ("access_key_id", store.access_key()),
        ("secret_access_key", store.secret_key()),
        ("region", "us-east-1"),
    ]
    .map(|(key, value)| {
        let value = OptionValues::Buffer(vec![value.into()]);
        FilesystemOption::new(format!("bucket.gone-by-now.{key}"), value)
    });
    fs.set_filesystem_configuration(&options).unwrap();
    for error in [
        host().read_file(&uri).unwrap_err(),
        host().stat(&uri).unwrap_err(),
        host().write_file(&uri, b"x").unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::NotFound);
        assert!(error.message().contains("there is no bucket `gone-by-now`"), "{error}");
    }
}

#[test]
fn a_region_that_leads_nowhere_is_told() {
    for status in [301, 307, 400] {
        let store = store("nowhere");
        // It asks for a region, and refuses that one too.
        for (operation, error) in
            failures(&store, &What::Status(Reply::redirect(status, "ap-south-2")))
        {
            let text = format!("{error:#}");
            assert_eq!(error.code(), Code::FailedPrecondition, "{status}: {operation}: {text}");
            let advice = format!(
                "bucket `{}` is in region ap-south-2; set AWS_REGION=ap-south-2",
                store.bucket()
            );
            assert!(text.contains(&advice), "{status}: {operation}: {text}");
        }
        assert!(store.log().len() < 150, "{status}: {} requests", store.log().len());
        let evil = Reply::redirect(status, "evil.example.com/x");
        for (operation, error) in failures(&store, &What::Status(evil)) {
            let code = if status == 400 { Code::InvalidArgument } else { Code::FailedPrecondition };
            assert_eq!(error.code(), code, "{status}: {operation}: {error:#}");
            assert!(!format!("{error:#}").contains("evil"), "{status}: {operation}: {error:#}");
        }
    }
}

#[test]
fn the_request_is_told() {
    let store = store("told");
    let reply = Reply::new(403, "AccessDenied").message("Ask the owner");
    for (operation, error) in failures(&store, &What::Status(reply)) {
        let text = format!("{error:#}");
        // Some ask by HEAD, whose response has no body.
        for part in ["HTTP 403", "request id ", "access denied"] {
            assert!(text.contains(part), "{operation}: {part}: {text}");
        }
        if matches!(operation, "read" | "write" | "list") {
            assert!(
                text.contains("AccessDenied") && text.contains("Ask the owner"),
                "{operation}: {text}"
            );
        }
    }
}

#[test]
fn clocks_that_differ_are_both_shown() {
    let store = store("skew");
    let reply =
        Reply::new(403, "RequestTimeTooSkewed").header("date", "Sat, 01 Jan 2000 00:00:00 GMT");
    let (_, error) = failures(&store, &What::Status(reply)).remove(0);
    let text = format!("{error:#}");
    assert!(text.contains("the clocks differ too much: here it is "), "{text}");
    assert!(text.contains("at the store "), "{text}");
}

#[test]
fn what_is_refused_for_its_time_is_signed_for_the_stores() {
    type Work<'a> = &'a dyn Fn() -> Result<(), Error>;
    let store = store("clock");
    let host = host();
    // The server knows better each time, and more than eight corrections in a minute are not believed.
    let works: [(&str, Work<'_>); 4] = [
        ("list", &|| host.get_children(store.uri("")).map(drop)),
        ("read", &|| host.read_file(store.uri("k")).map(drop)),
        ("write", &|| host.write_file(store.uri("new"), b"x")),
        ("delete", &|| host.delete_file(store.uri("k"))),
    ];
    for (hour, (name, work)) in works.into_iter().enumerate() {
        let date = format!("Sat, 01 Jan 2000 0{hour}:00:00 GMT");
        let reply = Reply::new(403, "RequestTimeTooSkewed").header("date", date);
        store.inject(Fault::new(When::All, What::Status(reply)).times(1));
        work().unwrap_or_else(|error| panic!("{name}: {error:#}"));
        store.clear_faults();
    }
}

/// An append asks by HEAD first, whose refusal has no body.
#[test]
fn a_refused_head_tells_the_time() {
    let append = |store: &Store, reply: Reply| {
        let refusal = What::Status(reply);
        store.inject(Fault::new(When::All, refusal).operation("HeadObject").times(1));
        host().new_appendable_file(store.uri("k"))?.close()
    };
    let reply = Reply::new(403, "RequestTimeTooSkewed");
    let old = reply.clone().header("date", "Sat, 01 Jan 2000 00:00:00 GMT");
    append(&store("head-clock"), old.clone()).unwrap();
    // What a cache kept says what time it was then.
    let error = append(&store("cached-clock"), old.header("age", "3600")).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
    // Where the clocks are the same, access was denied.
    let error = append(&store("no-clock"), reply).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error:#}");
}

#[test]
fn no_connection_is_unavailable() {
    let store = store("refused");
    // Nobody listens there.
    store.set(&[("endpoint_url", "http://127.0.0.1:9")]);
    let start = Instant::now();
    let error = host().read_file(store.uri("k")).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3));
    let text = format!("{error:#}");
    assert_eq!(error.code(), Code::Unavailable, "{text}");
    for part in [&store.uri("k"), "http://127.0.0.1:9", "Connection refused", "3 attempts"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    store.set(&[("endpoint_url", "http://no-such-host.invalid")]);
    let error = host().stat(store.uri("k")).unwrap_err();
    let text = format!("{error:#}");
    assert_eq!(error.code(), Code::Unavailable, "{text}");
    assert!(text.contains("http://no-such-host.invalid"), "{text}");
}

#[test]
fn no_answer_is_a_deadline() {
    let store = store("stall");
    store.set(&[("stall_timeout_ms", "300")]);
    for (operation, error) in failures(&store, &What::Stall) {
        let text = format!("{error:#}");
        assert_eq!(error.code(), Code::DeadlineExceeded, "{operation}: {text}");
        assert!(text.contains("no progress for 300ms (3 attempts)"), "{operation}: {text}");
    }
}

#[test]
fn a_reset_is_unavailable() {
    let store = store("reset");
    for (operation, error) in failures(&store, &What::Reset) {
        let text = format!("{error:#}");
        assert_eq!(error.code(), Code::Unavailable, "{operation}: {text}");
        assert!(text.contains("3 attempts"), "{operation}: {text}");
    }
}

#[test]
fn what_passes_is_not_seen() {
    let store = store("passes");
    for what in [
        What::Reset,
        What::Stall,
        What::status(503, "SlowDown"),
        What::status(500, "InternalError"),
        What::SlowHead(Duration::from_millis(1)),
        What::CloseIdle,
        What::ResetOnReuse,
    ] {
        store.inject(Fault::new(When::Every(2), what.clone()));
        for _ in 0..4 {
            assert_eq!(host().read_file(store.uri("k")).unwrap(), b"content", "{what:?}");
        }
        store.clear_faults();
    }
}

#[test]
fn a_slow_upload_is_not_a_stalled_one() {
    let store =
        Store::start("slow", Options { fast: true, threads: 1, ..Options::default() }, IMPATIENT);
    // A second for an upload that may stand still for 0.3 s.
    store.shape(s3_server::Shape {
        bytes_per_second_per_connection: Some(3 << 20),
        ..Default::default()
    });
    let content = vec![7; 3 << 20];
    host().write_file(store.uri("k"), &content).unwrap();
    store.shape(s3_server::Shape::default());
    assert_eq!(store.get("k").unwrap(), content);
    assert_eq!(store.counts().get("PutObject"), Some(&1), "{:?}", store.counts());
}

#[test]
fn who_may_not_list_is_not_told_that_a_directory_is_missing() {
    let store = store("nolist");
    store.put("d/file", "content");
    let denied = || What::status(403, "AccessDenied");
    store.inject(Fault::new(When::All, denied()).operation("ListObjectsV2"));
    let host = host();
    assert_eq!(host.stat(store.uri("k")).unwrap().length, 7);
    for name in ["missing", "d"] {
        for (operation, error) in [
            ("stat", host.stat(store.uri(name)).unwrap_err()),
            ("path_exists", host.path_exists(store.uri(name)).unwrap_err()),
        ] {
            let text = format!("{error:#}");
            assert_eq!(error.code(), Code::PermissionDenied, "{operation} of {name}: {text}");
            for part in [&store.uri(name), "s3:ListBucket", "HTTP 403 AccessDenied", "request id "]
            {
                assert!(text.contains(part), "{operation} of {name}: {part}: {text}");
            }
        }
    }
    // An object to be read exists or does not.
    assert_eq!(host.read_file(store.uri("missing")).unwrap_err().code(), Code::NotFound);
    // A store that cannot list has no directories.
    store.clear_faults();
    let cannot = What::status(501, "NotImplemented");
    store.inject(Fault::new(When::All, cannot).operation("ListObjectsV2"));
    assert_eq!(host.stat(store.uri("missing")).unwrap_err().code(), Code::NotFound);
}

#[test]
fn the_first_wait_is_as_set() {
    for operation in ["read", "stat"] {
        let took = |backoff: &str| {
            let settings =
                [("max_attempts", "5"), ("retry_backoff_ms", backoff), ("listing_ttl_ms", "0")];
            let store = Store::with("backoff", &settings);
            store.put("k", "content");
            // Connects.
            host().stat(store.uri("k")).unwrap();
            store.inject(Fault::new(When::All, What::status(429, "TooManyRequests")));
            let start = Instant::now();
            let error = match operation {
                "read" => host().read_file(store.uri("k")).map(drop),
                _ => host().stat(store.uri("k")).map(drop),
            };
            let text = format!("{:#}", error.unwrap_err());
            assert!(text.contains("5 attempts"), "{operation}: {text}");
            start.elapsed()
        };
        // Doubled each time, and at random below that: 3 s on average, and 7.5 ms.
        let (slow, fast) = (took("400"), took("1"));
        assert!(slow > Duration::from_millis(300), "{operation}: {slow:?}");
        assert!(fast < Duration::from_millis(300), "{operation}: {fast:?}");
    }
}

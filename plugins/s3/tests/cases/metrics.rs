//! The metrics, as Python reads them, in a process of their own: the counters are those of a process.

use s3_server::{Fault, What, When};
use serde_json::{Value, json};
use std::time::Duration;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::{IMPATIENT, Store, content, host, this_test};

fn metrics() -> Value {
    let size = host().stat("s3:///metrics.json").unwrap().length;
    let text = host().read_file("s3:///metrics.json").unwrap();
    // TensorFlow queries the size first and reads so much.
    assert_eq!(size, text.len() as u64);
    serde_json::from_slice(&text).unwrap()
}

fn difference(before: &Value, after: &Value, path: &str) -> u64 {
    let number = |value: &Value| value.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    number(after) - number(before)
}

#[test]
fn everything_is_counted() {
    alone(this_test!(), count_everything);
}

fn count_everything() {
    let store = Store::with("metrics", IMPATIENT);
    assert!(host().path_exists("s3:///metrics.json").is_ok());
    let before = metrics();
    let data = content(300_000, 1);
    host().write_file(store.uri("a"), &data).unwrap();
    let written = metrics();
    assert_eq!(difference(&before, &written, "/requests/PutObject/answers/2xx"), 1);
    assert_eq!(difference(&before, &written, "/requests/PutObject/latency_ms/count"), 1);
    assert!(difference(&before, &written, "/bytes_sent") >= 300_000);
    assert_eq!(host().read_file(store.uri("a")).unwrap(), data);
    let read = metrics();
    assert!(difference(&written, &read, "/bytes_received") >= 300_000, "{read:#}");
    assert_eq!(
        difference(&written, &read, "/attempts"),
        u64::try_from(store.log().len()).unwrap() - 1,
        "{read:#}"
    );

    // Two refused, the third served: by the SDK, and by the engine.
    for operation in ["ListObjectsV2", "PutObject", "HeadObject"] {
        let before = metrics();
        let refused = Fault::new(When::All, What::status(503, "SlowDown"));
        store.inject(refused.operation(operation).times(2));
        match operation {
            "PutObject" => host().write_file(store.uri("b"), b"b").unwrap(),
            "HeadObject" => drop(host().new_appendable_file(store.uri("a")).unwrap()),
            _ => drop(host().stat(store.uri("a")).unwrap()),
        }
        store.clear_faults();
        let after = metrics();
        let of = |counter| difference(&before, &after, &format!("/requests/{operation}/{counter}"));
        assert_eq!((of("attempts"), of("retries"), of("answers/5xx")), (3, 2, 2), "{operation}");
        assert_eq!(difference(&before, &after, "/retries"), 2);
    }
    let retried = metrics();

    store.inject(Fault::new(When::All, What::status(503, "SlowDown")));
    let _ = host().stat(store.uri("a")).unwrap_err();
    store.clear_faults();
    store.inject(Fault::new(When::All, What::Stall));
    let _ = host().stat(store.uri("a")).unwrap_err();
    store.clear_faults();
    let failed = metrics();
    assert_eq!(difference(&retried, &failed, "/failed/SlowDown"), 1, "{failed:#}");
    assert_eq!(difference(&retried, &failed, "/failed/timeout"), 1, "{failed:#}");
    assert_eq!(
        difference(&retried, &failed, "/requests/ListObjectsV2/answers/none"),
        3,
        "{failed:#}"
    );
    assert_eq!(failed["memory_budget"], json!({"used_bytes": 0, "limit_bytes": 256 << 20}));

    store.set(&[("write_part_bytes", "5MiB")]);
    let mut file = host().new_writable_file(store.uri("large")).unwrap();
    file.append(&content(6 << 20, 2)).unwrap();
    assert!(
        tf_plugin_s3_tests::eventually(Duration::from_secs(5), || metrics()["open_uploads"] == 1)
    );
    file.close().unwrap();
    assert_eq!(metrics()["open_uploads"], 0);
    let mut file = host().new_writable_file(store.uri("larger")).unwrap();
    file.append(&content(6 << 20, 3)).unwrap();
    drop(file);
    assert!(
        tf_plugin_s3_tests::eventually(Duration::from_secs(5), || metrics()["open_uploads"] == 0)
    );
    assert!(store.open_uploads().is_empty());
    // Gone when it is to be completed, and still gone when it is to be aborted.
    let gone = || Fault::new(When::All, What::status(404, "NoSuchUpload"));
    for operation in ["CompleteMultipartUpload", "AbortMultipartUpload"] {
        store.inject(gone().operation(operation));
    }
    let mut file = host().new_writable_file(store.uri("larger")).unwrap();
    file.append(&content(6 << 20, 4)).unwrap();
    let _ = file.close().unwrap_err();
    drop(file);
    assert!(
        store.log().iter().any(|request| request.faulted && request.operation.starts_with("Abort"))
    );
    assert_eq!(metrics()["open_uploads"], 0);
}

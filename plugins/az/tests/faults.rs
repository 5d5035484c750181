//! A fault at each request of each operation: a retry, or the right error code, and nothing partial is visible.

use crate::blobs::uri;
use crate::common::{AZURITE, Store, content, plugin};
use azurite::{Fault, KEY, Proxy};
use tf_fs_plugin::prelude::*;

const OPTIONS: [(&str, &str); 3] =
    [("account_key", KEY), ("write_part_bytes", "65536"), ("read_part_bytes", "65536")];

/// Runs `operation` without faults to count its requests, then with each fault at each of them. It does the same each
/// time, after `prepare`; `check` looks at the result, without faults.
fn sweep(
    container: &'static str,
    prepare: impl Fn(&Store),
    operation: impl Fn(&Store) -> Result<()>,
    check: impl Fn(&Store, bool),
) {
    let direct = Store::with(container, &OPTIONS);
    let proxy = Proxy::new(AZURITE.endpoint());
    let run = || {
        // No run remembers what another one has seen.
        prepare(&direct);
        operation(&direct.by(plugin(&proxy.endpoint(), &OPTIONS)))
    };
    proxy.clear();
    run().unwrap();
    check(&direct, true);
    let requests = proxy.log();
    assert!(!requests.is_empty());
    for fault in Fault::ALL {
        for (at, request) in requests.iter().enumerate() {
            proxy.fault(at, 1, fault);
            let outcome = run();
            assert!(proxy.log().len() > at, "the fault was not met");
            if let Err(error) = &outcome {
                panic!("{fault:?} at request {at}, {request}: {error:#}");
            }
            check(&direct, true);
        }
    }
    // A run that fails says so, and leaves nothing partial.
    for fault in Fault::ALL {
        for at in 0..requests.len() {
            prepare(&direct);
            proxy.fault(at, usize::MAX / 2, fault);
            let options = [&OPTIONS[..], &[("retry_timeout_ms", "20")]].concat();
            let impatient = direct.by(plugin(&proxy.endpoint(), &options));
            let outcome = operation(&impatient);
            let met = proxy.log().len() > at;
            // A response that is cut may have had all that was needed: that of `HEAD` has no body.
            if let Err(error) = &outcome {
                let codes = [
                    Code::Unavailable,
                    Code::DeadlineExceeded,
                    Code::Aborted,
                    Code::DataLoss,
                    Code::Unknown,
                ];
                // The write was done, a second attempt found it, and nothing told whose it is, or the look failed.
                if error.message().starts_with("it is unknown whether") {
                    let is_known = error.code() == Code::FailedPrecondition;
                    assert!(is_known || codes.contains(&error.code()), "{error:#}");
                    proxy.clear();
                    continue;
                }
                assert!(codes.contains(&error.code()), "{fault:?} from request {at} on: {error:#}");
                assert!(met);
            }
            proxy.clear();
            drop(impatient);
            check(&direct, outcome.is_ok());
        }
    }
}

fn append(store: &Store, bytes: &[u8]) -> Result<()> {
    let mut file = store.az.new_appendable_file(uri(&store.uri("f")))?;
    file.append(bytes)?;
    file.close()
}

#[test]
fn reading() {
    let body = content(200_000);
    sweep(
        "faults-reading",
        |store| store.write("f", &body).unwrap(),
        |store| {
            let bytes = store.read("f")?;
            assert!(bytes == body);
            Ok(())
        },
        |_, _| (),
    );
}

#[test]
fn writing_one_request() {
    writing("faults-put", 1000);
}

#[test]
fn writing_blocks() {
    writing("faults-blocks", 200_000);
}

fn writing(container: &'static str, len: usize) {
    let body = content(len);
    sweep(
        container,
        |store| store.write("f", b"before").unwrap(),
        |store| store.write("f", &body),
        |store, is_done| {
            let bytes = store.read("f").unwrap();
            assert!(bytes == body || !is_done && bytes == b"before", "{} bytes", bytes.len());
        },
    );
}

#[test]
fn appending() {
    // With a condition: the engine finds out what a lost response has done, and does not do it twice.
    sweep(
        "faults-appending",
        |store| store.write("f", b"before").unwrap(),
        |store| append(store, b" and after"),
        |store, is_done| {
            let bytes = store.read("f").unwrap();
            assert!(bytes == b"before and after" || !is_done && bytes == b"before");
        },
    );
}

#[test]
fn appending_blocks() {
    let body = content(200_000);
    let all = [b"before", &*body].concat();
    sweep(
        "faults-appending-blocks",
        |store| store.write("f", b"before").unwrap(),
        |store| append(store, &body),
        |store, is_done| {
            let bytes = store.read("f").unwrap();
            assert!(bytes == all || !is_done && bytes == b"before");
        },
    );
}

#[test]
fn appending_to_blocks() {
    let body = content(200_000);
    let all = [&*body, b" and after"].concat();
    let append = |store: &Store| append(store, b" and after");
    let check = |store: &Store, is_done: bool| {
        let bytes = store.read("f").unwrap();
        assert!(bytes == all || !is_done && bytes == body);
    };
    sweep("faults-kept-blocks", |store| store.write("f", &body).unwrap(), append, check);
    // There are no blocks to keep: new ones are made.
    let prepare = |store: &Store| {
        let script = "const b = Buffer.alloc(200000); for (let i = 0; i < b.length; i++) b[i] = i % 251; \
                      await blob.upload(b, b.length)";
        store.script("f", script);
    };
    sweep("faults-made-blocks", prepare, append, check);
}

#[test]
fn renaming() {
    sweep(
        "faults-renaming",
        |store| {
            let _ = store.az.delete_file(uri(&store.uri("new")));
            store.write("old", b"bytes").unwrap();
        },
        |store| store.az.rename_file(uri(&store.uri("old")), uri(&store.uri("new"))),
        |store, is_done| {
            let keys = store.keys();
            assert!(keys == ["new"] || !is_done && !keys.is_empty(), "{keys:?}");
            for key in keys {
                assert_eq!(store.read(&key).unwrap(), b"bytes");
            }
        },
    );
}

#[test]
fn deleting() {
    let keys = ["d/a", "d/b/c", "d/e"];
    sweep(
        "faults-deleting",
        |store| {
            for key in keys {
                store.write(key, b"x").unwrap();
            }
        },
        |store| store.az.delete_recursively(uri(&store.uri("d"))).map_err(|left| left.error),
        |store, is_done| assert!(!is_done || store.keys().is_empty()),
    );
}

#[test]
fn listing() {
    sweep(
        "faults-listing",
        |store| {
            for key in ["d/a", "d/b/c", "d/e"] {
                store.write(key, b"x").unwrap();
            }
        },
        |store| {
            assert_eq!(store.children("d")?, ["a", "b", "e"]);
            assert!(store.az.path_exists(uri(&store.uri("d/b/c")))?);
            Ok(())
        },
        |_, _| (),
    );
}

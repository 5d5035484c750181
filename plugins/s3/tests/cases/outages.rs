//! A store that is away for a while, with the settings that everybody has.

use s3_server::{Fault, Options, What, When};
use std::thread;
use std::time::{Duration, Instant};
use tf_fs_plugin::Error;
use tf_plugin_s3_tests::child::alone;
use tf_plugin_s3_tests::this_test;
use tf_plugin_s3_tests::{Store, content, eventually, host, logs};

/// As long as a gateway takes to start again.
const OUTAGE: Duration = Duration::from_secs(10);

/// From now on no process listens on the port, and connections that are open are gone.
fn stop(store: &Store) {
    store.set_refusing(true).expect("stopped");
    store.reset_connections();
}

fn start(store: &Store) {
    store.set_refusing(false).expect("the port is free");
}

#[test]
fn a_restart_of_the_store_is_survived() {
    // All but the size of requests, so that there are many, is as by default.
    let store = Store::with(
        "outage",
        &[("read_part_bytes", "65536"), ("write_part_bytes", "5MiB"), ("listing_ttl_ms", "0")],
    );
    let large = content(30_000_000, 1);
    for key in ["seen", "old", "gone", "d/a", "d/b"] {
        store.put(key, large[..3_000_000].to_vec());
    }
    store.put("read", large.clone());
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let file = host().new_random_access_file(store.uri("read")).expect("opened");
            assert_eq!(file.read(0, 100_000).expect("read"), large[..100_000]);
            file
        })
        .collect();
    let mut writers: Vec<_> = (0..3)
        .map(|n| {
            let mut file = host().new_writable_file(store.uri(&format!("w{n}"))).expect("opened");
            file.append(&large[..6_000_000]).expect("appended");
            file
        })
        .collect();
    assert!(eventually(Duration::from_secs(20), || store.open_uploads().len() == 3), "no uploads");

    stop(&store);
    let start_of_outage = Instant::now();
    let (store, large) = (&store, &large);
    let took: Vec<(&str, Duration)> = thread::scope(|scope| {
        let mut tasks = Vec::new();
        let mut task = |name, work: Box<dyn FnOnce() -> Result<(), Error> + Send>| {
            let task = scope.spawn(move || {
                work().unwrap_or_else(|error| panic!("{name}: {error:#}"));
                (name, start_of_outage.elapsed())
            });
            tasks.push(task);
        };
        for file in &readers {
            task(
                "read",
                Box::new(move || {
                    // Far from what is fetched ahead.
                    assert!(file.read(20_000_000, 2_900_000)? == large[20_000_000..22_900_000]);
                    Ok(())
                }),
            );
        }
        for file in &mut writers {
            task(
                "write",
                Box::new(move || {
                    file.append(&large[6_000_000..])?;
                    file.close()
                }),
            );
        }
        for n in 0..4 {
            task(
                "small file",
                Box::new(move || host().write_file(store.uri(&format!("s{n}")), "small")),
            );
            task(
                "stat",
                Box::new(move || {
                    assert_eq!(host().stat(store.uri("seen"))?.length, 3_000_000);
                    Ok(())
                }),
            );
        }
        task(
            "list",
            Box::new(move || {
                assert_eq!(host().get_children(store.uri("d"))?.len(), 2);
                Ok(())
            }),
        );
        task("delete", Box::new(move || host().delete_file(store.uri("gone"))));
        task("rename", Box::new(move || host().rename_file(store.uri("old"), store.uri("new"))));
        thread::sleep(OUTAGE);
        start(store);
        tasks.into_iter().map(|task| task.join().expect("survived")).collect()
    });
    for (name, took) in took {
        assert!(took >= OUTAGE, "{name} did not meet the outage: {took:?}");
        assert!(took < OUTAGE * 3, "{name}: {took:?}");
    }
    for n in 0..3 {
        assert!(store.get(&format!("w{n}")).is_some_and(|stored| stored == *large), "w{n}");
    }
    assert!(store.get("gone").is_none() && store.get("new").is_some());
    assert!(store.open_uploads().is_empty(), "{:?}", store.open_uploads());
}

/// `Retry-After: 0` is not a reason to retry without a pause, and an error in a success response is retried.
#[test]
fn what_says_nothing_of_time_is_waited_for_all_the_same() {
    let store =
        Store::with("outage-zero", &[("retry_timeout_ms", "3000"), ("listing_ttl_ms", "0")]);
    let reply = s3_server::Reply::new(503, "ServiceUnavailable").retry_after(0);
    store.inject(Fault::new(When::All, What::Status(reply)));
    let (failures, requests) = store.requests(|| failures(&store));
    assert_eq!(failures.len(), 4);
    assert!(requests["PutObject"] > 1 && requests["PutObject"] < 40, "{requests:?}");
    store.clear_faults();
    let slow = What::ErrorIn200("SlowDown".to_owned());
    store.set(&[("retry_timeout_ms", "60000"), ("retry_backoff_ms", "5")]);
    let mut file = host().new_writable_file(store.uri("parts")).expect("opened");
    file.append(&content(9_000_000, 1)).expect("appended");
    store.inject(Fault::new(When::All, slow).operation("CompleteMultipartUpload").times(9));
    file.close().expect("the tenth attempt");
}

/// Where the plugin looks before it writes, the look is as patient as the write.
#[test]
fn a_store_that_nothing_is_known_of_may_be_away_too() {
    let store = Store::unknown("outage-unknown", Options { threads: 1, ..Options::default() });
    let large = content(20_000_000, 1);
    store.put("append", "old");
    let mut append = host().new_appendable_file(store.uri("append")).expect("opened");
    append.append(b"more").expect("appended");
    let mut flush = host().new_writable_file(store.uri("flush")).expect("opened");
    flush.append(b"1").expect("appended");
    flush.flush().expect("flushed");
    flush.append(b"2").expect("appended");
    let mut parts = host().new_writable_file(store.uri("parts")).expect("opened");
    parts.append(&large[..19_000_000]).expect("appended");
    parts.flush().expect("flushed");
    parts.append(&large[19_000_000..]).expect("appended");
    stop(&store);
    let start_of_outage = Instant::now();
    thread::scope(|scope| {
        let tasks = [
            scope.spawn(move || append.close()),
            scope.spawn(move || flush.flush().and_then(|()| flush.close())),
            scope.spawn(move || parts.flush().and_then(|()| parts.close())),
        ];
        thread::sleep(OUTAGE);
        start(&store);
        for task in tasks {
            task.join().expect("no panic").expect("survived");
        }
    });
    assert!(start_of_outage.elapsed() < OUTAGE * 3, "{:?}", start_of_outage.elapsed());
    assert_eq!(store.get("append").as_deref(), Some(&b"oldmore"[..]));
    assert_eq!(store.get("flush").as_deref(), Some(&b"12"[..]));
    assert!(store.get("parts") == Some(large));
}

/// What fails while `store` is as it is, all at the same time, how, and how long that took.
fn failures(store: &Store) -> Vec<(&'static str, Error, Duration)> {
    type Work<'a> = &'a (dyn Fn() -> Result<(), Error> + Sync);
    let works: [(&str, Work<'_>); 4] = [
        ("stat", &|| host().stat(store.uri("k")).map(drop)),
        ("read", &|| host().read_file(store.uri("k")).map(drop)),
        ("write", &|| host().write_file(store.uri("w"), "content")),
        ("list", &|| host().get_children(store.uri("")).map(drop)),
    ];
    thread::scope(|scope| {
        let works = works.map(|(name, work)| {
            scope.spawn(move || {
                let start = Instant::now();
                work().err().map(|error| (name, error, start.elapsed()))
            })
        });
        works.into_iter().filter_map(|work| work.join().expect("no panic")).collect()
    })
}

#[test]
fn a_store_asks_for_the_time_that_it_needs() {
    let store = Store::with("outage-asks", &[("retry_backoff_ms", "1"), ("listing_ttl_ms", "0")]);
    store.put("k", "content");
    for operation in ["ListObjectsV2", "GetObject", "PutObject"] {
        let reply = s3_server::Reply::new(503, "ServiceUnavailable").retry_after(2);
        store.inject(Fault::new(When::All, What::Status(reply)).operation(operation).times(1));
        let start = Instant::now();
        match operation {
            "ListObjectsV2" => host().stat(store.uri("k")).map(drop),
            "GetObject" => host().read_file(store.uri("k")).map(drop),
            _ => host().write_file(store.uri("w"), "content"),
        }
        .unwrap_or_else(|error| panic!("{operation}: {error:#}"));
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(2), "{operation}: {took:?}");
        store.clear_faults();
    }
}

#[test]
fn whoever_waits_is_told() {
    alone(this_test!(), || {
        logs::keep();
        let store = Store::with("outage-log", &[("retry_timeout_ms", "6000")]);
        stop(&store);
        assert_eq!(failures(&store).len(), 4);
        let lines = logs::lines();
        let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("WARN")).collect();
        assert_eq!(warnings.len(), 1, "one for four operations: {warnings:?}");
        for part in ["outage-log", "Connection refused", "trying again for up to"] {
            assert!(warnings[0].contains(part), "{part}: {warnings:?}");
        }
    });
}

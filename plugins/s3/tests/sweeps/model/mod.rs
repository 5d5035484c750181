//! Random sequences of operations, through the C tables on the fault server and on a model of a bucket beside it.
//!
//! Five machines: without faults; with nothing remembered of listings; with faults, where each result is right or an
//! error and what is in the store is explained by it; two threads with roots of which one's name begins with the
//! other's; and with another process that changes the bucket meanwhile. The operations are those of the conformance tests;
//! what they mean in a bucket (implied directories, exact keys, nothing visible before it is published) is the
//! [`oracle`]'s.

mod oracle;
mod runner;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};
use runner::{Run, Setting};
use s3_server::{At, Fault, Reply, What, When};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_plugin_conformance_tests::effort;
use tf_plugin_conformance_tests::sequence;
use tf_plugin_s3_tests::{IMPATIENT, Store, host};

fn config() -> ProptestConfig {
    effort::random(32, 256)
}

/// A root that no other case has. `next` to it is another that begins with its name.
fn root() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    format!("case{:06}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_operations(ops in sequence(), large in prop::bool::weighted(0.05)) {
        static STORE: LazyLock<Store> = LazyLock::new(|| Store::new("model"));
        Run::new(&STORE, &root(), Setting { large, ..Setting::default() }).all(&ops)?;
        prop_assert_eq!(host().take_violations(), []);
    }

    #[test]
    fn random_operations_with_the_answers_of_listings_forgotten(ops in sequence()) {
        static STORE: LazyLock<Store> = LazyLock::new(|| Store::with("model-0", &[("listing_ttl_ms", "0")]));
        Run::new(&STORE, &root(), Setting::default()).all(&ops)?;
    }

    #[test]
    fn two_threads(one in sequence(), other in sequence()) {
        static STORE: LazyLock<Store> = LazyLock::new(|| Store::new("model-threads"));
        let (first, store) = (root(), &*STORE);
        let second = format!("{first}-x");
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| Run::new(store, &first, Setting::default()).all(&one));
            let other = scope.spawn(|| Run::new(store, &second, Setting::default()).all(&other));
            (one.join().expect("no panic"), other.join().expect("no panic"))
        });
        one?;
        other?;
    }

    #[test]
    fn somebody_else_writes_too(ops in sequence(), others in vec(other(), 1..20)) {
        static STORE: LazyLock<Store> = LazyLock::new(|| Store::with("model-others", &[("listing_ttl_ms", "0")]));
        let setting = Setting { others, ..Setting::default() };
        Run::new(&STORE, &root(), setting).all(&ops)?;
    }
}

/// Cases at a time: with faults they mostly wait, for ends of connections and before another attempt.
const AT_ONCE: usize = 8;

/// Each thread has a server of its own, which only its own faults meet.
#[test]
fn random_operations_and_faults() {
    let config = config();
    let RngSeed::Fixed(seed) = config.rng_seed else { unreachable!("`random` fixes it") };
    let one = |number: u64, store: &Store| {
        let mut config = config.clone();
        config.cases = config.cases.div_ceil(AT_ONCE as u32);
        config.rng_seed = RngSeed::Fixed(seed.wrapping_add(number));
        let mut runner = TestRunner::new(config);
        let cases = (sequence(), vec(fault(), 1..4), prop::bool::weighted(0.05));
        runner.run(&cases, |(ops, faults, large)| {
            let setting = Setting { large, faults: true, ..Setting::default() };
            let mut run = Run::new(store, &root(), setting);
            for (when, what) in faults {
                inject(store, when, &what);
            }
            let outcome = run.all(&ops);
            store.clear_faults();
            outcome
        })
    };
    let one = &one;
    let stores: Vec<_> = (0..AT_ONCE).map(|_| Store::with("model-faults", IMPATIENT)).collect();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..).zip(&stores).map(|(n, store)| scope.spawn(move || one(n, store))).collect();
        let ends = runs.into_iter().map(|run| run.join().expect("no panic"));
        ends.filter_map(Result::err).map(|error| error.to_string()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(host().take_violations(), [], "the rules of the C boundary");
}

fn inject(store: &Store, when: When, what: &What) {
    let operations: &[_] = match what {
        // Only copies and the ends of uploads begin to answer before they know.
        What::ErrorIn200(_) => &["CopyObject", "UploadPartCopy", "CompleteMultipartUpload"],
        // Who may not list cannot tell a directory from nothing.
        What::Status(reply) if format!("{reply:?}").contains("AccessDenied") => {
            &["GetObject", "PutObject", "CopyObject", "DeleteObject", "DeleteObjects"]
        }
        // In the bytes of an object they would be other bytes, which nobody can tell.
        What::BadXml | What::UnknownXml => &[
            "ListObjectsV2",
            "CopyObject",
            "UploadPartCopy",
            "CompleteMultipartUpload",
            "DeleteObjects",
            "CreateMultipartUpload",
        ],
        What::EndlessListing | What::TruncatedWithoutToken => &["ListObjectsV2"],
        what => {
            store.inject(Fault::new(when, what.clone()));
            return;
        }
    };
    for operation in operations {
        store.inject(Fault::new(when, what.clone()).operation(operation));
    }
}

/// What another process does before the operation of this number: writes this content, or deletes.
pub(crate) type Other = (usize, &'static str, Option<Vec<u8>>);

fn other() -> impl Strategy<Value = Other> {
    let names = ["a", "b", "ab", "é", "a/b", "b/a", "b/", "a/b/", "ab/a", "b/b/b"];
    (0..60_usize, select(names.to_vec()), prop::option::weighted(0.7, vec(any::<u8>(), 0..30)))
        .prop_map(|(at, name, content)| {
            // A marker has no content.
            let content = if name.ends_with('/') { content.map(|_| Vec::new()) } else { content };
            (at, name, content)
        })
}

fn fault() -> impl Strategy<Value = (When, What)> {
    let when = prop_oneof![
        (1..30_usize).prop_map(When::Nth),
        (2..9_usize).prop_map(When::Every),
        // As long as nobody clears it.
        (20..60_usize).prop_map(When::From),
    ];
    let whats = vec![
        What::Reset,
        What::Close,
        What::CloseIdle,
        What::ResetOnReuse,
        What::ResetBody(At::Middle),
        What::ResetBody(At::Byte(0)),
        What::CutBody(At::Last),
        What::status(500, "InternalError"),
        What::status(503, "SlowDown"),
        What::status(403, "AccessDenied"),
        What::status(412, "PreconditionFailed"),
        What::Status(Reply::new(504, "").no_body()),
        What::LoseAck,
        What::DoneThenStatus(Reply::new(500, "InternalError")),
        What::ErrorIn200("InternalError".into()),
        What::WrongContentRange,
        What::WholeFor206,
        What::ContentLength(-3),
        What::ContentLength(3),
        What::NoEtag,
        What::ChangedEtag,
        What::BadXml,
        What::UnknownXml,
        What::EndlessListing,
        What::TruncatedWithoutToken,
        What::Gzip,
    ];
    (when, select(whats))
}

//! Random sequences of operations, through the C tables on the fault server and on a model of a bucket beside it.
//!
//! Four machines: as it is; with nothing remembered of listings; two threads with roots of which one's name begins with
//! the other's; and with somebody else who changes the bucket meanwhile. Faults are `faults.rs`'s. The operations are those of the conformance tests; what they mean in a bucket
//! (implied directories, exact keys, nothing visible before it is published) is the [`oracle`]'s.

mod oracle;
mod runner;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use runner::{Run, Setting};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tf_plugin_conformance_tests::sequence;
use tf_plugin_s3_tests::{Store, host};

/// At least 256 cases; more if `PROPTEST_CASES` says so. The shortest sequence that fails is printed.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: default.cases.max(256),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..default
    }
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

/// What somebody else does before the operation of this number: writes this content, or deletes.
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

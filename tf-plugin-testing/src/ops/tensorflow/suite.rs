//! The value from which [`conformance!`](crate::ops::conformance!) makes its tests.

use super::{Ops, Sample};
use crate::options::{Exclusions, OptionText};
use crate::tensorflow::TestRequest;
use std::env;
use std::time::Duration;

/// All tests of one [`conformance!`](crate::ops::conformance!).
#[doc(hidden)]
#[derive(Debug)]
pub struct Suite {
    calls: Vec<Sample>,
    limit: Duration,
    without: Exclusions,
}

impl Suite {
    #[must_use]
    pub fn new(calls: impl IntoIterator<Item = Sample>) -> Self {
        let calls = calls.into_iter().collect();
        Self { calls, limit: Duration::from_secs(120), without: Exclusions::default() }
    }
    #[must_use]
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
    #[must_use]
    pub fn without(mut self, case: &'static str, reason: impl OptionText) -> Self {
        self.without.add(case, reason);
        self
    }

    /// Runs the cases as a test, if `cargo tf-plugin test` requests them.
    #[track_caller]
    pub fn test_in_tensorflow(&self, module: &str, in_c: bool) {
        let Some(request) = TestRequest::new::<Ops>(module, in_c) else { return };
        let package = env::var("TF_PLUGIN_TEST_PACKAGE").ok();
        let ops = Ops { calls: self.calls.clone(), package };
        let cases = request.cases(ops, &self.without).limit(self.limit);
        request.judge(&cases.run("the ops"), "the ops", "the op");
    }
}

/// Defines the test `conformance_in_python`, which makes calls of ops in a real TensorFlow: each [case](crate::ops::cases) with
/// each sample call.
///
/// ```no_run
/// use tf_plugin_testing::ops::Sample;
///
/// tf_plugin_testing::ops::conformance!([
///     Sample::new("TextWords").input("text", ["To be", ""]).output("words_row_splits", [0, 2, 2]),
///     Sample::new("TextDistance").input("a", ["kitten"]).input("b", ["sitting"]).output("distances", [3]),
/// ]);
/// ```
///
/// `cargo tf-plugin test` runs the test in each TensorFlow that you name. Plain `cargo test` skips it, and its output says so. The library
/// describes types, shapes and gradients of its ops, from which the cases make more calls: each type, other ranks and sizes, odd
/// strings. A case about something that no op has is skipped.
///
/// ```no_run
/// # use tf_plugin_testing::ops::Sample;
/// tf_plugin_testing::ops::conformance! {
///     [Sample::new("TextWords").input("text", ["To be", ""])],
///     limit: std::time::Duration::from_secs(300),
///     without: [python_forks => "the model is on a device"],
/// }
/// ```
///
/// | Option | Meaning |
/// |---|---|
/// | `limit: duration` | the time limit of a case, 120 seconds by default |
/// | `without: [case => "reason"]` | leaves [cases](crate::ops::cases) out; [`Sample::without`](crate::ops::Sample::without) does so for one call |
#[doc(hidden)]
#[macro_export]
macro_rules! __ops_conformance {
    ($calls:expr $(, $($options:tt)*)?) => {
        $crate::__conformance_options! { ops (none) [$crate::ops::Suite::new($calls)] [] $($($options)*)? }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "expected sample calls, such as `conformance!([Sample::new(\"MyOp\").input(\"x\", [1.0])])`, or options, such as \
             `conformance! { [Sample::new(\"MyOp\")], without: [python_forks => \"why\"] }`"
        );
    };
}

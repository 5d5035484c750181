//! The value from which [`conformance!`](crate::device::conformance!) makes its tests.

use super::conformance::{Case, run_next_case};
use super::tensorflow::Devices;
use crate::options::{Exclusions, OptionText};
use crate::outcome::Outcome;
use crate::tensorflow::TestRequest;
use se_plugin::Platform;
use std::time::Duration;

/// The type of an option of [`conformance!`](crate::device::conformance!) that is a duration.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`limit` is `{Self}`, where a `Duration` is expected",
    label = "this is not a duration",
    note = "write `limit: std::time::Duration::from_secs(300)`"
)]
pub trait OptionDuration: Into<Duration> {}

impl OptionDuration for Duration {}

/// All tests of one [`conformance!`](crate::device::conformance!).
#[doc(hidden)]
#[derive(Debug)]
pub struct Suite {
    run: fn(&'static Case, Duration) -> Outcome,
    name: &'static str,
    device_type: &'static str,
    limit: Duration,
    without: Exclusions,
}

impl Suite {
    #[must_use]
    pub fn new<P: Platform>() -> Self {
        Self {
            run: run_next_case::<P>,
            name: P::NAME,
            device_type: P::TYPE,
            limit: Duration::from_secs(60),
            without: Exclusions::default(),
        }
    }
    #[must_use]
    pub fn limit(self, limit: impl OptionDuration) -> Self {
        Self { limit: limit.into(), ..self }
    }
    #[must_use]
    pub fn without(mut self, case: &'static str, reason: impl OptionText) -> Self {
        self.without.add(case, reason);
        self
    }

    /// Runs one case as a test.
    #[track_caller]
    pub fn test(&self, case: &'static Case) {
        if !self.without.has(case.name()) {
            case.judge((self.run)(case, self.limit), self.name, "the device");
        }
    }

    /// Runs the Python or C cases as a test, if `cargo tf-plugin test` requests them; or is the process of the C cases.
    #[track_caller]
    pub fn test_in_tensorflow(&self, module: &str, in_c: bool) {
        let Some(request) = TestRequest::new::<Devices>(module, in_c) else { return };
        let cases = request.cases(Devices, &self.without);
        let cases = cases.limit(self.limit.max(Duration::from_secs(120)));
        request.judge(&cases.run(self.device_type), self.name, "the device");
    }
}

/// Defines a test for each [case](crate::device::Case), so that `cargo test` lists them by name.
///
/// ```no_run
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/toy.rs")); }
/// # use toy::*;
/// tf_plugin_testing::device::conformance!(Toy);
/// ```
///
/// `Toy` is the platform, whose first device is tested. As in TensorFlow, the platform is opened once in the process, on
/// one thread: the cases run one after the other in one host. After a case that fails, the next one opens the platform again.
/// If a driver ends the process, the last lines on stderr name the case that ran.
///
/// A case about something that the device does not support passes and prints `skipped: ...` (`cargo test -- --show-output` shows it). So do all cases
/// if there is no device. Few cases take more than 8 MiB of device memory.
///
/// ```no_run
/// # mod toy { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/device/toy.rs")); }
/// # use toy::*;
/// tf_plugin_testing::device::conformance! {
///     Toy,
///     limit: std::time::Duration::from_secs(300),
///     without: [timer_measures => "the device has no clock"],
/// }
/// ```
///
/// | Option | Meaning |
/// |---|---|
/// | `limit: duration` | the time limit of a case, once it runs, 60 seconds by default; a case that takes longer fails |
/// | `without: [case => "reason"]` | leaves [cases](crate::device::cases) out; the test prints the reason, and an unknown name does not compile |
///
/// Two uses in one module define tests of the same names: put each into its own `mod`.
#[doc(hidden)]
#[macro_export]
macro_rules! __device_conformance {
    ($platform:literal $($rest:tt)*) => {
        ::core::compile_error!(
            "the platform comes first: `conformance!(Toy)`, where `Toy` is the type that implements `Platform`"
        );
    };
    ($platform:ty $(, $($options:tt)*)?) => {
        $crate::__conformance_options! {
            device (none) [$crate::device::Suite::new::<$platform>()] [] $($($options)*)?
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "expected a platform, such as `conformance!(Toy)`, or options, such as \
             `conformance! { Toy, without: [timer_measures => \"there is no clock\"] }`"
        );
    };
}

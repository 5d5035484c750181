//! A Vulkan loader for tests, in front of the real one: a call reports a lost GPU, or the GPU stops.
//!
//! A process gets it in place of the real loader from [`Loader::environment`]. `abi` contains its functions.

#[expect(unsafe_code, reason = "functions of Vulkan")]
mod abi;

use lavapipe::Front;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The path of the real loader.
const REAL: &str = "FAULTY_VULKAN_REAL";
/// The fault: a kind, a function or a feature, and a number, as in `lost vkQueueSubmit 3`.
const FAULT: &str = "FAULTY_VULKAN";
/// The start of the line that the loader writes to stderr when the fault happens.
pub const HAPPENED: &str = "faulty-vulkan: ";

/// The library that cargo builds.
const BUILT: &str = "libfaulty_vulkan.so";
/// The name under which programs load it.
const NAME: &str = "libvulkan.so.1";

/// The loader, in place of the real one.
#[derive(Debug)]
pub struct Loader(Front);

impl Loader {
    /// Finds the loader.
    ///
    /// # Panics
    /// Panics if cargo has not built it.
    #[must_use]
    pub fn new() -> Self {
        Self(Front::new(BUILT, NAME))
    }

    /// Returns an environment of `lavapipe` with this loader and a fault:
    ///
    /// | Fault | What it does |
    /// |---|---|
    /// | `lost FUNCTION NUMBER` | the call of that number fails with `VK_ERROR_DEVICE_LOST` |
    /// | `hang vkQueueSubmit NUMBER` | that submission and all later ones are dropped, and what frees memory then waits for the GPU for good |
    /// | `late FUNCTION NUMBER` | each call returns up to that many milliseconds later, never as late as the one before |
    /// | `lacks FEATURE 0` | GPUs do not have this feature, such as `buffer_device_address`, no `compute_queue`, or not `vulkan_1_3` |
    /// | `full FUNCTION NUMBER` | that call fails with `VK_ERROR_OUT_OF_DEVICE_MEMORY` |
    ///
    /// # Panics
    /// Panics if the environment has no loader.
    #[must_use]
    pub fn environment(
        &self,
        mut environment: Vec<(&'static str, OsString)>,
        fault: &str,
    ) -> Vec<(&'static str, OsString)> {
        let real = self.0.insert(&mut environment);
        environment.extend([(REAL, real), (FAULT, fault.into())]);
        environment
    }
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lost,
    Hang,
    Late,
    Lacks,
    Full,
}

/// The fault of this process.
struct Fault {
    kind: Kind,
    function: String,
    number: u64,
    calls: AtomicU64,
}

impl Fault {
    fn of_environment() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        let mut words = text.split(' ');
        let (kind, function, number) = (words.next()?, words.next()?, words.next()?);
        let kind = match kind {
            "lost" => Kind::Lost,
            "hang" => Kind::Hang,
            "late" => Kind::Late,
            "lacks" => Kind::Lacks,
            "full" => Kind::Full,
            _ => return None,
        };
        let number = number.parse().ok()?;
        Some(Self { kind, function: function.to_owned(), number, calls: AtomicU64::new(0) })
    }

    /// Returns the feature that GPUs do not have.
    fn lacks(&self) -> Option<&str> {
        (self.kind == Kind::Lacks).then_some(&*self.function)
    }

    /// Counts a call of this function. Returns its result if the call is not passed on.
    fn happens(&self, function: &str) -> Option<ash::vk::Result> {
        if self.function != function {
            let hangs =
                self.kind == Kind::Hang && self.calls.load(Ordering::Relaxed) >= self.number;
            while hangs && (function.starts_with("vkFree") || function.starts_with("vkDestroy")) {
                std::thread::park();
            }
            return None;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let is_it = call == self.number;
        match self.kind {
            Kind::Lacks => None,
            Kind::Late => {
                if call == 1 {
                    eprintln!("{HAPPENED}late in {function}");
                }
                // Multiples of the golden ratio: neighbours differ, and all are different.
                let part = (call as f64 * 0.618_033_988_75).fract();
                std::thread::sleep(Duration::from_secs_f64(part * self.number as f64 / 1e3));
                None
            }
            Kind::Lost => is_it.then(|| {
                eprintln!("{HAPPENED}lost in {function}");
                ash::vk::Result::ERROR_DEVICE_LOST
            }),
            Kind::Full => is_it.then(|| {
                eprintln!("{HAPPENED}full in {function}");
                ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
            }),
            Kind::Hang => (call >= self.number).then(|| {
                if is_it {
                    eprintln!("{HAPPENED}hang in {function}");
                }
                ash::vk::Result::SUCCESS
            }),
        }
    }
}

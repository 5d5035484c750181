//! A Vulkan loader for tests, in front of the real one: a call reports a lost card, or the card does nothing more.
//!
//! A process gets it in place of the real loader from [`Loader::environment`]. `abi` is what it loads.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "functions of Vulkan; every block is argued")]
mod abi;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// The path of the real loader.
const REAL: &str = "FAULTY_VULKAN_REAL";
/// The fault: a kind, a function and a number, as in `lost vkQueueSubmit 3`.
const FAULT: &str = "FAULTY_VULKAN";
/// What the loader writes to stderr when the fault happens.
pub const HAPPENED: &str = "faulty-vulkan: ";

/// The name under which programs load it.
const NAME: &str = "libvulkan.so.1";

/// A directory with the loader.
#[derive(Debug)]
pub struct Loader(tempfile::TempDir);

impl Loader {
    /// Takes the library that cargo has built for the test that runs.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let test = std::env::current_exe().expect("a test is a file");
        let built = test.with_file_name(format!("{DLL_PREFIX}faulty_vulkan{DLL_SUFFIX}"));
        fs::copy(&built, directory.path().join(NAME))
            .unwrap_or_else(|error| panic!("cannot copy {}: {error}", built.display()));
        Self(directory)
    }

    /// An environment of `lavapipe` with this loader and a fault: `lost FUNCTION NUMBER` lets the call of that number fail
    /// with `VK_ERROR_DEVICE_LOST`; `hang vkQueueSubmit NUMBER` drops that submission and all later ones, and what frees
    /// memory then waits for the card for good.
    ///
    /// # Panics
    /// If the environment has no loader.
    #[must_use]
    pub fn environment(
        &self,
        mut environment: Vec<(&'static str, OsString)>,
        fault: &str,
    ) -> Vec<(&'static str, OsString)> {
        let path = environment.iter_mut().find(|(name, _)| *name == "LD_LIBRARY_PATH");
        let (_, path) = path.expect("lavapipe has libraries");
        let system = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let all = std::env::split_paths(path).chain([system.into(), "/usr/lib64".into()]);
        let real = all.map(|directory| directory.join(NAME)).find(|path| path.exists());
        let real = real.expect("lavapipe has a loader").into_os_string();
        let mut first = self.0.path().as_os_str().to_owned();
        first.push(":");
        first.push(&*path);
        *path = first;
        environment.extend([(REAL, real), (FAULT, fault.into())]);
        environment
    }
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

/// What is to happen in this process.
struct Fault {
    hangs: bool,
    function: String,
    number: u64,
    calls: AtomicU64,
}

impl Fault {
    fn of_environment() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        let mut words = text.split(' ');
        let (kind, function, number) = (words.next()?, words.next()?, words.next()?);
        let (hangs, number) = (kind == "hang", number.parse().ok()?);
        Some(Self { hangs, function: function.to_owned(), number, calls: AtomicU64::new(0) })
    }

    /// Whether the call of this function that is made now is not passed on, and what it then returns.
    fn happens(&self, function: &str) -> Option<ash::vk::Result> {
        if self.function != function {
            let hangs = self.hangs && self.calls.load(Ordering::Relaxed) >= self.number;
            while hangs && (function.starts_with("vkFree") || function.starts_with("vkDestroy")) {
                std::thread::park();
            }
            return None;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.number {
            eprintln!("{HAPPENED}{} in {function}", if self.hangs { "hang" } else { "lost" });
        }
        match self.hangs {
            true => (call >= self.number).then_some(ash::vk::Result::SUCCESS),
            false => (call == self.number).then_some(ash::vk::Result::ERROR_DEVICE_LOST),
        }
    }
}

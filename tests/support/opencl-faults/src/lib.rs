//! An OpenCL loader for tests, in front of the real one: a call reports a lost GPU, or the GPU hangs or lacks something.
//!
//! A process gets it in place of the real loader from [`Loader::environment`]. `abi` contains its functions.

#[expect(unsafe_code, reason = "functions of OpenCL")]
mod abi;

use lavapipe::Front;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The path of the real loader.
const REAL: &str = "FAULTY_OPENCL_REAL";
/// The fault: a kind, a function and a number, as in `lost clFlush 3`.
const FAULT: &str = "FAULTY_OPENCL";
/// The start of the line that the loader writes to stderr when the fault happens.
pub const HAPPENED: &str = "faulty-opencl: ";

/// `CL_INVALID_COMMAND_QUEUE`, which drivers return when the GPU is gone.
const LOST: i32 = -36;
/// `CL_MEM_OBJECT_ALLOCATION_FAILURE`.
const FULL: i32 = -4;
/// `CL_OUT_OF_RESOURCES`, the status of a command that has failed.
const FAILED: i32 = -5;
/// `CL_SUBMITTED`, the status of a command that has not begun.
const SUBMITTED: i32 = 2;

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
        Self(Front::new("libfaulty_opencl.so", "libOpenCL.so.1"))
    }

    /// Returns an environment of `pocl` with this loader and a fault:
    ///
    /// | Fault | What it does |
    /// |---|---|
    /// | `lost FUNCTION NUMBER` | the call of that number fails with `CL_INVALID_COMMAND_QUEUE` |
    /// | `full FUNCTION NUMBER` | that call fails with `CL_MEM_OBJECT_ALLOCATION_FAILURE`, or returns no memory |
    /// | `fail clGetEventInfo NUMBER` | that status is of a command that has failed |
    /// | `hang clGetEventInfo NUMBER` | from that status on, no command has begun |
    /// | `spoil clCreateProgramWithSource NUMBER` | the text of that program is not one |
    /// | `late FUNCTION NUMBER` | each call happens up to that many milliseconds later, never as late as the one before |
    /// | `lacks PROPERTY VALUE` | devices have this value for a number of `clGetDeviceInfo` |
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

/// The fault of this process.
struct Fault {
    kind: String,
    /// A function, or the number of a property.
    of: String,
    number: u64,
    calls: AtomicU64,
}

impl Fault {
    fn of_environment() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        let mut words = text.split(' ');
        let [kind, of] = [words.next()?, words.next()?].map(str::to_owned);
        Some(Self { kind, of, number: words.next()?.parse().ok()?, calls: AtomicU64::new(0) })
    }

    /// Counts a call of this function. Returns the error in place of the call.
    fn before(&self, function: &str) -> Option<i32> {
        let error = match &*self.kind {
            "lost" => LOST,
            "full" => FULL,
            "late" => 0,
            _ => return None,
        };
        if self.of != function {
            return None;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if error == 0 {
            if call == 1 {
                eprintln!("{HAPPENED}late in {function}");
            }
            // Multiples of the golden ratio: neighbours differ, and all are different.
            let part = (call as f64 * 0.618_033_988_75).fract();
            std::thread::sleep(Duration::from_secs_f64(part * self.number as f64 / 1e3));
            return None;
        }
        (call == self.number).then(|| {
            eprintln!("{HAPPENED}{} in {function}", self.kind);
            error
        })
    }

    /// Counts a program of this function. Returns whether its text is spoiled.
    fn spoils(&self, function: &str) -> bool {
        let is_counted = self.kind == "spoil" && self.of == function;
        let spoils = is_counted && self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.number;
        if spoils {
            eprintln!("{HAPPENED}spoil in {function}");
        }
        spoils
    }

    /// Counts a status of an event. Returns the one in its place.
    fn status(&self) -> Option<i32> {
        let (status, lasts) = match &*self.kind {
            "fail" => (FAILED, false),
            "hang" => (SUBMITTED, true),
            _ => return None,
        };
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.number {
            eprintln!("{HAPPENED}{} in {}", self.kind, self.of);
        }
        (call == self.number || lasts && call > self.number).then_some(status)
    }

    /// Returns the value that devices have for this property.
    fn property(&self, property: usize) -> Option<u64> {
        let is_it = self.kind == "lacks" && self.of.parse() == Ok(property);
        is_it.then_some(self.number)
    }
}

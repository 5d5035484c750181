//! Tests a GPU that is lost or hangs, in the host of the tests: every waiter wakes, each later call has the first
//! error, and the process ends, all in bounded time. `tests/tensorflow` tests this with kernels and Python.

use cpu_cuda::Cuda;
use faulty_vulkan::Loader;
use gpu::GpuPlatform;
use libtest_mimic::{Failed, Trial};
use std::ffi::OsString;
use std::io::Seek as _;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tf_plugin_testing::device::{Host, TestDevice, TestEvent, TestStream};

/// The start of the task of a process whose GPU is lost: a part of the error follows, or the name of a case.
pub(crate) const LOST: &str = "lost: ";
/// `TF_OK`.
const OK: u32 = 0;
/// The bytes of a copy in three pieces.
const LEN: usize = 9 << 20;

/// A fault, the library that injects it, and a part of the error.
pub(crate) struct Fault {
    pub(crate) of: Of,
    pub(crate) text: String,
    pub(crate) error: String,
}

/// The library that injects a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Of {
    Vulkan,
    Cuda,
    OpenCl,
}

impl Of {
    /// Returns an environment with the fault; its libraries are in `Libraries`.
    fn environment(self, fault: &str, libraries: &Libraries) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Vulkan => libraries.vulkan.environment(lavapipe::environment(), fault),
            Self::Cuda => libraries.cuda.environment(Some(fault)),
            Self::OpenCl => libraries.opencl.environment(pocl::environment(), fault),
        }
    }

    /// Returns the start of the line on stderr when the fault happens.
    fn happened(self) -> &'static str {
        match self {
            Self::Vulkan => faulty_vulkan::HAPPENED,
            Self::Cuda => cpu_cuda::HAPPENED,
            Self::OpenCl => faulty_opencl::HAPPENED,
        }
    }
}

#[derive(Default)]
struct Libraries {
    vulkan: Loader,
    cuda: Cuda,
    opencl: faulty_opencl::Loader,
}

fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    for (function, what, numbers) in [
        ("vkQueueSubmit", "send a batch", &[1, 2, 3, 9, 30][..]),
        ("vkWaitSemaphores", "wait for a batch", &[1, 2, 3, 9, 30]),
        ("vkBeginCommandBuffer", "begin a batch", &[1, 2, 9]),
        ("vkEndCommandBuffer", "end a batch", &[1, 2, 9]),
        ("vkResetCommandPool", "reset a batch", &[1, 2, 9]),
        ("vkAllocateMemory", "allocate ", &[2, 3, 4, 5]),
        ("vkMapMemory", "map memory", &[1, 2]),
    ] {
        for number in numbers {
            let (text, error) =
                (format!("lost {function} {number}"), format!("vulkan cannot {what}"));
            faults.push(Fault { of: Of::Vulkan, text, error });
        }
    }
    for (function, numbers) in [
        ("cuMemcpyHtoDAsync_v2", &[1, 2, 9][..]),
        ("cuMemcpyDtoDAsync_v2", &[1, 2, 9]),
        ("cuMemcpyDtoHAsync_v2", &[1, 9]),
        ("cuEventRecord", &[1, 2, 9]),
        ("cuEventQuery", &[1, 2, 9]),
        ("cuMemAlloc_v2", &[1, 2, 3]),
        ("cuMemHostAlloc", &[1, 2]),
    ] {
        for number in numbers {
            // From then on each call has this result, and the first call that reports it may be on another thread.
            let error = String::from("CUDA_ERROR_LAUNCH_FAILED");
            faults.push(Fault { of: Of::Cuda, text: format!("lost {function} {number}"), error });
        }
    }
    for (of, function) in [(Of::Vulkan, "vkQueueSubmit"), (Of::Cuda, "cuMemcpyDtoDAsync_v2")] {
        for number in [1, 2, 3, 9, 30] {
            let error = String::from("has not finished a batch for 1 s");
            faults.push(Fault { of, text: format!("hang {function} {number}"), error });
        }
    }
    faults
}

/// The streams and an event of a device, which are used until it fails.
struct Work<'a> {
    device: &'a TestDevice<'a>,
    streams: [TestStream<'a>; 2],
    event: TestEvent<'a>,
}

impl Work<'_> {
    /// Copies in both streams and without a stream.
    fn round(&self) -> Result<(), String> {
        let text = |error: se_plugin::Error| format!("{error:#}");
        let (device, [one, other]) = (self.device, &self.streams);
        let memory = [(); 2].map(|()| device.allocate(LEN as u64));
        let [Some(a), Some(b)] = memory else { return device.synchronize().map_err(text) };
        let mut back = vec![0; LEN];
        let mut all = || {
            one.copy_to_device(a, &[7; LEN])?;
            one.copy_on_device(b, a, LEN as u64)?;
            one.record_event(&self.event);
            other.wait_event(&self.event)?;
            let called = one.host_callback()?;
            other.copy_to_host(&mut back, b)?;
            // The callback comes, even if the GPU fails.
            let code = called.recv_timeout(Duration::from_secs(30));
            assert!(!matches!(code, Err(RecvTimeoutError::Timeout)), "no callback");
            one.synchronize()?;
            other.synchronize()?;
            assert_eq!(code, Ok(OK), "the callback knew more than the stream");
            device.copy_on_device(a, b, LEN as u64)?;
            device.synchronize()
        };
        let result = all();
        device.deallocate(a);
        device.deallocate(b);
        result.map_err(text)
    }

    /// Checks that every call that can fail has this error.
    fn later(&self, error: &str) {
        let (one, mut back) = (&self.streams[0], [0; 16]);
        // The driver may still allocate memory, or not.
        let at = self.device.allocate(LEN as u64).or_else(|| se_plugin::DevicePtr::new(256));
        let at = at.expect("an address");
        for (what, result) in [
            ("synchronize", one.synchronize()),
            ("status", one.status()),
            ("the device's synchronize", self.device.synchronize()),
            ("the device's copy", self.device.copy_to_device(at, &back)),
            ("copy_to_host", one.copy_to_host(&mut back, at)),
        ] {
            let message = result.expect_err(what).to_string();
            let is_allocated = at.address() != 256;
            assert!(message.contains(error) || !is_allocated, "{what}: {message}, not {error}");
        }
        // TensorFlow would wait forever for an event that never completes.
        one.record_event(&self.event);
        let since = Instant::now();
        while self.event.status() != se_plugin::EventStatus::Complete {
            assert!(since.elapsed() < Duration::from_secs(30), "an event never completes");
        }
        let code = one.host_callback().expect("a callback").recv_timeout(Duration::from_secs(30));
        assert!(code.is_ok_and(|code| code != OK), "a callback is told {code:?}");
    }
}

/// Runs a case, or works until there is an error, in a process with the fault, and checks later calls.
pub(crate) fn lose(expected: &str) {
    match expected {
        "hang" => return hang(),
        "queue" => return queue(),
        _ => {}
    }
    let host = Host::load::<GpuPlatform>().expect("a platform");
    {
        let device = host.device(0).expect("a device");
        let streams = [device.stream(), device.stream()].map(|(stream, created)| {
            created.expect("a stream");
            stream
        });
        let work = Work { device: &device, streams, event: device.event().expect("an event") };
        let error = (0..100).find_map(|_| work.round().err()).expect("the GPU is lost");
        assert!(error.contains(expected), "{error}, not {expected}");
        work.later(expected);
    }
    assert_eq!(host.violations().len(), 0, "{:#?}", host.violations());
}

/// Enqueues work for many minutes on lavapipe, with a short limit. The process ends while the GPU runs it.
fn hang() {
    const LARGE: u64 = 256 << 20;
    let since = Instant::now();
    // What lavapipe's threads need is not destroyed meanwhile.
    #[cfg(target_env = "gnu")]
    super::exit::must_be_at_once();
    let host = Host::load::<GpuPlatform>().expect("a platform");
    {
        let device = host.device(0).expect("a device");
        let (stream, created) = device.stream();
        created.expect("a stream");
        let [a, b] = [(); 2].map(|()| device.allocate(LARGE).expect("memory"));
        for _ in 0..2_000 {
            stream.copy_on_device(a, b, LARGE).expect("enqueued");
        }
        let error = stream.synchronize().expect_err("the GPU does not finish").to_string();
        for part in
            ["`llvmpipe", "has not finished a batch for 1 s", "whose last commands are `MemcpyD2D`"]
        {
            assert!(error.contains(part), "{error}");
        }
        let again = stream.synchronize().expect_err("it is lost").to_string();
        assert_eq!(error, again);
        // The GPU still runs the work.
        device.deallocate(a);
        device.deallocate(b);
    }
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

/// Enqueues short batches in so many streams that the last one waits for longer than the limit.
fn queue() {
    const BYTES: u64 = 4 << 20;
    let host = Host::load::<GpuPlatform>().expect("a platform");
    let device = host.device(0).expect("a device");
    let [a, b] = [(); 2].map(|()| device.allocate(BYTES).expect("memory"));
    let streams: Vec<_> = (0..16).map(|_| device.stream().0).collect();
    for stream in &streams {
        for _ in 0..1_000 {
            stream.copy_on_device(a, b, BYTES).expect("enqueued");
        }
    }
    device.synchronize().expect("the GPU has always finished something");
    device.deallocate(a);
    device.deallocate(b);
}

/// Runs a case in its own process, which must end by itself. Without a fault it uses lavapipe.
fn run(fault: Option<&Fault>, expected: &str) -> Result<(), Failed> {
    let libraries = Libraries::default();
    let environment = match fault {
        Some(fault) => fault.of.environment(&fault.text, &libraries),
        None => lavapipe::environment(),
    };
    // Files, since a process that writes much would block on a pipe.
    let [mut stdout, mut errors] = [tempfile::tempfile()?, tempfile::tempfile()?];
    let mut child = Command::new(std::env::current_exe()?);
    if fault.is_none_or(|fault| fault.text.starts_with("hang")) {
        child.env("RUST_GPU_TIMEOUT_S", "1");
    }
    let mut child = child
        .envs(environment)
        .env(crate::ONE, format!("{LOST}{expected}"))
        .stdout(stdout.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let since = Instant::now();
    while child.try_wait()?.is_none() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may have ended already.
    let _ = child.kill();
    let status = child.wait()?;
    let [stdout, errors] = [&mut stdout, &mut errors].map(|file| {
        file.rewind()?;
        std::io::read_to_string(file)
    });
    let (stdout, errors) = (stdout?, errors?);
    let mistakes = lavapipe::mistakes(&stdout);
    let happened = fault.is_none_or(|fault| errors.contains(fault.of.happened()));
    if status.success() && mistakes.is_empty() && happened {
        return Ok(());
    }
    let took = since.elapsed();
    Err(format!("{status} after {took:?}, the fault has happened: {happened}\n{stdout}{errors}")
        .into())
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("lost::a_batch_that_takes_minutes", || run(None, "hang")),
        Trial::test("lost::batches_behind_many_others", || run(None, "queue")),
    ];
    trials.extend(faults().into_iter().map(trial));
    trials
}

/// Returns the test of a fault.
pub(crate) fn trial(fault: Fault) -> Trial {
    let name = format!("lost::{}", fault.text.replace(' ', "_"));
    Trial::test(name, move || run(Some(&fault), &fault.error))
}

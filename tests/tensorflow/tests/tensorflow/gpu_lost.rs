//! A GPU on Vulkan that is lost or hangs, in real TensorFlow.

use super::gpu::{file, made_no_mistake, run_python};
use cargo_tf_plugin::NEWEST;
use faulty_vulkan::Loader;
use std::ffi::OsString;
use std::time::{Duration, Instant};
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::tensorflow;

/// Runs `lost_gpu.py`, which must end by itself, whatever the GPU does.
pub(super) fn lose_gpu(
    way: &str,
    error: &str,
    settings: &[(&str, &str)],
    environment: Vec<(&'static str, OsString)>,
    in_a_fork: bool,
) -> Finished {
    let python = Python::new(&tensorflow(NEWEST), &file("lost_gpu")).limit(180);
    let python = if in_a_fork { python.in_a_fork() } else { python };
    let finished = run_python(python, environment, &[way, error], settings);
    finished.must_have_done(&[way]);
    finished
}

/// Lavapipe is at the matrix products for minutes after the process has ended.
#[test]
fn a_gpu_that_takes_too_long_is_an_error_and_the_process_ends() {
    let since = Instant::now();
    let error = "has not finished a batch for 3 s";
    let limit = [("RUST_GPU_TIMEOUT_S", "3")];
    let finished = lose_gpu("slow", error, &limit, lavapipe::driver(), false);
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    for message in ["DeadlineExceededError", "`MatMul`", "raise RUST_GPU_TIMEOUT_S", "`llvmpipe"] {
        assert!(finished.stdout.contains(message), "{message}: {}", finished.stdout);
    }
}

#[test]
fn a_process_ends_while_the_gpu_is_at_work() {
    let since = Instant::now();
    lose_gpu("leave", "", &[], lavapipe::driver(), false);
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
}

/// Lets the calls of a function with these numbers fail, each in a process.
fn each_fault(kind: &str, function: &str, numbers: &[u32], error: &str, settings: &[(&str, &str)]) {
    let loader = Loader::new();
    for number in numbers {
        let fault = format!("{kind} {function} {number}");
        let environment = loader.environment(lavapipe::environment(), &fault);
        // A fork ends as a process does, except for a few instructions: call 2 runs in a separate process.
        let finished =
            made_no_mistake(lose_gpu("lost", error, settings, environment, *number != 2));
        assert!(finished.stderr.contains(faulty_vulkan::HAPPENED), "{fault}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{fault}: {}", finished.stderr);
    }
}

/// `plugins/gpu/tests/device/lost.rs` has more of the calls.
#[test]
fn a_lost_gpu_is_an_error_for_good() {
    for (function, what, numbers) in [
        ("vkQueueSubmit", "send a batch", &[2, 10, 1][..]),
        ("vkWaitSemaphores", "wait for a batch", &[1, 10]),
        ("vkAllocateMemory", "allocate ", &[3, 1]),
        ("vkMapMemory", "map memory", &[1]),
        ("vkCreateComputePipelines", "compile the shader", &[1]),
    ] {
        let numbers = if is_whole() { numbers } else { &numbers[..1] };
        each_fault("lost", function, numbers, &format!("vulkan cannot {what}"), &[]);
    }
}

#[test]
fn a_gpu_that_hangs_is_an_error_for_good() {
    let limit = [("RUST_GPU_TIMEOUT_S", "3")];
    let error = "has not finished a batch for 3 s";
    each_fault("hang", "vkQueueSubmit", &[2, 10], error, &limit);
}

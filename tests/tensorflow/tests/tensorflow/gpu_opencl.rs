//! The device on OpenCL in real TensorFlow: on PoCL, a driver for the CPU.

use super::gpu::{ATTENTION, COUNTERS, LACKS_TYPES, counted, leaves_the_cpu_on, run_on, sample};
use super::gpu_lost::lose_gpu;
use cargo_tf_plugin::NEWEST;
use faulty_opencl::{HAPPENED, Loader};
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::child::Finished;

fn run(script: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Finished {
    run_on(pocl::environment(), NEWEST, script, arguments, settings)
}

#[test]
fn each_op_computes_as_on_the_cpu() {
    let device_type = [("RUST_GPU_TYPE", "RUST_GPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let (name, sample) = sample(96);
    let settings = [&device_type[..], &[LACKS_TYPES, (name, &sample)]].concat();
    let swept = run("refdevice_sweep", &[], &settings).done().len();
    assert!(swept > 180, "{swept} operations");
}

#[test]
fn keras_trains_as_on_the_cpu() {
    let all = ["train=convolutional,adam", "trace", "train=recurrent,adam", "transformer"];
    let steps = if is_whole() { &all[..] } else { &all[..2] };
    run("refdevice", steps, &[]);
}

#[test]
fn the_ops_of_keras_are_on_the_device() {
    let (name, sample) = sample(40);
    let done = run("keras_layers", &[], &[(name, &sample)]).done().len();
    assert!(done > 3, "{done} layers");
}

#[cfg(feature = "matrix")]
#[test]
fn applications_train_on_the_device_alone() {
    run("applications", &["MobileNetV2", "ViT"], &[]);
}

#[test]
fn attention_is_computed_as_on_the_cpu() {
    let all = ["shapes", "masks", "types", "written", "special", "layers"];
    // The driver's compiler takes seconds for each shader.
    let sample = ["shapes=sample", "types=sample"];
    let steps = if is_whole() { &all[..] } else { &sample[..] };
    counted(|file| run("attention", steps, &[ATTENTION, (COUNTERS, file)]));
}

#[cfg(feature = "matrix")]
#[test]
fn fused_ops_compute_what_they_do_one_by_one() {
    counted(|file| {
        run("fusion", &["ops", "trees=20", "shapes", "changes", "updates"], &[(COUNTERS, file)])
    });
}

#[test]
fn kernels_compute_as_the_cpu_at_their_edges() {
    let all = ["nan", "indices", "rows", "loops"];
    let steps = if is_whole() { &all[..] } else { &all[..2] };
    run("edges", steps, &[]);
}

#[test]
fn float64_is_computed_where_the_driver_has_it() {
    run("float64", &["physics", "random"], &[]);
    // `CL_DEVICE_DOUBLE_FP_CONFIG`.
    let lacks = Loader::new().environment(pocl::environment(), "lacks 4146 0");
    run_on(lacks, NEWEST, "float64", &["cpu"], &[]);
}

#[test]
fn programs_have_memory_threads_and_forks() {
    run("gpu", &["statistics", "threads", "far", "integers", "fork", "twice"], &[]);
}

#[test]
fn memory_ends_with_an_error_and_training_goes_on() {
    run("gpu", &["pressure"], &[("RUST_GPU_MEMORY_MIB", "64")]);
}

/// `plugins/gpu/tests/device/opencl.rs` has more of the calls.
#[test]
fn a_lost_gpu_is_an_error_for_good() {
    let faults = [
        ("lost clEnqueueNDRangeKernel 3", "opencl cannot launch a kernel", ""),
        ("fail clGetEventInfo 5", "opencl cannot run a batch", ""),
        ("lost clSetKernelExecInfo 2", "opencl cannot launch a kernel", ""),
        ("lost clBuildProgram 2", "opencl cannot compile the shader", ""),
        ("hang clGetEventInfo 5", "has not finished a batch for 3 s", "3"),
    ];
    for (fault, error, limit) in faults {
        let environment = Loader::new().environment(pocl::environment(), fault);
        let settings = [("RUST_GPU_TIMEOUT_S", limit)];
        let finished = lose_gpu("lost", error, &settings, environment, true);
        assert!(finished.stderr.contains(HAPPENED), "{fault}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{fault}: {}", finished.stderr);
        let is_late = fault.starts_with("hang");
        let code = if is_late { "DeadlineExceededError" } else { "InternalError" };
        assert!(finished.stdout.contains(code), "{fault}: {}", finished.stdout);
    }
}

/// Both are PoCL's.
#[test]
fn two_gpus_work_together() {
    let two = [("POCL_DEVICES", "pthread pthread")];
    run("several_gpus", &["list", "copies", "order", "train", "mirrored"], &two);
    run("several_gpus", &["hide"], &two);
    run("several_gpus", &["full"], &[two[0], ("RUST_GPU_MEMORY_MIB", "64")]);
    // A kernel of the second one.
    let lost = Loader::new().environment(pocl::environment(), "lost clEnqueueNDRangeKernel 6");
    let finished = run_on(lost, NEWEST, "several_gpus", &["lost"], &two);
    assert!(finished.stderr.contains(HAPPENED), "{}", finished.stderr);
}

/// Each process has two devices of PoCL, and one.
#[test]
fn workers_train_together() {
    run("multi_worker", &["ring=2", "auto=2"], &[("POCL_DEVICES", "pthread pthread")]);
    run("multi_worker", &["ring"], &[]);
}

/// PoCL is at the matrix products for minutes after the process has ended.
#[test]
fn a_gpu_that_takes_too_long_is_an_error_and_the_process_ends() {
    let limit = [("RUST_GPU_TIMEOUT_S", "3")];
    let error = "has not finished a batch for 3 s";
    let finished = lose_gpu("slow", error, &limit, pocl::environment(), false);
    for message in ["DeadlineExceededError", "`MatMul`", "`pthread"] {
        assert!(finished.stdout.contains(message), "{message}: {}", finished.stdout);
    }
    lose_gpu("leave", "", &[], pocl::environment(), false);
}

/// `plugins/gpu/tests/device/opencl.rs` has more of the reasons.
#[test]
fn a_gpu_that_cannot_be_used_leaves_the_cpu() {
    let lacks = Loader::new().environment(pocl::environment(), "lacks 4179 0");
    leaves_the_cpu_on(lacks, &[], "its driver has no shared virtual memory");
    let none = [("OCL_ICD_VENDORS", "/nonexistent")];
    leaves_the_cpu_on(
        pocl::environment(),
        &none,
        "install its OpenCL driver, and see whether `clinfo` lists it",
    );
    let broken =
        Loader::new().environment(pocl::environment(), "spoil clCreateProgramWithSource 1");
    leaves_the_cpu_on(broken, &[], "opencl cannot compile the shader `band`");
}

#[test]
fn no_loader_leaves_the_cpu() {
    let backend = [("RUST_GPU_BACKEND", "opencl")];
    let scratch = tempfile::tempdir().expect("a scratch directory");
    // Found before that of the system, and not a library.
    std::fs::write(scratch.path().join("libOpenCL.so.1"), "").expect("a file");
    let environment = vec![("LD_LIBRARY_PATH", scratch.path().into())];
    leaves_the_cpu_on(environment, &backend, "OpenCL has no loader here");
}

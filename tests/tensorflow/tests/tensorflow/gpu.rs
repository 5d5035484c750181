//! The device on Vulkan in real TensorFlow, on lavapipe.

use cargo_tf_plugin::{NEWEST, TensorFlow};
use faulty_vulkan::Loader;
use std::collections::BTreeMap;
use std::ffi::OsString;
use tf_plugin_conformance_tests::effort::{is_whole, one_in};
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, each_tensorflow, tensorflow};

/// Runs steps in the newest TensorFlow.
fn run(script: &str, steps: &[&str], settings: &[(&str, &str)]) -> Finished {
    run_in(NEWEST, script, steps, settings)
}

/// Runs a script of the reference device with this one, and with the validation layer, which must say nothing.
fn run_in(version: &str, script: &str, steps: &[&str], settings: &[(&str, &str)]) -> Finished {
    made_no_mistake(run_on(lavapipe::environment(), version, script, steps, settings))
}

/// Runs steps with a fault of the Vulkan loader, which must happen.
fn run_with(fault: &str, script: &str, steps: &[&str]) -> Finished {
    let environment = Loader::new().environment(lavapipe::environment(), fault);
    let finished = run_on(environment, NEWEST, script, steps, &[]);
    assert!(finished.stderr.contains(faulty_vulkan::HAPPENED), "{fault}: {}", finished.stderr);
    made_no_mistake(finished)
}

/// Fails the test if the validation layer reports a mistake.
#[track_caller]
pub(super) fn made_no_mistake(finished: Finished) -> Finished {
    let mistakes = lavapipe::mistakes(&finished.stdout);
    assert!(mistakes.is_empty(), "the validation layer: {mistakes:#?}");
    finished
}

pub(super) fn run_on(
    environment: Vec<(&'static str, OsString)>,
    version: &str,
    script: &str,
    steps: &[&str],
    settings: &[(&str, &str)],
) -> Finished {
    let python = Python::new(&tensorflow(version), &file(script)).in_a_fork();
    let finished = run_python(python, environment, steps, settings);
    if !steps.is_empty() {
        finished.must_have_done(steps);
    }
    finished
}

pub(super) fn file(script: &str) -> String {
    format!("tensorflow/python/{script}.py")
}

pub(super) fn run_python(
    python: Python,
    environment: Vec<(&'static str, OsString)>,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Finished {
    python
        .env(LIBRARY, Plugin::of("gpu").path())
        .env("TF_PLUGIN_DEVICE_TYPE", "GPU")
        .envs(environment)
        .envs(settings.iter().copied())
        .args(arguments)
        .run()
        .success()
}

/// Runs one of so many cases: of each operation, or of the layers.
pub(super) fn sample(number: usize) -> (&'static str, String) {
    ("TF_PLUGIN_SWEEP_SAMPLE", one_in(number).to_string())
}

/// The device does not say which types its kernels lack.
pub(super) const LACKS_TYPES: (&str, &str) = ("TF_PLUGIN_LACKS_TYPES", "1");

#[test]
fn each_op_computes_as_on_the_cpu() {
    // TensorFlow has kernels for the type `GPU` that are not this device's.
    let device_type = [("RUST_GPU_TYPE", "RUST_GPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    // A sweep compiles a shader for most cases: Mesa takes a third less time for it without LLVM's optimizations.
    let (name, sample) = sample(24);
    let settings = [LACKS_TYPES, (name, &*sample), ("GALLIVM_PERF", "nopt")];
    let finished = run("refdevice_sweep", &[], &[&device_type[..], &settings].concat());
    let swept = finished.done().len();
    assert!(swept > 180, "{swept} operations: {}", finished.stdout);
}

// The oldest release and the candidates let plugins change variables.
each_tensorflow!(
    oldest: [
        ops_on_variables_and_lists_compute_as_on_the_cpu ops_are_fused
        ops_on_variables_compute_as_on_the_cpu
        keras_trains_as_on_the_cpu scripts_for_a_gpu_run_unchanged
        mobile_net_trains_on_the_device_alone lstm_trains_on_the_device_alone
    ];
    older: [
        ops_on_variables_compute_as_on_the_cpu
        keras_trains_as_on_the_cpu scripts_for_a_gpu_run_unchanged
        mobile_net_trains_on_the_device_alone
    ];
    newest: [
        ops_on_variables_compute_as_on_the_cpu
        keras_trains_as_on_the_cpu scripts_for_a_gpu_run_unchanged
    ];
    candidates: [
        ops_on_variables_and_lists_compute_as_on_the_cpu ops_are_fused
        ops_on_variables_compute_as_on_the_cpu
        keras_trains_as_on_the_cpu scripts_for_a_gpu_run_unchanged
        mobile_net_trains_on_the_device_alone lstm_trains_on_the_device_alone
    ];
);

/// With kernels or without: the device has none for some types, and where TensorFlow lets no plugin have them.
fn ops_on_variables_compute_as_on_the_cpu(tensorflow: &TensorFlow) {
    let steps = ["methods", "optimizers", "random", "order", "eager"];
    run_in(tensorflow.version(), "variables", &steps, &[("GALLIVM_PERF", "nopt")]);
}

#[cfg(feature = "matrix")]
fn ops_on_variables_and_lists_compute_as_on_the_cpu(tensorflow: &TensorFlow) {
    let ops = ["GradientDescent", "Momentum", "KerasMomentum", "Adam"];
    let mut ops: Vec<_> = ops.iter().map(|op| format!("ResourceApply{op}")).collect();
    ops.extend(["Add", "Sub"].map(|op| format!("Assign{op}VariableOp")));
    let changes = ["Add", "Sub", "Update", "Max", "Min"];
    ops.extend(changes.map(|op| format!("ResourceScatter{op}")));
    ops.extend(changes.map(|op| format!("ResourceScatterNd{op}")));
    ops.extend(["ResourceScatterMul", "ResourceGather", "ResourceGatherNd"].map(String::from));
    ops.extend(["AddN", "ZerosLike"].map(String::from));
    let ops: Vec<_> = ops.iter().map(String::as_str).collect();
    let (name, sample) = sample(4);
    let settings = [LACKS_TYPES, (name, &*sample), ("REFDEVICE_SWEEP_VARIABLES", "1")];
    run_in(tensorflow.version(), "refdevice_sweep", &ops, &settings);
}

#[cfg(feature = "matrix")]
fn ops_are_fused(tensorflow: &TensorFlow) {
    let steps = ["trees=15", "shapes", "users", "controls", "session", "exports"];
    let run = |file: &str| run_in(tensorflow.version(), "fusion", &steps, &[(COUNTERS, file)]);
    counted(run);
}

fn keras_trains_as_on_the_cpu(tensorflow: &TensorFlow) {
    run_in(tensorflow.version(), "refdevice", &["train=convolutional,adam"], &[]);
}

/// Keras has other recurrent layers for the type `GPU`.
fn scripts_for_a_gpu_run_unchanged(tensorflow: &TensorFlow) {
    let steps = ["train=recurrent,adam", "train=convolutional,sgd"];
    let steps = if is_whole() { &steps[..] } else { &steps[..1] };
    let run =
        |counters: &str| run_in(tensorflow.version(), "refdevice", steps, &[(COUNTERS, counters)]);
    let (_, counts) = counted(run);
    assert!(counts.keys().any(|op| op.starts_with("CudnnRNNBackprop")), "{counts:?}");
}

#[cfg(feature = "matrix")]
fn mobile_net_trains_on_the_device_alone(tensorflow: &TensorFlow) {
    run_in(tensorflow.version(), "applications", &["MobileNetV2"], &[]);
}

#[cfg(feature = "matrix")]
fn lstm_trains_on_the_device_alone(tensorflow: &TensorFlow) {
    run_in(tensorflow.version(), "applications", &["LSTM"], &[]);
}

/// Tests in the newest TensorFlow: the steps of a script, with settings if it takes any.
macro_rules! newest {
    ($($(#[$attribute:meta])* $test:ident: $script:literal $steps:expr $(, $setting:expr)*;)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $test() {
            run($script, &$steps, &[$($setting),*]);
        }
    )*};
}
pub(super) use newest;

newest! {
    keras_trains_50_steps_as_on_the_cpu: "refdevice" ["train=dense,sgd,long"];
    /// Of `keras.applications`, and a vision transformer: no operation of a training step is on the CPU.
    an_application_trains_on_the_device_alone: "applications" ["ViT"];
    programs_compute_as_on_the_cpu: "programs" ["text", "diffusion", "agent", "speech", "recommender"];
    #[cfg(feature = "matrix")]
    large_applications_train_on_the_device_alone:
        "applications" ["EfficientNetB0", "MobileNetV2", "ResNet50"];
    #[cfg(feature = "matrix")]
    mixed_precision_trains_as_on_the_cpu: "applications" ["ViT,mixed_float16", "ViT,mixed_bfloat16"];
    a_trace_shows_the_kernels: "refdevice" ["trace"];
    ops_that_only_the_type_gpu_has_are_those_of_the_cpu: "type_gpu" ["kernels", "xla", "mistakes", "ctc", "names"];
    workers_train_together: "multi_worker" ["ring", "auto"];
    kernels_compute_as_the_cpu_at_their_edges: "edges" ["rows", "loops", "indices", "nan", "bits"];
    /// Steps that need no limit.
    programs_have_memory_threads_and_forks:
        "gpu" ["statistics", "threads", "far", "integers", "types", "fork", "twice"];
    logical_devices_are_an_error: "gpu" ["logical"];
    logical_cpus_are_not: "gpu" ["cpus"];
    memory_ends_with_an_error_and_training_goes_on:
        "gpu" ["pressure"], ("RUST_GPU_MEMORY_MIB", "64");
    float64_is_computed_on_the_device: "float64" ["keras", "physics", "random"];
    a_setting_leaves_float64_to_the_cpu: "float64" ["cpu"], ("RUST_GPU_FLOAT64", "0");
}

/// Layers, losses and optimizers of Keras: what of them is on the CPU is listed in the script.
#[test]
fn the_ops_of_keras_are_on_the_device() {
    let (name, sample) = sample(20);
    let finished = run("keras_layers", &[], &[(name, &sample)]);
    let done = finished.done().len();
    assert!(done > 7, "{done} layers: {}", finished.stdout);
}

#[test]
fn a_setting_chooses_the_type() {
    let settings = [("RUST_GPU_TYPE", "MY_GPU"), ("TF_PLUGIN_DEVICE_TYPE", "MY_GPU")];
    // With another type than `GPU` Keras runs recurrent layers as loops, of which lavapipe is slow.
    let step = if is_whole() { "train=recurrent,adam" } else { "train=dense,sgd" };
    run("refdevice", &[step], &settings);
}

#[test]
fn a_type_that_tensorflow_has_is_not_taken() {
    let settings = [("RUST_GPU_TYPE", "CPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let finished = run("refdevice", &["train=dense,sgd"], &settings);
    let message = "the device type is RUST_GPU: `CPU` cannot be one: TensorFlow has kernels for it";
    let lines = finished.stderr.lines().filter(|line| line.contains(message)).count();
    assert_eq!(lines, 1, "{}", finished.stderr);
}

/// The second one is the plugin under another name. TensorFlow would abort if both had the type.
#[test]
fn two_plugins_that_want_one_type() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let library = Plugin::of("gpu").read();
    let mut other = library.clone();
    let (name, others) = (b"RUST_GPU", b"RUST_GPV");
    let places = 0..other.len() - name.len();
    for at in places {
        if other[at..].starts_with(name) {
            other[at..at + name.len()].copy_from_slice(others);
        }
    }
    for (file, content) in [("liba.so", library), ("libb.so", other)] {
        std::fs::write(scratch.path().join(file), content).expect("a library");
    }
    let settings = [
        (LIBRARY, scratch.path().to_str().expect("UTF-8")),
        ("RUST_GPV_DEVICE_NAME", "llvmpipe"),
        ("RUST_GPV_CACHE", "0"),
    ];
    let python = Python::new(&tensorflow(NEWEST), &file("type_gpu"));
    let finished = run_python(python, lavapipe::driver(), &["beside"], &settings);
    finished.must_have_done(&["beside"]);
    let message = " and not GPU: kernels for GPU are registered already";
    let lines = finished.stderr.lines().filter(|line| line.contains(message)).count();
    assert_eq!(lines, 1, "{}", finished.stderr);
}

pub(super) const COUNTERS: &str = "RUST_GPU_COUNTERS";
const FUSED: &str = "RustGpuElementwise";

/// How often each kernel ran in `run`, which gets the file to count in.
pub(super) fn counted<T>(run: impl FnOnce(&str) -> T) -> (T, BTreeMap<String, u64>) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("UTF-8");
    let ran = run(path);
    let counts = std::fs::read(path).expect("the device has counted");
    // `{"device": "…", "AddV2": 2, "bytes": {"AddV2": 24}}`
    let counts: serde_json::Map<_, _> = serde_json::from_slice(&counts).expect("JSON");
    let counts = counts.into_iter().filter_map(|(name, count)| Some((name, count.as_u64()?)));
    (ran, counts.collect())
}

fn counts_of(script: &str, steps: &[&str], settings: &[(&str, &str)]) -> BTreeMap<String, u64> {
    counted(|counters| run(script, steps, &[settings, &[(COUNTERS, counters)]].concat())).1
}

#[test]
fn fused_ops_compute_what_they_do_one_by_one() {
    let (steps, least) = match is_whole() {
        true => (["ops", "trees=60", "shapes"], 200),
        false => (["ops=sample", "trees=6", "shapes=sample"], 20),
    };
    let counts = counts_of("fusion", &steps, &[]);
    assert!(counts[FUSED] > least, "{counts:?}");
}

#[test]
fn fusion_keeps_what_others_use_and_wait_for() {
    let functions = if is_whole() { "functions" } else { "functions=sample" };
    let steps = [
        "users",
        "controls",
        functions,
        "session",
        "common",
        "changes",
        "updates",
        "conversions",
        "chains",
        "exports",
    ];
    counts_of("fusion", &steps, &[]);
}

#[test]
fn patterns_are_found_and_computed_as_on_the_cpu() {
    counts_of(
        "patterns",
        &["written", "layers", "biases", "rows", "groups", "others", "order", "finite"],
        &[],
    );
    counts_of("patterns", &["off"], &[("RUST_GPU_FUSE", "0")]);
}

/// Of all types, also where a GPU has matrix units.
pub(super) const ATTENTION: (&str, &str) = ("RUST_GPU_FUSE_ATTENTION", "1");

#[test]
fn attention_is_found_and_computed_as_on_the_cpu() {
    let steps = match is_whole() {
        true => ["shapes", "masks", "types", "written", "layers", "special", "others", "memory"],
        false => [
            "shapes=sample",
            "masks=sample",
            "types=sample",
            "written",
            "layers",
            "special",
            "others",
            "memory",
        ],
    };
    counts_of("attention", &steps, &[ATTENTION]);
    let without = [("RUST_GPU_FUSE", "0"), ("RUST_GPU_FUSE_ATTENTION", "0")];
    for setting in without {
        counts_of("attention", &["off"], &[setting]);
    }
}

/// The type that the device has, and not the one that TensorFlow refused.
#[test]
fn ops_are_fused_on_devices_of_another_type() {
    let settings = [("RUST_GPU_TYPE", "CPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let counts = counts_of("fusion", &["chains"], &settings);
    assert!(counts[FUSED] > 0, "{counts:?}");
}

#[test]
fn a_setting_switches_fusion_off() {
    let counts = counts_of("fusion", &["off"], &[("RUST_GPU_FUSE", "0")]);
    assert!(!counts.contains_key(FUSED), "{counts:?}");
}

#[test]
fn a_transformer_trains_as_on_the_cpu() {
    let launches = counts_of("refdevice", &["transformer"], &[]);
    assert!(launches.contains_key(FUSED), "{launches:?}");
}

/// With fusion, which is the default, it takes fewer launches, and has the CPU's losses either way.
#[cfg(feature = "matrix")]
#[test]
fn a_transformer_takes_fewer_launches_with_fusion() {
    let [with, without] = [&[][..], &[("RUST_GPU_FUSE", "0")]]
        .map(|settings| counts_of("refdevice", &["transformer"], settings));
    let [fused, all] = [&with, &without].map(|counts| counts.values().sum::<u64>());
    assert!(!without.contains_key(FUSED), "{without:?}");
    assert!(
        fused * 10 < all * 9,
        "{fused} launches with fusion, {all} without: {with:?} {without:?}"
    );
}

/// Steps whose results a wrong order changes. What waits for the GPU too little has luck otherwise; and batches
/// of two streams are sent in either order.
#[test]
fn late_streams_change_nothing() {
    let (late_end, late_submit) = ("late vkEndCommandBuffer 5", "late vkQueueSubmit 5");
    run_with(late_end, "variables", &["order"]);
    run_with(late_submit, "refdevice", &["constants"]);
    if is_whole() {
        run_with(late_submit, "variables", &["order"]);
        run_with(late_end, "refdevice", &["constants"]);
        for fault in [late_end, late_submit] {
            run_with(fault, "refdevice", &["train=convolutional,sgd"]);
        }
    }
}

#[track_caller]
fn leaves_the_cpu(settings: &[(&str, &str)], message: &str) {
    leaves_the_cpu_on(lavapipe::environment(), settings, message);
}

#[track_caller]
pub(super) fn leaves_the_cpu_on(
    environment: Vec<(&'static str, OsString)>,
    settings: &[(&str, &str)],
    message: &str,
) {
    let finished = run_on(environment, NEWEST, "refdevice", &["refused"], settings);
    let lines = finished.stderr.lines().filter(|line| line.contains("RUST_GPU has no devices"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() == 1 && lines[0].contains(message), "{message}: {}", finished.stderr);
}

/// `plugins/gpu/tests/device/refused.rs` has all features.
#[test]
fn a_gpu_that_lacks_a_feature_leaves_the_cpu() {
    let loader = Loader::new();
    let lacks = "lacks buffer_device_address 0";
    let environment = loader.environment(lavapipe::environment(), lacks);
    leaves_the_cpu_on(environment, &[], "its driver has no buffer device addresses");
}

#[test]
fn a_gpu_without_float64_leaves_it_to_the_cpu() {
    let lacks = Loader::new().environment(lavapipe::environment(), "lacks shader_float64 0");
    run_on(lacks, NEWEST, "float64", &["cpu"], &[]);
}

/// Of lavapipe, which is registered twice.
#[test]
fn two_gpus_work_together() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let all = ["list", "copies", "order", "train", "mirrored"];
    let steps = if is_whole() { &all[..] } else { &all[..3] };
    run_on(lavapipe::two_gpus(scratch.path()), NEWEST, "several_gpus", steps, &[]);
}

/// The driver has too little memory for a region once. TensorFlow then requests a smaller one.
#[test]
fn training_goes_on_in_a_smaller_region() {
    run_with("full vkAllocateMemory 2", "gpu", &["train"]);
}

#[test]
fn a_missing_loader_leaves_the_cpu() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    // Found before that of the system, and not a library.
    std::fs::write(scratch.path().join("libvulkan.so.1"), "").expect("a file");
    let path = scratch.path().to_str().expect("UTF-8");
    leaves_the_cpu(&[("LD_LIBRARY_PATH", path)], "install `libvulkan1` or the GPU's driver");
}

#[test]
fn a_missing_driver_leaves_the_cpu() {
    let none = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    leaves_the_cpu(&none, "install the Vulkan driver of the GPU");
}

//! The device on Vulkan in real TensorFlow, on lavapipe.

use faulty_vulkan::Loader;
use std::collections::BTreeMap;
use std::ffi::OsString;
use tf_plugin_conformance_tests::effort::{is_whole, one_in};
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, tensorflow};

fn run(script: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Finished {
    run_in(cargo_tf_plugin::NEWEST, script, arguments, settings)
}

/// Runs a script of the reference device with this one, and with the validation layer, which must say nothing.
fn run_in(version: &str, script: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Finished {
    let finished = run_on(lavapipe::environment(), version, script, arguments, settings);
    let mistakes = lavapipe::mistakes(&finished.stdout);
    assert!(mistakes.is_empty(), "the validation layer: {mistakes:#?}");
    finished
}

pub(super) fn run_on(
    environment: Vec<(&'static str, OsString)>,
    version: &str,
    script: &str,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Finished {
    let python = Python::new(&tensorflow(version), &file(script)).in_a_fork();
    run_python(python, environment, arguments, settings)
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
    let mut python = python
        .env(LIBRARY, Plugin::of("gpu").path())
        .env("TF_PLUGIN_DEVICE_TYPE", "GPU")
        .args(arguments);
    for (name, value) in environment {
        python = python.env(name, value);
    }
    for (name, value) in settings {
        python = python.env(name, value);
    }
    python.run().success()
}

/// Runs one of so many cases: of each operation, or of the layers.
pub(super) fn sample(number: usize) -> (&'static str, String) {
    ("TF_PLUGIN_SWEEP_SAMPLE", one_in(number).to_string())
}

/// The device does not say which types its kernels lack.
pub(super) const LACKS_TYPES: (&str, &str) = ("TF_PLUGIN_LACKS_TYPES", "1");

#[test]
fn each_operation_answers_as_on_the_cpu() {
    // TensorFlow has kernels for the type `GPU` that are not this device's.
    let own = [("RUST_GPU_TYPE", "RUST_GPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    // A sweep compiles a shader for most cases: Mesa takes a third less time for it without LLVM's optimizations.
    let (name, sample) = sample(16);
    let settings = [LACKS_TYPES, (name, &*sample), ("GALLIVM_PERF", "nopt")];
    let settings = [&own[..], &settings].concat();
    let finished = run("refdevice_sweep", &[], &settings);
    let swept = finished.done().len();
    assert!(swept > 180, "{swept} operations: {}", finished.stdout);
}

/// TensorFlow has the functions that they need again in 2.22.
#[cfg(feature = "matrix")]
macro_rules! with_optimizers {
    ($($module:ident $version:literal;)*) => {$(
        mod $module {
            #[test]
            fn what_changes_variables_and_lists_answers_as_on_the_cpu() {
                let ops = ["GradientDescent", "Momentum", "KerasMomentum", "Adam"];
                let mut ops: Vec<_> = ops.iter().map(|op| format!("ResourceApply{op}")).collect();
                ops.extend(["Add", "Sub"].map(|op| format!("Assign{op}VariableOp")));
                let changes = ["Add", "Sub", "Update", "Max", "Min"];
                ops.extend(changes.map(|op| format!("ResourceScatter{op}")));
                ops.extend(changes.map(|op| format!("ResourceScatterNd{op}")));
                ops.extend(["ResourceScatterMul", "ResourceGather", "ResourceGatherNd"].map(String::from));
                ops.extend(["AddN", "ZerosLike"].map(String::from));
                let ops: Vec<_> = ops.iter().map(String::as_str).collect();
                let (name, sample) = super::sample(4);
                let settings =
                    [super::LACKS_TYPES, (name, &*sample), ("REFDEVICE_SWEEP_VARIABLES", "1")];
                let finished = super::run_in($version, "refdevice_sweep", &ops, &settings);
                for op in ops {
                    let is_swept = |line: &str| line.starts_with(&format!("ok {op} "));
                    assert!(finished.stdout.lines().any(is_swept), "{op}: {}", finished.stdout);
                }
            }

            #[test]
            fn ops_are_fused() {
                super::fusion_in($version, &["trees=15", "shapes", "users", "controls", "session", "exports"], &[]);
            }

            #[test]
            fn keras_trains_as_on_the_cpu() {
                super::step_in($version, "train=convolutional,adam");
            }

            #[test]
            fn scripts_for_a_gpu_run_unchanged() {
                super::scripts_for_a_gpu_run_in($version);
            }

            #[test]
            fn an_application_trains_on_the_device_alone() {
                super::applications_in($version, &["MobileNetV2", "LSTM"]);
            }
        }
    )*};
}

#[cfg(feature = "matrix")]
with_optimizers! {
    tensorflow_2_12_1 "2.12.1";
    tensorflow_2_16_2 "2.16.2";
    tensorflow_2_18_1 "2.18.1";
    tensorflow_2_22_0rc0 "2.22.0rc0";
}

/// Besides the newest, one that lets no plugin change variables.
#[cfg(feature = "matrix")]
mod tensorflow_2_20_0 {
    const VERSION: &str = "2.20.0";

    #[test]
    fn keras_trains_as_on_the_cpu() {
        super::step_in(VERSION, "train=convolutional,adam");
    }

    #[test]
    fn scripts_for_a_gpu_run_unchanged() {
        super::scripts_for_a_gpu_run_in(VERSION);
    }

    #[test]
    fn an_application_trains_on_the_device_alone() {
        super::applications_in(VERSION, &["MobileNetV2"]);
    }
}

fn step(what: &str) {
    step_in(cargo_tf_plugin::NEWEST, what);
}

/// A step of `refdevice.py`.
fn step_in(version: &str, what: &str) {
    let finished = run_in(version, "refdevice", &[what], &[]);
    finished.must_have_done(what);
}

#[test]
fn keras_trains_50_steps_as_on_the_cpu() {
    step("train=dense,sgd,long");
}

#[test]
fn keras_trains_a_convolutional_network_as_on_the_cpu() {
    step("train=convolutional,adam");
}

/// Keras has other recurrent layers for the type `GPU`.
fn scripts_for_a_gpu_run_in(version: &str) {
    let counts = counted(|counters| {
        let steps = ["train=recurrent,adam", "train=convolutional,sgd"];
        let steps = if is_whole() { &steps[..] } else { &steps[..1] };
        let finished = run_in(version, "refdevice", steps, &[(COUNTERS, counters)]);
        for step in steps {
            assert!(finished.stdout.contains(&format!("ok {step}")), "{}", finished.stdout);
        }
    });
    assert!(counts.keys().any(|op| op.starts_with("CudnnRNNBackprop")), "{counts:?}");
}

#[test]
fn scripts_for_a_gpu_run_unchanged() {
    scripts_for_a_gpu_run_in(cargo_tf_plugin::NEWEST);
}

/// Of `keras.applications`, and a vision transformer: no operation of a training step is on the CPU.
fn applications_in(version: &str, models: &[&str]) {
    let finished = run_in(version, "applications", models, &[]);
    for model in models {
        finished.must_have_done(model);
    }
}

#[test]
fn an_application_trains_on_the_device_alone() {
    applications_in(cargo_tf_plugin::NEWEST, &["ViT"]);
}

/// Layers, losses and optimizers of Keras: what of them is on the CPU is listed in the script.
#[test]
fn what_keras_has_is_on_the_device() {
    let (name, sample) = sample(20);
    let finished = run("keras_layers", &[], &[(name, &sample)]);
    let done = finished.done().len();
    assert!(done > 7, "{done} layers: {}", finished.stdout);
}

#[cfg(feature = "matrix")]
#[test]
fn large_applications_train_on_the_device_alone() {
    applications_in(cargo_tf_plugin::NEWEST, &["EfficientNetB0", "MobileNetV2", "ResNet50"]);
}

#[cfg(feature = "matrix")]
#[test]
fn mixed_precision_trains_as_on_the_cpu() {
    applications_in(cargo_tf_plugin::NEWEST, &["ViT,mixed_float16", "ViT,mixed_bfloat16"]);
}

#[test]
fn a_setting_chooses_the_type() {
    let settings = [("RUST_GPU_TYPE", "MY_CARD"), ("TF_PLUGIN_DEVICE_TYPE", "MY_CARD")];
    // With another type than `GPU` Keras runs recurrent layers as loops, of which lavapipe is slow.
    let step = if is_whole() { "train=recurrent,adam" } else { "train=dense,sgd" };
    run("refdevice", &[step], &settings).must_have_done(step);
}

#[test]
fn a_type_that_tensorflow_has_is_not_taken() {
    let settings = [("RUST_GPU_TYPE", "CPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let finished = run("refdevice", &["train=dense,sgd"], &settings);
    let said = "the device type is RUST_GPU: `CPU` cannot be one: TensorFlow has kernels for it";
    let lines = finished.stderr.lines().filter(|line| line.contains(said)).count();
    assert_eq!(lines, 1, "{}", finished.stderr);
}

/// Steps of `fusion.py`, and how often each kernel ran.
fn fusion_in(version: &str, steps: &[&str], settings: &[(&str, &str)]) -> BTreeMap<String, u64> {
    counted(|counters| {
        let settings = [settings, &[(COUNTERS, counters)]].concat();
        let finished = run_in(version, "fusion", steps, &settings);
        for step in steps {
            finished.must_have_done(step);
        }
    })
}

pub(super) const COUNTERS: &str = "RUST_GPU_COUNTERS";
const FUSED: &str = "RustGpuElementwise";

/// What the device has counted while `run` ran with the file.
pub(super) fn counted(run: impl FnOnce(&str)) -> BTreeMap<String, u64> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("UTF-8");
    run(path);
    let counts = std::fs::read_to_string(path).expect("the device has counted");
    // `{"card": "…", "AddV2": 2}`
    let counts = counts.trim().trim_matches(['{', '}']).split(", ");
    let counts = counts.filter_map(|entry| {
        let (name, count) = entry.split_once(": ")?;
        Some((name.trim_matches('"').to_owned(), count.parse().ok()?))
    });
    counts.collect()
}

#[test]
fn fused_ops_compute_what_they_do_one_by_one() {
    let (steps, least) = match is_whole() {
        true => (["ops", "trees=60", "shapes"], 200),
        false => (["ops=sample", "trees=6", "shapes=sample"], 20),
    };
    let counts = fusion_in(cargo_tf_plugin::NEWEST, &steps, &[]);
    assert!(counts[FUSED] > least, "{counts:?}");
}

#[test]
fn fusion_keeps_what_others_use_and_wait_for() {
    let functions = if is_whole() { "functions" } else { "functions=sample" };
    let steps = ["users", "controls", functions, "session", "chains", "exports"];
    fusion_in(cargo_tf_plugin::NEWEST, &steps, &[]);
}

/// The type that the device has, and not the one that TensorFlow refused.
#[test]
fn ops_are_fused_on_devices_of_another_type() {
    let settings = [("RUST_GPU_TYPE", "CPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let counts = fusion_in(cargo_tf_plugin::NEWEST, &["chains"], &settings);
    assert!(counts[FUSED] > 0, "{counts:?}");
}

#[test]
fn a_setting_switches_fusion_off() {
    let counts = fusion_in(cargo_tf_plugin::NEWEST, &["off"], &[("RUST_GPU_FUSE", "0")]);
    assert!(!counts.contains_key(FUSED), "{counts:?}");
}

/// What a transformer's training has launched, of which the losses are the CPU's.
fn launches_of_a_transformer(settings: &[(&str, &str)]) -> BTreeMap<String, u64> {
    counted(|counters| {
        let settings = [settings, &[(COUNTERS, counters)]].concat();
        let finished = run_in(cargo_tf_plugin::NEWEST, "refdevice", &["transformer"], &settings);
        assert!(finished.stdout.contains("ok transformer"), "{}", finished.stdout);
    })
}

#[test]
fn a_transformer_trains_as_on_the_cpu() {
    let launches = launches_of_a_transformer(&[]);
    assert!(launches.contains_key(FUSED), "{launches:?}");
}

/// With fusion, which is the default, it takes fewer launches, and has the CPU's losses either way.
#[cfg(feature = "matrix")]
#[test]
fn a_transformer_takes_fewer_launches_with_fusion() {
    let [with, without] = [&[][..], &[("RUST_GPU_FUSE", "0")]].map(launches_of_a_transformer);
    let [fused, all] = [&with, &without].map(|counts| counts.values().sum::<u64>());
    assert!(!without.contains_key(FUSED), "{without:?}");
    assert!(
        fused * 10 < all * 9,
        "{fused} launches with fusion, {all} without: {with:?} {without:?}"
    );
}

/// Steps of `refdevice.py` whose results a wrong order changes. What waits for the card too little has luck otherwise; and batches
/// of two streams are sent in either order.
#[test]
fn late_streams_change_nothing() {
    let all = [("late vkEndCommandBuffer 5", "updates"), ("late vkQueueSubmit 5", "constants")];
    let loader = Loader::new();
    for (fault, step) in all {
        let steps = match is_whole() {
            true => &["updates", "constants", "train=convolutional,sgd"][..],
            false => &[step],
        };
        let environment = loader.environment(lavapipe::environment(), fault);
        let finished = run_on(environment, cargo_tf_plugin::NEWEST, "refdevice", steps, &[]);
        let mistakes = lavapipe::mistakes(&finished.stdout);
        assert!(mistakes.is_empty(), "{fault}: the validation layer: {mistakes:#?}");
        assert_eq!(finished.done().len(), steps.len(), "{fault}: {}", finished.stdout);
        assert!(finished.stderr.contains(faulty_vulkan::HAPPENED), "{fault}: {}", finished.stderr);
    }
}

/// Steps of `card.py` that need no limit.
#[test]
fn programs_have_memory_threads_and_forks() {
    let steps = ["statistics", "threads", "far", "fork", "twice"];
    let finished = run("card", &steps, &[]);
    assert_eq!(finished.done().len(), steps.len(), "{}", finished.stdout);
}

#[test]
fn a_trace_shows_the_kernels() {
    step("trace");
}

#[test]
fn memory_ends_with_an_error_and_training_goes_on() {
    run("card", &["pressure"], &[("RUST_GPU_MEMORY_MIB", "64")]).must_have_done("pressure");
}

#[track_caller]
fn leaves_the_cpu(settings: &[(&str, &str)], said: &str) {
    leaves_the_cpu_on(lavapipe::environment(), settings, said);
}

#[track_caller]
pub(super) fn leaves_the_cpu_on(
    environment: Vec<(&'static str, OsString)>,
    settings: &[(&str, &str)],
    said: &str,
) {
    let newest = cargo_tf_plugin::NEWEST;
    let finished = run_on(environment, newest, "refdevice", &["refused"], settings);
    finished.must_have_done("refused");
    let lines = finished.stderr.lines().filter(|line| line.contains("RUST_GPU has no devices"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() == 1 && lines[0].contains(said), "{said}: {}", finished.stderr);
}

/// `examples/gpu/tests/card/refused.rs` has all features.
#[test]
fn a_card_that_lacks_a_feature_leaves_the_cpu() {
    let loader = Loader::new();
    let lacks = "lacks buffer_device_address 0";
    let environment = loader.environment(lavapipe::environment(), lacks);
    leaves_the_cpu_on(environment, &[], "its driver has no buffer device addresses");
}

/// The driver has too little memory for a region once. TensorFlow then requests a smaller one.
#[test]
fn training_goes_on_in_a_smaller_region() {
    let loader = Loader::new();
    let environment = loader.environment(lavapipe::environment(), "full vkAllocateMemory 2");
    let finished = run_on(environment, cargo_tf_plugin::NEWEST, "card", &["train"], &[]);
    finished.must_have_done("train");
    assert!(finished.stderr.contains(faulty_vulkan::HAPPENED), "{}", finished.stderr);
    let mistakes = lavapipe::mistakes(&finished.stdout);
    assert!(mistakes.is_empty(), "the validation layer: {mistakes:#?}");
}

#[test]
fn a_missing_loader_leaves_the_cpu() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    // Found before that of the system, and not a library.
    std::fs::write(scratch.path().join("libvulkan.so.1"), "").expect("a file");
    let path = scratch.path().to_str().expect("UTF-8");
    leaves_the_cpu(&[("LD_LIBRARY_PATH", path)], "install `libvulkan1` or the card's driver");
}

#[test]
fn a_missing_driver_leaves_the_cpu() {
    let none = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    leaves_the_cpu(&none, "install the Vulkan driver of the card");
}

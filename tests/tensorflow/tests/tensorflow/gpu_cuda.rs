//! The device on CUDA in real TensorFlow: on the CPU, by `cpu-cuda`, which compiles each shader with each of its
//! constants by the machine's C++ compiler.

use super::gpu::{
    ATTENTION, COUNTERS, LACKS_TYPES, counted, leaves_the_cpu_on, newest, run_on, sample,
};
use super::gpu_lost::lose_gpu;
use cargo_tf_plugin::NEWEST;
use cpu_cuda::{Cuda, DEVICES, HAPPENED, SLOW, TRAPS};
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::child::Finished;

/// No other backend is taken in its place.
const CUDA: (&str, &str) = ("RUST_GPU_BACKEND", "cuda");

fn run(script: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Finished {
    let settings = [settings, &[CUDA]].concat();
    run_on(Cuda::new().environment(None), NEWEST, script, arguments, &settings)
}

/// Without names, all ops.
fn sweep(cuda: &Cuda, fault: Option<&str>, ops: &[&str], settings: &[(&str, &str)]) -> Finished {
    let device_type = [("RUST_GPU_TYPE", "RUST_GPU"), ("TF_PLUGIN_DEVICE_TYPE", "RUST_GPU")];
    let (name, sample) = sample(16);
    let settings = [&device_type[..], &[LACKS_TYPES, (name, &sample), CUDA], settings].concat();
    run_on(cuda.environment(fault), NEWEST, "refdevice_sweep", ops, &settings)
}

/// Ops that no training runs; `each_op_computes_as_on_the_cpu` runs all.
#[test]
fn operations_answer_as_on_the_cpu() {
    let ops = [
        "ArgMax",
        "MatMul",
        "SelectV2",
        "StatelessRandomGetKeyCounter",
        "StatelessTruncatedNormalV2",
        "StridedSlice",
        "TensorScatterAdd",
        "Tan",
        "TopKV2",
    ];
    sweep(&Cuda::new(), None, &ops, &[]);
}

/// The emulator has two. What a sample of the tests leaves out takes minutes, of which the compiler of programs takes most.
#[test]
fn two_gpus_work_together() {
    let two = (DEVICES, "2");
    let run = |fault, steps: &[&str], settings: &[(&str, &str)]| {
        let settings = [settings, &[two, CUDA]].concat();
        let environment = Cuda::new().environment(fault);
        run_on(environment, NEWEST, "several_gpus", steps, &settings)
    };
    run(None, &["list", "copies", "order"], &[]);
    if is_whole() {
        run(None, &["train", "mirrored"], &[]);
        run(None, &["hide"], &[]);
        run(None, &["full"], &[("RUST_GPU_MEMORY_MIB", "64")]);
    }
    // A kernel of the second one.
    let finished = run(Some("lost cuLaunchKernel 6"), &["lost"], &[]);
    assert!(finished.stderr.contains(HAPPENED), "{}", finished.stderr);
    // Both calls are made; without them the copies go another way.
    let by_the_host = "RUST_GPU copies between GPUs through the host: ";
    for (fault, lines) in [("fail cuCtxEnablePeerAccess 1", 0), ("fail cuMemcpyPeerAsync 2", 1)] {
        let finished = run(Some(fault), &["copies", "order"], &[]);
        assert!(finished.stderr.contains(HAPPENED), "{fault}: {}", finished.stderr);
        let found = finished.stderr.matches(by_the_host).count();
        assert_eq!(found, lines, "{fault}: {}", finished.stderr);
    }
}

/// In C++ the overflow of a signed integer is undefined: here it ends the process.
#[test]
fn integers_wrap_as_on_the_cpu() {
    // All cases: a sample may have no int64.
    let settings = [(TRAPS, "1"), ("TF_PLUGIN_SWEEP_SAMPLE", "1")];
    sweep(&Cuda::new(), None, &["Abs", "AddN", "Neg", "Square"], &settings);
}

/// By default as on the CPU.
#[test]
fn float32_is_multiplied_as_tf32_if_the_user_wants() {
    let run = |step: &str, settings: &[(&str, &str)]| {
        let settings = [settings, &[CUDA]].concat();
        let environment = Cuda::with_libraries().environment(None);
        let finished = run_on(environment, NEWEST, "gpu", &[step], &settings);
        assert!(!finished.stderr.contains("without cuDNN"), "{}", finished.stderr);
    };
    run("exact", &[]);
    run("tf32", &[("RUST_GPU_TF32", "1")]);
}

/// In the place of shaders.
#[test]
fn nvidias_libraries_multiply_and_convolve_as_on_the_cpu() {
    let ops = ["MatMul", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"];
    let cuda = Cuda::with_libraries();
    let (finished, launches) =
        counted(|counters| sweep(&cuda, None, &ops, &[(COUNTERS, counters)]));
    assert!(!finished.stderr.contains("cuDNN"), "{}", finished.stderr);
    // Where images are padded more behind than before, they are copied first.
    for op in &ops[1..] {
        let mut lines = finished.stdout.lines();
        let cases = lines.find_map(|line| line.strip_prefix(&format!("ok {op} ")));
        let cases: u64 = cases.and_then(|cases| cases.parse().ok()).expect("a number of cases");
        assert!(launches[*op] > cases, "{op}: {launches:?}");
    }
}

/// What cuDNN says to be the fastest is the slowest here. The choice is kept for other processes.
#[test]
fn the_fastest_way_to_convolve_is_chosen_by_trial() {
    let ops = ["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"];
    let cache = tempfile::tempdir().expect("a directory");
    let directory = cache.path().join("programs");
    let chosen = |ops: &[&str], settings: &[(&str, &str)]| {
        let directory = directory.to_str().expect("UTF-8");
        let ours = [
            ("RUST_GPU_CACHE", directory),
            (SLOW, "20"),
            ("TF_CPP_MIN_LOG_LEVEL", "0"),
            ("TF_CPP_MAX_VLOG_LEVEL", "1"),
        ];
        let finished = sweep(&Cuda::with_libraries(), None, ops, &[&ours, settings].concat());
        let lines = finished.stderr.lines().filter(|line| line.contains("RUST_GPU computes "));
        lines.map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&ops[..1], &[("RUST_GPU_CUDNN_AUTOTUNE", "0")]), [""; 0]);
    let first = chosen(&ops, &[]);
    for kind in ["Forward", "BackwardData", "BackwardFilter"] {
        let is_of_kind =
            |line: &&String| line.contains(&format!(" computes {kind} of float32 by "));
        let line = first.iter().find(is_of_kind).unwrap_or_else(|| panic!("{kind}: {first:#?}"));
        let is_slow = line.contains("fwd_algo_gemm)") || line.contains("algo_1)");
        assert!(!is_slow, "{line}");
    }
    assert_eq!(chosen(&ops[..1], &[]), [""; 0]);
}

#[test]
fn the_shader_convolves_where_cudnn_fails() {
    // The first 24 calls of each compare both layouts with the host.
    let failed =
        "RUST_GPU uses its own kernels: cuDNN cannot convolve: CUDNN_STATUS_EXECUTION_FAILED";
    let wrong = "RUST_GPU does without cuDNN for convolutions (float32, images): it computes";
    let faults = [
        ("skip cudnnConvolutionForward 1", "Conv2D", wrong),
        ("fail cudnnConvolutionBackwardFilter 25", "Conv2DBackpropFilter", failed),
        ("fail cudnnConvolutionForward 25", "Conv2D", failed),
        ("fail cudnnConvolutionBackwardData 25", "Conv2DBackpropInput", failed),
    ];
    // An algorithm that fails in the trial is left out.
    let left_out = "RUST_GPU convolves without an algorithm (cudnn: channels last, forward(";
    let tried = [("fail cudnnConvolutionForward 25", "Conv2D", left_out)];
    let first = &faults[..if is_whole() { 4 } else { 2 }];
    for (autotune, (fault, op, warning)) in
        first.iter().map(|fault| ("0", fault)).chain(tried.iter().map(|fault| ("1", fault)))
    {
        let settings = [("RUST_GPU_CUDNN_AUTOTUNE", autotune)];
        let finished = sweep(&Cuda::with_libraries(), Some(fault), &[op], &settings);
        let lines = finished.stderr.lines().filter(|line| line.contains(*warning)).count();
        assert_eq!(lines, 1, "{fault}: {}", finished.stderr);
    }
}

/// The rest of the batch, and everything later, has the error of the GPU.
#[test]
fn a_gpu_that_is_lost_in_cudnn_is_an_error() {
    let cuda = Cuda::with_libraries();
    let fault = cuda.environment(Some("lost cudnnConvolutionForward 25"));
    let finished = lose_gpu("convolve", "CUDA_ERROR_LAUNCH_FAILED", &[CUDA], fault, true);
    assert!(finished.stderr.contains(cpu_cuda::HAPPENED), "{}", finished.stderr);
    // The trial of algorithms waits for the GPU, too.
    let fault = cuda.environment(Some("hang cudnnConvolutionForward 25"));
    let settings = [CUDA, ("RUST_GPU_TIMEOUT_S", "2")];
    let finished = lose_gpu("convolve", "has not finished a batch for 2 s", &settings, fault, true);
    assert!(finished.stderr.contains(cpu_cuda::HAPPENED), "{}", finished.stderr);
}

#[cfg(feature = "matrix")]
#[test]
fn nvidias_libraries_compute_all_products_as_on_the_cpu() {
    let ops = [
        "BatchMatMul",
        "BatchMatMulV2",
        "Conv3D",
        "Conv3DBackpropFilterV2",
        "Conv3DBackpropInputV2",
        "Einsum",
    ];
    // Some take seconds on the CPU; each would be timed in several ways.
    sweep(&Cuda::with_libraries(), None, &ops, &[("RUST_GPU_CUDNN_AUTOTUNE", "0")]);
}

#[cfg(feature = "matrix")]
#[test]
fn each_op_computes_as_on_the_cpu() {
    let swept = sweep(&Cuda::new(), None, &[], &[]).done().len();
    assert!(swept > 100, "{swept} operations");
}

#[test]
fn keras_trains_as_on_the_cpu() {
    let all = ["train=convolutional,adam", "trace", "transformer"];
    let steps = if is_whole() { &all[..] } else { &all[..2] };
    run("refdevice", steps, &[]);
}

#[test]
fn attention_is_computed_as_on_the_cpu() {
    let all = ["shapes", "masks", "types", "written", "special", "layers"];
    let sample = ["shapes=sample", "masks=sample", "types=sample", "special"];
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

newest! {
    #[cfg(feature = "matrix")]
    applications_train_on_the_device_alone: "applications" ["MobileNetV2", "ViT"];
    memory_ends_with_an_error_and_training_goes_on:
        "gpu" ["pressure"], ("RUST_GPU_MEMORY_MIB", "64");
    sums_have_the_same_bits_each_time: "edges" ["bits"];
    /// TensorFlow reads memory of the GPU as if it were the host's if the lengths are there.
    an_op_with_lengths_runs_by_itself: "gpu" ["lengths"];
}

/// `plugins/gpu/tests/device/lost.rs` has more of the calls.
#[test]
fn a_lost_gpu_is_an_error_for_good() {
    let cuda = Cuda::new();
    for (function, number) in [("cuLaunchKernel", 3), ("cuModuleLoadData", 2), ("cuEventQuery", 5)]
    {
        let environment = cuda.environment(Some(&format!("lost {function} {number}")));
        let error = "CUDA_ERROR_LAUNCH_FAILED";
        let finished = lose_gpu("lost", error, &[CUDA], environment, true);
        assert!(finished.stderr.contains(cpu_cuda::HAPPENED), "{function}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{function}: {}", finished.stderr);
    }
}

#[test]
fn a_driver_without_nvrtc_leaves_the_cpu() {
    let cuda = Cuda::without_nvrtc();
    let message = "run `pip install nvidia-cuda-nvrtc-cu12`";
    leaves_the_cpu_on(cuda.environment(None), &[CUDA], message);
    // Where Vulkan has no GPU either, the line has both reasons.
    leaves_the_cpu_on(cuda.environment(None), &[("RUST_GPU_DEVICE_NAME", "arc")], message);
}

#[test]
fn vulkan_is_used_where_cuda_cannot_be_and_a_line_says_why() {
    let cuda = Cuda::without_nvrtc();
    let mut environment = cuda.environment(None);
    for (name, value) in lavapipe::driver() {
        match environment.iter_mut().find(|(known, _)| *known == name) {
            Some((_, libraries)) => {
                libraries.push(":");
                libraries.push(value);
            }
            None => environment.push((name, value)),
        }
    }
    let finished = run_on(environment, NEWEST, "refdevice", &["train=dense,sgd"], &[]);
    let message = "RUST_GPU uses Vulkan for `llvmpipe";
    let lines: Vec<_> = finished.stderr.lines().filter(|line| line.contains(message)).collect();
    assert!(lines.len() == 1 && lines[0].contains("NVRTC"), "{}", finished.stderr);
}

#[test]
fn no_driver_leaves_the_cpu() {
    leaves_the_cpu_on(Vec::new(), &[CUDA], "cannot load `libcuda.so.1`");
}

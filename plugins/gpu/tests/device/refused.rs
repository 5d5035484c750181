//! Tests GPUs that cannot be used, and the errors.

use crate::run;
use cpu_cuda::Cuda;
use faulty_vulkan::Loader;
use gpu::GpuPlatform;
use libtest_mimic::Trial;
use se_plugin::Platform as _;

/// The start of a process's task that opens no GPU: a part of the error follows.
pub(crate) const ERROR: &str = "refused: ";

/// Features that lavapipe lacks in a test, and parts of the errors.
const LACKS: [(&str, &str); 8] = [
    ("vulkan_1_3", "its driver is older than Vulkan 1.3"),
    ("buffer_device_address", "its driver has no buffer device addresses"),
    ("timeline_semaphore", "its driver has no timeline semaphores"),
    ("scalar_block_layout", "its driver has no scalar block layout"),
    ("storage_buffer8_bit_access", "its shaders cannot access bytes"),
    ("storage_buffer16_bit_access", "its shaders cannot access 16-bit numbers"),
    ("shader_int64", "its shaders have no 64-bit integers"),
    ("compute_queue", "it has no queue for compute"),
];

/// Settings that are not understood, or name no GPU, and parts of the errors.
const SETTINGS: [(&str, &str, &str); 13] = [
    (
        "RUST_GPU_BACKEND",
        "metal",
        "RUST_GPU_BACKEND=metal is not understood; write RUST_GPU_BACKEND=cuda, ",
    ),
    ("RUST_GPU_CACHE", "here", "RUST_GPU_CACHE=here is not understood; write RUST_GPU_CACHE=/"),
    (
        "RUST_GPU_DEVICE_NAME",
        "arc",
        "RUST_GPU_DEVICE_NAME is `arc`, and no GPU can be used by Vulkan: `llvmpipe",
    ),
    (
        "RUST_GPU_COOPERATIVE_MATRICES",
        "no",
        "is not understood; write RUST_GPU_COOPERATIVE_MATRICES=0",
    ),
    ("RUST_GPU_FLOAT64", "no", "RUST_GPU_FLOAT64=no is not understood; write RUST_GPU_FLOAT64=0"),
    (
        "RUST_GPU_FUSE",
        "off",
        "RUST_GPU_FUSE=off is not understood; write RUST_GPU_FUSE=0 or RUST_GPU_FUSE=1",
    ),
    (
        "RUST_GPU_FUSE_ATTENTION",
        "all",
        "RUST_GPU_FUSE_ATTENTION=all is not understood; write RUST_GPU_FUSE_ATTENTION=0 or RUST_GPU_FUSE_ATTENTION=1",
    ),
    ("RUST_GPU_MEMORY_MIB", "much", "is not understood; write RUST_GPU_MEMORY_MIB=512"),
    ("RUST_GPU_NVIDIA_LIBRARIES", "no", "is not understood; write RUST_GPU_NVIDIA_LIBRARIES=0"),
    (
        "RUST_GPU_CUDNN_AUTOTUNE",
        "yes",
        "is not understood; write RUST_GPU_CUDNN_AUTOTUNE=0 or RUST_GPU_CUDNN_AUTOTUNE=1",
    ),
    ("RUST_GPU_TF32", "yes", "is not understood; write RUST_GPU_TF32=0 or RUST_GPU_TF32=1"),
    (
        "RUST_GPU_TIMEOUT_S",
        "soon",
        "RUST_GPU_TIMEOUT_S=soon is not understood; write RUST_GPU_TIMEOUT_S=300",
    ),
    ("RUST_GPU_TIMEOUT_S", "-1", "RUST_GPU_TIMEOUT_S=-1 is not understood"),
];

/// Checks that the GPU is refused with this text.
pub(crate) fn fails_with(why: &str) {
    let Err(error) = GpuPlatform::new() else { panic!("the GPU is not refused") };
    let error = error.to_string();
    assert!(error.contains(why), "{error}");
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<_> = LACKS
        .map(|(feature, expected)| {
            let test = move || {
                let (loader, fault) = (Loader::new(), format!("lacks {feature} 0"));
                let environment = loader.environment(lavapipe::environment(), &fault);
                run(environment, &format!("{ERROR}{expected}"))
            };
            Trial::test(format!("refused::{feature}"), test)
        })
        .into();
    trials.extend(SETTINGS.map(|(name, value, expected)| {
        let test = move || {
            let mut environment = lavapipe::environment();
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value.into()));
            run(environment, &format!("{ERROR}{expected}"))
        };
        Trial::test(format!("refused::{name}={value}"), test)
    }));
    trials.push(Trial::test("refused::an_old_nvrtc", || {
        let cuda = Cuda::new();
        let mut environment = cuda.environment(Some("skip nvrtcVersion 1"));
        environment.push(("RUST_GPU_BACKEND", "cuda".into()));
        let expected = "CUDA needs a newer NVRTC than the 0.0 that was found; run `pip install";
        run(environment, &format!("{ERROR}{expected}"))
    }));
    trials
}

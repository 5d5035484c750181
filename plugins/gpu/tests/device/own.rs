//! Tests a plugin's own shader, which includes a file of the crate: each backend takes it in its own language.

use gpu::GpuPlatform;
use se_plugin::{Device as _, HostBuf, Platform as _, Stream as _};
use se_plugin_gpu::backend::Shader;
use se_plugin_gpu::launch::{Launch, Operand, groups};
use std::path::Path;

/// Multiplies elements by a constant and adds a number that is pushed.
const SOURCE: &str = r#"#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint FACTOR = 1;

layout(push_constant, scalar) uniform Push {
    uint64_t in_, out_;
    uint n;
    float bias;
} push;

void main() {
    uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < push.n; i += step) {
        store(push.out_, i, T_F32, load(push.in_, i, T_F32) * float(FACTOR) + push.bias);
    }
}
"#;

fn spirv() -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("a directory");
    let [source, compiled] = ["own.comp", "own.spv"].map(|name| scratch.path().join(name));
    std::fs::write(&source, SOURCE).expect("written");
    let shaders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../se-plugin-gpu/src/shaders");
    let output = lavapipe::newest::glslang()
        .args(["-V", "--quiet", "--target-env", "vulkan1.2", "-g0"])
        .arg(format!("-I{}", shaders.display()))
        .arg(&source)
        .arg("-o")
        .arg(&compiled)
        .output()
        .expect("glslang runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::read(compiled).expect("SPIR-V")
}

#[expect(unsafe_code, reason = "the contract of shaders")]
pub(crate) fn computes() {
    const LEN: usize = 1000;
    // SAFETY: the program accesses as many elements of both tensors as are pushed to it, and the launch says that they have.
    let shader = unsafe { Shader::new("own", spirv().leak(), SOURCE) };
    let shader: &Shader = Box::leak(Box::new(shader));
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let stream = device.create_stream().expect("a stream");
    let [x, y] = [(); 2].map(|()| device.allocate(4 * LEN as u64).expect("memory"));
    let numbers: Vec<u8> = (0..LEN).flat_map(|at| (at as f32).to_ne_bytes()).collect();
    device.copy_to_device(x, &numbers).expect("copied");
    let launch = |bytes| {
        Launch {
            op: "Own",
            shader,
            constants: &[3],
            operands: &[Operand::Bytes(x, bytes), Operand::Bytes(y, bytes)],
            numbers: &[LEN as u32, 0.5_f32.to_bits()],
            groups: groups(LEN),
        }
        .enqueue_on(&stream)
    };
    launch(4 * LEN as u64).expect("a launch");
    stream.synchronize().expect("it ends");
    let mut out = vec![0; 4 * LEN];
    device.copy_to_host(HostBuf::from_slice(&mut out), y).expect("copied");
    let expected: Vec<u8> = (0..LEN).flat_map(|at| (at as f32 * 3.0 + 0.5).to_ne_bytes()).collect();
    assert!(out == expected, "other results");
    let error = launch(4 * LEN as u64 + 1).expect_err("more than there is");
    assert!(error.to_string().contains("`Own` uses 4001 bytes"), "{error}");
}

/// What `Shader::new` was given is not SPIR-V: only Vulkan takes that.
#[expect(unsafe_code, reason = "the contract of shaders")]
pub(crate) fn without_spirv() {
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let stream = device.create_stream().expect("a stream");
    for spirv in [&[][..], &[3, 2, 35]] {
        // SAFETY: the program accesses no memory, and the SPIR-V is refused.
        let shader = Box::leak(Box::new(unsafe { Shader::new("empty", spirv, "void main() {}") }));
        let (constants, operands, numbers, groups) = (&[], &[], &[], [1, 1, 1]);
        let launch = Launch { op: "Empty", shader, constants, operands, numbers, groups };
        let error = launch.enqueue_on(&stream).expect_err("no SPIR-V").to_string();
        let expected = "vulkan cannot compile the shader `empty` on `llvmpipe";
        let help = "it has no SPIR-V, or something else; compile it by glslang";
        assert!(error.contains(expected) && error.contains(help), "{error}");
    }
    stream.synchronize().expect("the GPU works");
}

const MISPLACED: &str = "#version 460
#include \"common.glsl\"
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Push {
    uint64_t x;
    uint n;
    uvec2 size;
} push;
void main() {}
";

/// C++ and OpenCL C would read `size` four bytes later than it is pushed.
#[expect(unsafe_code, reason = "the contract of shaders")]
pub(crate) fn misplaced() {
    // SAFETY: the program accesses no memory.
    let shader = Box::leak(Box::new(unsafe { Shader::new("misplaced", &[], MISPLACED) }));
    let device = GpuPlatform::new().and_then(|platform| platform.open(0)).expect("a device");
    let stream = device.create_stream().expect("a stream");
    let (operands, numbers) = (&[Operand::Value(0)], &[1, 2, 3]);
    let launch = Launch { op: "Own", shader, constants: &[], operands, numbers, groups: [1, 1, 1] };
    let error = launch.enqueue_on(&stream).expect_err("a wrong place").to_string();
    let expected =
        "`misplaced` has push constants whose place differs between GLSL and C: `uvec2 size`";
    assert!(error.contains(expected), "{error}");
    stream.synchronize().expect("the GPU works");
}

//! Programs of kernels, in the languages of backends.

use super::operations::CooperativeMatrix;
use crate::translate::{self, Source};
use se_plugin::Result;

/// A program of a kernel. Its source is GLSL; a backend takes it in the language that its driver compiles.
#[derive(Debug)]
pub struct Shader {
    pub(crate) name: &'static str,
    code: &'static [u8],
    /// The GLSL of a plugin's own shader.
    pub(crate) glsl: Option<&'static str>,
}

impl Shader {
    /// Returns a plugin's own shader: its SPIR-V, which may be empty for a backend that does not take it, and its GLSL. That may
    /// include `common.glsl` and the other files of this crate's `src/shaders`, has an only axis of
    /// [`WORKGROUP`](super::WORKGROUP) invocations, and begins its push constants with a `uint64_t` for each tensor. A
    /// vector in them is at a multiple of its size, for languages with C's layout. The name is unique in the plugin.
    ///
    /// # Safety
    /// For any constants, operands and numbers with which code can launch it, the program accesses memory only within the tensors
    /// of the launch. Numbers may say how far these reach: keep the shader private to the kernel that computes them. No other
    /// shader of the plugin has the same name and GLSL with other SPIR-V. The SPIR-V is empty, or valid and that of the GLSL.
    #[must_use]
    pub const unsafe fn new(name: &'static str, spirv: &'static [u8], glsl: &'static str) -> Self {
        Self { name, code: spirv, glsl: Some(glsl) }
    }

    /// Returns a shader of this crate.
    pub(crate) const fn of_crate(name: &'static str, code: &'static [u8]) -> Self {
        Self { name, code, glsl: None }
    }

    /// Returns the shader of this crate with a name such as `elementwise.float`, without SPIR-V: for backends to try whether
    /// their compiler works.
    ///
    /// # Safety
    /// It is not launched: only the kernels of this crate know which numbers it takes.
    #[must_use]
    pub const unsafe fn named(name: &'static str) -> Self {
        Self::of_crate(name, &[])
    }

    /// Returns its name in messages, which is unique.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns SPIR-V for Vulkan 1.2, in this machine's byte order. Its entry is `main`; the specialization constants have the
    /// numbers 0, 1, ….
    #[must_use]
    pub fn spirv(&self) -> &'static [u8] {
        self.code
    }

    /// Returns CUDA C++ with these values of the constants, for NVRTC. Its entry is
    /// [`ENTRY`](translate::cuda::ENTRY), with the push constants as the only argument.
    ///
    /// # Errors
    /// `INTERNAL` for a shader that has no source for CUDA; `INVALID_ARGUMENT` for push constants that C++ would have at another
    /// place, such as a vector whose offset is not a multiple of its size.
    pub fn cuda(&self, constants: &[u32]) -> Result<String> {
        translate::cuda::program_of(&self.source()?, constants)
    }

    /// Returns OpenCL C 1.2 with these values of the constants. Its entry is [`ENTRY`](translate::opencl::ENTRY), with
    /// [`PUSH_BYTES`](super::PUSH_BYTES) bytes as the only argument, of which the push constants are the first. It accesses memory by
    /// addresses, as shared virtual memory has them.
    ///
    /// # Errors
    /// `INTERNAL` for a shader that has no source for OpenCL; `INVALID_ARGUMENT` as for [`cuda`](Self::cuda).
    pub fn opencl(&self, constants: &[u32]) -> Result<String> {
        translate::opencl::program_of(&self.source()?, constants)
    }

    /// Returns whether it needs a GPU that [computes with float64](super::Backend::supports_float64).
    pub(crate) fn computes_with_float64(&self) -> bool {
        self.glsl.is_none() && self.name.ends_with(".double")
    }

    /// Returns the size of subgroups that it requires with these constants, if it uses cooperative matrices.
    #[must_use]
    pub fn subgroup(&self, constants: &[u32]) -> Option<u32> {
        // The last constant.
        let is_cooperative = self.name.ends_with(CooperativeMatrix::SHADERS);
        is_cooperative.then(|| constants.last().copied().unwrap_or_default())
    }

    fn source(&self) -> Result<Source> {
        match self.glsl {
            Some(glsl) => Ok(Source::new(self.name, glsl)),
            None => Source::of_crate(self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "#version 460\n#include \"common.glsl\"\nlayout(constant_id = 0) const uint TYPE = 0;\n\
                       layout(push_constant, scalar) uniform Push {\n    uint64_t x;\n} push;\nvoid main() {}\n";

    #[test]
    fn an_own_shader_is_translated_with_the_files_of_the_crate() {
        // SAFETY: the program accesses no memory.
        let own = unsafe { Shader::new("own.int64", &[], OWN) };
        let program = own.cuda(&[3]).unwrap();
        for part in ["#define CONSTANTS 3u, ", "static constexpr uint TYPE = ", "T_BF16 = 2"] {
            assert!(program.contains(part), "{part}: {program}");
        }
        // Suffixes mean something in names of the crate only.
        assert!(!program.contains("#define COMPUTE int64_t\n#define"), "{program}");
        assert!(Shader::of_crate("own.int64", &[]).cuda(&[]).is_err());
    }
}

//! `/device:TEMPLATE_PLUGIN:0` for TensorFlow: a GPU with OpenCL.
//!
//! `opencl` is a complete backend, to begin with: write the same functions for your API. All else, the ops too, is
//! `se-plugin-gpu`'s.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "calls of OpenCL")]
mod opencl;

se_plugin_gpu::plugin! {
    /// The platform, which opens the GPU.
    ///
    /// With `type = "GPU"` the device is a `/GPU:0`, in a TensorFlow without GPU kernels of its own. Name groups of ops in place of
    /// `all` for fewer.
    pub TemplatePluginPlatform, name = "TEMPLATE_PLUGIN", type = "TEMPLATE_PLUGIN", backend = opencl::OpenCl, ops = [all]
}

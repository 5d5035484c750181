//! Compiles shaders for the GPU.

use super::{Vulkan, failed};
use ash::vk;
use se_plugin::Code;
use se_plugin_gpu::backend::{BackendError, BackendResult, PUSH_BYTES, Shader};

/// Creates the layout of all pipelines: push constants, and nothing else.
pub(super) fn layout(device: &ash::Device) -> Result<vk::PipelineLayout, vk::Result> {
    let range = [vk::PushConstantRange::default()
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .size(PUSH_BYTES as u32)];
    let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&range);
    // SAFETY: the device lives, and `info` outlives the call.
    unsafe { device.create_pipeline_layout(&info, None) }
}

impl Vulkan {
    pub(super) fn pipeline(
        &self,
        shader: &Shader,
        constants: &[u32],
    ) -> BackendResult<vk::Pipeline> {
        let what = format!("compile the shader `{}`", shader.name());
        let words = shader.spirv().chunks_exact(4);
        if !words.remainder().is_empty() || words.len() == 0 {
            return Err(BackendError {
                code: Code::Internal,
                what: format!("vulkan cannot {what}"),
                cause: String::from("it has no SPIR-V, or something else"),
                help: "compile it by glslang, and pass that to `Shader::new`",
                is_lost: false,
            });
        }
        let what = |error| failed(&what, error);
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let words: Vec<u32> = words.map(word).collect();
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: the device lives; `words` is not empty and what glslang made of a shader, as `Shader::new` requires, and
        // outlives the call.
        let module = unsafe { self.raw.create_shader_module(&info, None) }.map_err(what)?;
        let entry = |id: u32| {
            let entry = vk::SpecializationMapEntry::default().constant_id(id).offset(4 * id);
            entry.size(4)
        };
        let entries: Vec<_> = (0..constants.len() as u32).map(entry).collect();
        let data: Vec<u8> = constants.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main")
            .specialization_info(&special);
        let mut subgroup = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default();
        if let Some(size) = shader.subgroup(constants) {
            subgroup.required_subgroup_size = size;
            stage = stage
                .flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS)
                .push_next(&mut subgroup);
        }
        let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
        // SAFETY: module and layout are the device's; `info` and what it points to outlive the call.
        let pipelines =
            unsafe { self.raw.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
        // SAFETY: the module is not used after the pipeline is made.
        unsafe { self.raw.destroy_shader_module(module, None) };
        pipelines.map(|pipelines| pipelines[0]).map_err(|(_, error)| what(error))
    }
}

//! Shaders, compiled for the card.

use super::card::{Gpu, failed};
use ash::vk;
use se_plugin::{Error, Result};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What every card can push to a shader.
pub(crate) const PUSH_BYTES: usize = 128;

/// A shader in SPIR-V, whose entry is `main`.
pub(crate) struct Shader {
    /// Its name in messages, unique.
    pub(crate) name: &'static str,
    /// Words of SPIR-V in this machine's order.
    pub(crate) code: &'static [u8],
}

/// A shader with its constants, compiled. It lives as long as the card.
#[derive(Clone, Copy)]
pub(crate) struct Pipeline(pub(super) vk::Pipeline);

type Key = (&'static str, Vec<u32>);

/// The compiled shaders of a card.
pub(super) struct Pipelines {
    pub(super) layout: vk::PipelineLayout,
    made: Mutex<HashMap<Key, vk::Pipeline>>,
    /// Held while one is compiled, so that none is compiled twice, and those that are made can be launched meanwhile.
    compiling: Mutex<()>,
}

impl Pipelines {
    pub(super) fn new(device: &ash::Device) -> Result<Self> {
        let range = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(PUSH_BYTES as u32)];
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&range);
        // SAFETY: the device lives, and `info` outlives the call.
        let layout = unsafe { device.create_pipeline_layout(&info, None) }
            .map_err(|error| failed("create a pipeline layout", error))?;
        Ok(Self { layout, made: Mutex::default(), compiling: Mutex::default() })
    }
}

impl Gpu {
    /// The shader with these values of its specialization constants 0, 1, …, compiled on the first call.
    ///
    /// # Errors
    /// Those of the driver.
    pub(crate) fn pipeline(&self, shader: &Shader, constants: &[u32]) -> Result<Pipeline> {
        self.check_process()?;
        let made = || self.pipelines.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (shader.name, constants.to_vec());
        if let Some(pipeline) = made().get(&key) {
            return Ok(Pipeline(*pipeline));
        }
        self.lost().map_or(Ok(()), Err)?;
        let _one = self.pipelines.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have compiled it.
        if let Some(pipeline) = made().get(&key) {
            return Ok(Pipeline(*pipeline));
        }
        let pipeline = self.compile(shader, constants)?;
        made().insert(key, pipeline);
        Ok(Pipeline(pipeline))
    }

    fn compile(&self, shader: &Shader, constants: &[u32]) -> Result<vk::Pipeline> {
        let what = |error| self.failed(&format!("compile the shader `{}`", shader.name), error);
        let words = shader.code.chunks_exact(4);
        if !words.remainder().is_empty() {
            return Err(Error::internal(format!("the shader `{}` is not SPIR-V", shader.name)));
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let words: Vec<u32> = words.map(word).collect();
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: the device lives; `words` is what glslang made of a shader of this crate, and outlives the call.
        let module = unsafe { self.device.create_shader_module(&info, None) }.map_err(what)?;
        let entry = |id: u32| {
            let entry = vk::SpecializationMapEntry::default().constant_id(id).offset(4 * id);
            entry.size(4)
        };
        let entries: Vec<_> = (0..constants.len() as u32).map(entry).collect();
        let data: Vec<u8> = constants.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main")
            .specialization_info(&special);
        let info =
            [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.pipelines.layout)];
        // SAFETY: module and layout are the device's; `info` and what it points to outlive the call.
        let made =
            unsafe { self.device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
        // SAFETY: the module is not used after the pipeline is made.
        unsafe { self.device.destroy_shader_module(module, None) };
        made.map(|pipelines| pipelines[0]).map_err(|(_, error)| what(error))
    }
}

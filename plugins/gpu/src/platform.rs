//! The plugin: its platform, and the choice among the backends.

use crate::cuda::{self, Cuda};
use crate::opencl::OpenCl;
use crate::settings::{self, Api};
use crate::vulkan::Vulkan;
use se_plugin::{Code, Error, Result};
use se_plugin_gpu::backend::{self, Backend as _, OpenedGpu};
use se_plugin_gpu::settings::Settings;

se_plugin_gpu::plugin! {
    /// The platform: the GPUs of one API.
    pub GpuPlatform, name = "RUST_GPU", type = "GPU", open = open, ops = [all]
}

/// Opens the GPUs that the settings name, by their API, or else by the first one that has such GPUs.
fn open(settings: &Settings) -> Result<Vec<OpenedGpu>> {
    settings::libraries()?;
    settings::tf32()?;
    settings::autotune()?;
    match settings::api()? {
        Some(Api::Cuda) => backend::open::<Cuda>(settings),
        Some(Api::Vulkan) => backend::open::<Vulkan>(settings),
        Some(Api::OpenCl) => backend::open::<OpenCl>(settings),
        None => open_first(settings),
    }
}

/// Opens the GPUs by CUDA, or else by Vulkan, or else by OpenCL.
fn open_first(settings: &Settings) -> Result<Vec<OpenedGpu>> {
    let mut without = Vec::new();
    match backend::open::<Cuda>(settings) {
        Ok(opened) => return Ok(opened),
        // Without CUDA's driver, the machine is not meant to use CUDA.
        Err(_) if !cuda::is_there() => {}
        Err(error) => without.push((Cuda::NAME, error)),
    }
    let opened = match backend::open::<Vulkan>(settings) {
        Ok(opened) => Ok((Vulkan::NAME, opened)),
        Err(error) => {
            without.insert(0, (Vulkan::NAME, error));
            backend::open::<OpenCl>(settings).map(|opened| (OpenCl::NAME, opened))
        }
    };
    match opened {
        Ok((api, opened)) => {
            for (other, error) in without {
                let names: Vec<_> = opened.iter().map(OpenedGpu::name).collect();
                let (names, why) = (names.join("`, `"), error.message());
                log::warn!("RUST_GPU uses {api} for `{names}`, and not {other}: {why}");
            }
            Ok(opened)
        }
        Err(error) => {
            // Without OpenCL's loader, the machine is not meant to use OpenCL.
            let has_loader = error.code() != Code::FailedPrecondition;
            without.extend(has_loader.then_some((OpenCl::NAME, error)));
            let code = without.first().map_or(Code::NotFound, |(_, error)| error.code());
            let all: Vec<_> = without.iter().map(|(_, error)| error.message()).collect();
            Err(Error::new(code, all.join("; and ")))
        }
    }
}

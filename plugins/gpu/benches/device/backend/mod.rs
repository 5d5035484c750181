//! Programs without the plugin, which use the drivers directly and are compared with the plugin.

mod blas;
mod cuda;
mod libraries;
mod vulkan;

pub(crate) use blas::Blas;
pub(crate) use cuda::Cuda;
pub(crate) use libraries::load as load_libraries;
pub(crate) use vulkan::Vulkan;

//! Programs without the plugin, on the drivers themselves: what the plugin is compared with.

mod blas;
mod cuda;
mod libraries;
mod vulkan;

pub(crate) use blas::Blas;
pub(crate) use cuda::Cuda;
pub(crate) use libraries::load as load_libraries;
pub(crate) use vulkan::Vulkan;

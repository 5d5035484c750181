//! `/device:TEMPLATE_PLUGIN:0` for TensorFlow.
#![deny(unsafe_code)]

mod device;
#[expect(unsafe_code, reason = "calls of the driver, on addresses in its memory")]
mod driver;
mod kernels;
#[expect(unsafe_code, reason = "programs compute on addresses in the device's memory")]
mod programs;
mod stream;

pub use device::TemplatePluginPlatform;

//! `/device:TEMPLATE_PLUGIN:0` for TensorFlow.
#![forbid(unsafe_code)]

mod device;

pub use device::{TemplatePluginPlatform, add};

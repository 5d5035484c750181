//! `templateplugin://` and `/device:TEMPLATE_PLUGIN:0` for TensorFlow, in one library.
#![forbid(unsafe_code)]

mod device;
mod filesystem;

pub use device::{TemplatePluginPlatform, add};
pub use filesystem::{File, TemplatePluginFs};

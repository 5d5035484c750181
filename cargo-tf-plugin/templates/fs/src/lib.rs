//! `templateplugin://` for TensorFlow.
#![forbid(unsafe_code)]

mod filesystem;

pub use filesystem::{File, TemplatePluginFs};

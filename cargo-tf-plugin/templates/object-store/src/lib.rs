//! `templateplugin://` for TensorFlow.
#![forbid(unsafe_code)]

mod store;

pub use store::FilesystemPlugins as TemplatePluginFs;

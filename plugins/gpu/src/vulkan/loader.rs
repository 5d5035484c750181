//! Opens the drivers before the Vulkan loader does, so that they do not use TensorFlow's LLVM (see [`Library`]).

use se_plugin::driver::Library;
use std::env;
use std::path::{Path, PathBuf};

/// The directories where the Vulkan loader looks for manifests, in its order, without the user's home.
const DIRECTORIES: [&str; 4] = [
    "/usr/local/etc/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
];

/// Returns the manifests of drivers: those of the variables that replace the directories, or else of the directories.
fn manifests() -> Vec<PathBuf> {
    let named = env::var_os("VK_DRIVER_FILES").or_else(|| env::var_os("VK_ICD_FILENAMES"));
    if let Some(named) = named {
        return env::split_paths(&named).collect();
    }
    let mut all = Vec::new();
    for entry in DIRECTORIES.iter().filter_map(|one| Path::new(one).read_dir().ok()).flatten() {
        all.extend(entry.ok().map(|entry| entry.path()));
    }
    all
}

/// Returns the value of `library_path` in a manifest. Paths have no escapes except `\/`.
fn library(manifest: &str) -> Option<String> {
    let (_, rest) = manifest.split_once("\"library_path\"")?;
    let (_, rest) = rest.split_once('"')?;
    let (path, _) = rest.split_once('"')?;
    Some(path.replace("\\/", "/"))
}

/// Loads each driver. The Vulkan loader reports those that cannot be loaded.
pub(super) fn load() {
    for manifest in manifests() {
        let text = std::fs::read_to_string(&manifest).unwrap_or_default();
        let Some(path) = library(&text) else { continue };
        // A name without `/` is searched for as any library, a relative path from the manifest.
        let path = match path.contains('/') {
            true => manifest.with_file_name("").join(path),
            false => PathBuf::from(path),
        };
        // SAFETY: the Vulkan loader would load the same library next, and run its initialisers.
        if let Err(error) = unsafe { Library::open(path) } {
            log::debug!("RUST_GPU: {}", error.message());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::library;

    #[test]
    fn the_library_of_a_manifest_is_found() {
        let manifest = r#"{"file_format_version": "1.0.0",
            "ICD" : { "library_path": "\/usr\/lib\/libvulkan_lvp.so", "api_version": "1.3.0" }}"#;
        assert_eq!(library(manifest).unwrap(), "/usr/lib/libvulkan_lvp.so");
        assert_eq!(library("{}"), None);
    }
}

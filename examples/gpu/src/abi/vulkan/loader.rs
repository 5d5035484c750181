//! Loads drivers so that they do not share symbols with TensorFlow.
//!
//! TensorFlow's libraries export their copy of LLVM to the whole process. A driver that links to the system's LLVM, as
//! Mesa's do, would be bound to TensorFlow's copy, of another version, and crash at the first shader. So each driver is
//! loaded with `RTLD_DEEPBIND`, which prefers its own libraries, before the Vulkan loader loads it.

use libloading::os::unix::{Library, RTLD_NOW};
use std::env;
use std::path::{Path, PathBuf};

/// From `dlfcn.h` of glibc; other C libraries do not have it.
#[cfg(target_env = "gnu")]
const RTLD_DEEPBIND: i32 = 8;
#[cfg(not(target_env = "gnu"))]
const RTLD_DEEPBIND: i32 = 0;

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

/// Loads each driver, and never unloads it. The Vulkan loader reports those that cannot be loaded.
pub(super) fn load() {
    for manifest in manifests() {
        let text = std::fs::read_to_string(&manifest).unwrap_or_default();
        let Some(path) = library(&text) else { continue };
        // A name without `/` is searched for as any library, a relative path from the manifest.
        let path = match path.contains('/') {
            true => manifest.with_file_name("").join(path),
            false => PathBuf::from(path),
        };
        // SAFETY: the Vulkan loader would load the same library next; loading it runs what it does when it is loaded.
        if let Ok(driver) = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_DEEPBIND) } {
            let _ = driver.into_raw();
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

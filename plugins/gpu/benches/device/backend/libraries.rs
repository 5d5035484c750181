//! Finds NVIDIA's libraries.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::path::{Path, PathBuf};

/// The libraries for the plugin and cuBLAS, each after those that it uses itself.
const NAMES: [&str; 6] = [
    "libnvrtc.so.12",
    "libcublasLt.so.12",
    "libcublas.so.12",
    "libnvrtc.so.13",
    "libcublasLt.so.13",
    "libcublas.so.13",
];

/// Directories of the toolkit that the dynamic linker may not know.
const DIRECTORIES: [&str; 5] = [
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda-12/lib64",
    "/usr/local/cuda-13/lib64",
    "/opt/cuda/lib64",
];

/// Loads NVIDIA's libraries from these directories or those of the toolkit, and keeps them: then they are found by
/// name. If one is nowhere, its first use reports it.
pub(crate) fn load(directories: &[PathBuf]) {
    let all = || directories.iter().map(PathBuf::as_path).chain(DIRECTORIES.map(Path::new));
    for name in NAMES {
        for path in all().map(|directory| directory.join(name)).filter(|path| path.exists()) {
            // SAFETY: NVIDIA's libraries may be loaded by any process, and stay.
            if let Ok(library) = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
                let _ = library.into_raw();
                break;
            }
        }
    }
}

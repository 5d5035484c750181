//! OpenCL without a GPU, for tests: PoCL (a driver on the CPU) and the OpenCL loader of this machine's Debian. The packages are
//! unpacked below `target/`, without root; packages that the system has are not downloaded.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PACKAGES: &str = "pocl-opencl-icd ocl-icd-libopencl1";
/// The start of what PoCL depends on and does not use: it calls the compiler as a library, and links kernels by the machine's `ld`.
const UNUSED: &str = "clang-|lib32|libc6-|libclang-common|libclang1-|libgc1|libobjc|llvm-";

/// Returns the environment in which a process finds PoCL, with one device, and no other OpenCL driver. The plugin of the GPU uses it.
///
/// # Panics
/// Panics if it cannot be installed; the text says what to do.
#[must_use]
pub fn environment() -> Vec<(&'static str, OsString)> {
    let root = installed();
    let mut libraries = libraries(root).into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        libraries.push(":");
        libraries.push(others);
    }
    vec![
        ("LD_LIBRARY_PATH", libraries),
        ("OCL_ICD_VENDORS", root.join("vendors").into_os_string()),
        // PoCL caches programs in the user's home otherwise, as does the plugin.
        ("POCL_CACHE_DIR", root.join("cache").into_os_string()),
        ("RUST_GPU_CACHE", "0".into()),
        ("POCL_DEVICES", "pthread".into()),
        ("RUST_GPU_BACKEND", "opencl".into()),
        ("RUST_GPU_DEVICE_NAME", "pthread".into()),
    ]
}

fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let download = format!(
            "names=$(apt-get --simulate --no-install-recommends install {PACKAGES} | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p')
             names=$(sed -E '/^({UNUSED})/d' <<<\"$names\")
             [ -z \"$names\" ] || apt-get download -qq $names"
        );
        let unpacked = lavapipe::unpack("pocl", "1", &download, |new, place| {
            let text = |error: std::io::Error| error.to_string();
            // The package's own file names a library in `/usr`.
            let driver = driver(new)?;
            let driver = driver.strip_prefix(new).map_or(driver.clone(), |inside| place.join(inside));
            let driver = driver.to_str().ok_or("target/ has a name that is not UTF-8")?;
            fs::create_dir(new.join("vendors")).map_err(text)?;
            fs::write(new.join("vendors/pocl.icd"), driver).map_err(text)
        });
        unpacked.unwrap_or_else(|error| {
            panic!("PoCL is missing and cannot be fetched; install it (`apt-get update; apt-get install {PACKAGES}`): {error}")
        })
    })
}

/// Returns the directory of libraries, which is named after the architecture.
fn libraries(root: &Path) -> PathBuf {
    root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH))
}

/// Returns the file of the driver, in the directory or else in the system: its version is a part of its name.
fn driver(root: &Path) -> Result<PathBuf, String> {
    let files =
        [root, Path::new("/")].into_iter().filter_map(|root| libraries(root).read_dir().ok());
    let mut names = files.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_driver = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("libpocl.so.").is_some_and(|version| version.parse::<u32>().is_ok())
    };
    names.find(is_driver).ok_or_else(|| "the packages have no `libpocl.so`".to_owned())
}

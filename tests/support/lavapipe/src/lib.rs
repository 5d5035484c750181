//! Vulkan without a GPU, for tests: lavapipe (Mesa's driver on the CPU), the Vulkan loader and the validation
//! layer of this machine's Debian, and in [`newest`] newer ones with glslang. Debian's packages are unpacked below
//! `target/`, without root; packages that the system has are not downloaded.

#![forbid(unsafe_code)]

mod front;
pub mod newest;
mod place;
mod tree;

pub use front::Front;
pub use place::{place, unpack};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tree::{Tree, first_of, libraries};

const PACKAGES: &str = "libvulkan1 mesa-vulkan-drivers vulkan-validationlayers";
/// The variable that is set in a process that [`require`] has started again.
const MARK: &str = "TF_PLUGIN_LAVAPIPE";

/// Returns the environment in which a process finds lavapipe, and no other GPU, with the validation layer on. The
/// layer writes mistakes to stdout: see [`mistakes`].
///
/// # Panics
/// Panics if it cannot be installed; the text says what to do.
#[must_use]
pub fn environment() -> Vec<(&'static str, OsString)> {
    environment_in(installed())
}

fn environment_in(root: &Path) -> Vec<(&'static str, OsString)> {
    let layers = first_of(root, &["usr/share/vulkan/explicit_layer.d"]);
    let mut environment = driver_in(root);
    environment.push(("VK_LAYER_PATH", layers.into_os_string()));
    environment.push(("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation".into()));
    environment
}

/// Returns the same environment without the validation layer.
///
/// # Panics
/// Panics as [`environment`] does.
#[must_use]
pub fn driver() -> Vec<(&'static str, OsString)> {
    driver_in(installed())
}

/// Returns the environment of [`driver`] with two GPUs: a second file, in this directory, registers the driver again.
///
/// # Panics
/// Panics as [`environment`] does, and if the file cannot be written.
#[must_use]
pub fn two_gpus(directory: &Path) -> Vec<(&'static str, OsString)> {
    let mut environment = driver();
    let second = directory.join("second.json");
    std::fs::copy(installed().join("driver.json"), &second).expect("a copy of the driver's file");
    for (name, value) in &mut environment {
        if *name == "VK_DRIVER_FILES" || *name == "VK_ICD_FILENAMES" {
            value.push(":");
            value.push(&second);
        }
    }
    environment
}

fn driver_in(root: &Path) -> Vec<(&'static str, OsString)> {
    let driver = root.join("driver.json").into_os_string();
    let mut libraries = libraries(root).into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        libraries.push(":");
        libraries.push(others);
    }
    vec![
        // The second is the name for old loaders.
        ("VK_DRIVER_FILES", driver.clone()),
        ("VK_ICD_FILENAMES", driver),
        ("LD_LIBRARY_PATH", libraries),
        ("RUST_GPU_DEVICE_NAME", "llvmpipe".into()),
        // Lavapipe caches shaders in the user's home otherwise.
        ("MESA_SHADER_CACHE_DIR", root.join("cache").into_os_string()),
    ]
}

/// Starts this process again in [`environment`], unless it runs there: the dynamic linker reads it at the start.
///
/// # Panics
/// Panics as [`environment`] does, and if the program cannot be started.
pub fn require() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("a process has a program");
    let mut again = Command::new(program);
    let error = again.args(std::env::args_os().skip(1)).envs(environment()).env(MARK, "1").exec();
    panic!("cannot start again with lavapipe: {error}");
}

/// Returns the mistakes that the validation layer has found, from the output of a process.
#[must_use]
pub fn mistakes(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.contains("VUID") || line.contains("Validation")).collect()
}

fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // `Inst NAME (`: a package that the system does not have. One that it has in another version is `Inst NAME [`.
        let download = format!(
            "names=$(apt-get --simulate --no-install-recommends install {PACKAGES} | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p')
             [ -z \"$names\" ] || apt-get download -qq $names"
        );
        let tree = Tree { name: "lavapipe", version: "1", download };
        tree.install().unwrap_or_else(|error| {
            panic!(
                "lavapipe is missing and cannot be fetched; install it (`apt-get update; apt-get install {PACKAGES}`): \
                 {error}"
            )
        })
    })
}

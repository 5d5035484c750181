//! Vulkan without a GPU, for tests: lavapipe (Mesa's driver on the processor), the Vulkan loader, the validation layer and
//! glslang. Debian's packages are unpacked below `target/`, without root; what the system has is not downloaded.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PACKAGES: &str = "libvulkan1 mesa-vulkan-drivers vulkan-validationlayers glslang-tools";
/// The same in each directory, so that an old one is replaced.
const VERSION: &str = "1";
/// Set in a process that [`require`] has started again.
const MARK: &str = "TF_PLUGIN_LAVAPIPE";

/// The environment in which a process finds lavapipe, and no other card, with the validation layer on. The layer writes
/// mistakes to stdout: see [`mistakes`].
///
/// # Panics
/// If it cannot be installed; the text says what to do.
#[must_use]
pub fn environment() -> Vec<(&'static str, OsString)> {
    let layers = first_of(installed(), &["usr/share/vulkan/explicit_layer.d"]);
    let mut environment = driver();
    environment.push(("VK_LAYER_PATH", layers.into_os_string()));
    environment.push(("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation".into()));
    environment
}

/// The same without the validation layer.
///
/// # Panics
/// As [`environment`].
#[must_use]
pub fn driver() -> Vec<(&'static str, OsString)> {
    let root = installed();
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
        ("RUST_GPU_CARD", "llvmpipe".into()),
        // Lavapipe caches shaders in the user's home otherwise.
        ("MESA_SHADER_CACHE_DIR", root.join("cache").into_os_string()),
    ]
}

/// Starts this process again in [`environment`], unless it runs in it: the dynamic linker reads it at the start.
///
/// # Panics
/// As [`environment`], and if the program cannot be started.
pub fn require() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("a process has a program");
    let mut again = Command::new(program);
    let error = again.args(std::env::args_os().skip(1)).envs(environment()).env(MARK, "1").exec();
    panic!("cannot start again with lavapipe: {error}");
}

/// What the validation layer has found, in the output of a process.
#[must_use]
pub fn mistakes(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.contains("VUID") || line.contains("Validation")).collect()
}

/// The compiler from GLSL to SPIR-V.
///
/// # Panics
/// As [`environment`].
#[must_use]
pub fn glslang() -> PathBuf {
    first_of(installed(), &["usr/bin/glslangValidator"])
}

/// The first of the paths that exists, below the directory or else in the system.
fn first_of(root: &Path, paths: &[&str]) -> PathBuf {
    let all = || [root, Path::new("/")].into_iter().flat_map(|at| paths.iter().map(|p| at.join(p)));
    all().find(|path| path.exists()).unwrap_or_else(|| root.join(paths[0]))
}

/// The directory of libraries, named after the architecture.
fn libraries(root: &Path) -> PathBuf {
    let name = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    first_of(root, &[&format!("{name}/libvulkan_lvp.so")]).with_file_name("")
}

fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        install().unwrap_or_else(|error| {
            panic!(
                "lavapipe is missing and cannot be fetched; install it (`apt-get update; apt-get install {PACKAGES}`): \
                 {error}"
            )
        })
    })
}

fn install() -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).expect("a workspace");
    let place = workspace.join("target/lavapipe");
    let mark = place.join("version");
    if fs::read_to_string(&mark).is_ok_and(|version| version == VERSION) {
        return Ok(place);
    }
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(workspace.join("target")).map_err(text)?;
    // Another process may do the same now: what is in place is always whole.
    let new = tempfile::Builder::new().prefix("lavapipe-").tempdir_in(workspace.join("target"));
    let new = new.map_err(text)?;
    // `Inst NAME (`: a package that the system does not have. One that it has in another version is `Inst NAME [`.
    let script = format!(
        "names=$(apt-get --simulate --no-install-recommends install {PACKAGES} | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p')
         mkdir packages
         cd packages
         [ -z \"$names\" ] || apt-get download -qq $names
         for package in *.deb; do [ ! -e \"$package\" ] || dpkg-deb --extract \"$package\" ..; done
         cd ..
         rm -r packages"
    );
    let output = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", &script])
        .current_dir(new.path())
        .output()
        .map_err(text)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // The file of the package names a library in `/usr`.
    let library = match libraries(new.path()) {
        inside if inside.starts_with(new.path()) => {
            place.join(inside.strip_prefix(new.path()).expect("it is inside"))
        }
        outside => outside,
    };
    let library = library.join("libvulkan_lvp.so");
    let library = library.to_str().ok_or("target/ has a name that is not UTF-8")?;
    let driver = format!(
        r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3.0"}}}}"#
    );
    fs::write(new.path().join("driver.json"), driver).map_err(text)?;
    fs::write(new.path().join("version"), VERSION).map_err(text)?;
    if place.exists() {
        let old = place.with_extension(format!("old-{}", std::process::id()));
        fs::rename(&place, &old).and_then(|()| fs::remove_dir_all(&old)).map_err(text)?;
    }
    match fs::rename(new.keep(), &place) {
        Ok(()) => Ok(place),
        // Somebody else was faster.
        Err(_) if mark.exists() => Ok(place),
        Err(error) => Err(error.to_string()),
    }
}

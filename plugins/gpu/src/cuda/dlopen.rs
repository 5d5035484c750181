//! NVIDIA's libraries: where the system finds them, or else in NVIDIA's wheels next to the plugin.

use libloading::os::unix::{Library as Probed, RTLD_NOW};
use se_plugin::driver::Library;
use std::path::{Path, PathBuf};

/// Lists these files, and those of cuDNN.
macro_rules! with_cudnn {
    ($($file:literal),*) => {
        [
            $($file,)*
            "nvidia/cudnn/lib/libcudnn_graph.so.9",
            "nvidia/cudnn/lib/libcudnn_ops.so.9",
            "nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9",
            "nvidia/cudnn/lib/libcudnn_heuristic.so.9",
            "nvidia/cudnn/lib/libcudnn_cnn.so.9",
            "nvidia/cudnn/lib/libcudnn.so.9",
        ]
    };
}

/// A library that is used in addition to the driver.
pub(super) struct OptionalLibrary {
    /// Whether the system finds it.
    ///
    /// # Safety
    /// The library may be loaded by any process.
    pub(super) is_there: unsafe fn() -> bool,
    /// Its files in the wheels for CUDA 12 and 13, below the directory of all packages, in the order of loading.
    pub(super) wheels: [&'static [&'static str]; 2],
}

/// Compiles kernels.
pub(super) const NVRTC: OptionalLibrary = OptionalLibrary {
    is_there: cudarc::nvrtc::sys::is_culib_present,
    wheels: [&["nvidia/cuda_nvrtc/lib/libnvrtc.so.12"], &["nvidia/cu13/lib/libnvrtc.so.13"]],
};

/// Multiplies matrices.
pub(super) const CUBLAS: OptionalLibrary = OptionalLibrary {
    is_there: cudarc::cublas::sys::is_culib_present,
    wheels: [
        &["nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cublas/lib/libcublas.so.12"],
        &["nvidia/cu13/lib/libcublasLt.so.13", "nvidia/cu13/lib/libcublas.so.13"],
    ],
};

/// Convolves. It multiplies matrices by cuBLAS.
pub(super) const CUDNN: OptionalLibrary = OptionalLibrary {
    is_there: is_cudnn_there,
    wheels: [
        &with_cudnn!("nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cublas/lib/libcublas.so.12"),
        &with_cudnn!("nvidia/cu13/lib/libcublasLt.so.13", "nvidia/cu13/lib/libcublas.so.13"),
    ],
};

/// Returns whether the system finds cuDNN with the parts for convolutions: without them a call may end the process.
///
/// # Safety
/// cuDNN may be loaded by any process.
unsafe fn is_cudnn_there() -> bool {
    let parts = ["graph", "ops", "engines_precompiled", "heuristic", "cnn"];
    // Closed again: those of a wheel are used if one is missing.
    // SAFETY: cuDNN's parts may be loaded by any process.
    let open = |name: String| unsafe { Probed::open(Some(name), RTLD_NOW) };
    let is_there = |part: &&str| open(format!("libcudnn_{part}.so.9")).is_ok();
    // SAFETY: cuDNN may be loaded by any process.
    parts.iter().all(is_there) && unsafe { cudarc::cudnn::sys::is_culib_present() }
}

impl OptionalLibrary {
    /// Looks for the library, and loads it from a wheel if necessary. Returns whether it can be used.
    pub(super) fn find(&self) -> bool {
        // The plugin is in `site-packages/tensorflow-plugins`.
        let packages = || own_path()?.parent()?.parent().map(Path::to_owned);
        self.is_there() || packages().is_some_and(|packages| self.find_in(&packages))
    }

    fn is_there(&self) -> bool {
        // SAFETY: NVIDIA's libraries may be loaded by any process.
        unsafe { (self.is_there)() }
    }

    /// Loads the library forever, if its wheel is in this directory of packages. Then its name is enough to find it.
    pub(super) fn find_in(&self, packages: &Path) -> bool {
        let load = |file: &&str| {
            let path = packages.join(file);
            // SAFETY: NVIDIA's libraries may be loaded by any process.
            unsafe { Library::open(path) }.is_ok()
        };
        self.wheels.iter().any(|wheel| wheel.iter().all(load)) && self.is_there()
    }
}

/// Returns the file of this code.
fn own_path() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let address = own_path as fn() -> Option<PathBuf> as usize;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
        (start? <= address && address < end?).then(|| rest.find('/').map(|at| rest[at..].into()))?
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn wheels_of_cuda_13_are_looked_into_too() {
        let [twelve, thirteen] = super::NVRTC.wheels.map(|wheel| wheel[0]);
        // A library loads its parts from the directory of its first load, which has to remain.
        assert!(super::NVRTC.find_in(&cpu_cuda::nvrtc()));
        let packages = tempfile::tempdir().expect("a directory");
        assert!(!super::NVRTC.find_in(packages.path()));
        let library = packages.path().join(thirteen);
        std::fs::create_dir_all(library.parent().expect("a directory")).expect("directories");
        // The library of CUDA 12, which has the same functions.
        std::os::unix::fs::symlink(cpu_cuda::nvrtc().join(twelve), library).expect("a link");
        assert!(super::NVRTC.find_in(packages.path()));
    }

    #[test]
    fn the_file_of_this_code_is_found() {
        assert_eq!(super::own_path(), std::env::current_exe().ok());
    }
}

//! Opens the drivers of an API before its loader does, so that they do not use TensorFlow's LLVM: see [`Library`].

use se_plugin::driver::Library;
use se_plugin::{Error, Result};
use std::env;
use std::path::{Path, PathBuf};

/// Where OpenCL's drivers are registered: files with the name of a library each.
const OPENCL: &str = "/etc/OpenCL/vendors";

/// Loads OpenCL's loader, and before it opens them, the drivers that are registered. Returns why some of them cannot be opened.
///
/// # Errors
/// `FAILED_PRECONDITION` without the loader.
pub fn load_opencl() -> Result<Vec<String>> {
    // SAFETY: any process may load the system's OpenCL loader.
    unsafe { Library::open("libOpenCL.so.1") }.map_err(|error| {
        let why = error.message().split(';').next().unwrap_or_default();
        let help = "install `ocl-icd-libopencl1` or the GPU's driver";
        Error::failed_precondition(format!("OpenCL has no loader here: {why}; {help}"))
    })?;
    let problems = opencl().into_iter().filter_map(|driver| {
        let path = match driver {
            Ok(path) => path,
            Err(problem) => return Some(problem),
        };
        // A driver that ends the process is the last that the log names.
        log::info!("opens the OpenCL driver `{}`", path.display());
        // SAFETY: the loader would load the same library next, and run its initialisers.
        unsafe { Library::open(path) }.err().map(|error| error.message().to_owned())
    });
    Ok(problems.collect())
}

/// Logs why some drivers of OpenCL cannot be opened, if others have GPUs.
pub fn warn(problems: &[String]) {
    for why in problems {
        log::warn!("an OpenCL driver is not used: {why}");
    }
}

/// Returns the libraries of OpenCL's drivers, or why a file registers none: those of the directory, or of the variables that both usual
/// loaders read, `OCL_ICD_VENDORS`, `OPENCL_VENDOR_PATH` and `OCL_ICD_FILENAMES`.
fn opencl() -> Vec<Result<PathBuf, String>> {
    let named = env::var_os("OCL_ICD_FILENAMES").unwrap_or_default();
    let named = env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    let vendors = env::var_os("OCL_ICD_VENDORS").or_else(|| env::var_os("OPENCL_VENDOR_PATH"));
    let vendors = vendors.map_or_else(|| OPENCL.into(), PathBuf::from);
    named.map(Ok).chain(of_vendors(&vendors)).collect()
}

/// Returns the drivers of a directory, of a file in it, or the one that is named itself.
fn of_vendors(vendors: &Path) -> Vec<Result<PathBuf, String>> {
    let is_file = |path: &Path| path.extension().is_some_and(|extension| extension == "icd");
    match vendors.read_dir() {
        Ok(entries) => {
            let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            files.retain(|path| is_file(path));
            files.sort();
            files.iter().map(|file| registered(file)).collect()
        }
        Err(_) if is_file(vendors) => vec![registered(&Path::new(OPENCL).join(vendors))],
        Err(_) if vendors.is_file() => vec![Ok(vendors.into())],
        Err(_) => Vec::new(),
    }
}

/// Returns the library that a file registers.
fn registered(file: &Path) -> Result<PathBuf, String> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read `{name}`: {error}"))?;
    let library = text.lines().map(str::trim).find(|line| !line.is_empty());
    let none =
        || format!("`{name}` names no driver; write the path of the driver's library into it");
    library.map(Into::into).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_registers_a_library_or_the_error_names_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = scratch.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let library = PathBuf::from("/usr/lib/libpocl.so.2");
        let (a, b) = (write("a.icd", "\n /usr/lib/libpocl.so.2 \n"), write("b.icd", "\n"));
        let other = write("c.txt", "another file");
        let error = format!(
            "`{}` names no driver; write the path of the driver's library into it",
            b.display()
        );
        assert_eq!(of_vendors(scratch.path()), [Ok(library.clone()), Err(error)]);
        assert_eq!(of_vendors(&a), [Ok(library)]);
        assert_eq!(of_vendors(&other), [Ok(other.clone())]);
        assert_eq!(of_vendors(&scratch.path().join("none")), []);
        let missing = of_vendors(&scratch.path().join("d.icd"));
        assert!(
            matches!(&*missing, [Err(error)] if error.starts_with("cannot read `")),
            "{missing:?}"
        );
    }
}

//! Building the C++ plugin, and what the report says about how.

use std::env;
use std::env::consts::{DLL_EXTENSION, DLL_PREFIX};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use cargo_tf_plugin::TensorFlow;

use crate::answer;

/// The C++ compiler's options: as fast as it can without knowing the machine, like cargo's release
/// profile.
const CXX_FLAGS: [&str; 7] =
    ["-std=c++17", "-O3", "-DNDEBUG", "-g1", "-fPIC", "-shared", "-fvisibility=hidden"];

/// Compiles a C++ plugin with the compiler that `CXX` names, or `c++`, and with `defines`; returns its
/// shared library in `directory`.
pub fn cpp(source: &Path, defines: &[&str], include: &Path, directory: &Path) -> Result<PathBuf> {
    let name = source.file_stem().unwrap_or_default().display();
    let variant = defines.join("_").to_lowercase();
    let library = directory.join(format!("{DLL_PREFIX}{name}_cpp{variant}.{DLL_EXTENSION}"));
    let mut command = Command::new(compiler());
    command.args(CXX_FLAGS).args(defines.iter().map(|name| format!("-D{name}")));
    command.arg("-I").arg(include).arg(source).arg("-o").arg(&library);
    compile(&mut command, source)?;
    Ok(library)
}

/// Compiles a C++ library of ops against a TensorFlow, with the flags that its Python names. Returns the shared library in
/// `directory`; one that is newer than its source is kept, because the headers take minutes to compile.
pub fn cpp_ops(source: &Path, tensorflow: &TensorFlow, directory: &Path) -> Result<PathBuf> {
    const FLAGS: &str = "import json, tensorflow as tf
print(json.dumps([tf.sysconfig.get_compile_flags(), tf.sysconfig.get_link_flags()]))";
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let name = source.file_stem().unwrap_or_default().display();
    let library = directory.join(format!("{DLL_PREFIX}{name}_cpp.{DLL_EXTENSION}"));
    let changed = |file: &Path| fs::metadata(file).and_then(|file| file.modified());
    if changed(&library).is_ok_and(|library| changed(source).is_ok_and(|source| source < library)) {
        return Ok(library);
    }
    let flags = answer(tensorflow.python_command().args(["-c", FLAGS]))?;
    let [compile_flags, link_flags]: [Vec<String>; 2] = serde_json::from_value(flags)?;
    eprintln!("compiling {}", source.display());
    // Complete or not there.
    let scratch = tempfile::tempdir_in(directory)?;
    let made = scratch.path().join("library");
    let mut command = Command::new(compiler());
    command.args(CXX_FLAGS).args(compile_flags).arg(source).arg("-o").arg(&made).args(link_flags);
    compile(&mut command, source)?;
    fs::rename(&made, &library)?;
    Ok(library)
}

fn compile(command: &mut Command, source: &Path) -> Result<()> {
    match command.status() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "the C++ compiler {} is not on this machine; install one (Debian and Ubuntu: `apt-get \
             install g++`) or name one in the environment variable CXX",
            compiler().display()
        ),
        status => ensure!(
            status.context("cannot run the C++ compiler")?.success(),
            "{} does not compile; see above",
            source.display()
        ),
    }
    Ok(())
}

/// Returns the tools and versions of the measurement, for the report.
pub fn versions(tensorflow: &TensorFlow) -> String {
    let cpp = first_line(Command::new(compiler()).arg("--version"));
    let version = tensorflow.version();
    format!("TensorFlow {version} · {} · {cpp} · {}\n", rust_version(), cpu_model())
}

fn compiler() -> OsString {
    env::var_os("CXX").unwrap_or_else(|| "c++".into())
}

/// The version of the Rust compiler.
pub fn rust_version() -> String {
    first_line(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-V"))
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").to_owned()
}

/// The name of this machine's CPU, for the report.
pub fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or(env::consts::ARCH, |(_, name)| name).to_owned()
}

//! Compiles programs for NVRTC with `c++`, and keeps the libraries on disk.

use crate::{CACHE, TRAPS};
use cudarc::nvrtc::sys::nvrtcResult;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The header that every program includes first.
const HEADER: &str = include_str!("cpu.h");
/// The expansion of `__global__`.
const KERNEL: &str = "__attribute__((__externally_visible__))";
/// The options of both steps. Programs of NVRTC have no system headers.
const LANGUAGE: &str = "-std=c++17 -nostdinc -fno-exceptions -fno-rtti";
// Programs have classes of the same names, whose statics the linker would share.
const LIBRARY: &str = "-O1 -shared -fPIC -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fno-gnu-unique -Wl,-Bsymbolic,--as-needed";

/// The options with which the overflow of a signed integer ends the process.
const TRAPPING: &str = "-fsanitize=signed-integer-overflow -fsanitize-undefined-trap-on-error";

/// Options that have no effect here. Unknown options are an error, as for NVRTC.
const IGNORED: [&str; 17] = [
    "device-as-default-execution-space",
    "arch",
    "std",
    "fmad",
    "ftz",
    "prec-div",
    "prec-sqrt",
    "use_fast_math",
    "maxrregcount",
    "restrict",
    "minimal",
    "device-debug",
    "lineinfo",
    "generate-line-info",
    "disable-warnings",
    "extra-device-vectorization",
    "gpu-architecture",
];

pub(crate) struct Program {
    pub(crate) source: String,
    pub(crate) name: String,
    /// The names and texts.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) log: String,
    /// The library, once it is compiled.
    pub(crate) library: Option<PathBuf>,
}

impl Program {
    pub(crate) fn compile(&mut self, options: &[String]) -> nvrtcResult {
        self.log.clear();
        self.library = None;
        let defines = match defines(options) {
            Ok(defines) => defines,
            Err(option) => {
                self.log = format!("unrecognized option {option}");
                return nvrtcResult::NVRTC_ERROR_INVALID_OPTION;
            }
        };
        match self.cached(&defines) {
            Ok(library) => {
                self.library = Some(library);
                nvrtcResult::NVRTC_SUCCESS
            }
            Err(log) => {
                self.log = log;
                nvrtcResult::NVRTC_ERROR_COMPILATION
            }
        }
    }

    /// Returns the library of this program, and compiles it if the cache does not have it.
    fn cached(&self, defines: &[String]) -> Result<PathBuf, String> {
        let mut hasher = DefaultHasher::new();
        (HEADER, LANGUAGE, LIBRARY, std::env::consts::ARCH, traps()).hash(&mut hasher);
        (&self.source, &self.name, &self.headers, defines).hash(&mut hasher);
        let cache = std::env::var_os(CACHE).map(PathBuf::from);
        let cache = cache.unwrap_or_else(|| std::env::temp_dir().join("cpu-cuda"));
        let library = cache.join(format!("{:016x}.so", hasher.finish()));
        if library.exists() {
            return Ok(library);
        }
        let text =
            |error: std::io::Error| format!("cannot compile in {}: {error}", cache.display());
        fs::create_dir_all(&cache).map_err(text)?;
        let scratch = tempfile::tempdir_in(&cache).map_err(text)?;
        self.build(scratch.path(), defines)?;
        // Another process may do the same now: a rename never leaves a part of a file.
        fs::rename(scratch.path().join("program.so"), &library).map_err(text)?;
        Ok(library)
    }

    fn build(&self, scratch: &Path, defines: &[String]) -> Result<(), String> {
        let write = |name: &str, text: &str| {
            let path = scratch.join(name);
            let parent = path.parent().expect("it is below a directory");
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        for (name, text) in &self.headers {
            if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_))) {
                return Err(format!("a header has the path {name}"));
            }
            write(&format!("headers/{name}"), text)?;
        }
        write("cpu.h", HEADER)?;
        write("program.cu", &format!("#line 1 {:?}\n{}", self.name, self.source))?;
        let language = LANGUAGE.split(' ').map(str::to_owned);
        let mut expand: Vec<String> = language.clone().chain(defines.iter().cloned()).collect();
        expand.extend(
            "-E -include cpu.h -Iheaders -x c++ program.cu -o program.ii"
                .split(' ')
                .map(str::to_owned),
        );
        run(scratch, &expand)?;
        let expanded = fs::read(scratch.join("program.ii"))
            .map_err(|error| format!("cannot read the program: {error}"))?;
        let expanded = String::from_utf8_lossy(&expanded);
        // The last step expands the macro: in this second preprocessing, `#line` is the only directive left.
        let mut whole = format!("{WRAPPERS}{expanded}\n#line 1 \"kernels\"\n");
        for kernel in kernels(&expanded) {
            let _ = writeln!(whole, "CPU_CUDA_KERNEL({kernel})");
        }
        write("program.ii.cu", &whole)?;
        let library = language.chain(LIBRARY.split(' ').chain(traps()).map(str::to_owned));
        let library = library
            .chain("-x c++ program.ii.cu -x none -lm -o program.so".split(' ').map(str::to_owned));
        run(scratch, &library.collect::<Vec<_>>())
    }
}

/// The functions that the driver looks up for a kernel.
const WRAPPERS: &str = "\
#define CPU_CUDA_KERNEL(name) \
    extern \"C\" unsigned long cpu_cuda_sizes_##name(unsigned long *sizes) { return cpu_cuda::sizes(name, sizes); } \
    extern \"C\" const char *cpu_cuda_run_##name(cpu_cuda::Launch *launch) { \
        return cpu_cuda::run(launch, [](void **arguments) { cpu_cuda::call(name, arguments); }); \
    }\n";

/// Returns the options that the environment adds.
fn traps() -> Vec<&'static str> {
    match std::env::var_os(TRAPS) {
        Some(_) => TRAPPING.split(' ').collect(),
        None => Vec::new(),
    }
}

/// Returns the macros among NVRTC's options, or fails with an unknown option.
fn defines(options: &[String]) -> Result<Vec<String>, &str> {
    let mut defines = Vec::new();
    let mut all = options.iter();
    while let Some(option) = all.next() {
        let define = ["--define-macro=", "-D"].iter().find_map(|name| option.strip_prefix(name));
        if let Some(define) = define {
            let define = if define.is_empty() { all.next().ok_or("-D")? } else { define };
            defines.push(format!("-D{define}"));
            continue;
        }
        let name = option.split('=').next().unwrap_or_default();
        if !name.starts_with('-') || !IGNORED.contains(&name.trim_start_matches('-')) {
            return Err(option);
        }
    }
    Ok(defines)
}

fn run(scratch: &Path, arguments: &[String]) -> Result<(), String> {
    let output = Command::new("c++").args(arguments).current_dir(scratch).output();
    let output = output.map_err(|error| format!("cannot run c++: {error}; install g++"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Returns the names of the `extern "C"` kernels of an expanded program.
fn kernels(expanded: &str) -> Vec<&str> {
    let parts: Vec<&str> = expanded.split(KERNEL).collect();
    let mut names = Vec::new();
    for pair in parts.windows(2) {
        let before = pair[0].trim_end();
        let head = pair[1].split('(').next().unwrap_or_default().trim_end();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &head[head.trim_end_matches(is_name).len()..];
        if before.ends_with("extern \"C\"") && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_names() {
        let program =
            format!("extern \"C\" {KERNEL} void run(int x);\n{KERNEL} void of_cpp() {{}}");
        assert_eq!(kernels(&program), ["run"]);
    }

    #[test]
    fn options_of_nvrtc() {
        let options = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let known =
            options(&["-DA=1", "--define-macro=B", "-D", "C", "--std=c++17", "-arch=sm_90"]);
        assert_eq!(defines(&known), Ok(options(&["-DA=1", "-DB", "-DC"])));
        assert_eq!(defines(&options(&["--fast"])), Err("--fast"));
    }
}

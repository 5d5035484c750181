//! `run --trace`: the library that is loaded in front of a plugin, and its settings.

use std::env;
use std::fs;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rustix::time::{ClockId, clock_gettime};

use crate::build::Linking;
use crate::output::{note, write_file};
use crate::template::Sdk;
use crate::workspace::{Workspace, user_cache};

/// The variables that the library reads; the names are those of `tf_plugin_trace::settings`.
const LIBRARY: &str = "TF_PLUGIN_TRACE_LIBRARY";
const CALLS: &str = "TF_PLUGIN_TRACE_CALLS";
const CHROME: &str = "TF_PLUGIN_TRACE_CHROME";
const START: &str = "TF_PLUGIN_TRACE_START";
const PROCESS: &str = "TF_PLUGIN_TRACE_PROCESS";
const LOADED: &str = "TF_PLUGIN_TRACE_LOADED";
const COLOUR: &str = "TF_PLUGIN_TRACE_COLOUR";

/// The headings above the lines; those of `tf_plugin_trace::settings`.
const HEADINGS: &str = "     time s  thread             took  call";

/// The package that is created for the library.
const PACKAGE: &str = "tf-plugin-tracer";

/// The settings of a trace: what it shows, and where.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Show every call to the plugin: arguments, result, duration, thread; and the totals at the end of the process.
    /// Only the totals with `--trace=totals`.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "calls")]
    trace: Option<What>,

    /// Write the calls to a file instead of standard error.
    #[arg(long, value_name = "FILE")]
    trace_file: Option<PathBuf>,

    /// Write the calls to a file for chrome://tracing and <https://ui.perfetto.dev>.
    #[arg(long, value_name = "FILE")]
    trace_chrome: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Each call, and the totals.
    Calls,
    /// How often and how long each operation was called.
    Totals,
}

impl Trace {
    pub(crate) fn is_wanted(&self) -> bool {
        self.trace.is_some() || self.trace_file.is_some() || self.trace_chrome.is_some()
    }

    /// Makes `command`, which will replace this process, trace its calls to the plugin.
    pub(crate) fn prepare(&self, command: &mut Command, plugin: &Path) -> Result<()> {
        if !self.is_wanted() {
            return Ok(());
        }
        let machine = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        if !(cfg!(all(target_os = "linux", target_env = "gnu")) && machine) {
            bail!(
                "calls can only be traced on Linux with glibc, on x86-64 and AArch64; run without `--trace`"
            );
        }
        if self.trace == Some(What::Totals) && self.trace_file.is_some() {
            bail!(
                "`--trace=totals` writes no calls to a file; leave out `=totals` or `--trace-file`"
            );
        }
        let tracer = build()?;
        let mut preload = env::var_os("LD_PRELOAD").unwrap_or_default();
        if !preload.is_empty() {
            // Some libraries in the list have to come first.
            preload.push(":");
        }
        // Both separate libraries in the list.
        let separates = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
        if tracer.as_os_str().as_bytes().iter().any(separates) {
            bail!(
                "{} cannot be loaded in front of a program because of the `:` or the space in its path; name another \
                 directory in CARGO_TARGET_DIR",
                tracer.display()
            );
        }
        preload.push(&tracer);
        for name in [LIBRARY, CALLS, CHROME, START, PROCESS, LOADED, COLOUR] {
            command.env_remove(name);
        }
        let plugin = fs::canonicalize(plugin)
            .with_context(|| format!("cannot find {}", plugin.display()))?;
        command.env("LD_PRELOAD", preload).env(LIBRARY, plugin);
        command.env(PROCESS, process::id().to_string());
        let loaded = tracer.with_file_name(format!("loaded-{}", process::id()));
        // A killed program with the same process number may have left it. Other such files stay: they are empty.
        let _ = fs::remove_file(&loaded);
        command.env(LOADED, loaded);
        // It also follows `NO_COLOR` and similar variables.
        let choice = anstream::AutoStream::choice(&stderr());
        let colour = stderr().is_terminal() && choice != anstream::ColorChoice::Never;
        if colour {
            command.env(COLOUR, "1");
        }
        if let Some(path) = &self.trace_chrome {
            // The program and its script; other arguments may be secrets.
            let mut name = command.get_program().to_string_lossy().into_owned();
            let script = command.get_args().next().map(Path::new).filter(|script| script.is_file());
            if let Some(script) = script.and_then(Path::file_name) {
                name = format!("{name} {}", script.to_string_lossy());
            }
            let beginning = serde_json::json!({
                "name": "process_name", "ph": "M", "pid": process::id(), "tid": process::id(),
                "args": {"name": name},
            });
            // A list without an end is valid, since processes may be killed; so no process has to write the end.
            command.env(CHROME, begin(path, &format!("[\n{beginning}"))?);
        }
        match (&self.trace_file, self.trace) {
            (Some(path), _) => {
                command.env(CALLS, begin(path, &format!("{HEADINGS}\n"))?);
            }
            (None, Some(What::Calls)) => {
                command.env(CALLS, "-");
                let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
                note!("{bold}{HEADINGS}{plain}");
            }
            _ => {}
        }
        let now = clock_gettime(ClockId::Monotonic);
        command.env(START, (now.tv_sec * 1_000_000_000 + now.tv_nsec).to_string());
        Ok(())
    }
}

/// Creates a file, and returns its absolute path, which is valid in every process.
fn begin(path: &Path, text: &str) -> Result<PathBuf> {
    let failed =
        || format!("cannot write {}; is its directory there, and writable?", path.display());
    let path = std::path::absolute(path).with_context(failed)?;
    let mut file = fs::File::create(&path).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    Ok(path)
}

/// Builds the library, which takes some seconds the first time, and returns its path.
fn build() -> Result<PathBuf> {
    let workspace = Workspace::find()?;
    let home = match &workspace {
        Some(workspace) => workspace.target_dir().join("tf-plugin"),
        None => user_cache()?,
    };
    let directory = home.join("tracer");
    let failed = || format!("cannot write in {}; is it writable?", directory.display());
    fs::create_dir_all(directory.join("src")).with_context(failed)?;
    for (name, text) in [
        ("Cargo.toml", manifest(&Sdk::own())),
        ("src/lib.rs", "//! Loaded in front of a program whose plugin is traced.\n\ntf_plugin_trace::export!();\n".to_owned()),
    ] {
        let path = directory.join(name);
        if !fs::read_to_string(&path).is_ok_and(|current| current == text) {
            write_file(&path, text.as_bytes()).with_context(failed)?;
        }
    }
    let lock = directory.join("Cargo.lock");
    // The plugin's versions are downloaded already, and the library needs no others, so this works without a network.
    if let (Some(workspace), false) = (&workspace, lock.exists())
        && let Ok(versions) = fs::read(workspace.root().join("Cargo.lock"))
    {
        write_file(&lock, &versions).with_context(failed)?;
    }
    let workspace = Workspace::around(&directory)?;
    let package =
        workspace.package(PACKAGE).context("cargo does not find the package that was made")?;
    workspace
        .build(package, &Linking::default())
        .context("the library that traces calls does not build")
}

fn manifest(sdk: &Sdk) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let source = match sdk {
        Sdk::Clone(path) => format!("path = {:?}", path.join("tf-plugin-trace")),
        Sdk::Published => format!("version = \"={version}\""),
    };
    format!(
        "[package]\nname = \"{PACKAGE}\"\nversion = \"{version}\"\nedition = \"2024\"\npublish = false\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\ntf-plugin-trace = {{ {source} }}\n\n[workspace]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_headings_are_those_of_the_library() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tf-plugin-trace");
        let text = fs::read_to_string(path.join("src/settings.rs")).expect("it is there");
        for value in [LIBRARY, CALLS, CHROME, START, PROCESS, LOADED, COLOUR, HEADINGS] {
            assert!(text.contains(&format!("str = \"{value}\";")), "{value}");
        }
    }

    #[test]
    fn the_library_is_that_of_the_clone_or_of_this_version() {
        let published = manifest(&Sdk::Published);
        let version = env!("CARGO_PKG_VERSION");
        assert!(published.contains(&format!("tf-plugin-trace = {{ version = \"={version}\" }}")));
        let cloned = manifest(&Sdk::Clone("/a \"b\"".into()));
        assert!(cloned.contains(r#"tf-plugin-trace = { path = "/a \"b\"/tf-plugin-trace" }"#));
    }
}

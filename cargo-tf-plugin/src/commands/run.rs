//! `cargo tf-plugin run`: a program with the plugin loaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::TensorFlow;
use crate::artefact::{Artefact, ENTRY_POINTS};
use crate::commands::build::What;
use crate::commands::check::tensorflow;
use crate::commands::installed::{self, LIBRARY_VARIABLE};
use crate::output::write_program;
use crate::trace::Trace;
use crate::wheel::package::PythonPackage;
use crate::workspace::target_or_cache;

/// The arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin run -- python train.py --epochs 3
  cargo tf-plugin run --tf 2.16.2 -- python -c \"import tensorflow as tf; print(tf.config.list_physical_devices())\"
  cargo tf-plugin run --python ~/venv/bin/python -- pytest
  cargo tf-plugin run --trace -- python train.py            every call that TensorFlow makes to the plugin
  cargo tf-plugin run --trace=totals -- python train.py     how often and how long, by operation
  cargo tf-plugin run --trace-chrome trace.json -- python train.py
  cargo tf-plugin run --trace --library libother.so --tf ~/venv -- python app.py

`python`, `python3` and the programs next to it are those of the chosen TensorFlow. The exit status is the program's.
Calls are traced in all processes that the program starts, however they load the plugin: also by
`register_filesystem_plugin`, or from an installed package (name the installed file with `--library`). The trace shows
neither the contents of files nor the values of options.")]
pub struct Run {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    trace: Trace,

    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Which plugin, and with which TensorFlow.
#[derive(Args, Debug)]
pub(crate) struct Choice {
    /// Package of the workspace that is the plugin.
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,

    /// Load this shared library, in any language, instead of building a package.
    #[arg(long, value_name = "FILE", conflicts_with = "package")]
    library: Option<PathBuf>,

    /// TensorFlow release, installed into the target directory on first use, or a virtual environment that has one;
    /// by default the active environment's, else the newest release.
    #[arg(long, value_name = "VERSION|VENV", conflicts_with = "python")]
    tf: Option<PathBuf>,

    /// Use the TensorFlow that this Python interpreter has.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

impl Choice {
    /// Builds the plugin or finds the library, and finds TensorFlow.
    pub(crate) fn find(&self) -> Result<Found> {
        let (library, target, modules) = match &self.library {
            Some(file) => {
                let file = fs::canonicalize(file).with_context(|| {
                    format!("cannot find {}; name the plugin's shared library", file.display())
                })?;
                plugin(&file)?;
                (file, target_or_cache()?, None)
            }
            None => {
                let (project, library) = What::package(self.package.clone()).build()?;
                let modules = PythonPackage::for_development(&project, &library)?;
                (library.path, project.workspace.target_dir(), modules)
            }
        };
        let tensorflow = match (&self.python, &self.tf) {
            (Some(python), _) => TensorFlow::from_python(python)?,
            (None, Some(name)) => tensorflow(name)?,
            (None, None) => TensorFlow::around()?,
        };
        let limit = Duration::from_secs(20);
        let instead = "load that one with `--library FILE`";
        let installed = installed::loads(&tensorflow, &library, None, limit, instead)?;
        // The installed package finds the installed library.
        let modules = modules.filter(|_| !installed);
        Ok(Found { library, target, tensorflow, installed, modules })
    }
}

/// A plugin, where its build's files are, and a TensorFlow.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) library: PathBuf,
    target: PathBuf,
    pub(crate) tensorflow: TensorFlow,
    /// Whether this TensorFlow loads the plugin on its own.
    installed: bool,
    /// The directory of the Python package with its ops, if it has ops.
    modules: Option<PathBuf>,
}

impl Found {
    /// Returns a command that loads the plugin, and whose `python` is that of the TensorFlow.
    pub(crate) fn command(&self, program: &OsStr) -> Result<Command> {
        let mut command = Command::new(program);
        surround(&mut command, self.tensorflow.python(), &self.target.join("tf-plugin/python"))?;
        // A device that is loaded twice ends the process.
        if !self.installed {
            let joined = self.target.join("tf-plugin/joined");
            let libraries = libraries(env::var_os(LIBRARY_VARIABLE), &self.library, &joined)?;
            command.env(LIBRARY_VARIABLE, libraries);
        }
        if let Some(modules) = &self.modules {
            command.env(MODULES_VARIABLE, joined(modules, env::var_os(MODULES_VARIABLE))?);
        }
        Ok(command)
    }
}

/// The variable with the directories of Python's modules.
pub(crate) const MODULES_VARIABLE: &str = "PYTHONPATH";

/// Puts a directory in front of those that a variable has.
pub(crate) fn joined(first: &Path, rest: Option<OsString>) -> Result<OsString> {
    let rest = rest.unwrap_or_default();
    let rest = env::split_paths(&rest).filter(|path| !path.as_os_str().is_empty());
    env::join_paths([first.to_owned()].into_iter().chain(rest)).with_context(|| {
        format!(
            "{} cannot be in {MODULES_VARIABLE}, which has `:` between its parts; rename it",
            first.display()
        )
    })
}

impl Run {
    /// Builds the plugin and becomes the program; returns only if that fails.
    pub fn run(self) -> Result<()> {
        let plugin = self.choice.find()?;
        let (program, arguments) = self.program.split_first().context("a program is needed")?;
        let mut command = plugin.command(program)?;
        command.args(arguments);
        self.trace.prepare(&mut command, &plugin.library)?;
        // Replaces this process: signals and the exit status are the program's own.
        let error = command.exec();
        Err(error).with_context(|| format!("cannot run {}; is it on PATH?", program.display()))
    }
}

/// Refuses a file with which TensorFlow would not start, or that is not a plugin.
pub(crate) fn plugin(file: &Path) -> Result<()> {
    let artefact = Artefact::read(file)?;
    if artefact.entry_points.is_empty() {
        bail!(
            "{} exports nothing that TensorFlow looks for ({}); name a plugin",
            file.display(),
            ENTRY_POINTS.join(", ")
        );
    }
    Ok(())
}

/// Puts an interpreter and its scripts first on `PATH`, as activating its environment does.
fn surround(command: &mut Command, python: &Path, wrappers: &Path) -> Result<()> {
    let bin = python.parent().unwrap_or(Path::new("/"));
    let mut places = vec![bin.to_owned()];
    let same = |name: &&str| fs::canonicalize(bin.join(name)).ok() == fs::canonicalize(python).ok();
    if !["python", "python3"].iter().all(same) {
        places.insert(0, wrapped(python, wrappers)?);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(places.iter().cloned().chain(env::split_paths(&path)))
        .with_context(|| {
            format!("{places:?} cannot be on PATH, which has `:` between its parts; rename it")
        })?;
    command.env("PATH", path);
    match bin.parent().filter(|venv| venv.join("pyvenv.cfg").is_file()) {
        Some(venv) => command.env("VIRTUAL_ENV", venv),
        // It would name another Python.
        None => command.env_remove("VIRTUAL_ENV"),
    };
    // It would make every Python use another one's modules.
    command.env_remove("PYTHONHOME");
    Ok(())
}

/// Creates a directory in which `python` and `python3` start the interpreter, for one whose own directory has others or
/// none, as Debian's `/usr/bin`. They are scripts: Python would not find its environment behind a link.
fn wrapped(python: &Path, wrappers: &Path) -> Result<PathBuf> {
    let bytes = python.as_os_str().as_bytes();
    let directory = wrappers.join(hashed([bytes]));
    let failed = || format!("cannot write in {}; is it writable?", directory.display());
    fs::create_dir_all(&directory).with_context(failed)?;
    let quoted = bytes.split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]);
    let script = [b"#!/bin/sh\nexec '", &*quoted, b"' \"$@\"\n"].concat();
    for path in ["python", "python3"].map(|name| directory.join(name)) {
        // Another command may be running it.
        if fs::read(&path).ok().as_ref() != Some(&script) {
            write_program(&path, &script).with_context(failed)?;
        }
    }
    Ok(directory)
}

/// Returns a name that identifies the content.
fn hashed<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let add = |name: Sha256, part| name.chain_update(part).chain_update([0]);
    let name = parts.into_iter().fold(Sha256::new(), add);
    name.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the value of [`LIBRARY_VARIABLE`] for a plugin in addition to its present value. TensorFlow takes one path:
/// a file, or a directory of files. For several files this creates a directory of links.
fn libraries(before: Option<OsString>, plugin: &Path, joined: &Path) -> Result<PathBuf> {
    let Some(before) = before.filter(|before| !before.is_empty()).map(PathBuf::from) else {
        return Ok(plugin.to_owned());
    };
    let mut files = Vec::new();
    if before.is_dir() {
        let failed = || format!("cannot read {}, which {LIBRARY_VARIABLE} names", before.display());
        for entry in fs::read_dir(&before).with_context(failed)? {
            files.push(entry.with_context(failed)?.path());
        }
    } else if before.is_file() {
        files.push(before);
    } else {
        bail!(
            "{LIBRARY_VARIABLE} names {}, which does not exist, so that TensorFlow would refuse to start; unset it",
            before.display()
        );
    }
    let mut files =
        files.into_iter().map(|file| fs::canonicalize(&file).unwrap_or(file)).collect::<Vec<_>>();
    let plugin = fs::canonicalize(plugin).unwrap_or_else(|_| plugin.to_owned());
    files.push(plugin.clone());
    files.sort();
    files.dedup();
    if files == [plugin.clone()] {
        return Ok(plugin);
    }

    // Named by its content, so that a running program keeps the files that it started with.
    let directory = joined.join(hashed(files.iter().map(|file| file.as_os_str().as_bytes())));
    let failed = || format!("cannot fill {}; is it writable?", directory.display());
    fs::create_dir_all(&directory).with_context(failed)?;
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or(OsStr::new("plugin.so"));
        // Two files of one name are two plugins.
        let link = directory.join(format!("{number}-{}", name.to_string_lossy()));
        if let Err(error) = symlink(file, &link)
            && fs::read_link(&link).ok().as_deref() != Some(file)
        {
            return Err(error).with_context(failed);
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_the_chosen_interpreter_whatever_its_name() {
        let scratch = tempfile::tempdir().expect("a directory");
        let bin = scratch.path().join("it's/bin");
        fs::create_dir_all(&bin).expect("made");
        for name in ["chosen", "python3"] {
            let script = format!("#!/bin/sh\necho {name} \"$@\"\n");
            write_program(&bin.join(name), script.as_bytes()).expect("written");
        }
        let ran = || {
            let mut command = Command::new("sh");
            command.env("VIRTUAL_ENV", "another");
            let wrappers = scratch.path().join("wrappers");
            surround(&mut command, &bin.join("chosen"), &wrappers).expect("written");
            command.args(["-c", "python 'a b'; python3; echo ${VIRTUAL_ENV##*/}"]);
            String::from_utf8(command.output().expect("it runs").stdout).expect("UTF-8")
        };
        assert_eq!(ran(), "chosen a b\nchosen\n\n");
        fs::write(bin.with_file_name("pyvenv.cfg"), "").expect("written");
        assert_eq!(ran(), "chosen a b\nchosen\nit's\n");
    }

    #[test]
    fn a_plugin_comes_beside_what_is_named_already() {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = fs::canonicalize(scratch.path()).expect("a path");
        let file = |path: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(&path, "").expect("written");
            path
        };
        let (own, other) = (file("own/libx.so"), file("others/libx.so"));
        let (joined, of) = (root.join("joined"), |path: &Path| Some(path.as_os_str().to_owned()));
        assert_eq!(libraries(None, &own, &joined).expect("alone"), own);
        assert_eq!(libraries(Some("".into()), &own, &joined).expect("alone"), own);
        assert_eq!(libraries(of(&own), &own, &joined).expect("the same"), own);
        let both = libraries(of(&other), &own, &joined).expect("two");
        let linked = |directory: &Path| {
            let entries = fs::read_dir(directory).expect("a directory");
            let mut files: Vec<_> = entries
                .map(|entry| fs::canonicalize(entry.expect("an entry").path()).expect("a link"))
                .collect();
            files.sort();
            files
        };
        assert_eq!(linked(&both), [other.clone(), own.clone()]);
        assert_eq!(libraries(of(&other), &own, &joined).expect("again"), both);
        file("others/liby.so");
        let others = root.join("others");
        assert_eq!(linked(&libraries(of(&others), &own, &joined).expect("three")).len(), 3);
        let error = libraries(of(&root.join("none")), &own, &joined).expect_err("none").to_string();
        assert!(error.contains("does not exist"), "{error}");
    }
}

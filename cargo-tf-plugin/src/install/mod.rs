//! Installs Python packages into separate virtual environments.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fs4::FileExt;
use indicatif::ProgressBar;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::interrupt::Held;
use crate::output::{note, progress};
use crate::probe::quoted;
use crate::python::{Interpreter, PYTHON_VARIABLE};

/// How many of the last lines of a program's output an error shows.
const SHOWN_LINES: usize = 15;

/// The purpose of an environment, and what it provides.
#[derive(Debug)]
pub(crate) struct Goal<T> {
    /// The name in messages.
    pub(crate) title: String,
    /// The cost of a first use, for the message before it.
    pub(crate) cost: &'static str,
    /// The text of the stamp in a complete environment; another text means that the environment is outdated.
    pub(crate) stamp: String,
    pub(crate) stamp_name: &'static str,
    /// The requirements for pip.
    pub(crate) requirements: Vec<String>,
    /// The TensorFlow release that supports the Python to start from.
    pub(crate) release: String,
    /// Checks quickly whether the interpreter of an environment provides what it is made for.
    pub(crate) locate: fn(&Self, &Path) -> Result<T>,
    /// Python code that imports what most programs import. It runs once, to compile bytecode: with
    /// PYTHONDONTWRITEBYTECODE, as in container images, every import would compile it and take 8 s instead of 3 s.
    pub(crate) first_import: Option<&'static str>,
    /// The next step for a package that the index does not have.
    pub(crate) not_found: String,
}

/// Packages that belong together, in one environment.
///
/// A virtual environment cannot be renamed (its scripts contain its path), so it is created in its final place. A stamp
/// that is written last distinguishes a complete environment from an interrupted one.
#[derive(Debug)]
pub(crate) struct Installation<T> {
    goal: Goal<T>,
    venv: PathBuf,
    lock: PathBuf,
    pub(crate) python: Option<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl<T> Installation<T> {
    /// Creates the installation of `goal` as `name` in `directory`; nothing is installed yet.
    pub(crate) fn of(goal: Goal<T>, directory: &Path, name: &str) -> Result<Self> {
        let directory = std::path::absolute(directory)
            .with_context(|| format!("cannot find the directory {}", directory.display()))?;
        Ok(Self {
            goal,
            venv: directory.join(name),
            lock: directory.join(format!("{name}.lock")),
            python: env::var_os(PYTHON_VARIABLE).filter(|name| !name.is_empty()),
            environment: Vec::new(),
        })
    }

    /// Returns what this installation provides; installs it first if it is missing or incomplete.
    pub(crate) fn provide(&self) -> Result<T> {
        // Without the lock: a stamp never appears before everything else is in place.
        if let Some(provided) = self.complete() {
            return Ok(provided);
        }
        let lock = self.lock()?;
        // Another process may have finished while this one waited.
        if let Some(provided) = self.complete() {
            return Ok(provided);
        }
        self.install(&lock)
    }

    fn stamp(&self) -> PathBuf {
        self.venv.join(self.goal.stamp_name)
    }

    fn interpreter(&self) -> PathBuf {
        self.venv.join("bin/python")
    }

    /// Returns what a complete environment provides: it has a stamp, its interpreter runs, and its packages are there.
    fn complete(&self) -> Option<T> {
        let stamped = fs::read_to_string(self.stamp()).ok()?.trim() == self.goal.stamp;
        stamped.then(|| (self.goal.locate)(&self.goal, &self.interpreter()).ok())?
    }

    fn write_stamp(&self) -> Result<()> {
        let stamp = self.stamp();
        fs::write(&stamp, format!("{}\n", self.goal.stamp))
            .map_err(|error| self.disk_error(error))
            .with_context(|| format!("cannot write {}", stamp.display()))
    }

    /// Waits until no other process installs the same environment.
    fn lock(&self) -> Result<File> {
        let directory = self.lock.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(|error| self.disk_error(error)).with_context(
            || format!("cannot make the directory {}; is it writable?", directory.display()),
        )?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.lock)
            .map_err(|error| self.disk_error(error))
            .with_context(|| format!("cannot open the lock file {}", self.lock.display()))?;
        if FileExt::try_lock(&file).is_err() {
            note!("waiting for another process that installs {}", self.goal.title);
            FileExt::lock(&file).with_context(|| format!("cannot lock {}", self.lock.display()))?;
        }
        Ok(file)
    }

    fn install(&self, lock: &File) -> Result<T> {
        let (named, path) = (self.python.as_deref(), env::var_os("PATH"));
        let base = Interpreter::for_tensorflow(&self.goal.release, named, path.as_deref())?;
        if self.venv.symlink_metadata().is_ok() {
            note!("removing the incomplete environment {}", self.venv.display());
            fs::remove_dir_all(&self.venv).with_context(|| {
                format!("cannot remove {}; delete it by hand", self.venv.display())
            })?;
        }
        note!("installing {} into {} ({})", self.goal.title, self.venv.display(), self.goal.cost);

        let held = Held::new();
        let provided = self.fill(&base, lock, &held);
        if provided.is_err() {
            // A partial environment is useless, and the error has said why.
            let removed = fs::remove_dir_all(&self.venv);
            if held.is_wanted_back() {
                let left = if removed.is_ok() { "; nothing is left behind" } else { "" };
                note!("interrupted{left}");
            }
        }
        provided
    }

    /// Creates an environment that does not exist.
    fn fill(&self, base: &Interpreter, lock: &File, held: &Held) -> Result<T> {
        // In two steps: `venv` would hide what the second one says when it fails.
        let mut venv = isolated(&base.path);
        venv.args(["-m", "venv", "--without-pip"]).arg(&self.venv);
        let mut ensurepip = isolated(&self.interpreter());
        ensurepip.args(["-m", "ensurepip", "--default-pip"]);
        for step in [venv, ensurepip] {
            let (status, output) = self.run(step, lock, held, "making the environment")?;
            if !status.success() {
                return Err(self.venv_failure(&base.path, &output));
            }
        }

        let mut pip = self.pip(&self.interpreter());
        pip.args(["install", "--no-compile", "--no-input", "--progress-bar", "off"]);
        pip.args(&self.goal.requirements);
        let (status, output) = self.run(pip, lock, held, "starting pip")?;
        if !status.success() {
            return Err(self.pip_failure(status, &output));
        }

        if let Some(code) = self.goal.first_import {
            // Without Python's variables, that one among them.
            let mut import = isolated(&self.interpreter());
            import.args(["-c", code]).env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
            // TensorFlow's start-up messages are not about the installation.
            import.env("TF_CPP_MIN_LOG_LEVEL", "2");
            // If this fails, it fails again for a user, who then sees why.
            let _ = self.run(import, lock, held, "importing it once")?;
        }
        let provided = (self.goal.locate)(&self.goal, &self.interpreter()).with_context(|| {
            format!(
                "pip succeeded, but {} is not there; please run the command again",
                self.goal.title
            )
        })?;
        self.write_stamp()?;
        note!("{} is ready", self.goal.title);
        Ok(provided)
    }

    fn pip(&self, python: &Path) -> Command {
        let mut command = isolated(python);
        command.args(["-m", "pip", "--disable-pip-version-check"]);
        // Settings that would send packages elsewhere; index, proxy and certificates stay the user's.
        for name in ["PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command, shows its lines as progress and returns them.
    fn run(
        &self,
        mut command: Command,
        lock: &File,
        held: &Held,
        first: &str,
    ) -> Result<(ExitStatus, Vec<String>)> {
        let program = command.get_program().to_owned();
        let failed = || format!("cannot run {}", program.display());
        let (reader, writer) = io::pipe().with_context(failed)?;
        let mut child = command
            // The child also holds the lock: if this process is killed, no other one starts before pip ends.
            .stdin(Stdio::from(lock.try_clone().with_context(failed)?))
            .stdout(writer.try_clone().with_context(failed)?)
            .stderr(writer)
            // To end it together with the processes that it starts.
            .process_group(0)
            .spawn()
            .with_context(failed)?;
        // The command keeps copies of the pipe's write end, so the reader would not see the end.
        drop(command);

        let progress = progress(first.to_owned());
        let mut output = Vec::new();
        let (sender, lines) = mpsc::channel();
        // The thread ends when the last process that writes has ended.
        thread::spawn(move || {
            BufReader::new(reader).split(b'\n').all(|line| sender.send(line).is_ok())
        });
        loop {
            if held.is_wanted_back() {
                // The child may have ended already.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                child.wait().with_context(failed)?;
                // Until the last of them has ended, and writes no more files.
                while lines.recv_timeout(Duration::from_secs(5)).is_ok() {}
                progress.finish_and_clear();
                bail!("interrupted");
            }
            let line = match lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => line.with_context(failed)?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                continue;
            }
            show(&progress, &line);
            output.push(line);
        }
        let status = child.wait().with_context(failed)?;
        progress.finish_and_clear();
        Ok((status, output))
    }

    fn venv_failure(&self, base: &Path, output: &[String]) -> anyhow::Error {
        let text = output.join("\n");
        let advice = self.disk_advice(&text).unwrap_or_else(|| {
            "read its messages above; if its `venv` or `ensurepip` module is missing, install it (on Debian and \
             Ubuntu: `apt install python3-venv`), or name another Python with TF_PLUGIN_PYTHON=/path/to/python"
                .to_owned()
        });
        anyhow::anyhow!(
            "{} could not make a virtual environment in {}:{}\n{advice}",
            base.display(),
            self.venv.display(),
            last_lines(output)
        )
    }

    fn pip_failure(&self, status: ExitStatus, output: &[String]) -> anyhow::Error {
        let text = output.join("\n");
        // pip only says the last of these when its retries are used up. The Python was found
        // suitable before, so an index that responds has some release for it.
        let unreachable = "NewConnectionError|Connection refused|Connection broken|ConnectionResetError|\
            ConnectTimeoutError|ReadTimeout|Max retries exceeded|Name or service not known|\
            Temporary failure in name resolution|Network is unreachable|ProxyError|SSLError|\
            No route to host|(from versions: none)";
        let advice = if let Some(advice) = self.disk_advice(&text) {
            advice
        } else if unreachable.split('|').any(|sign| text.contains(sign)) {
            "pip could not reach its package index: connect to the network, or name a mirror with PIP_INDEX_URL \
             or a proxy with HTTPS_PROXY, and run the command again; or use a TensorFlow that is installed \
             already, with `--tf /path/to/venv` (`demo`: `--python /path/to/venv/bin/python`)"
                .to_owned()
        } else if text.contains("No matching distribution found") {
            self.goal.not_found.clone()
        } else {
            "read pip's messages above; running the command again starts the installation afresh"
                .to_owned()
        };
        anyhow::anyhow!(
            "pip could not install {} ({status}):{}\n{advice}",
            self.goal.title,
            last_lines(output)
        )
    }

    fn disk_advice(&self, text: &str) -> Option<String> {
        (text.contains("No space left on device")
            || text.contains("Errno 28")
            || text.contains("Disk quota"))
        .then(|| {
            format!(
                "the disk is full: free 3 GB for {} and for temporary files (TMPDIR), \
                     or set CARGO_TARGET_DIR (outside of a package: XDG_CACHE_HOME) to a place with more room",
                self.venv.display()
            )
        })
    }

    /// Adds the advice for a full disk to an error from writing our own files.
    fn disk_error(&self, error: io::Error) -> anyhow::Error {
        let full =
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let advice = if full { self.disk_advice("No space left on device") } else { None };
        match advice {
            Some(advice) => anyhow::Error::new(error).context(advice),
            None => error.into(),
        }
    }
}

/// Returns a command for Python without the caller's `PYTHON*` settings and user packages.
fn isolated(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg("-I");
    // The processes that pip starts would read these again.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    command
}

/// Returns the last lines of a program, to append to a message.
fn last_lines(lines: &[String]) -> String {
    quoted(&lines[lines.len().saturating_sub(SHOWN_LINES)..])
}

/// Shows a line of pip: in one changing line on a terminal, else only the steps that matter.
fn show(progress: &ProgressBar, line: &str) {
    let steps = ["Collecting", "Downloading", "Installing", "Successfully", "ERROR", "WARNING"];
    let step = line.trim();
    if !progress.is_hidden() {
        progress.set_message(step.to_owned());
    } else if steps.iter().any(|start| step.starts_with(start)) {
        note!("  {step}");
    }
}

#[cfg(test)]
mod tests;

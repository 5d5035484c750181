//! `cargo tf-plugin coverage`: which ops of a script run on the device, and which do not and why.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::artefact::Artefact;
use crate::commands::run::Choice;
use crate::coverage::{self, Report};
use crate::interrupt::Held;
use crate::output::{note, print, say, utf8};

/// The Python modules that watch TensorFlow from within.
const MODULES: [(&str, &str); 4] = [
    ("coverage_run.py", include_str!("../coverage/python/coverage_run.py")),
    ("coverage_watch.py", include_str!("../coverage/python/coverage_watch.py")),
    ("coverage_graphs.py", include_str!("../coverage/python/coverage_graphs.py")),
    ("coverage_kernels.py", include_str!("../coverage/python/coverage_kernels.py")),
];

/// The arguments of `coverage`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin coverage train.py
  cargo tf-plugin coverage --dry-run train.py           stop where training begins
  cargo tf-plugin coverage --tf 2.16.2 train.py --epochs 1
  cargo tf-plugin coverage --library libother.so --tf ~/venv train.py
  cargo tf-plugin coverage --json train.py > coverage.json

Before a function runs for the first time, standard error lists its missing kernels. The exit status is the script's; the
report is written however the script ends.")]
pub struct Coverage {
    #[command(flatten)]
    choice: Choice,

    /// Type of the device, if plugins add more than one.
    #[arg(long, value_name = "TYPE")]
    device: Option<String>,

    /// Stop before the first function that changes variables, such as a training step.
    #[arg(long)]
    dry_run: bool,

    /// Print the report as JSON, for scripts; the script's output goes to standard error.
    #[arg(long)]
    json: bool,

    /// The Python script.
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,

    /// The script's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

impl Coverage {
    /// Runs the script and prints the report; the exit code is the script's.
    pub fn run(self) -> Result<ExitCode> {
        if !self.script.is_file() {
            bail!("cannot find {}; name a Python script", self.script.display());
        }
        let plugin = self.choice.find()?;
        let artefact = Artefact::read(&plugin.library)?;
        let entry_points = &artefact.entry_points;
        if !entry_points.contains(&"SE_InitPlugin") && artefact.describes_ops {
            bail!(
                "{} has ops for the CPU and no device: this lists what ran on a device. `cargo tf-plugin check` lists its ops, \
                 and `cargo tf-plugin run --trace` their calls",
                plugin.library.display()
            );
        }
        if !entry_points.contains(&"SE_InitPlugin") {
            bail!(
                "{} has no device: it exports {}, and not SE_InitPlugin; name a device plugin",
                plugin.library.display(),
                entry_points.join(", ")
            );
        }
        let scratch = tempfile::tempdir().context("cannot make a scratch directory")?;
        for (name, text) in MODULES {
            let path = scratch.path().join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let written = scratch.path().join("report.json");
        let mut command = plugin.command(plugin.tensorflow.python().as_os_str())?;
        let settings =
            json!({ "report": utf8(&written)?, "device": self.device, "dry_run": self.dry_run });
        command.arg(scratch.path().join("coverage_run.py")).arg(settings.to_string());
        command.arg(&self.script).args(&self.arguments);
        if self.json {
            command.stdout(Stdio::from(io::stderr()));
        }
        // Held to the end, so that a signal ends this command after the report.
        let held = Held::new();
        let status = wait(&mut command, &held)?;
        let report = match fs::read(&written) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                note!("{} ended without a report: {}", self.script.display(), ending(status));
                return Ok(code(status));
            }
            read => read.context("cannot read the report")?,
        };
        let report: Report =
            serde_json::from_slice(&report).context("the report is not understood")?;
        if let Some(problem) = report.problem(self.device.as_deref()) {
            if status.success() {
                bail!("{problem}");
            }
            note!("{} failed: {}; {problem}", self.script.display(), ending(status));
            return Ok(code(status));
        }
        if self.json {
            say!("{}", serde_json::to_string_pretty(&report)?)?;
        } else {
            let name = plugin.library.file_name().unwrap_or_default().to_string_lossy();
            print(coverage::text(&report, &name))?;
        }
        if !status.success() {
            note!(
                "{} failed: {}; the report is of what ran before",
                self.script.display(),
                ending(status)
            );
        }
        Ok(code(status))
    }
}

/// Runs the script to its end. The terminal sends Ctrl-C to the script, too; other signals are passed on.
fn wait(command: &mut Command, held: &Held) -> Result<ExitStatus> {
    let mut child: Child = command.spawn().context("cannot run Python")?;
    let mut passed = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the script")? {
            return Ok(status);
        }
        if let (Some(signal), false) = (held.signal(), passed) {
            passed = true;
            if let Some(signal) = Signal::from_named_raw(signal).filter(|it| *it != Signal::INT) {
                // The script may have ended already.
                let _ = kill_process(Pid::from_child(&child), signal);
            }
        }
        sleep(Duration::from_millis(20));
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "it left by `os._exit`, or by another program in its place".to_owned(),
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Returns the exit code of the script, as a shell does.
fn code(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    let code = status.code().unwrap_or(signal);
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}

//! `cargo tf-plugin bench`: the times of the plugin's operations, through its C tables and through TensorFlow.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::TensorFlow;
use crate::bench;
use crate::bench::machine::{self, Machine};
use crate::bench::report::{FORMAT, Plugin, Report};
use crate::commands::check::{self, tensorflow};
use crate::commands::installed::{self, Subject};
use crate::commands::measure::{Measuring, Settings};
use crate::commands::run;
use crate::findings::Severity;
use crate::interrupt::{self, Held};
use crate::output::{self, note};
use crate::report::Report as Check;

/// The arguments of `bench`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin bench                                 the package here, in the active environment's TensorFlow
  cargo tf-plugin bench --no-tf --filter read           only its C tables, and only the read rows
  cargo tf-plugin bench --tf 2.16.2 --tf 2.21.0 --html report.html
  cargo tf-plugin bench s3 --root s3://bucket/scratch   below an existing directory
  cargo tf-plugin bench --file web://host/large.bin     a filesystem that cannot write
  cargo tf-plugin bench --save before.json              and after a change:
  cargo tf-plugin bench --baseline before.json

In TensorFlow each operation also runs on TensorFlow's own implementation: file:// in a temporary directory, or the CPU.
An op runs on made-up inputs, next to a `tf.py_function` that returns the same tensors, and next to TensorFlow's C++ op
`IdentityN`, which passes its inputs on.
The command works in a new directory and removes it, also after an error and Ctrl-C.
This runs the plugin's code as you, with your whole environment: the measured operations may need credentials.
The exit status is 1 if an operation fails.")]
pub struct Bench {
    /// A shared library, or a package to build: its name in this workspace, or its directory.
    #[arg(value_name = "FILE|PACKAGE")]
    plugin: Option<PathBuf>,

    /// TensorFlow release, installed into the target directory on first use, or a virtual environment that has one;
    /// may be repeated. By default the active environment's, else the newest release.
    #[arg(long, value_name = "VERSION|VENV")]
    tf: Vec<PathBuf>,

    /// Measure only the C tables.
    #[arg(long, conflicts_with = "tf")]
    no_tf: bool,

    #[command(flatten)]
    settings: Settings,

    /// Print the report as JSON, for scripts.
    #[arg(long)]
    json: bool,

    /// Also write the report as one HTML file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Also write the report as JSON, as a baseline for later runs.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Compare with the report in this file.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

impl Bench {
    /// Measures, prints the report and writes it where the user wants. The exit code says whether everything succeeded.
    pub fn run(self) -> Result<ExitCode> {
        let baseline = self.baseline.as_deref().map(Report::read).transpose()?;
        for file in [&self.html, &self.save].into_iter().flatten() {
            if file.is_dir() {
                bail!("{} is a directory; name a file to write", file.display());
            }
            let directory = output::parent(file);
            if !directory.is_dir() {
                bail!(
                    "cannot write {}: the directory {} does not exist; create it",
                    file.display(),
                    directory.display()
                );
            }
        }
        let path = check::plugin(self.plugin.as_deref())?;
        let path = fs::canonicalize(&path).unwrap_or(path);
        // Checked before a TensorFlow is downloaded.
        run::plugin(&path)?;
        let tensorflows = if self.no_tf {
            Vec::new()
        } else if self.tf.is_empty() {
            let around = TensorFlow::around();
            vec![around.context(
                "no TensorFlow to measure in; name one with `--tf`, or leave it out with `--no-tf`",
            )?]
        } else {
            self.tf.iter().map(|name| tensorflow(name)).collect::<Result<_>>()?
        };
        let machine = Machine::this();
        let date = machine::now();
        let limit = Some(Duration::from_secs(self.settings.timeout));
        let check = Check::of(&path, || tensorflows.clone(), limit)?;
        if let Some(error) =
            check.findings.iter().find(|finding| finding.severity == Severity::Error)
        {
            bail!(
                "{} {}; `cargo tf-plugin check {}` says more",
                path.display(),
                error.what,
                path.display()
            );
        }
        let subjects = self.subjects(&check, &path)?;
        let mut installed = Vec::new();
        for release in &tensorflows {
            let limit = Duration::from_secs(self.settings.timeout);
            let instead = "measure that one: `cargo tf-plugin bench FILE`";
            let ops = check.described_ops.iter().map(|op| Subject::Op(op.name.clone()));
            let all: Vec<_> = subjects.iter().cloned().chain(ops).collect();
            installed.push(installed::loads(release, &path, Some(&all), limit, instead)?);
        }

        // From here on there are files to remove. A second signal ends the command at once, and the
        // processes that it has started still remove everything.
        let interrupted = Arc::new(AtomicBool::new(false));
        // From now on the flag handles the signals.
        std::mem::forget(Held::new());
        for signal in interrupt::signals() {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
                .context("cannot listen for signals")?;
        }
        let measuring = Measuring {
            settings: &self.settings,
            plugin: &path,
            library_dir: check
                .artefact
                .needs_tensorflow()
                .then(|| tensorflows.first().map(|release| release.library_dir().to_owned()))
                .flatten(),
            tensorflows: &tensorflows,
            installed: &installed,
            interrupted: &interrupted,
            progress: output::progress(String::new()),
            left: RefCell::default(),
            problems: RefCell::default(),
        };
        let (mut parts, mut problems) = (Vec::new(), Vec::new());
        for subject in &subjects {
            let measured = measuring.subject(subject, &mut parts);
            if interrupted.load(Ordering::Relaxed) {
                measuring.progress.finish_and_clear();
                let left = measuring.left.take();
                if left.is_empty() {
                    note!("interrupted; nothing is left behind");
                } else {
                    note!("interrupted");
                    report_left(&left);
                }
                return Ok(ExitCode::from(130));
            }
            // The other parts are still useful.
            problems.extend(measured.err());
        }
        measuring.progress.finish_and_clear();
        parts.retain(|part| !part.rows.is_empty());
        if parts.is_empty() {
            if let Some(problem) = problems.into_iter().next() {
                return Err(problem);
            }
            bail!(
                "no operation has `{}` in its name; `cargo tf-plugin bench --no-tf` lists many",
                self.settings.filter
            );
        }
        let report = Report {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            date,
            plugin: Plugin {
                path: path.clone(),
                size: check.artefact.size,
                sha256: check.artefact.sha256.clone(),
            },
            machine,
            seconds: self.settings.seconds,
            parts,
        };
        let json = serde_json::to_string_pretty(&report)? + "\n";
        let html = self.html.as_ref().map(|_| bench::page(&report, baseline.as_ref()));
        let mut unwritten = Vec::new();
        for (file, content) in [(&self.save, Some(&json)), (&self.html, html.as_ref())] {
            if let (Some(file), Some(content)) = (file, content) {
                unwritten.extend(write(file, content).err());
            }
        }
        // Last, since the reader may have gone. Printed even if the files could not be written: measuring took time.
        let report_text = if self.json { json } else { bench::text(&report, baseline.as_ref()) };
        let unprinted = output::print(report_text).err();
        let left = measuring.left.take();
        report_left(&left);
        problems.extend(measuring.problems.take());
        problems.extend(unwritten);
        problems.extend(unprinted);
        let failures = report.failures();
        if failures > 0 {
            let operations = if failures == 1 { "operation has" } else { "operations have" };
            note!("error: {failures} {operations} failed; the report says why");
        }
        for problem in &problems {
            note!("error: {problem:#}");
        }
        let fine = failures == 0 && left.is_empty() && problems.is_empty();
        Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns what the plugin has. A root or file of the user selects its scheme.
    fn subjects(&self, check: &Check, path: &Path) -> Result<Vec<Subject>> {
        let schemes: Vec<&String> = check.schemes().collect();
        let mut subjects = Vec::new();
        if let Some(uri) = self.settings.root.as_ref().or(self.settings.file.as_ref()) {
            let Some((scheme, _)) = uri.split_once("://") else {
                let known = schemes.first().map_or("scheme", |scheme| scheme.as_str());
                bail!("`{uri}` is not a URI; write one such as {known}://host/directory");
            };
            if !schemes.iter().any(|known| *known == scheme) {
                let known: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
                let known =
                    if known.is_empty() { "no scheme".to_owned() } else { known.join(", ") };
                bail!("{} serves no {scheme}://; it has {known}", path.display());
            }
            subjects.push(Subject::Filesystem(scheme.to_owned()));
        } else if let Some(scheme) = schemes.first() {
            subjects.push(Subject::Filesystem((*scheme).clone()));
        }
        if let Some(device) = &check.device {
            let device_type = device.platform.device_type.clone().unwrap_or_default();
            if device.devices == Some(0) && subjects.is_empty() {
                bail!(
                    "the plugin finds no {device_type} on this machine; run this on one that has it"
                );
            }
            if device.devices != Some(0) {
                subjects.push(Subject::Device(device_type));
            }
        }
        if !check.described_ops.is_empty() && subjects.is_empty() {
            if self.no_tf {
                bail!("ops are measured in TensorFlow only: leave `--no-tf` out");
            }
            subjects.push(Subject::Ops(check.described_ops.clone()));
        }
        if subjects.is_empty() {
            bail!("{} has no filesystem, device or op to measure", path.display());
        }
        Ok(subjects)
    }
}

fn report_left(left: &[(String, String)]) {
    for (directory, why) in left {
        note!("error: {directory} could not be removed ({why}); remove it");
    }
}

/// Writes a file as a whole or not at all.
fn write(file: &Path, content: &str) -> Result<()> {
    let failed = || format!("cannot write {}; check free space and permissions", file.display());
    // Follows links.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if fs::metadata(&target).is_ok_and(|known| !known.is_file()) {
        // A device or a pipe, which must not be replaced.
        fs::write(&target, content).with_context(failed)?;
    } else {
        output::write_file(&target, content.as_bytes()).with_context(failed)?;
    }
    note!("written: {}", file.display());
    Ok(())
}

//! `cargo tf-plugin doctor`: which plugins a TensorFlow loads on import, and what is wrong with them.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::check::tensorflow;
use super::diagnosis::{Diagnosis, Import, Imported, Plugin};
use super::installed::Places;
use crate::TensorFlow;
use crate::explain::explain;
use crate::findings::{Findings, Severity};
use crate::output::{self, say};
use crate::probe::{ended, last_lines, watch};
use crate::render::{BOLD, painted, wrapped};
use crate::report::Report;
use crate::secrets;

const IMPORTED: &str = include_str!("../imported.py");

/// The prefix of the line that [`IMPORTED`] prints.
const MARK: &str = "tf-plugin-doctor ";

/// How many lines of a failed import's output are shown.
const SHOWN_LINES: usize = 12;

/// The arguments of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cargo tf-plugin doctor                          the TensorFlow of `python3`
  cargo tf-plugin doctor --tf .venv               that of a virtual environment
  cargo tf-plugin doctor --tf /usr/bin/python3.11
  cargo tf-plugin doctor --explain 'undefined symbol: TF_SetStatus'
  python app.py 2>&1 | cargo tf-plugin doctor --explain -

The exit status is 1 if a plugin does not work, or breaks `import tensorflow`.

This runs the code of each installed plugin, as `import tensorflow` would: as you, without the variables of the environment
that may hold secrets (docs/check.md lists them).")]
pub struct Doctor {
    /// The TensorFlow to examine: a release (installed on first use), a virtual environment, or a Python. By default that
    /// of `python3`.
    #[arg(long, value_name = "VERSION|VENV|PYTHON")]
    tf: Option<PathBuf>,

    /// Explain an error text, or standard input (`-`), instead of examining a TensorFlow.
    #[arg(long, value_name = "ERROR TEXT", conflicts_with_all = ["tf", "no_import"])]
    explain: Option<String>,

    /// Do not import TensorFlow at the end.
    #[arg(long)]
    no_import: bool,

    /// Time limit for loading each plugin.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// Print the report as JSON, for scripts.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Examines the plugins of a TensorFlow and prints what it finds; or explains an error text.
    pub fn run(self) -> Result<ExitCode> {
        if let Some(text) = &self.explain {
            return explained(text, self.json);
        }
        let tensorflow = match &self.tf {
            Some(name) => tensorflow(name)?,
            None => TensorFlow::from_python(Path::new("python3")).context(
                "name a TensorFlow with `--tf`: a release, a virtual environment, or a Python",
            )?,
        };
        let diagnosis = self.diagnose(&tensorflow)?;
        if self.json {
            say!("{}", serde_json::to_string_pretty(&diagnosis)?)?;
        } else {
            output::print(diagnosis.text())?;
        }
        Ok(if diagnosis.findings.have_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn diagnose(&self, tensorflow: &TensorFlow) -> Result<Diagnosis> {
        let places = Places::of(tensorflow)?;
        let mut diagnosis = Diagnosis {
            tensorflow: tensorflow.version().to_owned(),
            python: tensorflow.python().to_owned(),
            plugins: Vec::new(),
            import: None,
            findings: Findings::default(),
        };
        diagnosis.look_at_places(&places, tensorflow);
        for (place, files) in places.directories.iter().chain(&places.named).enumerate() {
            for path in files {
                diagnosis.add_plugin(path, place, tensorflow, Duration::from_secs(self.timeout));
            }
        }
        diagnosis.look_at_plugins(&places);
        diagnosis.look_for_clashes();
        if !self.no_import {
            diagnosis.import(tensorflow)?;
        }
        diagnosis.findings.sort();
        Ok(diagnosis)
    }
}

impl Diagnosis {
    fn look_at_places(&mut self, places: &Places, tensorflow: &TensorFlow) {
        let package = tensorflow.library_dir();
        if !places.site_packages.iter().any(|directory| package.starts_with(directory)) {
            self.findings.note(
                format!(
                    "TensorFlow is in {}, which is not a directory for packages: it looks for plugins in none",
                    package.display()
                ),
                "name the plugin in TF_PLUGGABLE_DEVICE_LIBRARY_PATH, or install TensorFlow with pip",
            );
        }
        if let (Some(path), None) = (&places.variable, &places.named) {
            self.findings.error(
                format!("TF_PLUGGABLE_DEVICE_LIBRARY_PATH names {path}, which does not exist: `import tensorflow` fails"),
                "correct or unset it",
            );
        }
    }

    fn add_plugin(&mut self, path: &Path, place: usize, tensorflow: &TensorFlow, limit: Duration) {
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(known) = self.plugins.iter_mut().find(|plugin| plugin.file == file) {
            known.times += 1;
            return;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let waiting = output::progress(format!("looking at {name}"));
        let (report, error) = match Report::of(path, || vec![tensorflow.clone()], Some(limit)) {
            Ok(report) => (Some(report), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        waiting.finish_and_clear();
        self.plugins.push(Plugin { path: path.to_owned(), file, report, error, times: 1, place });
    }

    /// Adds the findings about each plugin.
    fn look_at_plugins(&mut self, places: &Places) {
        let findings = &mut self.findings;
        for plugin in &self.plugins {
            let name = plugin.name();
            let Some(report) = &plugin.report else {
                let why = plugin.error.as_deref().unwrap_or_default();
                findings.error(
                    format!("{name} keeps `import tensorflow` from working: {why}"),
                    format!("remove {}", plugin.path.display()),
                );
                continue;
            };
            for error in report.findings.iter().filter(|one| one.severity == Severity::Error) {
                findings.error(format!("{name}: {}", error.what), &*error.fix);
            }
            if report.findings.iter().any(|one| one.severity == Severity::Warning) {
                findings.note(
                    format!("there are more findings about {name}"),
                    format!("`cargo tf-plugin check {}`", plugin.path.display()),
                );
            }
            if plugin.times > 1 {
                let (severity, effect) =
                    if report.device.is_some() && report.artefact.notes.is_empty() {
                        let effect = ": TensorFlow aborts with `platform is already registered`";
                        (Severity::Error, effect)
                    } else {
                        (Severity::Note, "; it does not mind")
                    };
                let times = plugin.times;
                findings.add(
                    severity,
                    format!("{name} is loaded {times} times, because its directory has several names{effect}"),
                    "remove one of the names from PYTHONPATH, such as `lib64` beside `lib`",
                );
            }
            if !report.filesystems.is_empty() && !report.registers_on_import {
                findings.note(
                    format!("{name} does not register its filesystem on import: TensorFlow calls no `TF_InitPlugin` then"),
                    format!(
                        "`tf.experimental.register_filesystem_plugin(\"{}\")`, or let `TF_InitKernel` do that",
                        plugin.path.display()
                    ),
                );
            }
            if let (Some(device_type), Some(enabled)) =
                (plugin.device_type(), &places.enabled_types)
                && !enabled.split(',').any(|one| one.trim() == device_type)
            {
                findings.warn(
                    format!(
                        "TF_ENABLED_DEVICE_TYPES is `{enabled}`, without {device_type} of {name}"
                    ),
                    format!("unset it, or add {device_type}"),
                );
            }
        }
    }

    /// Finds several plugins for one scheme, or for one device.
    fn look_for_clashes(&mut self) {
        let mut schemes: BTreeMap<&str, Vec<&Plugin>> = BTreeMap::new();
        let mut devices: BTreeMap<String, Vec<&Plugin>> = BTreeMap::new();
        for plugin in &self.plugins {
            let Some(report) = &plugin.report else { continue };
            for scheme in report.schemes().filter(|_| report.registers_on_import) {
                schemes.entry(scheme).or_default().push(plugin);
            }
            if let Some(device) = &report.device {
                let platform = &device.platform;
                if let Some(device_type) = &platform.device_type {
                    devices.entry(format!("type {device_type}")).or_default().push(plugin);
                }
                if let Some(name) = &platform.name {
                    // TensorFlow compares them without case.
                    let name = format!("platform {}", name.to_uppercase());
                    devices.entry(name).or_default().push(plugin);
                }
            }
        }
        for (scheme, plugins) in schemes.iter().filter(|(_, plugins)| plugins.len() > 1) {
            let certain = plugins.iter().all(|plugin| plugin.place == plugins[0].place);
            let who = if certain {
                format!("{} is first and wins", plugins[0].name())
            } else {
                "which is first, and wins, is not certain".to_owned()
            };
            let what = format!("{scheme}:// is served by {}: {who}", names(plugins));
            self.findings.warn(what, "keep one of them");
        }
        for (what, plugins) in devices.iter().filter(|(_, plugins)| plugins.len() > 1) {
            let what = format!("the device {what} is in {}: TensorFlow aborts", names(plugins));
            self.findings.error(what, "keep one of them");
        }
    }

    fn import(&mut self, tensorflow: &TensorFlow) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(180);
        let start = Instant::now();
        let mut command = tensorflow.python_command();
        secrets::withhold(&mut command);
        let waiting = output::progress(format!("importing TensorFlow {}", tensorflow.version()));
        let watched = watch(command.args(["-B", "-c", IMPORTED]), LIMIT)?;
        waiting.finish_and_clear();
        let seconds = start.elapsed().as_secs_f64();
        let answer = watched.output.lines().find_map(|line| line.strip_prefix(MARK));
        let imported: Option<Imported> =
            answer.and_then(|answer| serde_json::from_str(answer).ok());
        let works = imported.is_some();
        let end = ended(&watched, LIMIT);
        let output = if works { Vec::new() } else { last_lines(&watched.output, SHOWN_LINES) };
        let explanation = explain(&output.join("\n"));
        if !works {
            let cause = explanation.map(|known| format!(" {}", known.cause)).unwrap_or_default();
            self.findings.error(
                format!("`import tensorflow` does not work: {end}.{cause}"),
                explanation.map_or("remove the plugins one by one", |known| known.fix),
            );
        }
        if let Some(imported) = &imported {
            self.compare(imported);
        }
        self.import = Some(Import { works, seconds, end, imported, output, explanation });
        Ok(())
    }

    /// Finds schemes and devices that plugins have, and that are not there after the import.
    fn compare(&mut self, imported: &Imported) {
        let mut missing = |what: String, plugin: &Plugin| {
            self.findings.error(
                format!("{what} of {} is not there after `import tensorflow`", plugin.name()),
                "look at what it says on import: TensorFlow's log is on standard error",
            );
        };
        for plugin in &self.plugins {
            let Some(report) = &plugin.report else { continue };
            for scheme in report.schemes().filter(|_| report.registers_on_import) {
                if !imported.schemes.contains(scheme) {
                    missing(format!("{scheme}://"), plugin);
                }
            }
            if let (Some(device_type), Some(1..)) =
                (plugin.device_type(), report.device.as_ref().and_then(|device| device.devices))
                && !imported
                    .devices
                    .iter()
                    .any(|device| device.contains(&format!(":{device_type}:")))
            {
                missing(format!("the device {device_type}"), plugin);
            }
        }
    }
}

fn names(plugins: &[&Plugin]) -> String {
    let names: Vec<String> =
        plugins.iter().map(|plugin| plugin.path.display().to_string()).collect();
    names.join(" and ")
}

fn explained(text: &str, json: bool) -> Result<ExitCode> {
    let mut bytes = Vec::new();
    if text == "-" {
        io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
    } else {
        bytes.extend_from_slice(text.as_bytes());
    }
    let Some(known) = explain(&String::from_utf8_lossy(&bytes)) else {
        bail!(
            "this text is not known; `cargo tf-plugin doctor` without it looks at the plugins themselves"
        );
    };
    if json {
        say!("{}", serde_json::to_string_pretty(known)?)?;
    } else {
        say!("{} {}", painted(BOLD, "cause:"), wrapped(known.cause, 7))?;
        say!("{}   {}", painted(BOLD, "fix:"), wrapped(known.fix, 7))?;
    }
    Ok(ExitCode::SUCCESS)
}

//! The diagnosis of `doctor`, and its text.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::explain::Known;
use crate::findings::Findings;
use crate::probe::End;
use crate::render::{self, BAD, BOLD, DIM, GOOD, painted};
use crate::report::Report;

/// A file that TensorFlow loads.
#[derive(Debug, Serialize)]
pub(super) struct Plugin {
    pub(super) path: PathBuf,
    /// The path without links.
    pub(super) file: PathBuf,
    /// The report of `check`; `None` for a file that is not a library.
    pub(super) report: Option<Report>,
    pub(super) error: Option<String>,
    /// How often it is loaded.
    pub(super) times: usize,
    /// The number of its directory; plugins of different directories are loaded in no certain order.
    #[serde(skip)]
    pub(super) place: usize,
}

/// What TensorFlow has after the import.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Imported {
    pub(super) schemes: Vec<String>,
    pub(super) devices: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Import {
    pub(super) works: bool,
    pub(super) seconds: f64,
    pub(super) end: String,
    #[serde(flatten)]
    pub(super) imported: Option<Imported>,
    pub(super) output: Vec<String>,
    pub(super) explanation: Option<&'static Known>,
}

#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    pub(super) tensorflow: String,
    pub(super) python: PathBuf,
    pub(super) plugins: Vec<Plugin>,
    pub(super) import: Option<Import>,
    pub(super) findings: Findings,
}

impl Diagnosis {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let title = format!("TensorFlow {} of {}", self.tensorflow, self.python.display());
        let _ = writeln!(text, "{}\n", painted(BOLD, &title));
        if self.plugins.is_empty() {
            let _ = writeln!(text, "`import tensorflow` loads no plugins.");
        } else {
            let _ = writeln!(text, "{}", painted(BOLD, "Plugins that `import tensorflow` loads"));
        }
        for plugin in &self.plugins {
            plugin.write(&mut text);
        }
        if let Some(import) = &self.import {
            import.write(&mut text);
        }
        text.push('\n');
        render::findings(&mut text, &self.findings);
        text
    }
}

impl Plugin {
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    pub(super) fn device_type(&self) -> Option<&str> {
        self.report.as_ref()?.device.as_ref()?.platform.device_type.as_deref()
    }

    fn write(&self, text: &mut String) {
        let _ = writeln!(text, "  {}", painted(BOLD, &self.name()));
        render::line(text, "  file", &self.path.display().to_string());
        let Some(report) = &self.report else {
            render::line(text, "  kind", "no plugin");
            return;
        };
        render::line(text, "  sha256", &report.artefact.sha256);
        let state = match &report.run.end {
            End::Done | End::Unavailable | End::NotRun => String::new(),
            _ => ", which cannot be loaded".to_owned(),
        };
        render::line(text, "  kind", &format!("{}{state}", render::kind(report)));
        let schemes: Vec<String> = report.schemes().map(|scheme| format!("{scheme}://")).collect();
        if !schemes.is_empty() {
            render::line(text, "  schemes", &schemes.join(" "));
        }
        if let Some(device) = &report.device {
            let present = device.on_this_machine();
            let present = present.map_or_else(String::new, |present| format!(", {present}"));
            let device_type = device.platform.device_type.as_deref().unwrap_or("(null)");
            render::line(text, "  device", &format!("{device_type}{present}"));
            if device.devices == Some(0) {
                // The plugin may have said why.
                for line in &report.run.output {
                    let _ = writeln!(text, "  {}", painted(DIM, &format!("| {line}")));
                }
            }
        }
    }
}

impl Import {
    fn write(&self, text: &mut String) {
        text.push('\n');
        let _ = writeln!(text, "{}", painted(BOLD, "A real `import tensorflow`"));
        match &self.imported {
            Some(imported) => {
                let works = painted(GOOD, &format!("works, in {:.1} s", self.seconds));
                let _ = writeln!(text, "  {works}");
                let schemes = imported.schemes.iter().filter(|scheme| !scheme.is_empty());
                let schemes: Vec<String> = schemes.map(|scheme| format!("{scheme}://")).collect();
                render::line(text, "schemes", &schemes.join(" "));
                let devices = imported.devices.iter();
                let devices: Vec<&str> = devices
                    .map(|name| name.strip_prefix("/physical_device:").unwrap_or(name))
                    .collect();
                render::line(text, "devices", &devices.join(" "));
            }
            None => {
                let _ = writeln!(text, "  {}", painted(BAD, &self.end));
                for line in &self.output {
                    let _ = writeln!(text, "  {}", painted(DIM, &format!("| {line}")));
                }
            }
        }
    }
}

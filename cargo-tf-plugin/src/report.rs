//! The facts that `check` has found about a plugin, and its findings.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::TensorFlow;
use crate::artefact::Artefact;
use crate::elf_notes::NoteOf;
use crate::findings::{Findings, device, file, filesystem, layouts, loading, ops};
use crate::operations::{Authors, TableReport, describe_table};
use crate::ops::{Description, Op};
use crate::probe::{self, Event, Kernel, Platform, Run, Scheme, Table};
use crate::releases::Release;

/// Schemes with the same tables.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Filesystem {
    pub(crate) schemes: Vec<String>,
    pub(crate) tables: Vec<TableReport>,
}

/// A device.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Device {
    pub(crate) platform: Platform,
    /// The tables of functions: the platform's, then those that its functions fill in.
    pub(crate) tables: Vec<Table>,
    pub(crate) devices: Option<i64>,
    /// The hardware names of the devices.
    pub(crate) hardware: Vec<String>,
    pub(crate) graph_pass_for: Option<String>,
    pub(crate) profiler_for: Option<String>,
}

impl Device {
    /// Says how many devices there are, and what they are.
    pub(crate) fn on_this_machine(&self) -> Option<String> {
        let names = match self.hardware.as_slice() {
            [] => String::new(),
            names => format!(": {}", names.join(", ")),
        };
        self.devices.map(|count| format!("{count} on this machine{names}"))
    }
}

/// The whole report.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) artefact: Artefact,
    pub(crate) filesystems: Vec<Filesystem>,
    pub(crate) device: Option<Device>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) ops: Vec<String>,
    /// The ops as the library describes them.
    pub(crate) described_ops: Vec<Op>,
    /// Whether a filesystem registers itself on `import tensorflow`.
    pub(crate) registers_on_import: bool,
    pub(crate) tensorflow: Vec<Release>,
    /// The release with whose libraries the plugin was loaded, if it needs them.
    pub(crate) loaded_with: Option<String>,
    #[serde(flatten)]
    pub(crate) run: Run,
    pub(crate) findings: Findings,
}

impl Report {
    /// Examines the file of a plugin, and loads it in a separate process for no longer than
    /// `limit`; without a limit, no code of the plugin runs. `releases` is called if the plugin
    /// imports something from TensorFlow.
    pub(crate) fn of(
        path: &Path,
        releases: impl FnOnce() -> Vec<TensorFlow>,
        limit: Option<Duration>,
    ) -> Result<Self> {
        let artefact = Artefact::read(path)?;
        let mut tensorflow = Vec::new();
        let mut library_dir = None;
        if !artefact.c_imports.is_empty() || !artefact.cpp_imports.is_empty() {
            for release in releases() {
                let missing = artefact.missing_in(&release)?;
                let version = release.version().to_owned();
                if missing.is_empty() {
                    library_dir = Some((release.library_dir().to_owned(), version.clone()));
                }
                tensorflow.push(Release { version, missing });
            }
        }
        // A plugin that only uses the C API needs no libraries: the program has these functions.
        let library_dir = library_dir.filter(|_| artefact.needs_tensorflow());
        let directory = library_dir.as_ref().map(|(directory, _)| directory.as_path());
        let run = match limit {
            Some(limit) => probe::run(&std::path::absolute(path)?, directory, limit)?,
            None => Run::default(),
        };
        let loaded_with = library_dir.filter(|_| limit.is_some()).map(|(_, version)| version);
        let mut report = Self { artefact, tensorflow, loaded_with, ..Self::default() };
        let mut findings = Findings::default();
        file::look(&report.artefact, &report.tensorflow, &mut findings);
        ops::look_at_file(&report.artefact, &mut findings);
        let (schemes, newer) = report.follow(&run, &mut findings);
        report.describe(&schemes, &newer, &mut findings);
        loading::end(&run, &mut findings);
        findings.sort();
        Ok(Self { run, findings, ..report })
    }

    /// Returns the schemes that it serves.
    pub(crate) fn schemes(&self) -> impl Iterator<Item = &String> {
        self.filesystems.iter().flat_map(|filesystem| &filesystem.schemes)
    }

    /// Adds all events. Returns the schemes that TensorFlow would accept or refuse, and the schemes for 2.22.
    fn follow(&mut self, run: &Run, findings: &mut Findings) -> (Vec<Scheme>, Vec<Scheme>) {
        let (mut schemes, mut newer) = (Vec::new(), Vec::new());
        for event in &run.events {
            match event.clone() {
                Event::Step(_) | Event::Done => {}
                Event::Newer(scheme) => newer.push(scheme),
                Event::Refused(reason) => loading::refused(&reason, &self.tensorflow, findings),
                Event::Error { function, code, message } => loading::failed(&function, &code, &message, findings),
                Event::Offer { schemes, allocate, free } => {
                    if !(allocate && free) {
                        let hook = if allocate { "plugin_memory_free" } else { "plugin_memory_allocate" };
                        findings.error(
                            format!("is refused by TensorFlow: Cannot load filesystem plugin which does not provide `{hook}`"),
                            "set both memory hooks in `TF_InitPlugin`",
                        );
                    } else if schemes == 0 {
                        findings.warn(
                            "`TF_InitPlugin` offers no scheme",
                            "set `num_schemes` and `ops`",
                        );
                    }
                }
                Event::Scheme(scheme) => {
                    filesystem::look_at_scheme(&scheme, findings);
                    schemes.push(scheme);
                }
                Event::Platform(platform) => {
                    let notes = &self.artefact.notes;
                    let is_noted = notes.iter().any(|note| note.of == NoteOf::Device);
                    device::look_at_platform(&platform, is_noted, findings);
                    let functions = platform.functions.clone();
                    self.device = Some(Device { platform, ..Device::default() });
                    self.add_functions(functions, findings);
                }
                Event::Functions(table) => self.add_functions(table, findings),
                Event::Hardware(name) => self.with_device(|device| device.hardware.push(name)),
                Event::Devices(devices) => self.with_device(|device| device.devices = Some(devices)),
                Event::Kernel(kernel) => self.kernels.push(kernel),
                Event::Op(op) => self.ops.push(op),
                Event::Ops(description) => self.describe_ops(&description, findings),
                Event::Optimizer { device_type, functions } => {
                    device::look_at_type("TF_InitGraph", device_type.as_deref(), findings);
                    self.add_functions(functions, findings);
                    self.with_device(|device| device.graph_pass_for = device_type);
                }
                Event::Profiler { device_type, functions, destroy } => {
                    device::look_at_type("TF_InitProfiler", device_type.as_deref(), findings);
                    self.add_functions(functions, findings);
                    device::look_at_destroy(
                        "TF_ProfilerRegistrationParams",
                        [("destroy_profiler", destroy[0]), ("destroy_profiler_fns", destroy[1])],
                        findings,
                    );
                    self.with_device(|device| device.profiler_for = device_type);
                }
                Event::Registers(_) => self.registers_on_import = true,
                Event::Unavailable(function) => findings.note(
                    format!("calls {function} while it is loaded ({}), for which it takes a running TensorFlow: the rest was not looked at", run.last_step),
                    "try it in TensorFlow",
                ),
                Event::Overrun { function, record } => findings.error(
                    format!("`{function}` writes behind the end of {record}, into memory of TensorFlow's"),
                    format!("write no more than the `struct_size` that is found in {record}"),
                ),
            }
        }
        (schemes, newer)
    }

    /// Notes something about the device, whose platform was reported before.
    fn with_device(&mut self, note: impl FnOnce(&mut Device)) {
        if let Some(device) = &mut self.device {
            note(device);
        }
    }

    fn add_functions(&mut self, table: Table, findings: &mut Findings) {
        let unified = self.device.as_ref().is_some_and(|device| device.platform.unified_memory);
        device::look_at_functions(&table, unified, findings);
        self.with_device(|device| device.tables.push(table));
    }

    /// Adds the ops that the library describes. It does so last, when all are registered.
    fn describe_ops(&mut self, description: &str, findings: &mut Findings) {
        match Description::parse(description) {
            Ok(description) => {
                ops::look(&description, &self.ops, findings);
                self.described_ops = description.ops;
            }
            Err(error) => findings.error(
                format!("`tf_plugin_ops`: {error:#}"),
                "build the library with the version of the SDK that this command has",
            ),
        }
    }

    /// Describes the operations of each scheme; schemes with the same tables are described together.
    fn describe(&mut self, schemes: &[Scheme], newer: &[Scheme], findings: &mut Findings) {
        let mut kinds: Vec<(&Scheme, Filesystem)> = Vec::new();
        for scheme in schemes {
            let name = scheme.scheme.clone().unwrap_or_else(|| "(null)".to_owned());
            let authors = Authors::of(&self.artefact, scheme.scheme.as_ref());
            let mut tables: Vec<_> =
                scheme.tables.iter().map(|table| describe_table(table, authors)).collect();
            if let Some(table) = tables.first_mut() {
                let size = layouts::newer_size(scheme, newer);
                table.size_in_2_22 = size.filter(|size| *size != table.size);
            }
            match kinds.iter_mut().find(|(_, filesystem)| filesystem.tables == tables) {
                Some((_, filesystem)) => filesystem.schemes.push(name),
                None => kinds.push((scheme, Filesystem { schemes: vec![name], tables })),
            }
        }
        for (scheme, filesystem) in &kinds {
            filesystem::look_at_tables(scheme, &filesystem.schemes, findings);
            layouts::look(scheme, newer, findings);
        }
        self.filesystems = kinds.into_iter().map(|(_, filesystem)| filesystem).collect();
    }
}

//! The plugins that a TensorFlow loads on its own.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::TensorFlow;
use crate::ops::Op;
use crate::python;
use crate::report::Report;

/// The variable that names a library, or a directory of libraries, for TensorFlow to load at import.
pub(crate) const LIBRARY_VARIABLE: &str = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";

const PLUGINS: &str = include_str!("../plugins.py");

/// What a plugin registers: a filesystem by its scheme, a device by its type, or an op by its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    Filesystem(String),
    Device(String),
    Op(String),
    /// All ops of a library.
    Ops(Vec<Op>),
}

impl Subject {
    /// Returns all that a plugin has.
    pub(super) fn all(plugin: &Report) -> Vec<Self> {
        let schemes = plugin.schemes().cloned();
        let device = plugin.device.as_ref();
        let device_type = device.and_then(|device| device.platform.device_type.clone());
        let ops = plugin.described_ops.iter().map(|op| op.name.clone());
        let own = schemes.map(Self::Filesystem).chain(device_type.map(Self::Device));
        own.chain(ops.map(Self::Op)).collect()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filesystem(scheme) => write!(f, "{scheme}://"),
            Self::Device(device_type) => write!(f, "/device:{device_type}:0"),
            Self::Op(op) => write!(f, "the op {op}"),
            Self::Ops(ops) => match ops.as_slice() {
                [one] => write!(f, "the op {}", one.name),
                ops => write!(f, "{} ops", ops.len()),
            },
        }
    }
}

/// What [`PLUGINS`] prints.
#[derive(Debug, Deserialize)]
pub(super) struct Places {
    pub(super) site_packages: Vec<String>,
    /// The libraries of each.
    pub(super) directories: Vec<Vec<PathBuf>>,
    pub(super) variable: Option<String>,
    /// The libraries that the variable names.
    pub(super) named: Option<Vec<PathBuf>>,
    pub(super) enabled_types: Option<String>,
}

impl Places {
    pub(super) fn of(tensorflow: &TensorFlow) -> Result<Self> {
        python::ask(tensorflow.python(), &[], PLUGINS)
    }
}

/// Returns whether a TensorFlow loads the plugin's file on its own. Fails if it loads another file with one of the
/// `subjects`, or with anything that the plugin has: TensorFlow keeps the first that registers it, so everything would
/// be about that file. `instead` is advice for that file, with `FILE` in place of its path.
pub(super) fn loads(
    tensorflow: &TensorFlow,
    plugin: &Path,
    subjects: Option<&[Subject]>,
    limit: Duration,
    instead: &str,
) -> Result<bool> {
    let files = Places::of(tensorflow)?.directories.into_iter().flatten();
    let files: BTreeSet<_> = files.map(|file| file.canonicalize().unwrap_or(file)).collect();
    let plugin = plugin.canonicalize().unwrap_or_else(|_| plugin.to_owned());
    let report = |file: &Path| Report::of(file, || vec![tensorflow.clone()], Some(limit));
    let mut own = None;
    for file in files.iter().filter(|file| **file != plugin) {
        // A file that is not a plugin does no harm, or its effect shows when TensorFlow is imported.
        let Ok(other) = report(file) else { continue };
        let own = match (&mut own, subjects) {
            (Some(own), _) => own,
            (own, Some(subjects)) => own.insert(subjects.to_vec()),
            (own, None) => own.insert(Subject::all(&report(&plugin)?)),
        };
        let mut others = Subject::all(&other);
        others.retain(|it| other.registers_on_import || !matches!(it, Subject::Filesystem(_)));
        let Some(subject) = own.iter().find(|subject| others.contains(subject)) else { continue };
        let name = file.display();
        bail!(
            "{name} is installed in TensorFlow {}, and has {subject}, too: it might be the one that is used. Take it \
             away (`pip uninstall` its wheel), name another environment with `--tf`, or {}",
            tensorflow.version(),
            instead.replace("FILE", &name.to_string())
        );
    }
    Ok(files.contains(&plugin))
}

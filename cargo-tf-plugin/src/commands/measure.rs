//! Measures a filesystem or a device in separate processes, for `bench`.

use std::cell::RefCell;
use std::env;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use indicatif::ProgressBar;

use crate::TensorFlow;
use crate::bench::report::Part;
use crate::bench::{self, Child, Job};
use crate::commands::installed::{LIBRARY_VARIABLE, Subject};
use crate::output::note;
use crate::probe::{LONGEST, prepare};

/// How many times its time a row may take at most, with rehearsals and on both sides, without its preparation.
const TIMES_SECONDS: f64 = 10.0;

/// What an op takes turns with: Python, and a C++ op of TensorFlow's that passes its inputs on.
const OP_REFERENCES: [&str; 2] = ["tf.py_function", "tf.identity_n"];

/// One script, whose parts use the names of those before.
const SCRIPT: &str = concat!(
    include_str!("../bench/python/measure.py"),
    include_str!("../bench/python/rows.py"),
    include_str!("../bench/python/ops.py"),
    include_str!("../bench/python/main.py")
);

/// The place to measure in, and for how long.
#[derive(Args, Debug)]
pub(super) struct Settings {
    /// Existing directory of the plugin, such as s3://bucket/scratch; the command works in a new directory below it. By
    /// default a directory at a separate host, else in the temporary directory.
    #[arg(long, value_name = "URI")]
    pub(super) root: Option<String>,

    /// Existing file, for a read-only filesystem: only reads are measured, and nothing is created.
    #[arg(long, value_name = "URI", conflicts_with = "root")]
    pub(super) file: Option<String>,

    /// Only operations whose name or group contains this text.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) filter: String,

    /// How long each operation is measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25, value_parser = seconds)]
    pub(super) seconds: f64,

    /// Time limit for an operation with its preparation; longer ones fail.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    pub(super) timeout: u64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("write a number from 0.001 to 3600".to_owned()),
    }
}

impl Settings {
    /// Returns new directories to try, none for a file that exists.
    fn directories(&self, scheme: &str) -> Vec<String> {
        if self.file.is_some() {
            return Vec::new();
        }
        let random = RandomState::new().build_hasher().finish();
        let name = format!("tf-plugin-bench-{:x}-{random:016x}", process::id());
        if let Some(root) = &self.root {
            // Behind a bare `scheme://` the name would be a host, and no directory would be left.
            let separator = if root.ends_with('/') && !root.ends_with("://") { "" } else { "/" };
            return vec![format!("{root}{separator}{name}")];
        }
        vec![
            // A host that nobody uses yet; and a path, for filesystems without hosts.
            format!("{scheme}://{name}/{name}"),
            format!("{scheme}://{}", env::temp_dir().join(name).display()),
        ]
    }
}

pub(super) struct Measuring<'b> {
    pub(super) settings: &'b Settings,
    pub(super) plugin: &'b Path,
    /// The directory of TensorFlow's libraries, for a plugin that needs them.
    pub(super) library_dir: Option<PathBuf>,
    pub(super) tensorflows: &'b [TensorFlow],
    /// Whether each TensorFlow loads the plugin on its own.
    pub(super) installed: &'b [bool],
    pub(super) interrupted: &'b AtomicBool,
    pub(super) progress: ProgressBar,
    /// The paths that could not be removed, and why.
    pub(super) left: RefCell<Vec<(String, String)>>,
    /// The errors that ended a part before its last row.
    pub(super) problems: RefCell<Vec<anyhow::Error>>,
}

impl Measuring<'_> {
    /// Measures a filesystem or device through its tables, then in each TensorFlow.
    pub(super) fn subject(&self, subject: &Subject, parts: &mut Vec<Part>) -> Result<()> {
        // Ops have no C tables.
        let (taken, references) = if matches!(subject, Subject::Ops(_)) {
            (None, &OP_REFERENCES[..])
        } else {
            let (part, taken) = self.measure(subject, None, None, "")?;
            parts.push(part);
            (taken, &[""][..])
        };
        for (release, installed) in self.tensorflows.iter().zip(self.installed) {
            // A device that is loaded twice ends the process.
            let named = (!installed).then_some(self.plugin);
            for reference in references {
                parts.push(self.measure(subject, Some((release, named)), taken, reference)?.0);
            }
        }
        Ok(())
    }

    /// Measures a part. For a filesystem, also returns which of the directories could be used.
    fn measure(
        &self,
        subject: &Subject,
        release: Option<(&TensorFlow, Option<&Path>)>,
        taken: Option<usize>,
        op_reference: &str,
    ) -> Result<(Part, Option<usize>)> {
        let settings = self.settings;
        let (own, scheme, device_type) = match subject {
            Subject::Filesystem(scheme) => ("file://", Some(scheme.clone()), None),
            Subject::Device(device_type) => ("CPU", None, Some(device_type.clone())),
            Subject::Op(_) | Subject::Ops(_) => (op_reference, None, None),
        };
        let version = release.map(|(release, _)| format!("TensorFlow {}", release.version()));
        let mut part = Part {
            subject: subject.to_string(),
            reference: version.as_ref().map(|_| own.to_owned()),
            through: version.unwrap_or_else(|| "the C table".to_owned()),
            rows: Vec::new(),
        };
        let title = part.title();
        if self.progress.is_hidden() {
            note!("measuring {title}");
        } else {
            self.progress.set_message(title.clone());
        }
        let reference = (release.is_some() && scheme.is_some()).then(tempfile::tempdir).transpose();
        let reference = reference.context("cannot make a temporary directory")?;
        let mut directories =
            scheme.as_ref().map_or_else(Vec::new, |scheme| settings.directories(scheme));
        if let Some(taken) = taken {
            directories = vec![directories.swap_remove(taken)];
        }
        let job_is_of_files = scheme.is_some();
        let ops = match subject {
            Subject::Ops(ops) => ops.iter().map(serde_json::to_value).collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        let job = Job {
            ops,
            op_reference: op_reference.to_owned(),
            plugin: self.plugin.to_owned(),
            scheme,
            device_type,
            directories,
            file: settings.file.clone().filter(|_| job_is_of_files),
            reference: reference.as_ref().map(|reference| reference.path().to_owned()),
            seconds: settings.seconds,
            filter: settings.filter.to_lowercase(),
            ..Job::default()
        };
        let tables = || self.tables();
        let python = || python(release, job_is_of_files);
        let child = Child {
            program: if release.is_some() { &python } else { &tables },
            cleaner: &tables,
            limit: Duration::from_secs(settings.timeout)
                + Duration::from_secs_f64(settings.seconds * TIMES_SECONDS),
            interrupted: self.interrupted,
            begins: &|group, name| self.progress.set_message(format!("{title}: {group}: {name}")),
        };
        let measured = child.run(job, &mut self.left.borrow_mut());
        let measured = measured.with_context(|| format!("{title} cannot be measured"))?;
        if let Some(problem) = measured.problem {
            self.problems
                .borrow_mut()
                .push(anyhow!("{title} was not measured to the end: {problem}"));
        }
        ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
        part.rows = measured.rows;
        Ok((part, measured.directory))
    }

    /// Returns a command for this program, as the process that calls the plugin's tables.
    fn tables(&self) -> Command {
        let program =
            env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into());
        let mut command = Command::new(program);
        command.arg(bench::ARGUMENT);
        prepare(&mut command, self.library_dir.as_deref());
        command
    }
}

/// Returns the Python command that measures in a TensorFlow, and that loads `plugin` if it is given.
fn python(release: Option<(&TensorFlow, Option<&Path>)>, files: bool) -> Command {
    let Some((release, plugin)) = release else { return Command::new("python3") };
    let mut command = release.python_command();
    command.args(["-c", SCRIPT]);
    match plugin {
        Some(plugin) => command.env(LIBRARY_VARIABLE, plugin),
        None => command.env_remove(LIBRARY_VARIABLE),
    };
    // Files need no GPU; a plugin's device may well be one.
    if files && env::var_os("CUDA_VISIBLE_DEVICES").is_none() {
        command.env("CUDA_VISIBLE_DEVICES", "-1");
    }
    command
}

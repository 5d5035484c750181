//! What TensorFlow asks of a filesystem, case by case.
//!
//! One list of cases has two users: [`conformance!`](crate::filesystem::conformance!) makes a test of each, and
//! [`Conformance::run`] runs one and says how it ended.

mod case;
mod conditions;
mod consumers;
mod content;
mod declared;
mod directories;
mod extras;
mod files;
mod hosts;
mod list;
mod names;
mod queries;
mod random;
mod replaced;
mod run;
mod samples;
mod suite;
mod threads;
mod times;
mod tree;

pub use case::{Case, Group};
pub use declared::{Append, Directories, Files, Visible};
pub(super) use list::cases;
pub use samples::{Sample, samples};
pub use suite::{RootSource, Suite, TestRoot};

use super::{Host, TestFilesystem};
use crate::verdict::Verdict;
pub(super) use declared::Declared;
use run::{Run, Source, Stop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// Holds a filesystem against what TensorFlow asks of it: each operation under each condition of the
/// header's table (the path is missing, a parent is missing, a file, a directory, a parent is a file
/// …), with the code and the effect, and what TensorFlow's own code does with files.
///
/// An operation may be unwritten: then TensorFlow's default or the SDK's is held against the same
/// table, and `UNIMPLEMENTED` is fine where there is none.
///
/// [`conformance!`](crate::filesystem::conformance!) is the short way for tests; this is for those that want the
/// answers.
///
/// ```no_run
/// # let host = tf_plugin_testing::filesystem::Host::new();
/// use tf_plugin_testing::filesystem::{Conformance, Verdict, cases};
/// let conformance = Conformance::new(&host, "mem://box/");
/// assert_eq!(conformance.run(&cases::checkpoint), Verdict::Passed);
/// ```
#[derive(Debug)]
pub struct Conformance<'h> {
    host: &'h Host,
    root: String,
    declared: Declared,
}

impl<'h> Conformance<'h> {
    /// Checks below `root`, the URI of a directory that exists.
    #[must_use]
    pub fn new(host: &'h Host, root: impl Into<String>) -> Self {
        let mut root: String = root.into();
        if root.ends_with('/') {
            root.pop();
        }
        Self { host, root, declared: Declared::default() }
    }

    /// A URI that this filesystem can never accept; each operation must answer
    /// `FAILED_PRECONDITION` to it, as the header asks, or `INVALID_ARGUMENT`.
    #[must_use]
    pub fn malformed(mut self, uri: impl Into<String>) -> Self {
        self.declared.malformed = Some(uri.into());
        self
    }

    /// A directory on another host of the scheme, to rename and copy to.
    #[must_use]
    pub fn other_host(mut self, uri: impl Into<String>) -> Self {
        self.declared.other_host = Some(uri.into());
        self
    }

    /// When others see a file that is being written.
    #[must_use]
    pub fn visible(mut self, visible: Visible) -> Self {
        self.declared.visible = visible;
        self
    }

    /// What a directory is.
    #[must_use]
    pub fn directories(mut self, directories: Directories) -> Self {
        self.declared.directories = directories;
        self
    }

    /// Whether files that exist can be appended to.
    #[must_use]
    pub fn append(mut self, append: Append) -> Self {
        self.declared.append = append;
        self
    }

    /// Where the files come from that the cases read.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.declared.files = files;
        self
    }

    fn filesystem(&self) -> TestFilesystem {
        let found = self.host.filesystem_for(format!("{}/", self.root));
        found.unwrap_or_else(|error| {
            panic!(
                "the root {}/ belongs to no filesystem of this host, which has {:?}: {error}",
                self.root,
                self.host.schemes()
            )
        })
    }

    /// Runs one case in new directories below the root, which are deleted if it passes; or, with
    /// [`Files::Provided`], in those that the set-up has made for it.
    ///
    /// # Panics
    /// If no filesystem of the host serves the root.
    #[must_use]
    pub fn run(&self, case: &Case) -> Verdict {
        if self.declared.files == Files::Provided {
            if let Err(reason) = samples::reads_only(case) {
                return Verdict::Skipped(reason.to_owned());
            }
            return self.run_with(case, Source::Provided, format!("{}-", case.name));
        }
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        // Processes may share a root, and an earlier one may have left something there.
        let prefix = format!(
            "{}-{:x}-{:x}-",
            case.name,
            now.as_micros() as u64 ^ (u64::from(std::process::id()) << 40),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        self.run_with(case, Source::Written, prefix)
    }

    fn run_with(&self, case: &Case, source: Source<'_>, prefix: String) -> Verdict {
        let fs = self.filesystem();
        let mut run = Run::new(self.host, fs.clone(), &self.root, &self.declared, source, prefix);
        let file = match source {
            Source::Provided => samples::first_file(case),
            Source::Written | Source::Recorded(_) => None,
        };
        let outcome = file.map_or(Ok(()), |file| run.is_provided(file));
        let outcome = outcome.and_then(|()| (case.run)(&mut run));
        let cells: Vec<String> = run.cells().collect();
        for violation in self.host.take_violations() {
            run.deviation(format_args!("a rule of the C boundary was broken: {violation}"));
        }
        let skipped = match outcome {
            Ok(()) | Err(Stop::Failed) => None,
            Err(Stop::Skip(reason)) => Some(reason),
            Err(Stop::NothingToTestWith(text)) => {
                run.deviation(text);
                None
            }
        };
        let (deviations, unimplemented) = run.into_parts();
        if !deviations.is_empty() {
            return Verdict::Failed(deviations);
        }
        if matches!(source, Source::Written) {
            for cell in cells {
                let _ = fs.delete_recursively(cell);
            }
        }
        // Of tidying up only.
        let _ = self.host.take_violations();
        skipped.or(unimplemented).map_or(Verdict::Passed, Verdict::Skipped)
    }
}

//! The codes and effects that `filesystem_interface.h` asks for, condition by condition.

mod conditions;
mod directories;
mod files;
mod protocols;
mod queries;
mod run;

use super::Host;
use run::Run;

/// Holds a filesystem against what TensorFlow's header asks of it: each operation under each condition
/// (the path is missing, a parent is missing, a file, a directory, a parent is a file …), with the code
/// and the effect.
///
/// An operation may be unwritten: then TensorFlow's default or the SDK's is held against the same
/// table, and `UNIMPLEMENTED` is fine where there is none.
///
/// ```no_run
/// # let host = tf_fs_plugin::testing::Host::new();
/// use tf_fs_plugin::testing::Conformance;
/// Conformance::new(&host, "mem://box/").check();
/// ```
#[derive(Debug)]
pub struct Conformance<'h> {
    host: &'h Host,
    root: String,
    malformed: Option<String>,
}

impl<'h> Conformance<'h> {
    /// Checks below `root`, the URI of a directory that exists; what is created there stays.
    #[must_use]
    pub fn new(host: &'h Host, root: impl Into<String>) -> Self {
        let mut root: String = root.into();
        if root.ends_with('/') {
            root.pop();
        }
        Self { host, root, malformed: None }
    }

    /// A URI that this filesystem can never accept; each operation must answer
    /// `FAILED_PRECONDITION` to it.
    #[must_use]
    pub fn malformed(mut self, uri: impl Into<String>) -> Self {
        self.malformed = Some(uri.into());
        self
    }

    /// Checks everything.
    ///
    /// # Panics
    /// If anything deviates, with a list of all that does; or if the directory, or the files and
    /// directories to test with, cannot be made at all.
    #[track_caller]
    pub fn check(&self) {
        let deviations = self.deviations();
        let list: String = deviations.iter().map(|line| format!("\n  {line}")).collect();
        assert!(
            deviations.is_empty(),
            "{} deviation(s) from what TensorFlow's header asks for:{list}",
            deviations.len()
        );
        self.host.check();
    }

    /// What deviates, one line each: the condition, what is wanted and what came.
    ///
    /// # Panics
    /// If the directory, or the files and directories to test with, cannot be made at all.
    #[must_use]
    pub fn deviations(&self) -> Vec<String> {
        let fs = self
            .host
            .filesystem_for(format!("{}/", self.root))
            .expect("the root is of a registered scheme");
        let mut run = Run::new(fs, &self.root, self.malformed.as_deref());
        run.opening();
        run.visible_while_open();
        run.file_objects();
        run.directories();
        run.deleting();
        run.renaming_and_copying();
        run.queries();
        run.listing();
        run.matching();
        run.names();
        run.transactions();
        run.configuration();
        run.into_deviations()
    }
}

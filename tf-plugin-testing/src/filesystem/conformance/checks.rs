//! A filesystem under test.

use super::attempt::attempt;
use super::case::Case;
use super::run::Source;
use super::samples;
use crate::filesystem::host::Host;
use crate::filesystem::semantics::{
    Append, Directories, Files, Semantics, Visibility, declarations,
};
use crate::outcome::Outcome;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// Checks a filesystem for what TensorFlow requires: the code and the effect of each operation
/// under each condition of the header's table (the path is missing, a parent is missing, a file, a
/// directory, a parent is a file …), and what TensorFlow's own code does with files.
///
/// Operations may be unimplemented: then the same table applies to TensorFlow's default or the
/// SDK's, and `UNIMPLEMENTED` is accepted where there is none.
///
/// [`conformance!`](crate::filesystem::conformance!) is the short way for tests; this type returns
/// the verdicts.
///
/// ```no_run
/// # let host = tf_plugin_testing::filesystem::Host::new();
/// use tf_plugin_testing::filesystem::{Conformance, Outcome, cases};
/// let conformance = Conformance::new(&host, "mem://box/");
/// assert_eq!(conformance.run(&cases::checkpoint), Outcome::Passed);
/// ```
#[derive(Debug)]
pub struct Conformance<'h> {
    host: &'h Host,
    root: String,
    semantics: Semantics,
}

impl<'h> Conformance<'h> {
    /// Creates checks below `root`, the URI of a directory that exists.
    #[must_use]
    pub fn new(host: &'h Host, root: impl Into<String>) -> Self {
        let mut root: String = root.into();
        if root.ends_with('/') {
            root.pop();
        }
        Self { host, root, semantics: Semantics::default() }
    }

    /// Sets a directory on another host of the scheme, to rename and copy to.
    #[must_use]
    pub fn other_host(mut self, uri: impl Into<String>) -> Self {
        self.semantics.other_host = Some(uri.into());
        self
    }

    pub(in crate::filesystem) fn with_semantics(
        host: &'h Host,
        root: &str,
        semantics: Semantics,
    ) -> Self {
        Self { semantics, ..Self::new(host, root) }
    }

    /// Runs one case in new directories below the root, which are deleted if it passes. With
    /// [`Files::Provided`] it uses those that the set-up has created for it.
    ///
    /// # Panics
    /// Panics if no filesystem of the host serves the root.
    #[must_use]
    pub fn run(&self, case: &Case) -> Outcome {
        if self.semantics.files == Files::Provided {
            let file = match samples::first_file(case) {
                Ok(file) => file,
                Err(reason) => return Outcome::Skipped(reason.to_owned()),
            };
            let at = (&*self.root, format!("{}-", case.name));
            return attempt(self.host, at, &self.semantics, case, Source::Provided, file);
        }
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        // Processes may share a root, and an earlier process may have left directories there.
        let prefix = format!(
            "{}-{:x}-{:x}-",
            case.name,
            now.as_micros() as u64 ^ (u64::from(std::process::id()) << 40),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        attempt(self.host, (&self.root, prefix), &self.semantics, case, Source::Written, None)
    }
}

declarations! { Conformance<'_>, semantics, Into<String> }

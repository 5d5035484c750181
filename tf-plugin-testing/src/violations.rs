//! Violations: actions of a plugin that would harm TensorFlow.

use std::fmt;
use std::sync::PoisonError;
use tf_plugin_core::sync::{Mutex, MutexGuard};

/// Something that no correct plugin does at the C boundary, although the call went on: a length
/// that is too large, a status that was never written, a name that is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The operation, by its name in the header, such as `get_children`.
    pub operation: &'static str,
    /// Its subject, usually a path; empty if there is nothing to name.
    pub subject: String,
    /// The mistake, and what TensorFlow does about it.
    pub what: String,
}

impl Violation {
    /// Panics with a list of the violations, if there are any.
    #[track_caller]
    pub(crate) fn check(violations: &[Self]) {
        if violations.is_empty() {
            return;
        }
        let list: String = violations.iter().map(|violation| format!("\n  {violation}")).collect();
        panic!("the plugin broke {} rule(s) of the C boundary:{list}", violations.len());
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.operation)?;
        if !self.subject.is_empty() {
            write!(f, " on \"{}\"", self.subject)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The violations of one host.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Vec<Violation>>);

impl Log {
    /// Records a violation.
    pub(crate) fn add(&self, operation: &'static str, subject: &[u8], what: impl Into<String>) {
        let violation = Violation { operation, subject: shown(subject), what: what.into() };
        self.list().push(violation);
    }

    /// Records a violation, unless the same is recorded.
    pub(crate) fn add_once(
        &self,
        operation: &'static str,
        subject: &[u8],
        what: impl Into<String>,
    ) {
        let violation = Violation { operation, subject: shown(subject), what: what.into() };
        let mut list = self.list();
        if !list.contains(&violation) {
            list.push(violation);
        }
    }

    /// Returns all violations since the last call.
    pub(crate) fn take(&self) -> Vec<Violation> {
        std::mem::take(&mut *self.list())
    }

    /// Panics with a list of all violations, if there are any.
    #[track_caller]
    pub(crate) fn check(&self) {
        Violation::check(&self.take());
    }

    fn list(&self) -> MutexGuard<'_, Vec<Violation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats bytes for a message, and cuts them if they are long.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MAX: usize = 200;
    if bytes.len() <= MAX {
        return bytes.escape_ascii().to_string();
    }
    format!("{}... ({} bytes)", bytes[..MAX].escape_ascii(), bytes.len())
}

/// Formats names for a message.
pub(crate) fn names_shown(names: &[Vec<u8>]) -> String {
    let names: Vec<_> = names.iter().map(|name| name.escape_ascii().to_string()).collect();
    format!("[{}]", names.join(", "))
}

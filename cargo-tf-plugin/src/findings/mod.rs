//! The findings about a plugin.

pub(crate) mod device;
pub(crate) mod file;
pub(crate) mod filesystem;
pub(crate) mod layouts;
pub(crate) mod loading;
pub(crate) mod ops;

use std::ops::Deref;

use serde::Serialize;

use crate::probe::Table;

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// TensorFlow would not load the plugin, or would be terminated by it.
    Error,
    /// The plugin fails for some users or in some releases, or behaves unexpectedly.
    Warning,
    /// Good to know.
    Note,
}

/// One fact about a plugin, and what to do about it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) what: String,
    pub(crate) fix: String,
}

/// All findings so far.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn add(
        &mut self,
        severity: Severity,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.0.push(Finding { severity, what: what.into(), fix: fix.into() });
    }

    pub(crate) fn error(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Error, what, fix);
    }

    pub(crate) fn warn(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Warning, what, fix);
    }

    pub(crate) fn note(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.add(Severity::Note, what, fix);
    }

    /// Finds functions in tables that are not the plugin's.
    pub(crate) fn look_at_places(&mut self, tables: &[Table]) {
        let slots =
            tables.iter().flat_map(|table| table.slots.iter().map(move |slot| (table, slot)));
        for (table, slot) in slots {
            let place = format!("`{}` in {}", slot.name, table.name);
            match slot.elsewhere.as_deref() {
                Some("no library") => self.error(
                    format!("{place} points to no function of any library"),
                    "initialize the table with zeros before it is filled in",
                ),
                Some(library) => {
                    self.note(
                        format!("{place} is a function of {library}"),
                        "fine, if that is meant",
                    );
                }
                None => {}
            }
        }
    }

    /// Sorts the findings, the worst first.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|finding| finding.severity);
    }

    pub(crate) fn have_errors(&self) -> bool {
        self.iter().any(|finding| finding.severity == Severity::Error)
    }
}

impl Deref for Findings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.0
    }
}

//! Deviations of a plugin from what a case expects, and the report about them.

use crate::violations::Violation;
use std::fmt::{self, Display, Write as _};
use tf_plugin_core::Error;

/// A result or effect that differs from the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviation {
    /// The call, or the statement that does not hold.
    pub what: String,
    /// The expected result; `None` if `what` names it.
    pub wanted: Option<String>,
    /// The actual result.
    pub got: Option<String>,
    /// The plugin's message, or the place where values differ.
    pub detail: Option<String>,
}

impl Deviation {
    /// Creates a deviation from a statement that does not hold.
    pub fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), wanted: None, got: None, detail: None }
    }

    /// Creates a deviation for a call that fails where `wanted` is expected.
    pub(crate) fn of_error(what: impl Display, wanted: impl Into<String>, error: &Error) -> Self {
        let got = format!("{:?}", error.code());
        Self::new(what).wanted(wanted.into()).got(got).because(format!("{error:#}"))
    }

    /// Creates a deviation for a rule of the C boundary that the plugin broke.
    pub(crate) fn of_violation(violation: Violation) -> Self {
        Self::new(format_args!("a rule of the C boundary was broken: {violation}"))
    }

    /// Creates a deviation if bytes differ. It says where.
    pub(crate) fn of_bytes(what: impl Display, got: &[u8], wanted: &[u8]) -> Option<Self> {
        /// How many bytes are shown.
        const SHOWN: usize = 40;
        if got == wanted {
            return None;
        }
        let differ = got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
        let at = differ.unwrap_or(got.len().min(wanted.len()));
        let shown = |bytes: &[u8]| {
            let part = &bytes[at..bytes.len().min(at + SHOWN)];
            format!("{} bytes, from there \"{}\"", bytes.len(), part.escape_ascii())
        };
        let detail = format!("they differ from byte {at} on");
        Some(Self::new(what).wanted(shown(wanted)).got(shown(got)).because(detail))
    }

    /// Sets the expected result.
    #[must_use]
    pub fn wanted(mut self, wanted: String) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// Sets the actual result.
    #[must_use]
    pub fn got(mut self, got: String) -> Self {
        self.got = Some(got);
        self
    }

    /// Sets the plugin's message, or the place where values differ.
    #[must_use]
    pub fn because(mut self, detail: String) -> Self {
        self.detail = Some(detail);
        self
    }
}

impl Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let (Some(wanted), Some(got)) = (&self.wanted, &self.got) {
            write!(f, ": {wanted}, not {got}")?;
        }
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// Returns the report of a failed case. `on` is the tested URI or platform, `whose` names the plugin's kind.
#[must_use]
pub(crate) fn report(
    name: &str,
    checks: &str,
    why: &str,
    on: &str,
    whose: &str,
    deviations: &[Deviation],
) -> String {
    let mut text = format!(
        "the conformance case `{name}` fails on {on}\n\n  checks  {checks}\n  why     {why}\n"
    );
    for (number, deviation) in (1..).zip(deviations) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n  {number}. {}", deviation.what);
        for (title, value) in [
            ("expected", &deviation.wanted),
            ("got", &deviation.got),
            ("detail", &deviation.detail),
        ] {
            if let Some(value) = value {
                let _ = writeln!(text, "       {title:<8} {value}");
            }
        }
    }
    let _ = write!(
        text,
        "\n  If {whose} intends this, exclude the case and say why:\n\n      \
         without: [{name} => \"...\"],\n"
    );
    text
}

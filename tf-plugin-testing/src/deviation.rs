//! What a filesystem does otherwise than it should.

use std::fmt::{self, Display, Write as _};

/// One answer or effect that is not the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviation {
    /// What was done, or what does not hold.
    pub what: String,
    /// What should have come; `None` if `what` says it.
    pub wanted: Option<String>,
    /// What came.
    pub got: Option<String>,
    /// The plugin's message, or where values differ.
    pub detail: Option<String>,
}

impl Deviation {
    /// That something does not hold.
    pub fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), wanted: None, got: None, detail: None }
    }

    /// What should have come.
    #[must_use]
    pub fn wanted(mut self, wanted: String) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// What came.
    #[must_use]
    pub fn got(mut self, got: String) -> Self {
        self.got = Some(got);
        self
    }

    /// The plugin's message, or where values differ.
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

/// What a person reads when a case fails. `on` is what was tested, and `whose` means it if it is to stay so.
#[must_use]
pub(crate) fn report(
    name: &str,
    asks: &str,
    why: &str,
    on: &str,
    whose: &str,
    deviations: &[Deviation],
) -> String {
    let mut text = format!(
        "the conformance case `{name}` fails on {on}\n\n  asks    {asks}\n  why     {why}\n"
    );
    for (number, deviation) in (1..).zip(deviations) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n  {number}. {}", deviation.what);
        for (title, value) in
            [("wanted", &deviation.wanted), ("got", &deviation.got), ("detail", &deviation.detail)]
        {
            if let Some(value) = value {
                let _ = writeln!(text, "       {title:<7} {value}");
            }
        }
    }
    let _ = write!(
        text,
        "\n  If {whose} means it, leave the case out and say why:\n\n      \
         without: [{name} => \"...\"],\n"
    );
    text
}

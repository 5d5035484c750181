//! What both `conformance!` take as options.

use crate::tensorflow::case::TensorFlowCase;

/// What an option of `conformance!` takes that is a text.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an option of `conformance!` is `{Self}`, where a string is expected",
    label = "this is not a string",
    note = "write it in quotes: `malformed: \"my://host/x\"`, `without: [case => \"why\"]`"
)]
pub trait OptionText: Into<String> {}

impl OptionText for &str {}
impl OptionText for String {}

/// What can be left out.
#[doc(hidden)]
pub trait Named {
    fn name(&self) -> &'static str;
}

impl Named for TensorFlowCase {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// The cases that are left out, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(pub(crate) Vec<(&'static str, String)>);

impl LeftOut {
    pub(crate) fn add(&mut self, case: &impl Named, reason: impl OptionText) {
        self.0.push((case.name(), reason.into()));
    }

    /// Whether a case is among them; then it says why.
    pub(crate) fn has(&self, case: &impl Named) -> bool {
        let found = self.0.iter().find(|(name, _)| *name == case.name());
        if let Some((_, reason)) = found {
            println!("left out: {reason}");
        }
        found.is_some()
    }
}

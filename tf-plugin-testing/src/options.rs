//! What both `conformance!` take as options.

use crate::tensorflow::TensorFlowCase;

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

//! The report of `coverage`, and how it is shown.

mod report;
mod text;

pub(crate) use report::Report;
pub(crate) use text::text;

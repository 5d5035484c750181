//! The report of `coverage`, and its text.

mod report;
mod text;

pub(crate) use report::Report;
pub(crate) use text::text;

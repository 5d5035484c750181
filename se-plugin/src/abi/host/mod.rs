//! The unsafe part of `crate::host`: memory that is mapped twice, and slices of it.

pub(crate) mod borrow_table;
mod double_mapping;

//! What the ready-made parts need `unsafe` for: memory that is mapped twice, and slices of it.

pub(crate) mod ledger;
mod mapping;

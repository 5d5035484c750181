//! The requests behind operations by name.
//!
//! | Module | Job |
//! |---|---|
//! | `pages` | a page of a listing |
//! | `head` | one object, where listings are not permitted |
//! | `request` | one object, the list of buckets |
//! | `deletion` | many objects |
//! | `copying` | copies made by the store |

mod copying;
mod deletion;
mod head;
mod pages;
mod request;

pub(crate) use copying::{copy, source as copy_source};
pub(crate) use deletion::{delete_many, fits_xml};
pub(crate) use head::head;
#[cfg(test)]
pub(crate) use pages::decode;
pub(crate) use pages::page;
pub(crate) use request::{delete, list_buckets, put_marker};

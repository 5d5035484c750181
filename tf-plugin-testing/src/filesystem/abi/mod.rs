//! The unsafe part of the in-process host: it owns the statuses, copies the plugin's tables, calls
//! their slots, takes ownership of their memory, and checks what they return.

pub(super) mod at_exit;
pub(super) mod configuration;
pub(super) mod file;
pub(super) mod fnmatch;
pub(super) mod listing;
mod memory;
pub(super) mod mounted;
pub(super) mod open;
mod paths;
pub(super) mod registration;
pub(super) mod transactions;

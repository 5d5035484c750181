//! The unsafe part of the in-process host: it owns the statuses, copies the plugin's tables, calls
//! their slots and takes over their memory. What an answer means is judged outside.

pub(super) mod at_exit;
pub(super) mod calls;
pub(super) mod configuration;
pub(super) mod files;
pub(super) mod memory;
pub(super) mod mounted;
pub(super) mod pattern;
pub(super) mod registration;
pub(super) mod transactions;

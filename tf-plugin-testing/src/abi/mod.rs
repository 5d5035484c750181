//! The C boundary from the host's side, as far as hosts for filesystems and for devices share it.

pub(crate) mod exit_report;
pub(crate) mod graph_functions;
pub(crate) mod processes;
pub(crate) mod status;
pub(crate) mod tensorflow;

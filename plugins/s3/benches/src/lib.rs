//! What the S3 benchmark is made of: clients in Python processes of their own, one server, rows of operations with
//! their targets, and the document that shows the figures.
#![forbid(unsafe_code)]

pub mod cell;
pub mod chart;
pub mod clients;
pub mod figures;
pub mod probes;
pub mod report;
pub mod rows;
pub mod store;

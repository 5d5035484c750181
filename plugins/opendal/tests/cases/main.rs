//! Each protocol on real servers, through faults, and on servers that do what a test says.

mod common;
mod cuts;
mod faults;
mod files;
mod guarantees;
mod hostile;
mod hub;
mod remotes;
mod servers;
mod tls;

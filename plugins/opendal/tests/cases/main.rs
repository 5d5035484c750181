//! Each protocol on real servers, through faults, and on servers that do what a test says.

mod broken;
mod buckets;
mod common;
mod cuts;
mod faults;
mod files;
mod guarantees;
mod hostile;
mod hub;
mod limits;
mod lines;
mod reading;
mod remotes;
mod reports;
mod servers;
mod sftp;
mod tls;

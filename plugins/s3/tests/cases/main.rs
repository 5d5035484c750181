//! `s3://`, a test at a time.

mod alone;
mod config;
mod copying;
mod credentials;
mod deleting;
mod errors;
mod forks;
mod hostile;
mod listing;
mod metrics;
mod names;
mod outages;
mod profile;
mod quirks;
mod reading;
mod renaming;
mod secrets;
mod tenants;
mod uploads;
mod writing;

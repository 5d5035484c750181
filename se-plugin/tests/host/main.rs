//! Devices in the in-process host.

mod faults;
mod versions;
mod working;

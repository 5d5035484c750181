//! Devices in the in-process host.

#[allow(unsafe_code, reason = "a host allocator; every block is argued")]
mod abi;
mod faults;
mod faulty;
mod graphs;
mod host_device;
mod mixed;
mod platform;
mod profiles;
mod versions;
mod working;

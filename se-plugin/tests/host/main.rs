//! Devices in the in-process host.

#[allow(unsafe_code, reason = "a host allocator; every block is argued")]
mod abi;
mod descriptions;
mod faults;
mod faulty;
mod graphs;
mod host_device;
mod mixed;
mod platform;
mod profiles;
mod small_requests;
mod switch;
mod versions;

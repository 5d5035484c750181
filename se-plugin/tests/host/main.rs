//! Devices in the in-process host.

#[expect(unsafe_code, reason = "a host allocator and calls of libraries in C")]
mod abi;
mod descriptions;
mod driver;
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

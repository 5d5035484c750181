//! `az://` on Azurite: one program, since each of its servers uses one CPU. Tests start by name: those of `blobs`
//! wait most, and run beside those of `conformance`.

mod blobs;
mod common;
mod conformance;
mod entra;
mod faults;
mod secrets;

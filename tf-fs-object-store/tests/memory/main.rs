//! The engine on a store in memory, which has what a store can have, or leaves it out.

mod faults;
mod filesystem;
mod listings;
mod namespace;
mod readahead;
mod reading;
mod requests;
mod store;
mod versions;

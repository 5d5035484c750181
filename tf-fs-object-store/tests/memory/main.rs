//! The engine on a store in memory, which has what a store can have, or leaves it out.

mod faults;
mod filesystem;
mod listings;
mod lookups;
mod namespace;
mod readahead;
mod reading;
mod renames;
mod requests;
mod schemes;
mod store;
mod versions;

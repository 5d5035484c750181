//! The engine on a store like a file server: real directories, listings without prefixes, one request for a rename.

mod contents;
mod directories;
mod faults;
mod headless;
mod publication;
mod store;
mod uploads;

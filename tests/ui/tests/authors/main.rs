//! The messages that authors see when they build. One program, because each part waits for one compiler at a time.

mod compiler;
mod libraries;

//! Has nothing to do: `Cargo.toml` says what it is for.

fn main() {}

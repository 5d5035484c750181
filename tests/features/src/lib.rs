//! Features, and no code. Tests of `cargo tf-plugin` build packages, new ones and those of the workspace, together with
//! this one. Their dependencies then have the features that they have in `cargo test --workspace`, and cargo finds them
//! built. What is missing here is built again, and takes the place of the workspace's library in `target/debug`.

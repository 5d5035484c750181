//! Features, and no code: tests of `cargo tf-plugin` add this crate to those that it creates. Their dependencies then have
//! the features that they have in the workspace, and cargo finds them built. What is missing here takes time, and no more.

//! Each scheme is a registration of its own.

#![deny(warnings)]

use tf_fs_plugin::__private::Plugin;
use tf_fs_plugin::prelude::*;

struct S3;

#[filesystem_plugin(schemes("s3", "s3a", "S3", "probe.v2"))]
impl Filesystem for S3 {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

#[test]
fn each_scheme_is_registered() {
    let schemes: Vec<_> = S3::registrations().iter().map(|one| one.scheme()).collect();
    assert_eq!(schemes, ["s3", "s3a", "S3", "probe.v2"]);
}

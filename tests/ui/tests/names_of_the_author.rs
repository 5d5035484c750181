//! The output does not depend on which names are in scope.

#![deny(warnings)]
#![allow(dead_code, unused_macros, non_camel_case_types)]

mod core {}
mod std {}
mod tf_fs_plugin {}

struct Registration;
struct Scheme;
struct Plugin;
struct Operations;
struct OperationTable;
struct Unsupported;
struct Option;
struct Sized;
trait Clone {}
type u64 = Scheme;
type usize = Scheme;

macro_rules! compile_error {
    () => {};
}

#[::tf_fs_plugin::filesystem_plugin(schemes("a1", "b1"))]
impl ::tf_fs_plugin::Filesystem for Registration {
    fn new(_: &str) -> ::tf_fs_plugin::Result<Self> {
        Ok(Self)
    }

    fn r#stat(
        &self,
        uri: ::tf_fs_plugin::Uri<'_>,
    ) -> ::tf_fs_plugin::Result<::tf_fs_plugin::FileStatistics> {
        Err(::tf_fs_plugin::Error::not_found(uri))
    }
}

#[test]
fn stat_is_provided() {
    let provided = <Registration as ::tf_fs_plugin::OperationTable>::PROVIDED;
    assert!(provided == ::tf_fs_plugin::Operations::STAT);
}

#[test]
fn each_scheme_is_registered() {
    let schemes = <Registration as ::tf_fs_plugin::__private::Plugin>::registrations();
    assert_eq!(schemes.iter().map(|one| one.scheme()).collect::<Vec<_>>(), ["a1", "b1"]);
}

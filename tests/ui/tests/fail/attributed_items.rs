//! Items that the attributes reject.

use tf_fs_plugin::prelude::*;

#[filesystem_plugin(scheme = "mem")]
fn mem() {}

struct MemFs;

// The trait has a small s.
#[filesystem_plugin(scheme = "mem")]
impl FileSystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// Nothing is implemented there.
#[filesystem_plugin(scheme = "mem")]
impl !Filesystem for MemFs {}

#[filesystem_plugin(scheme = "mem")]
impl MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

#[filesystem_plugin(scheme = "mem")]
impl Clone for MemFs {
    fn clone(&self) -> Self {
        Self
    }
}

struct BothAttributes;

#[filesystem_plugin(scheme = "mem")]
#[filesystem]
impl Filesystem for BothAttributes {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

struct TheOtherWayRound;

#[filesystem]
#[filesystem_plugin(scheme = "mem")]
impl Filesystem for TheOtherWayRound {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// Several schemes are a list.
struct AttributeTwice;

#[filesystem_plugin(scheme = "mem")]
#[filesystem_plugin(scheme = "mem2")]
impl Filesystem for AttributeTwice {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
}

// TensorFlow needs one concrete type.
struct Cache<T>(T);

#[filesystem_plugin(scheme = "mem")]
impl<T: Send + Sync + Default + 'static> Filesystem for Cache<T> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(T::default()))
    }
}

// A filesystem lives as long as the process.
struct Borrows<'a>(&'a str);

#[filesystem]
impl<'a> Filesystem for Borrows<'a> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(""))
    }
}

struct BorrowsWithoutAName<'a>(&'a str);

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for BorrowsWithoutAName<'_> {
    fn new(_: &str) -> Result<Self> {
        Ok(Self(""))
    }
}

fn main() {}

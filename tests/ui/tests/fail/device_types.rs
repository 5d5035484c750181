//! What a kernel is, takes and keeps, and what a plugin of devices exports.

use se_plugin::prelude::*;
use std::cell::Cell;
use tf_plugin_ui_tests::{device::P, no_devices};

// An attribute is not read as any type.
struct ReadsAnAttribute(u64);

#[kernel(op = "Relu")]
impl Kernel for ReadsAnAttribute {
    type Platform = P;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(construction.attr("axis")?))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// A run ends with the call.
struct KeepsItsContext;

#[kernel(op = "Relu")]
impl Kernel for KeepsItsContext {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
        std::thread::spawn(move || context.output(0, &[]).map(drop));
        Ok(())
    }
}

// Several threads run a kernel at a time.
struct Unshared(Cell<u8>);

#[kernel(op = "Relu")]
impl Kernel for Unshared {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(Cell::new(0)))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// Elements have a size.
struct OfStrings;

#[kernel(op = "Relu", types(T = [String]))]
impl Kernel for OfStrings {
    type Platform = P;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
        Ok(())
    }
}

// The graph pass and the profiler implement their traits.
struct Exported;

struct Pass;

struct Profile;

#[device_plugin(graph_pass = Pass, profiler = Profile)]
impl Platform for Exported {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "MINE";
    no_devices!();
}

fn main() {}

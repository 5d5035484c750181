//! The macros' output needs no exception from any lint: an exception is an error where the lint is forbidden.
#![forbid(unsafe_code, missing_docs, unreachable_pub, non_local_definitions, type_alias_bounds)]
#![forbid(
    non_upper_case_globals,
    non_camel_case_types,
    non_snake_case,
    dead_code,
    private_interfaces
)]
#![forbid(unused_imports, unused_macros, unused_qualifications, clippy::type_complexity)]
#![deny(warnings)]

use se_plugin::graph::{Graph, GraphPass};
use se_plugin::host::HostDevice;
use se_plugin::kernel::{KernelList, OpDefinition, OpDefinitionBuilder, has_kernel};
use se_plugin::prelude::*;
use se_plugin::profiler::Timeline;
use se_plugin::register_op;
use std::marker::PhantomData;
use tf_fs_plugin::prelude::{FileStatistics, Filesystem, Uri, filesystem_plugin};
use tf_plugin_ui_tests::no_devices;

/// A platform with all that there is.
#[derive(Debug)]
pub struct All;

/// A graph pass.
#[derive(Debug)]
pub struct Pass;

impl GraphPass for Pass {
    fn optimize(&self, _: &mut Graph<'_>) -> Result<()> {
        Ok(())
    }
}

static TIMELINE: Timeline = Timeline::new("ALL");

#[device_plugin(graph_pass = Pass, profiler = &TIMELINE)]
impl Platform for All {
    const NAME: &'static str = "ALL";
    const TYPE: &'static str = "ALL";
    no_devices!();
}

/// A kernel of several types.
#[derive(Debug)]
pub struct Relu<T, U>(PhantomData<(T, U)>);

#[kernel(op = "Relu", types(T = [f32, f64], U = i32))]
#[kernel(op = "Sum", types(T = [f32, f64], U = [i32, i64]), host_memory("reduction_indices"), priority = 1)]
impl<T: Element, U> Kernel for Relu<T, U>
where
    U: Element,
{
    type Platform = All;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self(PhantomData))
    }
    fn compute(&self, _: &mut OpKernelContext<'_, All>) -> Result<()> {
        Ok(())
    }
}

macro_rules! kernels {
    ($($name:ident $op:literal $ty:ty, $also:path;)*) => {$(
        /// One of several.
        #[derive(Debug)]
        pub struct $name;

        #[kernel(op = $op, types(T = [$ty, $also]))]
        #[kernel(op = "Other", label = $op, types(T = $ty), priority = 2)]
        impl Kernel for $name {
            type Platform = All;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                construction.attr::<Vec<DType>>("types").map(|_| Self)
            }
            fn compute(&self, context: &mut OpKernelContext<'_, All>) -> Result<()> {
                context.variables(&[0])?;
                Ok(())
            }
        }
    )*};
}

kernels! {
    Abs "Abs" f32, f64;
    Inv "Inv" i32, i64;
}

/// A kernel of an op that is defined here, and for types that Rust does not have.
#[derive(Debug)]
pub struct Later;

#[kernel(op = "Send", types(T = [DType::Variant, DType::String, DType::Resource]), variables, variants)]
#[kernel(op = "Later")]
impl Kernel for Later {
    type Platform = All;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, _: &mut OpKernelContext<'_, All>) -> Result<()> {
        Ok(())
    }
}

impl OpDefinition for Later {
    const NAME: &'static str = "Later";

    fn define(op: &mut OpDefinitionBuilder) {
        op.stateful();
    }
}

register_op!(Later);

/// Kernels of a library, for any platform on the host.
pub mod library {
    use super::*;

    /// The bound of a library.
    pub trait OnHost: Platform<Device = HostDevice> {}

    impl<P: Platform<Device = HostDevice>> OnHost for P {}

    /// A kernel of several ops and types.
    #[derive(Debug)]
    pub struct Round<T, P>(PhantomData<fn() -> (T, P)>);

    #[kernel(op = "Ceil", types(T = [f32, f64], U = i32))]
    #[kernel(op = "Floor", types(T = f32), host_memory("x"), priority = 1)]
    impl<T, P: OnHost> Kernel for Round<T, P>
    where
        T: Element,
    {
        type Platform = P;

        fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self(PhantomData))
        }
        fn compute(&self, context: &mut OpKernelContext<'_, P>) -> Result<()> {
            context.any_platform().output(0, &[]).map(drop)
        }
    }

    /// A kernel that no group has.
    #[derive(Debug)]
    pub struct Unlisted<P>(PhantomData<fn() -> P>);

    #[kernel(op = "Rint")]
    impl<P: OnHost> Kernel for Unlisted<P> {
        type Platform = P;

        fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self(PhantomData))
        }
        fn compute(&self, _: &mut OpKernelContext<'_, P>) -> Result<()> {
            Ok(())
        }
    }

    /// A group.
    pub fn rounding<P: OnHost>(list: &mut KernelList) {
        list.add::<Round<f64, P>>();
    }

    /// Another group, which is not registered.
    pub fn others<P: OnHost>(list: &mut KernelList) {
        list.add::<Unlisted<P>>();
    }
}

se_plugin::register_kernels!(All: library::rounding);

/// A filesystem.
#[derive(Debug)]
pub struct MemFs;

#[filesystem_plugin(scheme = "mem")]
impl Filesystem for MemFs {
    fn new(_: &str) -> Result<Self> {
        Ok(Self)
    }
    fn stat(&self, uri: Uri<'_>) -> Result<FileStatistics> {
        Err(Error::not_found(uri))
    }
}

tf_plugin_testing::device::conformance!(All);

mod files {
    tf_plugin_testing::filesystem::conformance!(super::MemFs, "mem://box/");
}

fn main() {
    for (op, attribute, dtype, expected) in [
        ("Relu", "T", DType::Float64, true),
        ("Relu", "U", DType::Int64, false),
        ("Sum", "U", DType::Int64, true),
        ("Abs", "T", DType::Float64, true),
        ("Abs", "T", DType::Int32, false),
        ("Other", "T", DType::Float32, false),
        ("Later", "T", DType::Float32, true),
        ("Ceil", "T", DType::Float32, true),
        ("Ceil", "T", DType::Float64, true),
        ("Ceil", "U", DType::Int64, false),
        ("Floor", "T", DType::Float32, true),
        ("Floor", "T", DType::Float64, false),
        ("Rint", "T", DType::Float32, false),
    ] {
        assert_eq!(has_kernel::<All>(op, attribute, dtype), expected, "{op} {attribute} {dtype:?}");
    }
    let mut list = KernelList::default();
    library::rounding::<All>(&mut list);
    library::others::<All>(&mut list);
    assert_eq!(list.ops().collect::<Vec<_>>(), ["Ceil", "Ceil", "Floor", "Rint"]);
}

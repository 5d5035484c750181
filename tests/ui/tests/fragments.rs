//! Options of the attributes may be fragments of `macro_rules!`, `concat!` and `stringify!`.

#![deny(warnings)]

use se_plugin::kernel::has_kernel;
use se_plugin::prelude as device;
use tf_fs_plugin::__private::Plugin;
use tf_plugin_ui_tests::device::P;

macro_rules! filesystem {
    ($one:literal $two:expr, $three:ident, $autoload:literal) => {
        struct Files;

        #[tf_fs_plugin::filesystem_plugin(
            schemes($one, $two, stringify!($three), concat!($one, "x", 4)), autoload = $autoload
        )]
        impl tf_fs_plugin::Filesystem for Files {
            fn new(_: &str) -> tf_fs_plugin::Result<Self> {
                Ok(Self)
            }
        }
    };
}

filesystem! { "a1" "b1", c1, false }

#[test]
fn schemes_are_read() {
    let registrations = <Files as Plugin>::registrations();
    let schemes: Vec<_> = registrations.iter().map(|one| one.scheme()).collect();
    assert_eq!(schemes, ["a1", "b1", "c1", "a1x4"]);
}

macro_rules! kernels {
    ($($name:ident: $op:expr, $attribute:ident = $type:ty, $memory:literal, $label:expr, $priority:literal;)*) => {$(
        struct $name;

        #[device::kernel(
            op = $op, types($attribute = $type), host_memory($memory), label = $label, priority = $priority
        )]
        #[device::kernel(op = concat!(stringify!($name), "Grad"), types($attribute = [$type, f64]))]
        impl device::Kernel for $name {
            type Platform = P;

            fn new(_: &device::OpKernelConstruction<'_>) -> device::Result<Self> {
                Ok(Self)
            }
            fn compute(&self, _: &mut device::OpKernelContext<'_, P>) -> device::Result<()> {
                Ok(())
            }
        }
    )*};
}

kernels! {
    Relu: "Relu", T = f32, "features", "", 0;
    Elu: concat!("E", "lu"), T = f32, "features", "", 1;
}

#[test]
fn ops_are_read() {
    for op in ["Relu", "Elu", "ReluGrad", "EluGrad"] {
        assert!(has_kernel::<P>(op, "T", device::DType::Float32), "{op}");
        assert_eq!(has_kernel::<P>(op, "T", device::DType::Float64), op.ends_with("Grad"), "{op}");
    }
}

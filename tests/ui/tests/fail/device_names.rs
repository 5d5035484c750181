//! Names and types on which TensorFlow would abort, or for which it has kernels. The attribute checks those of the one
//! platform that a crate exports.

use se_plugin::prelude::*;
use tf_plugin_ui_tests::no_devices;

struct NameIsReserved;

#[device_plugin]
impl Platform for NameIsReserved {
    const NAME: &'static str = "CUDA";
    const TYPE: &'static str = "MY_DEVICE";
    no_devices!();
}

struct TypeIsReserved;

impl Platform for TypeIsReserved {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "GPU";
    no_devices!();
}

struct TypeHasDigits;

impl Platform for TypeHasDigits {
    const NAME: &'static str = "MINE";
    const TYPE: &'static str = "GPU_2";
    no_devices!();
}

const _: () = se_plugin::__private::check::<TypeIsReserved>();
const _: () = se_plugin::__private::check::<TypeHasDigits>();

fn main() {}

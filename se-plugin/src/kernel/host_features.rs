//! The features of hosts that kernels may need.

use crate::abi::kernel::target::Devices;
use crate::abi::kernel::variables::host_has_variables;
use crate::abi::kernel::variants::host_has_variants;
use crate::kernel::register::is_registered;
use crate::platform::Platform;
use tf_op_plugin::__private::{Registration, kernels_for};
use tf_op_plugin::DType;

/// The features that kernels may need and that not every host has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFeatures {
    variables: bool,
    variants: bool,
}

impl HostFeatures {
    pub(crate) fn now() -> Self {
        Self { variables: host_has_variables(), variants: host_has_variants() }
    }

    pub(crate) fn all_for(self, one: &Registration) -> bool {
        (self.variables || !one.options.variables) && (self.variants || !one.options.variants)
    }
}

/// Returns whether a platform has a kernel, written by its author, for an op with a type in an attribute.
pub fn has_kernel<P: Platform>(op: &str, attribute: &str, dtype: DType) -> bool {
    has_kernel_of::<P>(op, &[(attribute, dtype)])
}

/// Returns whether a platform has one kernel, written by its author, for an op with all of these types.
pub(crate) fn has_kernel_of<P: Platform>(op: &str, types: &[(&str, DType)]) -> bool {
    let features = HostFeatures::now();
    kernels_for::<Devices<P>>()
        .into_iter()
        .any(|one| one.is_for(op, types) && features.all_for(one) && is_registered::<P>(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::registration;
    use crate::kernel::test_platform::TestPlatform;
    use crate::kernel::workarounds::FailingKernel;
    use tf_op_plugin::__private::{Options, choose};

    const ALL: HostFeatures = HostFeatures { variables: true, variants: true };

    #[test]
    fn kernels_for_variables_and_variants_need_a_host_that_has_them() {
        let float = Options { types: &[("T", DType::Float32)], ..Options::default() };
        let with = |options| registration::<FailingKernel<TestPlatform>>("Op", "here", options);
        for (options, host) in [
            (Options { variables: true, ..float }, HostFeatures { variables: false, ..ALL }),
            (Options { variants: true, ..float }, HostFeatures { variants: false, ..ALL }),
        ] {
            let one = with(options);
            assert_eq!(choose([&one], |one| ALL.all_for(one)).chosen.len(), 1);
            let choice = choose([&one], |one| host.all_for(one));
            assert!(choice.chosen.is_empty() && choice.refused.is_empty());
            assert_eq!(choose([&with(float)], |one| host.all_for(one)).chosen.len(), 1);
        }
    }
}

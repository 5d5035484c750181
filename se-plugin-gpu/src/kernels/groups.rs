//! The ops, by group, for [`plugin!`](crate::plugin) and [`se_plugin::register_kernels!`].

use super::*;

/// Defines the groups by the lists of their modules, and the group of all.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = $($module:ident::$list:ident)*;)*) => {
        $(
            $(#[$doc])*
            pub fn $group<G: GpuPlatform>(list: &mut KernelList) {
                $(super::$module::$list::<G>(list);)*
            }
        )*

        /// All ops.
        pub fn all<G: GpuPlatform>(list: &mut KernelList) {
            $($group::<G>(list);)*
        }
    };
}

groups! {
    /// Elementwise ops, products of matrices, reductions, sums along an axis and Fourier transforms.
    math = add_n::kernels all_finite::kernels multi_tensor::kernels elementwise::kernels elementwise::whole elementwise::others elementwise::predicates elementwise::logical elementwise::comparisons
        fused::kernels matrix::kernels einsum::kernels reduce::kernels scan::kernels sparse::kernels bincount::kernels complex::kernels complex::parts fft::kernels;
    /// Layers: convolutions, pooling, normalization, softmax, recurrent networks, quantization-aware training.
    nn = bias::kernels convolve::kernels fake_quant::kernels moments::kernels normalize::kernels pool::kernels recurrent::kernels softmax::kernels;
    /// Ops that move elements: slices, gathers, scatters, shapes and lists of tensors.
    arrays = band::kernels bitcast::kernels concat::kernels diagonal::kernels dynamic_slice::kernels fill::kernels range::kernels gather::kernels
        gather_nd::kernels mirror_pad::kernels pack::kernels pack::on_host pad::kernels reverse_sequence::kernels
        scatter::kernels select::kernels slice::kernels slice::slices space_to_batch::kernels space_to_batch::depths
        split::kernels tile::kernels topk::kernels transpose::kernels variants::kernels;
    /// Colours, resizing, projective transformations and patches of images.
    images = colors::kernels image_transform::kernels patches::kernels resize::kernels;
    /// Random numbers.
    random = random::kernels gamma::kernels multinomial::kernels;
    /// Optimizers, in TensorFlow releases that let plugins change variables.
    training = optimize::kernels;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::GpuDevice;
    use se_plugin::kernel::AnyPlatform;
    use std::collections::BTreeSet;

    fn ops(group: fn(&mut KernelList)) -> BTreeSet<&'static str> {
        let mut list = KernelList::default();
        group(&mut list);
        list.ops().collect()
    }

    /// The lists of all modules are in a group: the sources name as many ops.
    #[test]
    fn each_op_is_in_a_group() {
        let all = ops(all::<AnyPlatform<GpuDevice>>);
        let mut named = BTreeSet::new();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels");
        for entry in std::fs::read_dir(directory).unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in source.lines() {
                let Some((op, rest)) =
                    line.strip_prefix("    \"").and_then(|rest| rest.split_once("\" "))
                else {
                    continue;
                };
                if rest.starts_with(|first: char| first.is_ascii_uppercase()) {
                    named.insert(op.to_owned());
                }
            }
        }
        let all: BTreeSet<_> = all.into_iter().map(str::to_owned).collect();
        assert_eq!(all, named);
        assert!(all.len() > 200, "{}", all.len());
    }

    #[test]
    fn a_group_has_its_ops_only() {
        let math = ops(math::<AnyPlatform<GpuDevice>>);
        assert!(math.contains("MatMul") && math.contains("AddV2"), "{math:?}");
        assert!(!math.contains("Conv2D") && !math.contains("Transpose"), "{math:?}");
    }
}

//! The ops, by group, for [`plugin!`](crate::plugin) and [`se_plugin::register_kernels!`].

use super::*;
use crate::device::GpuDevice;
use se_plugin::kernel::AnyPlatform;
use std::collections::BTreeSet;
use std::sync::OnceLock;

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
        fused::kernels matrix::kernels einsum::kernels reduce::kernels scan::kernels sparse::kernels bincount::kernels complex::kernels complex::parts fft::kernels igamma::kernels;
    /// Layers: convolutions, pooling, normalization, softmax, recurrent networks, quantization-aware training.
    nn = attention::kernels bias::kernels convolve::kernels fake_quant::kernels moments::kernels normalize::kernels pool::kernels quantize_dequantize::kernels recurrent::kernels softmax::kernels;
    /// Ops that move elements: slices, gathers, scatters, shapes and lists of tensors.
    arrays = band::kernels bitcast::kernels concat::kernels diagonal::kernels dynamic_slice::kernels fill::kernels range::kernels gather::kernels
        gather_nd::kernels mirror_pad::kernels pack::kernels pack::on_host pad::kernels reverse_sequence::kernels
        scatter::kernels select::kernels slice::kernels slice::slices space_to_batch::kernels space_to_batch::depths
        split::kernels tile::kernels topk::kernels transpose::kernels variants::kernels;
    /// Colours, resizing, projective transformations and patches of images.
    images = colors::kernels image_transform::kernels patches::kernels resize::kernels;
    /// Random numbers.
    random = random::kernels gamma::kernels poisson::kernels multinomial::kernels;
    /// Optimizers, in TensorFlow releases that let plugins change variables.
    training = optimize::kernels;
}

/// The lists of kernels that compute with float64, where they have that type. Other kernels only move its bytes.
fn computing<G: GpuPlatform>(list: &mut KernelList) {
    use super::*;
    add_n::kernels::<G>(list);
    bias::kernels::<G>(list);
    bincount::kernels::<G>(list);
    einsum::kernels::<G>(list);
    elementwise::kernels::<G>(list);
    elementwise::others::<G>(list);
    elementwise::predicates::<G>(list);
    elementwise::comparisons::<G>(list);
    matrix::kernels::<G>(list);
    optimize::kernels::<G>(list);
    random::kernels::<G>(list);
    range::kernels::<G>(list);
    reduce::kernels::<G>(list);
    scan::kernels::<G>(list);
    scatter::kernels::<G>(list);
    softmax::kernels::<G>(list);
    topk::kernels::<G>(list);
}

/// Returns whether the kernels for an op with these types of attributes compute with float64, which not every GPU can.
#[must_use]
pub fn need_float64(op: &str, types: &[(&str, DType)]) -> bool {
    static COMPUTING: OnceLock<BTreeSet<&str>> = OnceLock::new();
    /// Those that compute with doubles for all types.
    static ALWAYS: OnceLock<BTreeSet<&str>> = OnceLock::new();
    let of = |kernels: fn(&mut KernelList)| {
        let mut list = KernelList::default();
        kernels(&mut list);
        list.ops().collect()
    };
    fn always<G: GpuPlatform>(list: &mut KernelList) {
        super::igamma::kernels::<G>(list);
        super::poisson::kernels::<G>(list);
    }
    let has_float64 = types.iter().any(|(_, dtype)| *dtype == DType::Float64);
    has_float64 && COMPUTING.get_or_init(|| of(computing::<AnyPlatform<GpuDevice>>)).contains(op)
        || ALWAYS.get_or_init(|| of(always::<AnyPlatform<GpuDevice>>)).contains(op)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_computes_with_float64_needs_it_and_what_moves_it_does_not() {
        let of = |dtype| [("Tidx", DType::Int32), ("T", dtype)];
        for op in ["Sum", "MatMul", "Tanh", "AddN", "RandomUniform", "ResourceScatterAdd"] {
            assert!(need_float64(op, &of(DType::Float64)), "{op}");
            assert!(!need_float64(op, &of(DType::Float32)), "{op}");
        }
        assert!(need_float64("RandomPoissonV2", &of(DType::Float32)));
        for op in ["Transpose", "GatherV2", "Pack", "SelectV2", "Other"] {
            assert!(!need_float64(op, &of(DType::Float64)), "{op}");
        }
    }

    /// Reads the sources: in a module that names a shader of doubles, all kernels for float64 need it.
    #[test]
    fn kernels_with_shaders_of_float64_need_it() {
        let (directory, mut seen) = (concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels"), 0);
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            let has_shader = source.contains(".double\")") || source.contains("variant!(\"");
            let (mut is_float64, kernels) = (false, source.split("\nkernels! {").skip(1));
            for line in kernels.flat_map(str::lines).filter(|_| has_shader) {
                if line.starts_with("    types (") {
                    is_float64 = line.contains("f64");
                }
                let op = line.strip_prefix("    \"").and_then(|rest| rest.split('"').next());
                if let Some(op) = op.filter(|_| is_float64) {
                    seen += 1;
                    let needs = need_float64(op, &[("T", DType::Float64)]);
                    assert!(needs, "{op} of {}", path.display());
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn a_group_has_its_ops_only() {
        let math = ops(math::<AnyPlatform<GpuDevice>>);
        assert!(math.contains("MatMul") && math.contains("AddV2"), "{math:?}");
        assert!(!math.contains("Conv2D") && !math.contains("Transpose"), "{math:?}");
    }
}

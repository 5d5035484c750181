//! The operations that a backend may compute by a library or by matrix units.

use se_plugin::kernel::DType;
use se_plugin::toolkit::window::Windows;
use std::fmt::{Display, Formatter};

/// What a GPU's matrix units multiply at once: M x K 16-bit floats by K x N, with sums in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooperativeMatrix {
    /// The rows of the first factor.
    pub m: u32,
    /// The columns of the second factor.
    pub n: u32,
    /// The columns of the first factor, and the rows of the second.
    pub k: u32,
    /// The number of invocations that compute one together.
    pub subgroup: u32,
    /// The largest tile for which the GPU has registers, in 16 rows and columns.
    pub most: u32,
    /// Whether sums can become 16-bit floats within the matrix units.
    pub stores: bool,
    /// Whether to use them also for tiles with gaps.
    pub parts: bool,
}

impl Display for CooperativeMatrix {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { m, n, k, subgroup, .. } = self;
        write!(out, "{m} x {k} by {k} x {n}, in subgroups of {subgroup}")
    }
}

impl CooperativeMatrix {
    /// The suffix of the names of shaders that use them: `shaders/cooperative.glsl`.
    pub const SHADERS: &'static str = ".cooperative";

    /// How many elements of a sum are multiplied between two barriers.
    pub(crate) const DEPTH: u32 = 32;

    /// The matrices of NVIDIA's GPUs.
    #[cfg(test)]
    pub(crate) const USUAL: Self =
        Self { m: 16, n: 16, k: 16, subgroup: 32, most: 8, stores: true, parts: true };

    /// Returns whether the shaders can divide a tile, of 16 times as many rows and columns, into such matrices.
    pub(crate) fn fits(&self, each: u32) -> bool {
        let Self { m, n, k, subgroup, most, .. } = *self;
        // As in the shaders.
        let subgroups = 256_u32.checked_div(subgroup).unwrap_or_default();
        let down = if subgroups > 8 { 4 } else { 2 };
        let Some(across) = subgroups.checked_div(down).filter(|across| *across > 0) else {
            return false;
        };
        let whole =
            |size: u32, part: u32| part > 0 && part.is_multiple_of(8) && size.is_multiple_of(part);
        each <= most
            && subgroup.is_power_of_two()
            && whole(16 * each / down, m)
            && whole(16 * each / across, n)
            && whole(Self::DEPTH, k)
    }

    /// Returns whether the shaders can use them on a GPU with this much shared memory, in bytes.
    #[must_use]
    pub fn is_usable(&self, shared: u32) -> bool {
        let needed = || 2 * 640 * 16 + 256 / self.subgroup * self.m * self.n * 4;
        [4, 8].into_iter().any(|each| self.fits(each)) && needed() <= shared
    }
}

/// Products of the matrices `a` and `b`, `rows` x `inner` and `inner` x `columns`. They are
/// consecutive in memory, or, if a stride is 0, the same for all products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMul {
    /// The type of all elements.
    pub dtype: DType,
    /// Whether `a` and `b` are transposed.
    pub transpose: [bool; 2],
    /// The rows of `a` and of the product.
    pub rows: usize,
    /// How many products of elements each sum has.
    pub inner: usize,
    /// The columns of `b` and of the product.
    pub columns: usize,
    /// The number of products.
    pub batch: usize,
    /// How many elements there are from one `a`, and one `b`, to the next.
    pub strides: [usize; 2],
}

/// The computation of a convolution: the numbers of the ops in `shaders/convolve.comp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvolutionKind {
    /// The results, from images and a filter.
    Forward,
    /// The gradient of the images, from that of the results and a filter.
    BackwardData,
    /// The gradient of the filter, from images and the gradient of the results.
    BackwardFilter,
}

/// Windows over images, and the shape of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowShape {
    /// Whether images are volumes. Others have a depth of 1.
    pub is_deep: bool,
    /// Their number, depth, rows, columns and channels.
    pub images: [usize; 5],
    /// The windows along depth, rows and columns.
    pub windows: [Windows; 3],
    /// The channels of the results.
    pub results: usize,
    /// The groups of channels, each with its own filters.
    pub groups: usize,
}

impl WindowShape {
    /// Returns whether images are padded alike at both ends, as cuDNN requires it.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.windows.iter().all(|of| {
            let reach = of.size.saturating_sub(1) * of.dilation + 1;
            let rest = (of.input + 2 * of.before).checked_sub(reach);
            rest.is_some_and(|rest| rest / of.stride + 1 == of.count)
        })
    }
}

/// A convolution whose tensors have one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// What is computed of what.
    pub kind: ConvolutionKind,
    /// The type of all elements.
    pub dtype: DType,
    /// The sizes.
    pub shape: WindowShape,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_divided_as_the_gpus_have_it() {
        let of = |[m, n, k]: [u32; 3], subgroup, most| {
            let matrix = CooperativeMatrix { m, n, k, subgroup, most, stores: true, parts: true };
            ([4, 8].map(|each| matrix.fits(each)), matrix.is_usable(32 << 10))
        };
        for (name, matrix, subgroup, most, fits, is_usable) in [
            ("NVIDIA", [16, 16, 16], 32, 8, [true, true], true),
            ("NVIDIA, short", [16, 8, 16], 32, 8, [true, true], true),
            ("AMD", [16, 16, 16], 64, 8, [true, true], true),
            ("Intel", [8, 16, 16], 32, 4, [true, false], true),
            ("Intel, 16", [8, 16, 16], 16, 4, [true, false], true),
            ("lavapipe", [8, 8, 8], 8, 8, [true, true], true),
            ("too wide", [64, 64, 16], 32, 8, [false, false], false),
            ("no multiple of eight", [4, 4, 4], 32, 8, [false, false], false),
            ("too deep", [16, 16, 64], 32, 8, [false, false], false),
            ("none together", [16, 16, 16], 0, 8, [false, false], false),
        ] {
            assert_eq!(of(matrix, subgroup, most), (fits, is_usable), "{name}");
        }
        assert!(!CooperativeMatrix::USUAL.is_usable(16 << 10));
    }
}

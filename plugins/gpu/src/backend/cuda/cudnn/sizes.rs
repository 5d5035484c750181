//! The convolutions that cuDNN may support, as given to the shader: `shaders/convolve.comp` and `shaders/window.glsl`.

use crate::backend::driver::Shader;
use cudarc::cudnn::sys;
use std::ffi::c_int;
use std::fmt::{Display, Formatter};

/// The shader that cuDNN replaces.
const SHADER: &str = "convolve";

/// What is computed: the numbers of the shader's ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Results,
    Images,
    Filter,
}

/// The convolution that the constants of the shader select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::backend::cuda) struct Convolution {
    pub(super) what: What,
    pub(super) kind: sys::cudnnDataType_t,
    pub(super) is_deep: bool,
}

impl Convolution {
    /// Returns the convolution of a shader with these constants, if its elements and results have one type.
    pub(in crate::backend::cuda) fn of(shader: &Shader, constants: &[u32]) -> Option<Self> {
        let [_, what, kind, out, is_deep, ..] = *constants else { return None };
        if shader.name != SHADER || kind != out {
            return None;
        }
        let what = match what {
            0 => What::Results,
            1 => What::Images,
            2 => What::Filter,
            _ => return None,
        };
        let kind = match kind {
            0 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
            1 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
            2 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
            _ => return None,
        };
        Some(Self { what, kind, is_deep: is_deep != 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        if self.kind == sys::cudnnDataType_t::CUDNN_DATA_FLOAT { 4 } else { 2 }
    }
}

impl Display for Convolution {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let what = match self.what {
            What::Results => "convolutions",
            What::Images => "gradients of images",
            What::Filter => "gradients of filters",
        };
        let kind = match self.kind {
            sys::cudnnDataType_t::CUDNN_DATA_FLOAT => "float32",
            sys::cudnnDataType_t::CUDNN_DATA_HALF => "float16",
            _ => "bfloat16",
        };
        let of = if self.is_deep { "volumes" } else { "images" };
        write!(out, "{what} ({kind}, {of})")
    }
}

/// Windows along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Axis {
    pub(super) images: c_int,
    pub(super) size: c_int,
    pub(super) stride: c_int,
    pub(super) dilation: c_int,
    pub(super) before: c_int,
    pub(super) count: c_int,
}

impl Axis {
    /// Returns whether cuDNN has the same windows: it pads both ends alike.
    pub(super) fn is_even(&self) -> bool {
        let Self { images, size, stride, dilation, before, count } = *self;
        let [images, size, stride, dilation, before] =
            [images, size, stride, dilation, before].map(i64::from);
        let rest = images + 2 * before - ((size - 1) * dilation + 1);
        rest >= 0 && rest / stride + 1 == count.into()
    }
}

/// The sizes that are pushed to the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sizes {
    pub(super) images: c_int,
    pub(super) channels: c_int,
    pub(super) results: c_int,
    pub(super) groups: c_int,
    /// The axes through volumes, down and right.
    pub(super) axes: [Axis; 3],
}

/// How many numbers the shader has behind its addresses.
pub(super) const NUMBERS: usize = 23;

impl Sizes {
    /// Returns the sizes of a convolution that cuDNN may support: not empty, undivided, and with even windows.
    pub(super) fn of(convolution: Convolution, numbers: [u32; NUMBERS]) -> Option<Self> {
        let mut all = [0; NUMBERS];
        for (number, pushed) in all.iter_mut().zip(numbers) {
            *number = c_int::try_from(pushed).ok()?;
        }
        let [part, images, rows, columns, channels, results, rest @ ..] = all;
        let [sizes, strides, dilations, befores, counts] =
            [0, 2, 4, 6, 8].map(|at| [rest[at], rest[at + 1]]);
        let [groups, depth, size, stride, dilation, before, count] = rest[10..] else {
            return None;
        };
        let through = Axis { images: depth, size, stride, dilation, before, count };
        let along = |at: usize, images| Axis {
            images,
            size: sizes[at],
            stride: strides[at],
            dilation: dilations[at],
            before: befores[at],
            count: counts[at],
        };
        let axes = [through, along(0, rows), along(1, columns)];
        let is_one = |axis: &Axis| {
            [axis.images, axis.size, axis.stride, axis.dilation, axis.count].iter().all(|&n| n > 0)
        };
        let is_some = [images, channels, results, groups].iter().all(|&n| n > 0);
        let positions = axes.iter().try_fold(images, |all, axis| all.checked_mul(axis.count))?;
        let is_whole = convolution.what != What::Filter || part >= positions;
        let is_taken =
            is_some && is_whole && axes.iter().all(|axis| is_one(axis) && axis.is_even());
        is_taken.then_some(Self { images, channels, results, groups, axes })
    }

    /// Returns a value of the last two axes, or of all three.
    pub(super) fn along(
        &self,
        convolution: Convolution,
        of: impl Fn(&Axis) -> c_int,
    ) -> Vec<c_int> {
        let axes = if convolution.is_deep { &self.axes[..] } else { &self.axes[1..] };
        axes.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHADER: Shader = Shader { name: "convolve", code: &[] };

    #[test]
    fn convolutions_are_those_of_the_shader() {
        let convolution = Convolution::of(&SHADER, &[2, 1, 2, 2, 0, 1]);
        let kind = sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16;
        assert_eq!(convolution, Some(Convolution { what: What::Images, kind, is_deep: false }));
        // Sums of 16-bit floats in 32 bits, which are parts of a whole.
        assert_eq!(Convolution::of(&SHADER, &[2, 2, 1, 0, 0, 1]), None);
        assert_eq!(Convolution::of(&SHADER, &[2, 3, 0, 0, 0, 1]), None);
        assert_eq!(
            Convolution::of(&Shader { name: "window", code: &[] }, &[2, 0, 0, 0, 0, 1]),
            None
        );
    }

    #[test]
    fn sizes_are_those_that_are_pushed() {
        let filter = Convolution::of(&SHADER, &[2, 2, 0, 0, 0, 1]).expect("a gradient of a filter");
        let results = Convolution { what: What::Results, ..filter };
        // Two images of 5 x 7 with 4 channels, 6 results in 2 groups; windows of 3 x 2 by 2 x 1, as in the trial.
        let pushed = [30, 2, 5, 7, 4, 6, 3, 2, 2, 1, 1, 2, 1, 0, 3, 5, 2, 1, 1, 1, 1, 0, 1];
        let sizes = Sizes::of(filter, pushed).expect("the sizes of a convolution");
        assert_eq!((sizes.images, sizes.channels, sizes.results, sizes.groups), (2, 4, 6, 2));
        let right = Axis { images: 7, size: 2, stride: 1, dilation: 2, before: 0, count: 5 };
        assert_eq!(sizes.axes[2], right);
        assert_eq!(sizes.along(filter, |axis| axis.size), [3, 2]);
        assert_eq!(
            sizes.along(Convolution { is_deep: true, ..filter }, |axis| axis.size),
            [1, 3, 2]
        );
        let but = |at: usize, number| {
            let mut other = pushed;
            other[at] = number;
            other
        };
        // A part of a sum, which results do not have; one row behind the images; no images; too many channels.
        assert_eq!(Sizes::of(filter, but(0, 29)), None);
        assert!(Sizes::of(results, but(0, 0)).is_some());
        assert_eq!(Sizes::of(results, but(14, 4)), None);
        assert_eq!(Sizes::of(results, but(1, 0)), None);
        assert_eq!(Sizes::of(results, but(4, 1 << 31)), None);
    }
}

//! Tests whether cuDNN computes what the shader does. Otherwise only a model that does not learn would show it.

use super::descriptors::Layout;
use super::{Cudnn, Failure, Variant};
use cudarc::driver::{DriverError, result};
use half::{bf16, f16};
use se_plugin::kernel::DType;
use se_plugin::toolkit::window::Windows;
use se_plugin_gpu::backend::{Convolution, ConvolutionKind, WindowShape};

/// The most elements of a tensor in the test.
const MOST: usize = 4096;
/// The bytes for its three tensors, behind the workspace.
pub(super) const SPACE: usize = 3 * 4 * MOST;

/// A common convolution, and one with all features. All sizes that could be mixed up are different.
pub(super) const SHAPES: [WindowShape; 2] = [
    WindowShape {
        is_deep: true,
        images: [2, 3, 5, 7, 8],
        windows: [
            Windows { input: 3, size: 1, stride: 1, dilation: 1, before: 0, count: 3 },
            Windows { input: 5, size: 3, stride: 1, dilation: 1, before: 1, count: 5 },
            Windows { input: 7, size: 3, stride: 1, dilation: 1, before: 1, count: 7 },
        ],
        results: 16,
        groups: 1,
    },
    WindowShape {
        is_deep: true,
        images: [2, 3, 5, 7, 4],
        windows: [
            Windows { input: 3, size: 2, stride: 1, dilation: 1, before: 0, count: 2 },
            Windows { input: 5, size: 3, stride: 2, dilation: 1, before: 1, count: 3 },
            Windows { input: 7, size: 2, stride: 1, dilation: 2, before: 0, count: 5 },
        ],
        results: 6,
        groups: 2,
    },
];

/// The first axis of images, whose depth is 1.
const FLAT: Windows = Windows { input: 1, size: 1, stride: 1, dilation: 1, before: 0, count: 1 };

/// Returns all places along three axes.
fn places(sizes: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [a, b, c] = sizes;
    (0..a * b * c).map(move |at| [at / c / b, at / c % b, at % c])
}

/// Calls `with` with the places of an element of images, filter and results, for each of their products.
fn products(shape: &WindowShape, mut with: impl FnMut(usize, usize, usize)) {
    let of = |part: fn(&Windows) -> usize| shape.windows.each_ref().map(part);
    let [images, .., channels] = shape.images;
    let (each, of_group) = (channels / shape.groups, shape.results / shape.groups);
    let index = |first: usize, place: [usize; 3], sizes: [usize; 3], (channel, channels)| {
        let all = place.iter().zip(sizes).fold(first, |index, (at, size)| index * size + at);
        all * channels + channel
    };
    let (input, size, count) = (of(|axis| axis.input), of(|axis| axis.size), of(|axis| axis.count));
    for image in 0..images {
        for window in places(count) {
            for element in places(size) {
                // Before the images it is larger than they are, too.
                let place = [0, 1, 2].map(|at| {
                    let Windows { stride, dilation, before, .. } = shape.windows[at];
                    (window[at] * stride + element[at] * dilation).wrapping_sub(before)
                });
                if !place.iter().zip(input).all(|(at, size)| *at < size) {
                    continue;
                }
                for (c, k) in (0..each).flat_map(|c| (0..shape.results).map(move |k| (c, k))) {
                    let channel = (k / of_group * each + c, channels);
                    let [_, height, width] = size;
                    let [d, r, s] = element;
                    with(
                        index(image, place, input, channel),
                        index(d, [r, s, c], [height, width, each], (k, shape.results)),
                        index(image, window, count, (k, shape.results)),
                    );
                }
            }
        }
    }
}

/// Returns how many elements images, filter and results have.
fn lengths(shape: &WindowShape) -> [usize; 3] {
    let product = |part: fn(&Windows) -> usize| shape.windows.iter().map(part).product::<usize>();
    let [images, .., channels] = shape.images;
    [
        images * product(|axis| axis.input) * channels,
        product(|axis| axis.size) * channels / shape.groups * shape.results,
        images * product(|axis| axis.count) * shape.results,
    ]
}

/// Makes images, a filter and results; one of them is computed from the others. All sums are whole numbers that the
/// type or a 32-bit float can represent, but a type with fewer bits, such as TF32, cannot.
fn tensors(shape: &WindowShape, kind: ConvolutionKind, is_exact: bool) -> [Vec<f32>; 3] {
    let scale = if is_exact { 2049.0 } else { 1.0 };
    let numbers = |tensor: usize| {
        let scale = if tensor == 0 { 1.0 } else { scale };
        let number = |at: usize| ((at * (tensor + 3) % 7) as f32 - 3.0) * scale;
        (0..lengths(shape)[tensor]).map(number).collect::<Vec<_>>()
    };
    // Each computation has exactly one factor that is scaled.
    let [mut images, mut filter, mut results] = match kind {
        ConvolutionKind::BackwardData => {
            [numbers(0), numbers(1), numbers(2).iter().map(|x| x / scale).collect()]
        }
        _ => [0, 1, 2].map(numbers),
    };
    match kind {
        ConvolutionKind::Forward => results.fill(0.0),
        ConvolutionKind::BackwardData => images.fill(0.0),
        ConvolutionKind::BackwardFilter => filter.fill(0.0),
    }
    products(shape, |image, element, result| match kind {
        ConvolutionKind::Forward => results[result] += images[image] * filter[element],
        ConvolutionKind::BackwardData => images[image] += results[result] * filter[element],
        ConvolutionKind::BackwardFilter => filter[element] += images[image] * results[result],
    });
    [images, filter, results]
}

fn encode(dtype: DType, numbers: &[f32]) -> Vec<u8> {
    let numbers = numbers.iter();
    match dtype {
        DType::Float32 => numbers.flat_map(|x| x.to_ne_bytes()).collect(),
        DType::Float16 => numbers.flat_map(|x| f16::from_f32(*x).to_ne_bytes()).collect(),
        _ => numbers.flat_map(|x| bf16::from_f32(*x).to_ne_bytes()).collect(),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let two = bytes.chunks_exact(2).map(|two| [two[0], two[1]]);
    match dtype {
        DType::Float32 => {
            let four = bytes.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]);
            four.map(f32::from_ne_bytes).collect()
        }
        DType::Float16 => two.map(|two| f16::from_ne_bytes(two).to_f32()).collect(),
        _ => two.map(|two| bf16::from_ne_bytes(two).to_f32()).collect(),
    }
}

/// Computes small convolutions of each kind, waits for them, and returns the wrong kinds, with a
/// warning. The context is that of this thread, and nothing else is in the stream.
///
/// # Errors
/// Those of the driver.
pub(super) fn wrong(cudnn: &Cudnn) -> Result<Vec<Variant>, DriverError> {
    let mut wrong = Vec::new();
    for is_deep in [false, true] {
        for dtype in [DType::Float32, DType::Float16, DType::Bfloat16] {
            for (kind, name) in [
                (ConvolutionKind::Forward, "convolutions"),
                (ConvolutionKind::BackwardData, "gradients of images"),
                (ConvolutionKind::BackwardFilter, "gradients of filters"),
            ] {
                for layout in Layout::ALL {
                    let mut why = None;
                    for mut shape in SHAPES {
                        if !is_deep {
                            (shape.is_deep, shape.images[1], shape.windows[0]) = (false, 1, FLAT);
                        }
                        let convolution = Convolution { kind, dtype, shape };
                        why = why.or(compare(cudnn, &convolution, layout)?);
                    }
                    match why {
                        None => continue,
                        Some(Wrong::Refused) => {}
                        Some(Wrong::Because(why)) => log::warn!(
                            "RUST_GPU does without cuDNN for {name} ({dtype}, {}{}): {why}; \
                             RUST_GPU_NVIDIA_LIBRARIES=0 leaves it out from the start",
                            if is_deep { "volumes" } else { "images" },
                            if layout == Layout::First { ", channels first" } else { "" }
                        ),
                    }
                    wrong.push((kind, dtype, is_deep, layout));
                }
            }
        }
    }
    Ok(wrong)
}

/// Why a kind of convolutions is not used.
enum Wrong {
    /// cuDNN does not support it.
    Refused,
    Because(String),
}

/// Checks cuDNN's first suggestion for a convolution in this layout, and returns what is wrong with it. Returns `None` if
/// cuDNN does not support it.
fn compare(
    cudnn: &Cudnn,
    convolution: &Convolution,
    layout: Layout,
) -> Result<Option<Wrong>, DriverError> {
    let plans = cudnn.plans(convolution, &[layout]).unwrap_or_default();
    let [plan, ..] = &plans[..] else { return Ok(None) };
    let &Convolution { kind, dtype, ref shape } = convolution;
    let is_exact = dtype == DType::Float32 && !cudnn.options.tf32;
    let [images, filter, results] = tensors(shape, kind, is_exact);
    let (a, b, expected) = match kind {
        ConvolutionKind::Forward => (images, filter, results),
        ConvolutionKind::BackwardData => (results, filter, images),
        ConvolutionKind::BackwardFilter => (images, results, filter),
    };
    let stream = cudnn.stream;
    let (workspace, space) = cudnn.workspace;
    let places = [0, 1, 2].map(|tensor| workspace + (space + tensor * 4 * MOST) as u64);
    let (factors, mut found) = ([encode(dtype, &a), encode(dtype, &b)], encode(dtype, &expected));
    let computed = (|| {
        for (place, factor) in places.into_iter().zip(&factors) {
            // SAFETY: the place has space for it, and this stream alone uses it; `factors` live until the stream was waited for.
            unsafe { result::memcpy_htod_async(place, factor, stream) }?;
        }
        // SAFETY: the context is that of this thread; the tensors have these sizes.
        let computed = unsafe { cudnn.compute(plan, places) };
        // SAFETY: the tensor has so many bytes, and `found` lives until the stream was waited for.
        unsafe { result::memcpy_dtoh_async(&mut found, places[2], stream) }?;
        Ok(computed)
    })();
    // SAFETY: the stream is this context's.
    unsafe { result::stream::synchronize(stream) }?;
    match computed? {
        Ok(true) => {}
        Ok(false) => return Ok(Some(Wrong::Refused)),
        Err(Failure::Library(why)) => return Ok(Some(Wrong::Because(why))),
        Err(Failure::Driver(failure)) => return Ok(Some(Wrong::Because(failure.cause))),
        Err(Failure::Hung) => return Ok(Some(Wrong::Because("it takes too long".into()))),
    }
    // Some algorithms transform the factors, and a 16-bit float is rounded.
    let part = if is_exact { 0.0 } else { 0.02 };
    let is_close =
        |(found, expected): (&f32, &f32)| (found - expected).abs() <= 0.5 + part * expected.abs();
    let is_right = decode(dtype, &found).iter().zip(&expected).all(is_close);
    let why = || String::from("it computes something else; install another version");
    Ok((!is_right).then(|| Wrong::Because(why())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trials_have_even_windows_space_and_exact_sums() {
        for shape in SHAPES {
            assert!(shape.is_even(), "{shape:?}");
            assert!(lengths(&shape).iter().all(|&len| len <= MOST), "{shape:?}");
            for kind in [
                ConvolutionKind::Forward,
                ConvolutionKind::BackwardData,
                ConvolutionKind::BackwardFilter,
            ] {
                let all = tensors(&shape, kind, true);
                let number = match kind {
                    ConvolutionKind::Forward => 2,
                    ConvolutionKind::BackwardData => 0,
                    ConvolutionKind::BackwardFilter => 1,
                };
                let sums = &all[number];
                assert!(sums.iter().any(|sum| *sum != 0.0), "{shape:?}");
                // A sum of rounded factors would be different.
                let is_exact = |sum: &f32| sum % 2049.0 == 0.0 && sum.abs() < 16_777_216.0;
                assert!(sums.iter().all(is_exact), "{kind:?} {shape:?}");
                let of_one = tensors(&shape, kind, false);
                assert!(of_one[number].iter().all(|sum| sum.abs() < 2048.0), "{kind:?} {shape:?}");
            }
        }
    }
}

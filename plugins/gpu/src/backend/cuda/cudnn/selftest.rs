//! Tests whether cuDNN computes what the shader does. Otherwise only a model that does not learn would show it.

use super::sizes::{Axis, Convolution, Sizes, What};
use super::{Cudnn, is_refusal, text};
use cudarc::cudnn::sys::cudnnDataType_t::{self, *};
use cudarc::driver::sys::CUstream;
use cudarc::driver::{DriverError, result};
use half::{bf16, f16};

/// The most elements of a tensor in the test.
const MOST: usize = 4096;
/// The bytes for its three tensors, behind the workspace.
pub(super) const SPACE: usize = 3 * 4 * MOST;

/// A common convolution, and one with all features. All sizes that could be mixed up are different.
const SHAPES: [Sizes; 2] = [
    Sizes {
        images: 2,
        channels: 8,
        results: 16,
        groups: 1,
        axes: [
            Axis { images: 3, size: 1, stride: 1, dilation: 1, before: 0, count: 3 },
            Axis { images: 5, size: 3, stride: 1, dilation: 1, before: 1, count: 5 },
            Axis { images: 7, size: 3, stride: 1, dilation: 1, before: 1, count: 7 },
        ],
    },
    Sizes {
        images: 2,
        channels: 4,
        results: 6,
        groups: 2,
        axes: [
            Axis { images: 3, size: 2, stride: 1, dilation: 1, before: 0, count: 2 },
            Axis { images: 5, size: 3, stride: 2, dilation: 1, before: 1, count: 3 },
            Axis { images: 7, size: 2, stride: 1, dilation: 2, before: 0, count: 5 },
        ],
    },
];

/// The first axis of images, whose depth is 1.
const FLAT: Axis = Axis { images: 1, size: 1, stride: 1, dilation: 1, before: 0, count: 1 };

/// Returns all places along three axes.
fn places(sizes: [i32; 3]) -> impl Iterator<Item = [i32; 3]> {
    let [a, b, c] = sizes;
    (0..a * b * c).map(move |at| [at / c / b, at / c % b, at % c])
}

/// Calls `with` with the places of an element of images, filter and results, for each of their products.
fn products(sizes: &Sizes, mut with: impl FnMut(usize, usize, usize)) {
    let of = |part: fn(&Axis) -> i32| sizes.axes.each_ref().map(part);
    let (each, of_group) = (sizes.channels / sizes.groups, sizes.results / sizes.groups);
    let index = |first: i32, place: [i32; 3], sizes: [i32; 3], (channel, channels): (i32, i32)| {
        let all = place.iter().zip(sizes).fold(first, |index, (at, size)| index * size + at);
        (all * channels + channel) as usize
    };
    let (images, size, count) =
        (of(|axis| axis.images), of(|axis| axis.size), of(|axis| axis.count));
    for image in 0..sizes.images {
        for window in places(count) {
            for element in places(size) {
                let place = [0, 1, 2].map(|at| {
                    let Axis { stride, dilation, before, .. } = sizes.axes[at];
                    window[at] * stride + element[at] * dilation - before
                });
                if !place.iter().zip(images).all(|(at, size)| (0..size).contains(at)) {
                    continue;
                }
                for (c, k) in (0..each).flat_map(|c| (0..sizes.results).map(move |k| (c, k))) {
                    let channel = (k / of_group * each + c, sizes.channels);
                    let [_, height, width] = size;
                    let [d, r, s] = element;
                    with(
                        index(image, place, images, channel),
                        index(d, [r, s, c], [height, width, each], (k, sizes.results)),
                        index(image, window, count, (k, sizes.results)),
                    );
                }
            }
        }
    }
}

/// Returns how many elements images, filter and results have.
fn lengths(sizes: &Sizes) -> [usize; 3] {
    let product = |part: fn(&Axis) -> i32| sizes.axes.iter().map(part).product::<i32>();
    [
        sizes.images * product(|axis| axis.images) * sizes.channels,
        product(|axis| axis.size) * sizes.channels / sizes.groups * sizes.results,
        sizes.images * product(|axis| axis.count) * sizes.results,
    ]
    .map(|len| len as usize)
}

/// Makes images, a filter and results; one of them is computed from the others. All sums are whole numbers that the
/// type or a 32-bit float can represent, but a type with fewer bits, such as TF32, cannot.
fn tensors(sizes: &Sizes, what: What, is_exact: bool) -> [Vec<f32>; 3] {
    let scale = if is_exact { 2049.0 } else { 1.0 };
    let numbers = |tensor: usize| {
        let scale = if tensor == 0 { 1.0 } else { scale };
        let number = |at: usize| ((at * (tensor + 3) % 7) as f32 - 3.0) * scale;
        (0..lengths(sizes)[tensor]).map(number).collect::<Vec<_>>()
    };
    // Each computation has exactly one factor that is scaled.
    let [mut images, mut filter, mut results] = match what {
        What::Images => [numbers(0), numbers(1), numbers(2).iter().map(|x| x / scale).collect()],
        _ => [0, 1, 2].map(numbers),
    };
    match what {
        What::Results => results.fill(0.0),
        What::Images => images.fill(0.0),
        What::Filter => filter.fill(0.0),
    }
    products(sizes, |image, element, result| match what {
        What::Results => results[result] += images[image] * filter[element],
        What::Images => images[image] += results[result] * filter[element],
        What::Filter => filter[element] += images[image] * results[result],
    });
    [images, filter, results]
}

fn encode(kind: cudnnDataType_t, numbers: &[f32]) -> Vec<u8> {
    let numbers = numbers.iter();
    match kind {
        CUDNN_DATA_FLOAT => numbers.flat_map(|x| x.to_ne_bytes()).collect(),
        CUDNN_DATA_HALF => numbers.flat_map(|x| f16::from_f32(*x).to_ne_bytes()).collect(),
        _ => numbers.flat_map(|x| bf16::from_f32(*x).to_ne_bytes()).collect(),
    }
}

fn decode(kind: cudnnDataType_t, bytes: &[u8]) -> Vec<f32> {
    let two = bytes.chunks_exact(2).map(|two| [two[0], two[1]]);
    match kind {
        CUDNN_DATA_FLOAT => {
            let four = bytes.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]);
            four.map(f32::from_ne_bytes).collect()
        }
        CUDNN_DATA_HALF => two.map(|two| f16::from_ne_bytes(two).to_f32()).collect(),
        _ => two.map(|two| bf16::from_ne_bytes(two).to_f32()).collect(),
    }
}

/// Computes small convolutions of each kind, waits for them, and returns the wrong kinds, with a
/// warning. The context is that of this thread, and nothing else is in the stream.
///
/// # Errors
/// Those of the driver.
pub(super) fn wrong(cudnn: &Cudnn, stream: CUstream) -> Result<Vec<Convolution>, DriverError> {
    let mut wrong = Vec::new();
    for (kind, is_deep) in [
        (CUDNN_DATA_FLOAT, false),
        (CUDNN_DATA_HALF, false),
        (CUDNN_DATA_BFLOAT16, false),
        (CUDNN_DATA_FLOAT, true),
        (CUDNN_DATA_HALF, true),
        (CUDNN_DATA_BFLOAT16, true),
    ] {
        for what in [What::Results, What::Images, What::Filter] {
            let convolution = Convolution { what, kind, is_deep };
            let mut why = None;
            for sizes in SHAPES {
                why = why.or(compare(cudnn, stream, convolution, sizes)?);
            }
            match why {
                None => continue,
                Some(Wrong::Refused) => {}
                Some(Wrong::Because(why)) => log::warn!(
                    "RUST_GPU does without cuDNN for {convolution}: {why}; \
                     RUST_GPU_NVIDIA_LIBRARIES=0 leaves it out from the start"
                ),
            }
            wrong.push(convolution);
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

/// Checks a convolution, and returns what is wrong with it. Returns `None` if cuDNN does not support it.
fn compare(
    cudnn: &Cudnn,
    stream: CUstream,
    convolution: Convolution,
    mut sizes: Sizes,
) -> Result<Option<Wrong>, DriverError> {
    let Convolution { what, kind, is_deep } = convolution;
    if !is_deep {
        sizes.axes[0] = FLAT;
    }
    let Some(plan) = cudnn.plan(convolution, sizes) else { return Ok(None) };
    let [images, filter, results] = tensors(&sizes, what, kind == CUDNN_DATA_FLOAT);
    let (a, b, expected) = match what {
        What::Results => (images, filter, results),
        What::Images => (results, filter, images),
        What::Filter => (images, results, filter),
    };
    let (workspace, space) = cudnn.workspace;
    let places = [0, 1, 2].map(|tensor| workspace + (space + tensor * 4 * MOST) as u64);
    let (factors, mut found) = ([encode(kind, &a), encode(kind, &b)], encode(kind, &expected));
    let computed = (|| {
        for (place, factor) in places.into_iter().zip(&factors) {
            // SAFETY: the place has space for it, and this stream alone uses it; `factors` live until the stream was waited for.
            unsafe { result::memcpy_htod_async(place, factor, stream) }?;
        }
        // SAFETY: the context is that of this thread; the tensors have these sizes.
        let computed = unsafe { cudnn.compute(&plan, places) };
        // SAFETY: the tensor has so many bytes, and `found` lives until the stream was waited for.
        unsafe { result::memcpy_dtoh_async(&mut found, places[2], stream) }?;
        Ok(computed)
    })();
    // SAFETY: the stream is this context's.
    unsafe { result::stream::synchronize(stream) }?;
    match computed? {
        Ok(()) => {}
        Err(error) if is_refusal(error) => return Ok(Some(Wrong::Refused)),
        Err(error) => return Ok(Some(Wrong::Because(text(error)))),
    }
    // Some algorithms transform the factors, and a 16-bit float is rounded.
    let part = if kind == CUDNN_DATA_FLOAT { 0.0 } else { 0.02 };
    let is_close =
        |(found, expected): (&f32, &f32)| (found - expected).abs() <= 0.5 + part * expected.abs();
    let is_right = decode(kind, &found).iter().zip(&expected).all(is_close);
    let why = || String::from("it computes something else; install another version");
    Ok((!is_right).then(|| Wrong::Because(why())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trials_have_even_windows_space_and_exact_sums() {
        for sizes in SHAPES {
            assert!(sizes.axes.iter().all(Axis::is_even), "{sizes:?}");
            assert!(lengths(&sizes).iter().all(|&len| len <= MOST), "{sizes:?}");
            for what in [What::Results, What::Images, What::Filter] {
                let all = tensors(&sizes, what, true);
                let number = match what {
                    What::Results => 2,
                    What::Images => 0,
                    What::Filter => 1,
                };
                let sums = &all[number];
                assert!(sums.iter().any(|sum| *sum != 0.0), "{sizes:?}");
                // A sum of rounded factors would be different.
                let is_exact = |sum: &f32| sum % 2049.0 == 0.0 && sum.abs() < 16_777_216.0;
                assert!(sums.iter().all(is_exact), "{what:?} {sizes:?}");
                let of_one = tensors(&sizes, what, false);
                assert!(of_one[number].iter().all(|sum| sum.abs() < 2048.0), "{what:?} {sizes:?}");
            }
        }
    }
}

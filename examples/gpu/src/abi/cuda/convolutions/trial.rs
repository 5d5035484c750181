//! Whether cuDNN computes what the shader does. If not, it would show nowhere but in a model that does not learn.

use super::Opened;
use super::sizes::{Axis, Convolution, Sizes, What};
use cudarc::cudnn::sys::cudnnDataType_t;
use cudarc::driver::DriverError;
use cudarc::driver::result;

/// The most elements of a tensor of the trial.
const MOST: usize = 512;
/// Bytes for its three tensors, behind the workspace.
pub(super) const SPACE: usize = 3 * 4 * MOST;

/// No two sizes that could be taken for each other are the same.
const SIZES: Sizes = Sizes {
    images: 2,
    channels: 4,
    results: 6,
    groups: 2,
    axes: [
        Axis { images: 1, size: 1, stride: 1, dilation: 1, before: 0, count: 1 },
        Axis { images: 5, size: 3, stride: 2, dilation: 1, before: 1, count: 3 },
        Axis { images: 7, size: 2, stride: 1, dilation: 2, before: 0, count: 5 },
    ],
};

/// Elements of images, filter and results.
const LENGTHS: [usize; 3] = [2 * 5 * 7 * 4, 3 * 2 * 2 * 6, 2 * 3 * 5 * 6];

/// Small whole numbers, whose sums a float holds.
fn numbers(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|at| (at * step % 7) as f32 - 3.0).collect()
}

/// Calls `with` with the places of an element of the images, of the filter and of the results, for each of their products.
fn products(mut with: impl FnMut(usize, usize, usize)) {
    let [_, down, right] = SIZES.axes;
    let (each, of_group) = (SIZES.channels / SIZES.groups, SIZES.results / SIZES.groups);
    let index = |first, sizes: &[(i32, i32)]| {
        sizes.iter().fold(first, |index, (at, size)| index * size + at) as usize
    };
    for image in 0..SIZES.images {
        for (y, x) in (0..down.count).flat_map(|y| (0..right.count).map(move |x| (y, x))) {
            for (r, s) in (0..down.size).flat_map(|r| (0..right.size).map(move |s| (r, s))) {
                let row = y * down.stride + r * down.dilation - down.before;
                let column = x * right.stride + s * right.dilation - right.before;
                if !(0..down.images).contains(&row) || !(0..right.images).contains(&column) {
                    continue;
                }
                for (c, k) in (0..each).flat_map(|c| (0..SIZES.results).map(move |k| (c, k))) {
                    let (rows, columns) = ((row, down.images), (column, right.images));
                    let channel = (k / of_group * each + c, SIZES.channels);
                    let result = (k, SIZES.results);
                    with(
                        index(image, &[rows, columns, channel]),
                        index(r, &[(s, right.size), (c, each), result]),
                        index(image, &[(y, down.count), (x, right.count), result]),
                    );
                }
            }
        }
    }
}

/// Images, a filter and results; of them the one that is computed from the others.
fn tensors(what: What) -> [Vec<f32>; 3] {
    let [mut images, mut filter, mut results] =
        [0, 1, 2].map(|tensor| numbers(LENGTHS[tensor], tensor + 3));
    match what {
        What::Results => results.fill(0.0),
        What::Images => images.fill(0.0),
        What::Filter => filter.fill(0.0),
    }
    products(|image, element, result| match what {
        What::Results => results[result] += images[image] * filter[element],
        What::Images => images[image] += results[result] * filter[element],
        What::Filter => filter[element] += images[image] * results[result],
    });
    [images, filter, results]
}

/// Computes each way of a small convolution, waits for it, and says what is wrong. The context is that of this thread.
pub(super) fn run(opened: &mut Opened) -> Result<(), String> {
    for what in [What::Results, What::Images, What::Filter] {
        let [images, filter, results] = tensors(what);
        let (a, b, expected) = match what {
            What::Results => (images, filter, results),
            What::Images => (results, filter, images),
            What::Filter => (images, results, filter),
        };
        let found = compute(opened, what, [&a, &b], expected.len())?;
        // Some algorithms transform what they multiply.
        let is_close = |(found, expected): (&f32, &f32)| (found - expected).abs() < 0.01;
        if !found.iter().zip(&expected).all(is_close) {
            let name = match what {
                What::Results => "a convolution",
                What::Images => "a gradient of images",
                What::Filter => "a gradient of a filter",
            };
            return Err(format!("{name} of it is wrong; install another version"));
        }
    }
    Ok(())
}

fn compute(
    opened: &mut Opened,
    what: What,
    factors: [&[f32]; 2],
    len: usize,
) -> Result<Vec<f32>, String> {
    let kind = cudnnDataType_t::CUDNN_DATA_FLOAT;
    let convolution = Convolution { what, kind, is_deep: false };
    let (handle, stream, (workspace, space)) = (opened.handle, opened.stream, opened.workspace);
    let at = |tensor: u64| workspace + space as u64 + tensor * 4 * MOST as u64;
    let places = [at(0), at(1), at(2)];
    let text = |error: DriverError| error.to_string();
    for (place, factor) in places.into_iter().zip(factors) {
        // SAFETY: the place has space for it, and this stream alone uses it; the driver copies the factor before it returns.
        unsafe { result::memcpy_htod_async(place, factor, stream) }.map_err(text)?;
    }
    let plan = opened.plan(convolution, SIZES).map_err(|error| error.to_string())?;
    let plan = plan.ok_or("it has none of them")?;
    // SAFETY: the context is that of this thread; the tensors have these sizes.
    unsafe { plan.enqueue(handle, workspace, places) }.map_err(|error| error.to_string())?;
    let mut found = vec![0.0; len];
    // SAFETY: the tensor has so many elements, and `found` lives until the stream was waited for.
    unsafe { result::memcpy_dtoh_async(&mut found, places[2], stream) }.map_err(text)?;
    // SAFETY: the stream is this context's.
    unsafe { result::stream::synchronize(stream) }.map_err(text)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_has_even_windows_and_its_tensors_have_space() {
        assert!(SIZES.axes.iter().all(Axis::is_even));
        assert!(LENGTHS.iter().all(|&len| len <= MOST));
        let [_, _, results] = tensors(What::Results);
        assert!(results.iter().any(|&sum| sum != 0.0));
    }
}

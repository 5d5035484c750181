//! Resizes images. The numbers are those of the ops in `shaders/resize.comp`.

use super::*;

/// The positions of elements: see `shaders/resize.comp`.
struct Places {
    align_corners: bool,
    half_pixel_centers: bool,
}

/// Above this size the nearest element is not exact, as in TensorFlow.
const MOST_NEAREST: usize = 1 << 24;

impl Places {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self {
            align_corners: construction.attr("align_corners")?,
            half_pixel_centers: construction.attr("half_pixel_centers")?,
        })
    }

    /// Refuses both at once, which only the nearest element's gradient supports.
    fn check(&self) -> Result<()> {
        if self.align_corners && self.half_pixel_centers {
            return Err(wrong("If half_pixel_centers is True, align_corners must be False."));
        }
        Ok(())
    }

    /// Returns the step from one resized element to the next.
    fn scale(&self, size: usize, resized: usize) -> f32 {
        match self.align_corners && resized > 1 {
            true => (size - 1) as f32 / (resized - 1) as f32,
            false => size as f32 / resized as f32,
        }
    }

    /// Enqueues an op of the shader. The images of `sizes` are read, or, for a gradient, written.
    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: u32,
        input: &DeviceTensor,
        [batch, sizes @ .., channels]: [usize; 4],
        resized: [usize; 2],
    ) -> Result<()> {
        let is_gradient = matches!(number, NEAREST_GRADIENT | BILINEAR_GRADIENT);
        let [rows, columns] = if is_gradient { sizes } else { resized };
        let out = output(context, 0, &[batch, rows, columns, channels])?;
        if out.is_empty() {
            return Ok(());
        }
        word(input.len())?;
        if is_gradient {
            // So many resized elements depend on one along an axis, and two searches for the first of them.
            let along = |at: usize| {
                let each: usize = resized[at].div_ceil(sizes[at].max(1));
                resized[at].min(2 * each + 2)
            };
            ensure_turns(context, op, along(0).saturating_mul(along(1) + 1) + 128)?;
        }
        let scales = [0, 1].map(|at| self.scale(sizes[at], resized[at]));
        let sizes = [channels, sizes[0], sizes[1], resized[0], resized[1]];
        let mut numbers = vec![word(out.len())?];
        numbers.extend(sizes.into_iter().map(word).collect::<Result<Vec<_>>>()?);
        numbers.extend(scales.map(f32::to_bits));
        Launch {
            op,
            shader: shader!("resize"),
            constants: &[
                number,
                bytes(input)?,
                // Elements that are only moved may have types that shaders do not have.
                if number == NEAREST { 0 } else { element_type(input.dtype())? },
                if number == NEAREST { 0 } else { element_type(out.dtype())? },
                self.align_corners.into(),
                self.half_pixel_centers.into(),
            ],
            operands: &[input.into(), (&out).into()],
            numbers: &numbers,
            groups: groups(out.len()),
        }
        .enqueue(context)
    }
}

const NEAREST: u32 = 0;
const BILINEAR: u32 = 1;
const NEAREST_GRADIENT: u32 = 2;
const BILINEAR_GRADIENT: u32 = 3;

/// Resizes images.
fn resize(context: &Run<'_>, op: &'static str, places: &Places, number: u32) -> Result<()> {
    places.check()?;
    let images = context.input(0)?;
    let shape = images_shape(&images, "input")?;
    if shape[3] == 0 {
        return Err(wrong("image must have at least one channel"));
    }
    if shape[1] == 0 || shape[2] == 0 {
        return Err(wrong("input image must be of non-zero size"));
    }
    let resized = size(context, 1, "output dimensions")?;
    if number == NEAREST && shape[1].max(shape[2]) >= MOST_NEAREST {
        return Err(wrong("nearest neighbor requires max height & width of 2^24"));
    }
    places.enqueue(context, op, number, &images, shape, resized)
}

/// Returns the shape of images.
fn images_shape(images: &DeviceTensor, what: &str) -> Result<[usize; 4]> {
    four(&shape(images)?, what)
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16])
    "ResizeNearestNeighbor" ResizeNearestNeighbor [Places = Places::new] (host_memory("size")) =
        |context, op, places| resize(context, op, places, NEAREST);
    types (T = [f32, f16, bf16, i8, i16, i32, i64, u8, u16])
    "ResizeBilinear" ResizeBilinear [Places = Places::new] (host_memory("size")) =
        |context, op, places| resize(context, op, places, BILINEAR);
    types (T = [f32, f16, bf16])
    "ResizeNearestNeighborGrad" ResizeNearestNeighborGrad [Places = Places::new]
        (host_memory("size")) = |context, op, places| {
        let gradient = context.input(0)?;
        let [batch, resized @ .., channels] = images_shape(&gradient, "input")?;
        let [rows, columns] = size(context, 1, "shape_t's elements")?;
        places.enqueue(context, op, NEAREST_GRADIENT, &gradient, [batch, rows, columns, channels], resized)
    };
    "ResizeBilinearGrad" ResizeBilinearGrad [Places = Places::new] () = |context, op, places| {
        places.check()?;
        let gradient = context.input(0)?;
        let [batch, resized @ .., channels] = images_shape(&gradient, "input_grad")?;
        let [_, sizes @ .., _] = images_shape(&context.input(1)?, "original_image")?;
        if resized.contains(&0) {
            return Err(wrong("resized dimensions must be positive"));
        }
        if sizes.contains(&0) {
            return Err(wrong("original dimensions must be positive"));
        }
        places.enqueue(context, op, BILINEAR_GRADIENT, &gradient, [batch, sizes[0], sizes[1], channels], resized)
    };
}

//! Divides images into blocks: the positions at the same place of all blocks become an image or channels, and back.

use super::data_format::Layout;
use super::strided_copy::{Walk, strides, too_large};
use super::*;

/// An axis with blocks, as the shader gets it: the positions of a block, those before the image,
/// those of the image, and the number of blocks.
struct Axis {
    block: usize,
    before: usize,
    space: usize,
    blocks: usize,
}

impl Axis {
    /// Returns whether positions stay where they are.
    fn is_plain(&self) -> bool {
        self.block == 1 && self.space == self.blocks
    }
}

/// The most axes with blocks in the shader.
const MOST_AXES: usize = 4;

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "SpaceToBatchND" SpaceToBatchND (host_memory("block_shape", "paddings")) =
        |context, op| batches(context, op, false);
    "BatchToSpaceND" BatchToSpaceND (host_memory("block_shape", "crops")) =
        |context, op| batches(context, op, true);
}

/// Turns the places of a block into images of a batch; with `is_back`, turns those back.
fn batches(context: &Run<'_>, op: &'static str, is_back: bool) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let (block, around) = (context.host_integers(1)?, context.host_integers(2)?);
    let (count, name) = (block.len(), if is_back { "crops" } else { "paddings" });
    if shape.len() < 1 + count {
        return Err(wrong(format!(
            "input rank should be >= {} instead of {}",
            1 + count,
            shape.len()
        )));
    }
    if around.len() != 2 * count {
        return Err(wrong(format!("{name} should have shape [{count}, 2], and not be {around:?}")));
    }
    let around = from_host(&around)
        .map_err(|_| wrong(format!("{name} must be non-negative, and not {around:?}")))?;
    let block = from_host(&block).ok().filter(|block| !block.contains(&0)).ok_or_else(|| {
        wrong(format!("All values in block_shape must be positive, and not {block:?}"))
    })?;
    let places = block.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
    let places = places.ok_or_else(too_large)?;
    let around = around.chunks(2).map(|pair| (pair[0], pair[1]));
    let sizes = shape[1..].iter().zip(block).zip(around).enumerate();
    let axes = sizes.map(|(at, ((&size, block), around))| match is_back {
        true => cropped(at, size, block, around),
        false => padded(at, size, block, around),
    });
    let axes = axes.collect::<Result<Vec<_>>>()?;
    let batch = match is_back {
        false => shape[0],
        true if shape[0].is_multiple_of(places) => shape[0] / places,
        true => {
            return Err(wrong(format!(
                "Input batch dimension ({}) is not divisible by product of block sizes ({places})",
                shape[0]
            )));
        }
    };
    let mut out_shape = match is_back {
        true => vec![batch],
        false => vec![batch.checked_mul(places).ok_or_else(too_large)?],
    };
    out_shape.extend(axes.iter().map(|axis| if is_back { axis.space } else { axis.blocks }));
    out_shape.extend(&shape[1 + count..]);

    // Axes that stay unchanged belong to the batch or to the depth.
    let first = axes.iter().take_while(|axis| axis.is_plain()).count();
    let last = axes.iter().rposition(|axis| !axis.is_plain()).map_or(first, |last| last + 1);
    let inner = &axes[first..last];
    if inner.is_empty() {
        return context.set_output(0, &input);
    }
    if inner.len() > MOST_AXES {
        return Err(wrong(format!(
            "Maximum number of non-combined block dimensions is {} but must not exceed {MOST_AXES}",
            inner.len()
        )));
    }
    let out = output(context, 0, &out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let each = if is_back { input.len() } else { out.len() } / places;
    let batch = batch * shapes::count(&shape[1..=first]);
    let mut numbers = vec![out.len(), batch, shapes::count(&shape[1 + last..]), each];
    for axis in inner {
        numbers.extend([axis.block, axis.before, axis.space, axis.blocks]);
    }
    word(input.len())?;
    if input.is_empty() {
        // Padding alone.
        return super::strided_copy::fill(context, op, Operand::Value(0), &out);
    }
    Launch {
        op,
        shader: shader!("space_to_batch"),
        constants: &[bytes(&out)?, inner.len() as u32, is_back.into()],
        operands: &[(&input).into(), (&out).into()],
        numbers: &numbers.into_iter().map(word).collect::<Result<Vec<_>>>()?,
        groups: groups(out.len()),
    }
    .enqueue(context)
}

/// Returns an axis of blocks with `block` positions each, including the padding.
fn padded(at: usize, space: usize, block: usize, around: (usize, usize)) -> Result<Axis> {
    let all = space.checked_add(around.0).and_then(|all| all.checked_add(around.1));
    let all = all.ok_or_else(too_large)?;
    if !all.is_multiple_of(block) {
        return Err(wrong(format!(
            "padded_shape[{at}]={all} is not divisible by block_shape[{at}]={block}"
        )));
    }
    Ok(Axis { block, before: around.0, space, blocks: all / block })
}

/// Returns the positions of `blocks` blocks, without the cropped ones.
fn cropped(at: usize, blocks: usize, block: usize, around: (usize, usize)) -> Result<Axis> {
    let all = blocks.checked_mul(block).ok_or_else(too_large)?;
    let space = all.checked_sub(around.0).and_then(|rest| rest.checked_sub(around.1));
    let space = space.ok_or_else(|| {
        wrong(format!("cropped_shape[{at}] must be non-negative: {all} without {around:?}"))
    })?;
    Ok(Axis { block, before: around.0, space, blocks })
}

/// The positions along each side of a block, and where the channels are.
struct Block(usize, Layout);

impl Block {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let size: i64 = construction.attr("block_size")?;
        match usize::try_from(size) {
            Ok(size @ 2..) => Ok(Self(size, Layout::of(construction)?)),
            _ => Err(wrong(format!("Block size should be > 1: {size}"))),
        }
    }

    fn area(&self) -> Result<usize> {
        self.0.checked_mul(self.0).ok_or_else(too_large)
    }

    /// Returns a walk from images of the shape [batch, rows of blocks, columns of blocks, channels]
    /// to images in which each place of a block has its own channels.
    fn walk(&self, [batch, rows, columns, channels]: [usize; 4]) -> Walk {
        let sizes = [batch, rows, columns, self.0, self.0, channels];
        // [batch, row, place in it, column, place in it, channel]
        let space = strides(&[batch, rows, self.0, columns, self.0, channels]);
        let source = [0, 1, 3, 2, 4, 5].map(|axis| space[axis]);
        Walk::new(&sizes, &source, &strides(&sizes))
    }
}

/// Returns the images that are moved, and their shape.
fn images(
    context: &Run<'_>,
    op: &'static str,
    layout: Layout,
) -> Result<(DeviceTensor, [usize; 4])> {
    let input = layout.input(context, op, 0)?;
    let shape = shape(&input)?;
    let rank = shape.len();
    let shape = four(&shape, "images")
        .map_err(|_| wrong(format!("Input rank should be: 4 instead of: {rank}")))?;
    Ok((input, shape))
}

kernels! {
    fn depths;
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "SpaceToDepth" SpaceToDepth [Block = Block::new] () = |context, op, block| {
        let (input, [batch, height, width, channels]) = images(context, op, block.1)?;
        let size = block.0;
        if !height.is_multiple_of(size) || !width.is_multiple_of(size) {
            return Err(wrong(format!("Image width {width} and height {height} should be divisible by block_size: {size}")));
        }
        let depth = block.area()?.checked_mul(channels).ok_or_else(too_large)?;
        let (rows, columns) = (height / size, width / size);
        let out = block.1.output(context, 0, &[batch, rows, columns, depth])?;
        let walk = block.walk([batch, rows, columns, channels]);
        walk.enqueue(context, op, (&input).into(), &out.tensor)?;
        out.finish(context, op)
    };
    "DepthToSpace" DepthToSpace [Block = Block::new] () = |context, op, block| {
        let (input, [batch, rows, columns, depth]) = images(context, op, block.1)?;
        let (size, area) = (block.0, block.area()?);
        if !depth.is_multiple_of(area) {
            return Err(wrong(format!("Input depth dimension {depth} should be divisible by: {area}")));
        }
        let side = |count: usize| count.checked_mul(size).ok_or_else(too_large);
        let channels = depth / area;
        let out = block.1.output(context, 0, &[batch, side(rows)?, side(columns)?, channels])?;
        let walk = block.walk([batch, rows, columns, channels]).reversed();
        walk.enqueue(context, op, (&input).into(), &out.tensor)?;
        out.finish(context, op)
    };
}

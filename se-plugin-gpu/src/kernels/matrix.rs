//! Products of matrices and biases.

use super::*;
use crate::backend::{MatMul, Operation};
use crate::stream::GpuStream;

/// With fewer rows or columns, products leave most of a cooperative matrix empty.
const LEAST_COOPERATIVE: usize = 32;

/// Returns the cooperative matrices for products of this type, with this many rows and columns.
pub(super) fn cooperative(
    stream: &GpuStream,
    dtype: DType,
    [rows, columns]: [usize; 2],
) -> Option<CooperativeMatrix> {
    let is_worth_it = dtype == DType::Float16 && rows.min(columns) >= LEAST_COOPERATIVE;
    is_worth_it.then(|| cooperative_selftest::cooperative(&stream.queue.gpu))?
}

/// The tiles that workgroups compute: `shaders/tile.glsl`, and `shaders/cooperative.glsl` if the GPU has matrix units.
pub(super) struct Tiles {
    /// The rows and the columns of a tile, divided by 16.
    pub(super) each: u32,
    pub(super) groups: [u32; 3],
    cooperative: Option<CooperativeMatrix>,
}

/// The number of workgroups that keeps a large GPU busy.
const BUSY: usize = 256;

impl Tiles {
    /// Chooses tiles for `count` products: the largest that are not mostly empty, with work for the whole GPU.
    pub(super) fn new(
        cooperative: Option<CooperativeMatrix>,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> Self {
        let tiles = |each: u32| [columns, rows].map(|size| size.div_ceil(16 * each as usize));
        let is_good = |each: u32| {
            let [across, down] = tiles(each);
            rows.min(columns) > 12 * each as usize
                && across.saturating_mul(down).saturating_mul(count) >= BUSY
        };
        let smallest = if cooperative.is_none() { 2 } else { 4 };
        let fits = |each: &u32| cooperative.is_none_or(|matrix| matrix.fits(*each));
        let mut sizes = [8, 4, 2].into_iter().filter(|each| *each >= smallest).filter(fits);
        let last = sizes.clone().next_back().unwrap_or(smallest);
        let each = sizes.find(|each| is_good(*each)).unwrap_or(last);
        let [across, down] = tiles(each);
        // The shader loops over further ones.
        let groups = [across, down, count].map(|count| count.min(MOST_GROUPS) as u32);
        Self { each, groups, cooperative }
    }

    /// Returns by how much their number would have to grow to keep the whole GPU busy.
    pub(super) fn missing(
        cooperative: Option<CooperativeMatrix>,
        rows: usize,
        columns: usize,
        count: usize,
    ) -> usize {
        let tiles = Self::new(cooperative, rows, columns, count);
        let [across, down, count] = tiles.groups.map(|n| n as usize);
        BUSY.div_ceil((across * down * count).max(1))
    }

    /// Returns whether neighbours in memory that are read at once are always in a matrix together
    /// or outside of it: each line has a multiple of their number.
    pub(super) fn is_wide(&self, operands: &[Operand<'_>], lines: &[usize]) -> bool {
        let neighbours = if self.cooperative.is_some() { 8 } else { 4 };
        lines.iter().all(|line| line.is_multiple_of(neighbours))
            && operands.iter().take(2).all(|factor| factor.is_multiple_of(16))
    }

    /// Returns whether no tile of such a product has a gap, and the GPU can store sums of full ones as 16-bit floats.
    pub(super) fn is_full(&self, sizes: [usize; 3]) -> bool {
        let tile = 16 * self.each;
        let parts = [tile, CooperativeMatrix::DEPTH, tile].map(|part| part as usize);
        self.cooperative.is_some_and(|matrix| matrix.stores)
            && !sizes.contains(&0)
            && sizes.iter().zip(parts).all(|(size, part)| size.is_multiple_of(part))
    }

    /// Returns one of two shaders, without or with cooperative matrices, and the values of its constants.
    pub(super) fn shader(
        &self,
        [plain, cooperative]: [&'static Shader; 2],
        own: &[u32],
        is_wide: bool,
    ) -> (&'static Shader, Vec<u32>) {
        let mut constants = vec![self.each];
        constants.extend_from_slice(own);
        // The constants of `shaders/tile.glsl` and `shaders/cooperative.glsl` have the same ids in each shader.
        constants.resize(5, 0);
        constants.push(is_wide.into());
        let Some(CooperativeMatrix { m, n, k, subgroup, .. }) = self.cooperative else {
            return (plain, constants);
        };
        constants.extend([m, n, k, subgroup]);
        (cooperative, constants)
    }
}

/// The elements of a sum in a turn of the inner loop of `shaders/tile.glsl`.
const TURN: usize = 8;

/// The rows and columns of a tile, and the elements of a sum between two barriers, of `shaders/matmul64.comp`.
const TILE_OF_DOUBLES: usize = 32;
const DEPTH_OF_DOUBLES: usize = 16;

/// Returns the turns of both loops for sums of this many elements.
pub(super) fn turns(inner: usize) -> usize {
    2 * inner.div_ceil(TURN)
}

impl MatMul {
    /// Enqueues the products of `operands`: `a`, `b` and the result. Each tensor must have less than 2^32 elements.
    pub(super) fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        operands: [Operand<'_>; 3],
    ) -> Result<()> {
        if self.dtype == DType::Float64 {
            return self.enqueue_doubles(context, op, &operands);
        }
        ensure_turns(context, op, turns(self.inner))?;
        let cooperative = cooperative(context.stream(), self.dtype, [self.rows, self.columns]);
        self.with(cooperative, op, &operands, |launch, operation| {
            launch.enqueue_as(context.stream(), operation)
        })
    }

    /// Enqueues products of doubles.
    fn enqueue_doubles(
        &self,
        context: &Run<'_>,
        op: &'static str,
        operands: &[Operand<'_>],
    ) -> Result<()> {
        let Self { transpose: [ta, tb], rows, inner, columns, batch, strides, .. } = *self;
        // The loop over parts, and the one in it.
        ensure_turns(context, op, inner.div_ceil(DEPTH_OF_DOUBLES) * 3)?;
        let tiles = |size: usize| size.div_ceil(TILE_OF_DOUBLES);
        let groups = [tiles(columns), tiles(rows), batch];
        let numbers = [rows, inner, columns, batch, strides[0], strides[1]];
        let launch = Launch {
            op,
            shader: shader!("matmul64.double"),
            constants: &[ta.into(), tb.into()],
            operands,
            numbers: &numbers.map(|number| number as u32),
            groups: groups.map(|count| count.min(MOST_GROUPS) as u32),
        };
        launch.enqueue_as(context.stream(), Operation::MatMul(*self))
    }

    /// Passes the launch to `then`, with what it computes, and returns what that returns.
    pub(super) fn with<R>(
        &self,
        cooperative: Option<CooperativeMatrix>,
        op: &'static str,
        operands: &[Operand<'_>],
        then: impl FnOnce(&Launch<'_>, Operation) -> Result<R>,
    ) -> Result<R> {
        let Self { dtype, transpose: [ta, tb], rows, inner, columns, batch, strides } = *self;
        let tiles = Tiles::new(cooperative, rows, columns, batch);
        let is_full = tiles.is_full([rows, inner, columns])
            && operands.iter().all(|operand| operand.is_multiple_of(16))
            && strides.iter().all(|stride| stride.is_multiple_of(8));
        if !is_full && cooperative.is_some_and(|matrix| !matrix.parts) {
            return self.with(None, op, operands, then);
        }
        let lines = [if ta { rows } else { inner }, if tb { inner } else { columns }];
        let is_wide = tiles.is_wide(operands, [lines, strides].as_flattened());
        let cooperative = match is_full {
            true => shader!("matmul.full.cooperative"),
            false => shader!("matmul.cooperative"),
        };
        let (shader, constants) = tiles.shader(
            [shader!("matmul"), cooperative],
            &[element_type(dtype)?, ta.into(), tb.into()],
            is_wide,
        );
        let numbers = [rows, inner, columns, batch, strides[0], strides[1]];
        let launch = Launch {
            op,
            shader,
            constants: &constants,
            operands,
            numbers: &numbers.map(|number| number as u32),
            groups: tiles.groups,
        };
        then(&launch, Operation::MatMul(*self))
    }
}

/// The batches of matrices that an op multiplies.
#[derive(Clone, Copy)]
enum Batches {
    None,
    Equal,
    Broadcast,
}

impl Batches {
    /// Checks the number of axes. Fails with `INVALID_ARGUMENT` for shapes that the op does not support.
    fn check(self, a: &[usize], b: &[usize]) -> Result<()> {
        match self {
            Self::None if a.len() != 2 || b.len() != 2 => {
                Err(wrong(format!("In[0] and In[1] ndims must be == 2: {a:?} vs. {b:?}")))
            }
            Self::Equal if a.len() != b.len() => {
                Err(wrong(format!("In[0] and In[1] has different ndims: {a:?} vs. {b:?}")))
            }
            Self::Equal if a.iter().rev().skip(2).ne(b.iter().rev().skip(2)) => Err(wrong(
                format!("the batches of In[0] and In[1] must be the same: {a:?} vs. {b:?}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Multiplies matrices, whose batches are broadcast if the op does that.
fn multiply(
    context: &Run<'_>,
    op: &'static str,
    [ta, tb]: [bool; 2],
    batches: Batches,
) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_shape, b_shape) = (shape(&a)?, shape(&b)?);
    batches.check(&a_shape, &b_shape)?;
    let out_shape = shapes::matmul_shape(&a_shape, &b_shape, ta, tb)?;
    let out = output(context, 0, &out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let of = |shape: &[usize], back: usize| shape[shape.len() - back];
    let inner = of(&a_shape, if ta { 2 } else { 1 });
    let (rows, columns) = (of(&out_shape, 2), of(&out_shape, 1));
    for tensor in [&a, &b, &out] {
        word(tensor.len())?;
    }
    let batches = |shape: &[usize]| shape[..shape.len() - 2].to_vec();
    let broadcast = Broadcast::new([&batches(&a_shape)[..], &batches(&b_shape)[..]])?;
    let [outer @ .., last] = broadcast.axes() else {
        return Err(Error::internal("a broadcast without axes"));
    };
    let size = out.dtype().size().unwrap_or_default();
    let steps = |strides: &[usize; 2]| [strides[0] * rows * inner, strides[1] * inner * columns];
    let launches: usize = outer.iter().map(|axis| axis.len).product();
    for launch in 0..launches {
        let (mut rest, mut at) = (launch, [0, 0]);
        for axis in outer.iter().rev() {
            let place = rest % axis.len;
            rest /= axis.len;
            let step = steps(&axis.strides);
            at = [at[0] + place * step[0], at[1] + place * step[1]];
        }
        let first = launch * last.len * rows * columns;
        let bytes = |elements: usize| (elements * size) as u64;
        let operands = [
            Operand::At(&a, bytes(at[0])),
            Operand::At(&b, bytes(at[1])),
            Operand::At(&out, bytes(first)),
        ];
        let (transpose, batch, strides) = ([ta, tb], last.len, steps(&last.strides));
        let dtype = out.dtype();
        let product = MatMul { dtype, transpose, rows, inner, columns, batch, strides };
        product.enqueue(context, op, operands)?;
    }
    Ok(())
}

kernels! {
    types (T = [f32, f16, bf16, f64])
    "MatMul" MatMulKernel [[bool; 2] = |op| Ok([op.attr("transpose_a")?, op.attr("transpose_b")?])] () =
        |run, op, transpose| multiply(run, op, *transpose, Batches::None);
    "BatchMatMul" BatchMatMul [[bool; 2] = |op| Ok([op.attr("adj_x")?, op.attr("adj_y")?])] () =
        |run, op, transpose| multiply(run, op, *transpose, Batches::Equal);
    "BatchMatMulV2" BatchMatMulV2 [[bool; 2] = |op| Ok([op.attr("adj_x")?, op.attr("adj_y")?])] () =
        |run, op, transpose| multiply(run, op, *transpose, Batches::Broadcast);
}

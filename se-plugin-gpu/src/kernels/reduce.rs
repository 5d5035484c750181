//! Reductions. The numbers are those of the ops in `shaders/reduce.comp`.

use super::*;
use crate::backend;

/// The loads in a turn of a loop of `shaders/reduce.comp`.
const EACH: usize = 4;

/// The most axes in the shader, without the innermost and the line.
const MOST_AXES: usize = 8;

/// An axis of the input.
#[derive(Clone, Copy)]
struct Axis {
    /// Whether elements are reduced along it, or else kept.
    goes: bool,
    len: usize,
    stride: usize,
}

/// Returns the axes of a tensor, innermost first, without size 1. Neighbours are merged if both stay or both go.
fn merged(shape: &[usize], axes: &[usize]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::new();
    let mut stride = 1;
    for (axis, &len) in shape.iter().enumerate().rev() {
        let goes = axes.contains(&axis);
        match merged.last_mut() {
            _ if len == 1 => {}
            Some(last) if last.goes == goes => last.len *= len,
            _ => merged.push(Axis { goes, len, stride }),
        }
        stride *= len;
    }
    merged
}

/// Reduces the elements of `input` along some axes.
pub(super) fn fold(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    let mut shape = shape(input)?;
    if input.dtype() == DType::Complex64 {
        shape.push(2);
    }
    word(shapes::count(&shape))?;
    fold_at(context, op, number, &merged(&shape, axes), [(input, 0), (out, 0)])
}

/// Returns the type of the numbers in a tensor: complex ones are two floats.
fn parts_of(tensor: &DeviceTensor) -> DType {
    if tensor.dtype() == DType::Complex64 { DType::Float32 } else { tensor.dtype() }
}

/// Does the same from an element of the input, and an element of the output. If there are too many
/// axes, it enqueues a launch for each index of a kept axis.
fn fold_at(
    context: &Run<'_>,
    op: &'static str,
    number: u32,
    axes: &[Axis],
    [(input, from), (out, to)]: [(&DeviceTensor, usize); 2],
) -> Result<()> {
    let kept = axes.iter().rposition(|axis| !axis.goes).filter(|_| axes.len() > MOST_AXES + 1);
    if let Some(kept) = kept {
        let mut rest = axes.to_vec();
        let outer = rest.remove(kept);
        let step = results(&rest);
        return (0..outer.len).try_for_each(|index| {
            let places = [(input, from + index * outer.stride), (out, to + index * step)];
            fold_at(context, op, number, &rest, places)
        });
    }
    let types = [parts_of(input), parts_of(out)];
    let at = |dtype: DType, place: usize| place as u64 * dtype.size().unwrap_or_default() as u64;
    let input_at = Operand::At(input, at(types[0], from));
    let is_wide = is_float(types[0]) && input_at.is_multiple_of(at(types[0], 4));
    let division = Division::new(axes, is_wide, !is_position(number));
    ensure_turns(context, op, division.turns())?;
    let parts = division.parts();
    if parts == 1 {
        let operands = [input_at, Operand::At(out, at(types[1], to))];
        return launch(op, number, &division, types, &operands, |launch| launch.enqueue(context));
    }
    let dtype = if is_float(types[0]) { DType::Float32 } else { types[1] };
    let pieces = context.temporary(dtype, &[parts as i64, results(axes) as i64])?;
    let first = if number == MEAN { SUM } else { number };
    let operands = [input_at, (&pieces).into()];
    launch(op, first, &division, [types[0], dtype], &operands, |launch| launch.enqueue(context))?;
    // Each piece is half a sum of squares already.
    let number = if number == L2 { SUM } else { number };
    let is_wide = is_float(dtype) && Operand::from(&pieces).is_multiple_of(16);
    let mut then = Division::new(&merged(&[parts, results(axes)], &[0]), is_wide, false);
    then.count = division.count;
    let operands = [(&pieces).into(), Operand::At(out, at(types[1], to))];
    launch(op, number, &then, [dtype, types[1]], &operands, |launch| launch.enqueue(context))
}

/// Returns the number of results.
fn results(axes: &[Axis]) -> usize {
    axes.iter().filter(|axis| !axis.goes).map(|axis| axis.len).product()
}

/// How the elements are divided among threads and workgroups: the numbers of `shaders/reduce.comp`.
struct Division {
    is_row: bool,
    is_wide: bool,
    /// The kept axes, and then the others, outermost first; without the innermost one and the line.
    axes: Vec<Axis>,
    kept: usize,
    /// The elements of a result.
    count: usize,
    inner: usize,
    line: usize,
    stride: usize,
    gone: usize,
    across: usize,
    down: usize,
    line_part: usize,
    gone_part: usize,
}

/// Threads that keep a GPU busy.
const THREADS: usize = 1 << 17;

/// Workgroups that keep a GPU busy. Fewer of them compute parts, whose results are reduced again.
const BUSY: usize = 512;

/// The most loads of a thread, if the threads of a workgroup can share the elements of a result.
const MOST_LOADS: usize = 64;

/// From this many loads of a thread on, parts are worth another launch.
const WORTH_PARTS: usize = 16;

impl Division {
    /// Divides a reduction; `may_be_wide` says whether four elements can be read at once from each multiple of four on.
    fn new(axes: &[Axis], may_be_wide: bool, may_have_parts: bool) -> Self {
        let is_row = axes.first().is_none_or(|axis| axis.goes);
        let inner = axes.first().map_or(1, |axis| axis.len);
        let behind = axes.get(1..).unwrap_or_default();
        let line_at = if is_row { None } else { behind.iter().position(|axis| axis.goes) };
        let (line, stride) = match line_at.map(|at| behind[at]) {
            Some(line) => (line.len, line.stride),
            None => (if is_row { inner } else { 1 }, 1),
        };
        let rest = behind.iter().enumerate().filter(|(at, _)| Some(*at) != line_at);
        let rest: Vec<Axis> = rest.map(|(_, axis)| *axis).collect();
        let of = |goes| rest.iter().rev().filter(move |axis: &&Axis| axis.goes == goes);
        let product = |goes| of(goes).map(|axis| axis.len).product::<usize>();
        let (blocks, gone) = (product(false), product(true));
        let is_wide = may_be_wide && inner.is_multiple_of(4);
        let mut division = Self {
            is_row,
            is_wide,
            axes: of(false).chain(of(true)).copied().collect(),
            kept: of(false).count(),
            count: line * gone,
            inner,
            line,
            stride,
            gone,
            across: 1,
            down: 1,
            line_part: line.max(1),
            gone_part: gone.max(1),
        };
        division.choose_threads(blocks);
        if may_have_parts {
            division.choose_parts(blocks);
        }
        division
    }

    /// The neighbours that a thread reads at once.
    fn neighbours(&self) -> usize {
        if self.is_wide { 4 } else { 1 }
    }

    /// Returns how many loads of a thread are along the line, and how often.
    fn loads(&self) -> [usize; 2] {
        match self.is_row {
            true => [
                self.inner.div_ceil(self.across * self.neighbours()),
                self.gone.div_ceil(self.down),
            ],
            false => [self.line.div_ceil(self.down), self.gone],
        }
    }

    /// Returns the blocks of neighbouring results, each of which needs its own threads.
    fn tiles(&self) -> usize {
        if self.is_row { 1 } else { self.inner.div_ceil(self.across * self.neighbours()) }
    }

    /// Gives a result as many threads as keep the GPU busy, of which neighbours read at least 128 bytes.
    fn choose_threads(&mut self, blocks: usize) {
        let most = backend::WORKGROUP as usize;
        let columns = self.inner.div_ceil(self.neighbours()).max(1);
        self.across = columns.next_power_of_two().min(if self.is_wide { 8 } else { 32 });
        while self.across * self.down < most {
            let [along, gone] = self.loads();
            let (loads, threads) = (along * gone, blocks * self.tiles() * self.across * self.down);
            let is_enough = loads <= EACH || (threads >= THREADS && loads <= MOST_LOADS);
            match self.is_row {
                _ if is_enough => break,
                true if along > 1 => self.across *= 2,
                true if gone > 1 => self.down *= 2,
                false if along > 1 => self.down *= 2,
                _ => break,
            }
        }
        // Threads that have no block would idle.
        while !self.is_row && self.across < columns && self.across * self.down * blocks < most {
            self.across *= 2;
        }
    }

    /// Divides long sums into parts, if there are few results.
    fn choose_parts(&mut self, blocks: usize) {
        let [along, gone] = self.loads();
        let most = BUSY.div_ceil(self.groups(blocks).max(1)).min(along * gone);
        if along * gone < WORTH_PARTS || most < 2 {
            return;
        }
        let step = match self.is_row {
            true => self.across * self.neighbours(),
            false => self.down,
        };
        let line_parts = most.min(along);
        self.line_part = along.div_ceil(line_parts) * step;
        let gone_parts = (most / self.line_parts()).clamp(1, gone);
        self.gone_part = self.gone.div_ceil(gone_parts);
    }

    fn line_parts(&self) -> usize {
        self.line.div_ceil(self.line_part).max(1)
    }

    fn parts(&self) -> usize {
        self.line_parts() * self.gone.div_ceil(self.gone_part).max(1)
    }

    /// Returns the workgroups of a part.
    fn groups(&self, blocks: usize) -> usize {
        blocks.div_ceil(backend::WORKGROUP as usize / (self.across * self.down)) * self.tiles()
    }

    /// Returns the turns of the loops of `shaders/reduce.comp` for a result.
    fn turns(&self) -> usize {
        let [along, gone] = self.loads();
        let along = along.div_ceil(self.line_parts()).div_ceil(EACH);
        let gone = gone.div_ceil(self.gone.div_ceil(self.gone_part).max(1));
        gone * (along + self.axes.len() - self.kept + 1) + self.axes.len() + 16
    }
}

/// Passes the launch that reduces a tensor of this shape to `then`, and returns what that returns.
pub(super) fn with<R>(
    op: &'static str,
    number: u32,
    shape: &[usize],
    axes: &[usize],
    types: [DType; 2],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    let division = Division::new(&merged(shape, axes), is_float(types[0]), false);
    launch(op, number, &division, types, operands, then)
}

fn launch<R>(
    op: &'static str,
    number: u32,
    division: &Division,
    [input, out]: [DType; 2],
    operands: &[Operand<'_>],
    then: impl FnOnce(&Launch<'_>) -> Result<R>,
) -> Result<R> {
    let Division { is_row, is_wide, kept, count, inner, line, stride, gone, .. } = *division;
    let blocks = division.axes[..kept].iter().map(|axis| axis.len).product();
    let ranks = kept | division.axes.len() << 16;
    let mut numbers = Vec::with_capacity(12 + 2 * MOST_AXES);
    for size in [blocks, count, inner, line, stride, gone, division.line_part] {
        numbers.push(word(size)?);
    }
    for size in [division.line_parts(), division.gone_part, ranks, division.across, division.down] {
        numbers.push(word(size)?);
    }
    numbers.extend(division.axes.iter().flat_map(|axis| [axis.len as u32, axis.stride as u32]));
    let shader = variant!("reduce", input);
    let groups = division.groups(blocks).min(MOST_GROUPS) as u32;
    then(&Launch {
        op,
        shader,
        constants: &[
            number,
            element_type(input)?,
            element_type(out)?,
            is_row.into(),
            is_wide.into(),
        ],
        operands,
        numbers: &numbers,
        groups: [groups, division.parts() as u32, 1],
    })
}

pub(super) const SUM: u32 = 0;
const MEAN: u32 = 1;
pub(super) const MAX: u32 = 3;
pub(super) const MIN: u32 = 4;
pub(super) const ANY: u32 = 6;
const ARGMAX: u32 = 7;
const ARGMIN: u32 = 8;
const L2: u32 = 9;

fn is_position(number: u32) -> bool {
    number == ARGMAX || number == ARGMIN
}

/// Computes the sums of `input` along some axes.
pub(super) fn sum(
    context: &Run<'_>,
    op: &'static str,
    input: &DeviceTensor,
    axes: &[usize],
    out: &DeviceTensor,
) -> Result<()> {
    fold(context, op, SUM, input, axes, out)
}

/// Reduces the first input along the axes in the second, which is in host memory.
fn reduce(context: &Run<'_>, op: &'static str, number: u32, keep: bool) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axes = shapes::axes(&context.host_integers(1)?, shape.len())?;
    let out = output(context, 0, &shapes::reduced_shape(&shape, &axes, keep))?;
    fold(context, op, number, &input, &axes, &out)
}

/// Reads whether reduced axes stay, with the size 1.
fn keep_dims(construction: &OpKernelConstruction<'_>) -> Result<bool> {
    construction.attr("keep_dims")
}

/// Finds the position of an extreme along an axis.
fn position(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let input = context.input(0)?;
    let shape = shape(&input)?;
    let axis = shapes::axis(host_integer(context, 1)?, shape.len())?;
    if shape[axis] == 0 {
        return Err(wrong(format!("Reduction axis {axis} is empty in shape {shape:?}")));
    }
    let out = output(context, 0, &shapes::reduced_shape(&shape, &[axis], false))?;
    fold(context, op, number, &input, &[axis], &out)
}

kernels! {
    types (T = [f32, f16, bf16, f64, i64], Tidx = [i32, i64])
    "Sum" Sum [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 0, *keep);
    "Prod" Prod [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 2, *keep);
    "Max" Max [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, MAX, *keep);
    "Min" Min [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, MIN, *keep);
    types (T = [C64], Tidx = [i32, i64])
    "Sum" ComplexSum [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 0, *keep);
    types (T = [f32, f16, bf16, f64], Tidx = [i32, i64])
    "Mean" Mean [bool = keep_dims] (host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 1, *keep);
    types ()
    "All" All [bool = keep_dims] (types(Tidx = [i32, i64]), host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 5, *keep);
    "Any" Any [bool = keep_dims] (types(Tidx = [i32, i64]), host_memory("reduction_indices")) =
        |run, op, keep| reduce(run, op, 6, *keep);
    types (T = [f32, f16, bf16, f64, i64], Tidx = [i32, i64], output_type = [i32, i64])
    "ArgMax" ArgMax (host_memory("dimension")) = |run, op| position(run, op, ARGMAX);
    "ArgMin" ArgMin (host_memory("dimension")) = |run, op| position(run, op, ARGMIN);
    types (T = [f32, f16, bf16, f64])
    "L2Loss" L2Loss () = |run, op| {
        let input = run.input(0)?;
        let axes: Vec<usize> = (0..input.shape().len()).collect();
        fold(run, op, L2, &input, &axes, &output(run, 0, &[])?)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the workgroups of the first launch, and the turns of the loops of a thread.
    fn work(shape: &[usize], gone: &[usize], is_wide: bool) -> (usize, usize) {
        let axes = merged(shape, gone);
        let division = Division::new(&axes, is_wide, true);
        let blocks = division.axes[..division.kept].iter().map(|axis| axis.len).product();
        (division.groups(blocks) * division.parts(), division.turns())
    }

    /// An H100 has 132 multiprocessors.
    #[test]
    fn each_shape_of_a_model_keeps_a_large_gpu_busy() {
        for (shape, gone) in [
            // Biases and normalizations of ResNet50 and MobileNetV2, with 32 images.
            (&[32 * 112 * 112, 64][..], &[0][..]),
            (&[32 * 112 * 112, 16], &[0]),
            (&[32 * 56 * 56, 24], &[0]),
            (&[32 * 14 * 14, 1024], &[0]),
            (&[32 * 7 * 7, 160], &[0]),
            (&[32 * 7 * 7, 2048], &[0]),
            // Pooling, a normalization of rows, channels first, and everything.
            (&[32, 49, 1280], &[1]),
            (&[4096, 512], &[1]),
            (&[32, 64, 3136], &[0, 2]),
            (&[32 * 224 * 224 * 3], &[0]),
        ] {
            for is_wide in [false, true] {
                let (groups, turns) = work(shape, gone, is_wide);
                assert!(groups >= 132, "{shape:?}, {gone:?}: {groups} workgroups");
                assert!(turns <= 128, "{shape:?}, {gone:?}: {turns} turns");
            }
        }
    }

    #[test]
    fn parts_have_all_elements() {
        for (shape, gone) in [
            (&[100_003][..], &[0][..]),
            (&[100_003, 7], &[0]),
            (&[33, 3, 1001], &[0, 2]),
            (&[2, 1_000_000], &[1]),
            (&[3, 5, 7, 11], &[0, 2]),
            (&[0, 3], &[0]),
            (&[], &[]),
        ] {
            let axes = merged(shape, gone);
            let division = Division::new(&axes, false, true);
            let [lines, parts] = [division.line_parts(), division.parts()];
            assert!(lines * division.line_part >= division.line, "{shape:?}");
            assert!(parts / lines * division.gone_part >= division.gone, "{shape:?}");
            let count: usize = gone.iter().map(|&axis| shape[axis]).product();
            assert_eq!(division.count, count, "{shape:?}");
        }
    }
}

//! Rows of a dense tensor, chosen and added by a sparse one: products with a sparse matrix, and the lookups of embeddings.
//!
//! Each is a gather, a product with a weight for each row, and a scatter, whose sums are always in the same order.

use super::*;

/// Adds `weights[i] * source[from[i]]` to row `to[i]` of output 0, which has `rows` rows. Rows that are outside are zeros, or
/// change nothing.
fn add_rows(
    context: &Run<'_>,
    op: &'static str,
    [source, from, to]: [&DeviceTensor; 3],
    weights: Option<&DeviceTensor>,
    rows: usize,
) -> Result<()> {
    let dims = shape(source)?;
    let Some((&size, inner)) = dims.split_first() else {
        return Err(wrong(format!("{op} needs rows: at least a vector, and not a scalar")));
    };
    let (count, each) = (from.len(), shapes::count(inner));
    word(source.len())?;
    let out = output(context, 0, &[&[rows], inner].concat())?;
    strided_copy::fill(context, op, Operand::Value(0), &out)?;
    let chosen: Vec<i64> = [count].iter().chain(inner).map(|&size| size as i64).collect();
    let chosen = context.temporary(source.dtype(), &chosen)?;
    gather::slices(context, op, [source, from, &chosen], [1, size, count], inner)?;
    if let Some(weights) = weights {
        let axes =
            [Strides { len: count, strides: [each, 1] }, Strides { len: each, strides: [1, 0] }];
        elementwise::run(context, op, [elementwise::MUL, 0], [&chosen, weights], &chosen, &axes)?;
    }
    scatter::scatter_rows(context, op, scatter::ADD, [&out, to, &chosen])
}

/// Returns every second number of `pairs`, from the first or the second on.
fn half(
    context: &Run<'_>,
    op: &'static str,
    pairs: &DeviceTensor,
    first: usize,
) -> Result<DeviceTensor> {
    let count = pairs.len() / 2;
    let half = context.temporary(pairs.dtype(), &[count as i64])?;
    let mut walk = strided_copy::Walk::new(&[count], &[2], &[1]);
    walk.from[0] = first;
    walk.enqueue(context, op, pairs.into(), &half)?;
    Ok(half)
}

/// Whether the sparse and the dense matrix are transposed.
fn adjoint(construction: &OpKernelConstruction<'_>) -> Result<[bool; 2]> {
    Ok([construction.attr("adjoint_a")?, construction.attr("adjoint_b")?])
}

/// Multiplies a sparse matrix by a dense one.
fn matmul(context: &Run<'_>, op: &'static str, [of_a, of_b]: [bool; 2]) -> Result<()> {
    let (indices, values, mut b) = (context.input(0)?, context.input(1)?, context.input(3)?);
    let (mut a, dense) = (host_shape(context, 2)?, shape(&b)?);
    ensure!(a.len() == 2, wrong("Tensor 'a_shape' must have 2 elements"));
    ensure!(dense.len() == 2, wrong("Tensor 'b' is not a matrix"));
    ensure!(
        shape(&indices)? == [values.len(), 2] && values.shape().len() == 1,
        wrong("Tensor 'a_indices' must have a row of two numbers for each of 'a_values'")
    );
    if of_a {
        a.reverse();
    }
    if of_b {
        let turned = [dense[1], dense[0]];
        let target = context.temporary(b.dtype(), &turned.map(|size| size as i64))?;
        let walk =
            strided_copy::Walk::new(&turned, &[1, dense[1] as isize], &[dense[0] as isize, 1]);
        walk.enqueue(context, op, (&b).into(), &target)?;
        b = target;
    }
    let inner = shape(&b)?[0];
    ensure!(
        a[1] == inner,
        wrong(format!(
            "Cannot multiply A and B because inner dimension does not match: {} vs. {inner}.  Did you forget a transpose?  \
             Dimensions of A: [{}, {}).  Dimensions of B: {dense:?}",
            a[1], a[0], a[1]
        ))
    );
    let [rows, columns] = [0, 1].map(|place| half(context, op, &indices, place));
    let [to, from] = if of_a { [columns?, rows?] } else { [rows?, columns?] };
    add_rows(context, op, [&b, &from, &to], Some(&values), a[0])
}

/// What the sum of a segment is divided by: 1, how many rows it has, or the root of that.
#[derive(Clone, Copy, PartialEq)]
enum Divisor {
    One,
    Count,
    Root,
}

/// The segment of each row, which are in host memory: the ops before and behind are TensorFlow's, and run there.
struct Segments(Vec<i64>);

impl Segments {
    /// Reads input `index`, for as many rows as `indices` has.
    fn of(context: &Run<'_>, index: usize, indices: &DeviceTensor) -> Result<Self> {
        let ids = context.host_integers(index)?;
        ensure!(indices.shape().len() == 1, wrong("indices should be a vector."));
        ensure!(
            ids.len() == indices.len(),
            wrong("segment_ids and indices should have same size.")
        );
        ensure!(ids.first().is_none_or(|&first| first >= 0), wrong("segment ids must be >= 0"));
        ensure!(ids.is_sorted(), wrong("segment ids are not increasing"));
        Ok(Self(ids))
    }

    /// Returns them in the memory of the device.
    fn on_device(&self, context: &Run<'_>, op: &'static str) -> Result<DeviceTensor> {
        let target = context.temporary(DType::Int64, &[self.0.len() as i64])?;
        let bytes = self.0.iter().flat_map(|id| id.to_ne_bytes()).collect();
        context.stream().write(op, &target, bytes)?;
        Ok(target)
    }

    /// Returns what each row is multiplied by; `None` for 1.
    fn weights(
        &self,
        context: &Run<'_>,
        op: &'static str,
        divisor: Divisor,
    ) -> Result<Option<DeviceTensor>> {
        if divisor == Divisor::One {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(4 * self.0.len());
        for segment in self.0.chunk_by(|a, b| a == b) {
            let count = segment.len() as f32;
            let weight = 1.0 / if divisor == Divisor::Root { count.sqrt() } else { count };
            (0..segment.len()).for_each(|_| bytes.extend(weight.to_ne_bytes()));
        }
        let target = context.temporary(DType::Float32, &[self.0.len() as i64])?;
        context.stream().write(op, &target, bytes)?;
        Ok(Some(target))
    }
}

/// Adds rows that indices choose, for each segment.
fn segments(
    context: &Run<'_>,
    op: &'static str,
    divisor: Divisor,
    count: Option<usize>,
) -> Result<()> {
    let (data, indices) = (context.input(0)?, context.input(1)?);
    let segments = Segments::of(context, 2, &indices)?;
    let least = segments.0.last().map_or(0, |&last| last as usize + 1);
    let rows = match count {
        Some(input) => host_shape(context, input).map(|count| shapes::count(&count))?,
        None => least,
    };
    ensure!(rows >= least, wrong("segment ids must be < num_segments"));
    let (to, weights) = (segments.on_device(context, op)?, segments.weights(context, op, divisor)?);
    add_rows(context, op, [&data, &indices, &to], weights.as_ref(), rows)
}

/// The gradient of that: each row of the data gets those of its segments.
fn gradient(context: &Run<'_>, op: &'static str, divisor: Divisor) -> Result<()> {
    let (gradient, indices) = (context.input(0)?, context.input(1)?);
    let segments = Segments::of(context, 2, &indices)?;
    let rows = from_host(&[host_integer(context, 3)?])?[0];
    let (from, weights) =
        (segments.on_device(context, op)?, segments.weights(context, op, divisor)?);
    add_rows(context, op, [&gradient, &from, &indices], weights.as_ref(), rows)
}

kernels! {
    types (T = [f32], Tindices = [i32, i64])
    "SparseTensorDenseMatMul" SparseMatMul [[bool; 2] = adjoint] (host_memory("a_shape")) =
        |run, op, adjoint| matmul(run, op, *adjoint);
    types (T = [f32], Tidx = [i32, i64], Tsegmentids = [i32, i64])
    "SparseSegmentSum" SegmentRows (host_memory("segment_ids")) = |run, op| segments(run, op, Divisor::One, None);
    "SparseSegmentMean" SegmentMeans (host_memory("segment_ids")) = |run, op| segments(run, op, Divisor::Count, None);
    "SparseSegmentSqrtN" SegmentRoots (host_memory("segment_ids")) = |run, op| segments(run, op, Divisor::Root, None);
    "SparseSegmentSumGrad" SegmentRowsSlope (host_memory("segment_ids", "output_dim0")) =
        |run, op| gradient(run, op, Divisor::One);
    "SparseSegmentMeanGrad" SegmentMeansSlope (host_memory("segment_ids", "output_dim0")) =
        |run, op| gradient(run, op, Divisor::Count);
    "SparseSegmentSqrtNGrad" SegmentRootsSlope (host_memory("segment_ids", "output_dim0")) =
        |run, op| gradient(run, op, Divisor::Root);
    types (T = [f32], Tidx = [i32, i64], Tnumsegments = [i32, i64], Tsegmentids = [i32, i64])
    "SparseSegmentSumWithNumSegments" CountedRows (host_memory("segment_ids", "num_segments")) =
        |run, op| segments(run, op, Divisor::One, Some(3));
    "SparseSegmentMeanWithNumSegments" CountedMeans (host_memory("segment_ids", "num_segments")) =
        |run, op| segments(run, op, Divisor::Count, Some(3));
    "SparseSegmentSqrtNWithNumSegments" CountedRoots (host_memory("segment_ids", "num_segments")) =
        |run, op| segments(run, op, Divisor::Root, Some(3));
}

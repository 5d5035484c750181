//! Attention and its gradients, which [`Fusion`](crate::fusion::Fusion) finds in a graph: `shaders/attention.comp`.
//!
//! `softmax(query · key * scale + bias)`, with `masked` in place of scores whose mask is false, times the value. Scores are never in memory. Attention
//! that is causal has a mask that hides later lines from each, and may have another one.

use super::moments::unfit;
use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;

/// From query, key and value to the result, and to the largest score of each row and the reciprocal of its softmax's sum.
pub(crate) const ATTENTION: &str = "RustGpuAttention";

/// The gradients of query, key and value.
pub(crate) const GRADIENT: &str = "RustGpuAttentionGrad";

struct AttentionOp;

impl OpDefinition for AttentionOp {
    const NAME: &'static str = ATTENTION;

    fn define(op: &mut OpDefinitionBuilder) {
        define(op).output("out: T").output("statistics: float");
    }
}
register_op!(AttentionOp);

struct GradientOp;

impl OpDefinition for GradientOp {
    const NAME: &'static str = GRADIENT;

    fn define(op: &mut OpDefinitionBuilder) {
        define(op)
            .input("out: T")
            .input("statistics: float")
            .input("out_backprop: T")
            .output("query_backprop: T")
            .output("key_backprop: T")
            .output("value_backprop: T");
    }
}
register_op!(GradientOp);

/// Defines the attributes and inputs that both have.
fn define(op: &mut OpDefinitionBuilder) -> &mut OpDefinitionBuilder {
    op.attribute("T: {half, bfloat16, float}")
        // Of what is added to scores.
        .attribute("B: {half, bfloat16, float}")
        // Whether there is a mask, and something is added: 0 or 1.
        .attribute("M: int >= 0")
        .attribute("N: int >= 0")
        // 0 is for the reciprocal root of the elements of a line.
        .attribute("scale: float")
        .attribute("causal: bool")
        .attribute("masked: float")
        // Whether tensors are [batch, head, line, element], or else [batch, line, head, element].
        .attribute("heads_first: bool")
        .input("query: T")
        .input("key: T")
        .input("value: T")
        .input("mask: M * bool")
        .input("bias: N * B")
}

kernels! {
    types (T = [f32, f16, bf16])
    "RustGpuAttention" AttentionKernel [Attributes = Attributes::new] () =
        |run, op, attributes| attributes.attention(run, op);
    "RustGpuAttentionGrad" AttentionGradient [Attributes = Attributes::new] () =
        |run, op, attributes| attributes.gradient(run, op);
}

/// What the shader computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Attention,
    OfQuery,
    OfKeyAndValue,
}

struct Attributes {
    has_mask: bool,
    has_bias: bool,
    is_causal: bool,
    scale: f32,
    masked: f32,
    heads_first: bool,
}

/// The sizes of the tensors.
#[derive(Clone, Copy)]
struct Sizes {
    batches: usize,
    heads: usize,
    /// The lines of the query, and those of key and value.
    rows: usize,
    columns: usize,
    /// The elements of a line of query and key, and those of a value.
    depth: usize,
    width: usize,
}

/// Bits beside those of axes: that there is a tensor, and that a row sees no later columns.
const HAS: u32 = 16;
const CAUSAL: u32 = 32;

/// A tensor that is broadcast to all scores.
struct Broadcasted {
    tensor: DeviceTensor,
    /// A bit for each axis that it has: `place` in the shader.
    axes: u32,
}

impl Attributes {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let flag = |name: &str| match construction.attr::<i64>(name)? {
            0 => Ok(false),
            1 => Ok(true),
            more => Err(wrong(format!("{name} is {more} and not 0 or 1"))),
        };
        Ok(Self {
            has_mask: flag("M")?,
            has_bias: flag("N")?,
            is_causal: construction.attr("causal")?,
            scale: construction.attr("scale")?,
            masked: construction.attr("masked")?,
            heads_first: construction.attr("heads_first")?,
        })
    }

    /// Returns the batches, heads, lines and elements of a tensor.
    fn axes(&self, tensor: &DeviceTensor) -> Result<[usize; 4]> {
        let shape = shape(tensor)?;
        let [batches, first, second, elements] = four(&shape, "query, key and value")?;
        Ok(match self.heads_first {
            true => [batches, first, second, elements],
            false => [batches, second, first, elements],
        })
    }

    /// Returns the shape of a tensor with so many lines and elements.
    fn shape(&self, sizes: Sizes, lines: usize, elements: usize) -> [usize; 4] {
        let Sizes { batches, heads, .. } = sizes;
        match self.heads_first {
            true => [batches, heads, lines, elements],
            false => [batches, lines, heads, elements],
        }
    }

    fn sizes(&self, op: &str, [query, key, value]: [&DeviceTensor; 3]) -> Result<Sizes> {
        let [batches, heads, rows, depth] = self.axes(query)?;
        let [_, _, columns, _] = self.axes(key)?;
        let [_, _, _, width] = self.axes(value)?;
        let fits = self.axes(key)? == [batches, heads, columns, depth]
            && self.axes(value)? == [batches, heads, columns, width];
        ensure!(fits, unfit(op, &[("query", query), ("key", key), ("value", value)], "each other"));
        Ok(Sizes { batches, heads, rows, columns, depth, width })
    }

    /// Returns an input that is broadcast to all scores, or the tensor that stands in for it.
    fn broadcasted(
        &self,
        context: &Run<'_>,
        op: &str,
        input: Option<usize>,
        sizes: Sizes,
        otherwise: &DeviceTensor,
    ) -> Result<Broadcasted> {
        let Some(input) = input else {
            return Ok(Broadcasted { tensor: otherwise.clone(), axes: 0 });
        };
        let tensor = context.input(input)?;
        let scores = [sizes.batches, sizes.heads, sizes.rows, sizes.columns];
        let shape = shape(&tensor)?;
        let own = scores.len().checked_sub(shape.len());
        let fits = own.is_some_and(|own| {
            shape.iter().zip(&scores[own..]).all(|(size, whole)| size == whole || *size == 1)
        });
        ensure!(fits, unfit(op, &[("mask", &tensor)], format!("scores of {scores:?}")));
        let own = own.unwrap_or_default();
        let axes = shape.iter().enumerate().filter(|&(_, &size)| size != 1);
        let axes = axes.fold(HAS, |axes, (at, _)| axes | 1 << (own + at));
        Ok(Broadcasted { tensor, axes })
    }

    /// Returns the indices of mask and bias, and that of the first input behind them.
    fn places(&self) -> (Option<usize>, Option<usize>, usize) {
        let behind_mask = 3 + usize::from(self.has_mask);
        let mask = self.has_mask.then_some(3);
        (mask, self.has_bias.then_some(behind_mask), behind_mask + usize::from(self.has_bias))
    }

    fn attention(&self, context: &Run<'_>, op: &'static str) -> Result<()> {
        let [query, key, value] = [0, 1, 2].map(|at| context.input(at));
        let (query, key, value) = (query?, key?, value?);
        let sizes = self.sizes(op, [&query, &key, &value])?;
        let (mask, bias, _) = self.places();
        let mask = self.broadcasted(context, op, mask, sizes, &query)?;
        let bias = self.broadcasted(context, op, bias, sizes, &query)?;
        let out = output(context, 0, &self.shape(sizes, sizes.rows, sizes.width))?;
        let statistics = output(context, 1, &[2, sizes.batches, sizes.heads, sizes.rows])?;
        let tensors = [&query, &key, &value, &out, &statistics, &query, &query, &query, &query];
        self.enqueue(context, op, Step::Attention, sizes, [&mask, &bias], tensors)
    }

    fn gradient(&self, context: &Run<'_>, op: &'static str) -> Result<()> {
        let (mask, bias, behind) = self.places();
        let [query, key, value] = [0, 1, 2].map(|at| context.input(at));
        let (query, key, value) = (query?, key?, value?);
        let [out, statistics, dout] = [0, 1, 2].map(|at| context.input(behind + at));
        let (out, statistics, dout) = (out?, statistics?, dout?);
        let sizes = self.sizes(op, [&query, &key, &value])?;
        let results = self.shape(sizes, sizes.rows, sizes.width);
        let lines = sizes.batches * sizes.heads * sizes.rows;
        ensure!(
            shape(&out)?[..] == results
                && shape(&dout)?[..] == results
                && statistics.len() == 2 * lines,
            unfit(
                op,
                &[("out", &out), ("statistics", &statistics), ("out_backprop", &dout)],
                format!("{results:?}")
            )
        );
        let mask = self.broadcasted(context, op, mask, sizes, &query)?;
        let bias = self.broadcasted(context, op, bias, sizes, &query)?;
        let [dquery, dkey, dvalue] = [(0, &query), (1, &key), (2, &value)]
            .map(|(at, like)| context.output(at, like.shape()));
        let (dquery, dkey, dvalue) = (dquery?, dkey?, dvalue?);
        let slopes = context.temporary(DType::Float32, &[lines as i64])?;
        let both = [&mask, &bias];
        let tensors = [&query, &key, &value, &out, &statistics, &dout, &slopes, &dquery, &dquery];
        self.enqueue(context, op, Step::OfQuery, sizes, both, tensors)?;
        let tensors = [&query, &key, &value, &out, &statistics, &dout, &slopes, &dkey, &dvalue];
        self.enqueue(context, op, Step::OfKeyAndValue, sizes, both, tensors)
    }

    /// Enqueues the shader. `tensors` are its operands in their order, without mask and bias.
    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        step: Step,
        sizes: Sizes,
        [mask, bias]: [&Broadcasted; 2],
        tensors: [&DeviceTensor; 9],
    ) -> Result<()> {
        let Sizes { batches, heads, rows, columns, depth, width } = sizes;
        let [query, key, value, others @ ..] = tensors;
        let all = [query, key, value, &mask.tensor, &bias.tensor].into_iter().chain(others);
        let operands: Vec<_> = all.map(Operand::from).collect();
        for tensor in tensors.into_iter().chain([&mask.tensor, &bias.tensor]) {
            word(tensor.len())?;
        }
        let (lines, others, elements) = match step {
            Step::Attention => (rows, columns, width),
            Step::OfQuery => (rows, columns, depth),
            Step::OfKeyAndValue => (columns, rows, depth.max(width)),
        };
        let scale = if self.scale == 0.0 { 1.0 / (depth as f32).sqrt() } else { self.scale };
        let is_wide = [depth, width].iter().all(|size| size.is_multiple_of(4))
            && tensors.iter().all(|&tensor| Operand::from(tensor).is_multiple_of(16));
        let each = elements.div_ceil(16).next_power_of_two().min(8);
        let tiles = Tiles::new(lines, batches * heads * elements.div_ceil(16 * each));
        let items =
            batches * heads * lines.div_ceil(16 * tiles.lines) * elements.div_ceil(16 * each);
        let groups = word(items)?.min(MOST_GROUPS as u32);
        let a_tile = 9 * depth.div_ceil(16) + 9 * width.div_ceil(16) + 90;
        let a_group = items.div_ceil(MOST_GROUPS) * (others.div_ceil(32) * a_tile + width + 32);
        ensure_turns(context, op, a_group)?;
        Launch {
            op,
            shader: shader!("attention"),
            constants: &[
                step as u32,
                element_type(query.dtype())?,
                is_wide.into(),
                tiles.lines as u32,
                each as u32,
                self.heads_first.into(),
                mask.axes | if self.is_causal { CAUSAL } else { 0 },
                bias.axes,
                if bias.axes == 0 { 0 } else { element_type(bias.tensor.dtype())? },
            ],
            operands: &operands,
            numbers: &[
                batches as u32,
                heads as u32,
                rows as u32,
                columns as u32,
                depth as u32,
                width as u32,
                scale.to_bits(),
                self.masked.to_bits(),
            ],
            groups: [groups, 1, 1],
        }
        .enqueue(context)
    }
}

/// The rows that a workgroup computes.
struct Tiles {
    /// Their number, divided by 16.
    lines: usize,
}

/// The number of workgroups that keeps a large GPU busy.
const BUSY: usize = 256;

impl Tiles {
    /// Chooses the largest that are not mostly empty, with work for the whole GPU.
    fn new(lines: usize, count: usize) -> Self {
        let is_good = |each: &usize| {
            lines > 8 * each && lines.div_ceil(16 * each).saturating_mul(count) >= BUSY
        };
        Self { lines: [4, 2].into_iter().find(is_good).unwrap_or(1) }
    }
}

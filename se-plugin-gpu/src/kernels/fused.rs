//! Consecutive elementwise ops in one launch, as [`Fusion`](crate::fusion::Fusion) fuses them.

use super::data_format::Layout;
use super::elementwise::{self, ADD, CAST, FUSIBLE, LOGICAL, PREDICATES, is_long};
use super::*;
use crate::launch::is_short;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;
use se_plugin::toolkit::shape::to_host;

/// The limits of one launch, as in `shaders/fused.comp`.
pub(crate) const MOST_INPUTS: usize = 6;
pub(crate) const MOST_STEPS: usize = 8;
pub(super) const PUSH_WORDS: usize = PUSH_BYTES / 4;

/// The op.
pub(crate) const OP: &str = "RustGpuElementwise";

struct Definition;

impl OpDefinition for Definition {
    const NAME: &'static str = OP;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute(
            "Tinputs: list({half, bfloat16, float, bool, int8, uint8, int32, int64}) >= 1",
        )
        .attribute("T: {half, bfloat16, float, bool}")
        .attribute("steps: list(int) >= 1")
        .attribute("alphas: list(float) >= 1")
        .input("inputs: Tinputs")
        .output("output: T");
    }
}
register_op!(Definition);

/// The numbers of ops that are not in `shaders/elementwise.glsl`: a choice by the first operand, and sums with checks of shapes.
pub(crate) const SELECT: u32 = 91;
pub(crate) const BIAS_ADD: u32 = 92;
pub(crate) const ADD_N: u32 = 93;

/// An op of `shaders/elementwise.glsl` or of those above, the type that its result is rounded to, and the places of its
/// operands: from 0 the inputs, from [`MOST_INPUTS`] the steps before it. An op of fewer operands repeats its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) op: u32,
    pub(crate) dtype: DType,
    pub(crate) operands: [usize; 3],
}

/// The types of steps.
const TYPES: [DType; 4] = [DType::Float32, DType::Float16, DType::Bfloat16, DType::Bool];

impl Step {
    /// Encodes the step for the attribute and the shader.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a type that shaders do not have.
    pub(crate) fn to_attribute(self) -> Result<u32> {
        let [a, b, c] = self.operands.map(|operand| operand as u32);
        Ok(self.op | element_type(self.dtype)? << 8 | a << 12 | b << 16 | c << 20)
    }

    /// Decodes a step. Fails with `INVALID_ARGUMENT` for a value that is not a step.
    fn of_attribute(value: i64) -> Result<Self> {
        let bits = |at: u32, count: u32| (value >> at & ((1 << count) - 1)) as u32;
        let dtype = TYPES.into_iter().find(|&dtype| element_type(dtype).ok() == Some(bits(8, 4)));
        let operands = [12, 16, 20].map(|at| bits(at, 4) as usize);
        let step = dtype.map(|dtype| Self { op: bits(0, 8), dtype, operands });
        let is_step = |step: &Self| {
            let mut elementwise = [FUSIBLE, PREDICATES, LOGICAL].into_iter().flatten();
            ([CAST, SELECT, BIAS_ADD, ADD_N].contains(&step.op)
                || elementwise.any(|&(_, number, _)| number == step.op))
                && step.to_attribute().map(i64::from).ok() == Some(value)
        };
        step.filter(is_step).ok_or_else(|| wrong(format!("{value} is not a step of {OP}")))
    }

    /// Returns the number of its op in the shaders.
    fn number(&self) -> u32 {
        match self.op {
            BIAS_ADD | ADD_N => ADD,
            op => op,
        }
    }
}

kernels! {
    types (T = [f32, f16, bf16, bool])
    "RustGpuElementwise" Elementwise [Fused = Fused::new] () = |run, _, fused| {
        let inputs: Vec<_> = (0..run.input_count()).collect();
        fused.compute(run, OP, &inputs, 0)
    };
}

/// The attributes of a node.
pub(super) struct Fused {
    /// Those of the inputs.
    pub(super) types: Vec<DType>,
    pub(super) steps: Vec<Step>,
    alphas: Vec<f32>,
}

impl Fused {
    pub(super) fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let steps = construction.attr::<Vec<i64>>("steps")?;
        let steps = steps.into_iter().map(Step::of_attribute).collect::<Result<Vec<_>>>()?;
        let types = construction.attr::<Vec<DType>>("Tinputs")?;
        let fused = Self { types, steps, alphas: construction.attr("alphas")? };
        fused.check(construction.attr("T")?)?;
        Ok(fused)
    }

    /// Computes an output of an op from these inputs.
    pub(super) fn compute(
        &self,
        context: &Run<'_>,
        op: &'static str,
        inputs: &[usize],
        output: usize,
    ) -> Result<()> {
        // The inputs are not held here, which would count as uses.
        let shapes = inputs.iter().map(|&at| shape(&context.input(at)?));
        let shapes = shapes.collect::<Result<Vec<_>>>()?;
        self.check_shapes(&shapes)?;
        let mut all: [&[usize]; MOST_INPUTS] = [&[]; MOST_INPUTS];
        for (place, shape) in all.iter_mut().zip(&shapes) {
            *place = shape;
        }
        let broadcast = Broadcast::new(all)?;
        // An input that is read once can be overwritten: each element is read before its result is written.
        let dtype = context.output_dtype(output)?;
        let fits = |at: &usize| shapes[*at] == broadcast.shape() && self.types[*at] == dtype;
        let whole: Vec<_> = (0..shapes.len()).filter(fits).map(|at| inputs[at]).collect();
        let (out, forwarded) =
            context.forward_or_output(&whole, output, &to_host(broadcast.shape()))?;
        let input =
            |&at: &usize| if forwarded == Some(at) { Ok(out.clone()) } else { context.input(at) };
        let inputs = inputs.iter().map(input).collect::<Result<Vec<_>>>()?;
        let axes = broadcast.axes();
        let words = 2 * (inputs.len() + 1) + 1 + axes.len() * (inputs.len() + 1);
        match words <= PUSH_WORDS {
            true => self.at_once(context, op, &inputs, &out, axes),
            false => self.one_by_one(context, op, &inputs, &out),
        }
    }

    /// Checks that the parts of a node fit together; fails with `INVALID_ARGUMENT` for, say, an input that no step uses.
    fn check(&self, output: DType) -> Result<()> {
        let Self { types, steps, alphas } = self;
        let is_there = |at: usize, operand: usize| match operand.checked_sub(MOST_INPUTS) {
            None => operand < types.len(),
            Some(step) => step < at,
        };
        let is_used = |place: usize| steps.iter().any(|step| step.operands.contains(&place));
        let results = (1..steps.len()).map(|step| MOST_INPUTS + step - 1);
        let mut all = steps.iter().enumerate();
        ensure!(
            types.len() <= MOST_INPUTS
                && steps.len() <= MOST_STEPS
                && alphas.len() == steps.len()
                && steps.last().is_some_and(|last| last.dtype == output)
                && all.all(|(at, step)| step.operands.iter().all(|&operand| is_there(at, operand)))
                && (0..types.len()).chain(results).all(is_used),
            wrong(format!(
                "{OP} has inputs of {types:?}, {} alphas, an output of {output} and the steps {steps:?}",
                alphas.len()
            ))
        );
        Ok(())
    }

    /// Checks the shapes of the ops that do not broadcast all shapes.
    pub(super) fn check_shapes(&self, inputs: &[Shape]) -> Result<()> {
        if !self.steps.iter().any(|step| matches!(step.op, BIAS_ADD | ADD_N)) {
            return Ok(());
        }
        let mut results: Vec<Shape> = Vec::new();
        for step in &self.steps {
            let [a, b, c] = step.operands.map(|place| match place.checked_sub(MOST_INPUTS) {
                None => &inputs[place],
                Some(step) => &results[step],
            });
            match step.op {
                BIAS_ADD => _ = bias::check(Layout::Last, a, b)?,
                ADD_N => add_n::check("AddN", a, b)?,
                _ => {}
            }
            let result = shapes::broadcast_shape(&shapes::broadcast_shape(a, b)?, c)?;
            results.push(result);
        }
        Ok(())
    }

    /// Computes all steps for each element in one launch.
    fn at_once(
        &self,
        context: &Run<'_>,
        op: &'static str,
        inputs: &[DeviceTensor],
        out: &DeviceTensor,
        axes: &[Strides<MOST_INPUTS>],
    ) -> Result<()> {
        let operands: Vec<Operand<'_>> = inputs.iter().chain([out]).map(Operand::from).collect();
        let is_wide =
            self.can_be_wide(out.dtype()) && elementwise::is_wide(out.len(), axes, &operands);
        let mut numbers = vec![word(out.len())?];
        for axis in axes {
            numbers.push(axis.len as u32);
            numbers.extend(axis.strides[..inputs.len()].iter().map(|&stride| stride as u32));
        }
        Launch {
            op,
            shader: match self.shader() {
                (2, false) => shader!("fused.2"),
                (4, false) => shader!("fused.4"),
                (_, false) => shader!("fused.8"),
                (2, true) => shader!("fused.long.2"),
                (4, true) => shader!("fused.long.4"),
                (_, true) => shader!("fused.long.8"),
            },
            constants: &self.constants(out.dtype(), axes.len() as u32, is_wide)?,
            operands: &operands,
            numbers: &numbers,
            groups: groups(if is_wide { out.len() / 4 } else { out.len() }),
        }
        .enqueue(context)
    }

    /// Returns whether shaders read four neighbours of each input at once, for an output of this type.
    pub(super) fn can_be_wide(&self, output: DType) -> bool {
        self.types.iter().chain([&output]).all(|dtype| TYPES.contains(dtype))
    }

    /// Returns the constants of `shaders/steps.glsl`. The third one is that of the shader that includes it.
    pub(super) fn constants(
        &self,
        output: DType,
        third: u32,
        is_wide: bool,
    ) -> Result<[u32; 5 + 2 * MOST_STEPS]> {
        let mut constants = [0; 5 + 2 * MOST_STEPS];
        let mut types = element_type(output)? << 24;
        for (at, &dtype) in self.types.iter().enumerate() {
            types |= element_type(dtype)? << (4 * at);
        }
        let numbers = [types, self.types.len() as u32, third, self.steps.len() as u32];
        constants[..4].copy_from_slice(&numbers);
        constants[4 + 2 * MOST_STEPS] = is_wide.into();
        let (steps, alphas) = constants[4..].split_at_mut(MOST_STEPS);
        for (place, step) in steps.iter_mut().zip(&self.steps) {
            *place = Step { op: step.number(), ..*step }.to_attribute()?;
        }
        for (place, alpha) in alphas.iter_mut().zip(&self.alphas) {
            *place = alpha.to_bits();
        }
        Ok(constants)
    }

    /// Returns the variant of a shader that a driver compiles in the least time: for how many steps, and whether it has the long
    /// ops.
    pub(super) fn shader(&self) -> (usize, bool) {
        let most = match self.steps.len() {
            0..=2 => 2,
            3..=4 => 4,
            _ => MOST_STEPS,
        };
        (most, self.steps.iter().any(|step| is_long(step.op)))
    }

    /// Enqueues a launch for each step, since there are more axes than can be pushed.
    fn one_by_one(
        &self,
        context: &Run<'_>,
        op: &'static str,
        inputs: &[DeviceTensor],
        out: &DeviceTensor,
    ) -> Result<()> {
        let mut results: Vec<DeviceTensor> = Vec::new();
        for (at, (step, alpha)) in self.steps.iter().zip(&self.alphas).enumerate() {
            let operand = |place: usize| match place.checked_sub(MOST_INPUTS) {
                None => &inputs[place],
                Some(step) => &results[step],
            };
            let operands = step.operands.map(operand);
            let [a, b, c] = match step.op {
                CAST => operands.map(Clone::clone),
                _ => alike(context, op, step, operands)?,
            };
            let [a, b, c] = [&a, &b, &c];
            let broadcast = Broadcast::new([&shape(a)?, &shape(b)?, &shape(c)?])?;
            let result = match at + 1 == self.steps.len() {
                true => out.clone(),
                false => context.temporary(step.dtype, &to_host(broadcast.shape()))?,
            };
            if step.op == SELECT {
                select::run(context, op, [a, b, c], &result, broadcast.axes())?;
            } else {
                let broadcast = Broadcast::new([&shape(a)?, &shape(b)?])?;
                let number = [step.number(), alpha.to_bits()];
                elementwise::run(context, op, number, [a, b], &result, broadcast.axes())?;
            }
            results.push(result);
        }
        Ok(())
    }
}

/// Returns the operands of a step, those of 16 bits converted to float32 where another one, or the step, has another type: trees have no
/// step for that, since their shader has all as float32.
fn alike(
    context: &Run<'_>,
    op: &'static str,
    step: &Step,
    operands: [&DeviceTensor; 3],
) -> Result<[DeviceTensor; 3]> {
    let types = operands.map(|operand| operand.dtype());
    let mut short = types.into_iter().filter(|&dtype| is_short(dtype));
    let first = short.next();
    let is_mixed = [&types[..], &[step.dtype]].concat().contains(&DType::Float32)
        || short.any(|dtype| Some(dtype) != first);
    let mut alike = operands.map(Clone::clone);
    for at in 0..alike.len() {
        let first = step.operands.iter().position(|place| *place == step.operands[at]);
        let operand = operands[at];
        if let Some(first) = first.filter(|first| *first < at) {
            alike[at] = alike[first].clone();
        } else if is_mixed && is_short(operand.dtype()) {
            let wide = context.temporary(DType::Float32, operand.shape())?;
            let shape = shape(operand)?;
            let broadcast = Broadcast::new([&shape, &shape])?;
            elementwise::run(context, op, [CAST, 0], [operand; 2], &wide, broadcast.axes())?;
            alike[at] = wide;
        }
    }
    Ok(alike)
}

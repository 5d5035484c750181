//! The same elementwise ops for several outputs in one launch: `shaders/multi_tensor.comp`. [`Fusion`](crate::fusion::Fusion) writes
//! them for the changes of variables by an optimizer.

use super::fused::{Fused, MOST_INPUTS, PUSH_WORDS};
use super::*;
use se_plugin::kernel::{OpDefinition, OpDefinitionBuilder};
use se_plugin::register_op;
use se_plugin::toolkit::shape::to_host;
use std::collections::BTreeMap;

/// The op. Its inputs are those that all outputs share, and then those of each output, in the order of `Tinputs`.
pub(crate) const OP: &str = "RustGpuMultiTensor";

/// Returns for how many outputs a launch has room, by the number of inputs that they share and that each has of its own.
pub(crate) const fn most_outputs(shared: usize, own: usize) -> usize {
    // Addresses are two words, and each output has a size.
    (PUSH_WORDS - 2 * shared) / (2 * (own + 1) + 1)
}

struct Definition;

impl OpDefinition for Definition {
    const NAME: &'static str = OP;

    fn define(op: &mut OpDefinitionBuilder) {
        op.attribute("N: int >= 1")
            .attribute(
                "Targuments: list({half, bfloat16, float, bool, int8, uint8, int32, int64}) >= 1",
            )
            .attribute(
                "Tinputs: list({half, bfloat16, float, bool, int8, uint8, int32, int64}) >= 1",
            )
            .attribute("shared: list(bool) >= 1")
            .attribute("T: {half, bfloat16, float}")
            .attribute("steps: list(int) >= 1")
            .attribute("alphas: list(float) >= 1")
            .input("arguments: Targuments")
            .output("outputs: N * T");
    }
}
register_op!(Definition);

kernels! {
    types (T = [f32, f16, bf16])
    "RustGpuMultiTensor" MultiTensor [Group = Group::new] () = |run, _, group| group.compute(run);
}

/// The attributes of a node.
struct Group {
    fused: Fused,
    /// Whether all outputs share an input.
    shared: Vec<bool>,
}

/// What outputs of one launch have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    /// A bit for each input that is one element.
    ones: u32,
    /// Whether four neighbours are computed at once.
    is_wide: bool,
}

/// An output and its own inputs.
struct Member {
    own: Vec<DeviceTensor>,
    out: DeviceTensor,
}

impl Group {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let group = Self { fused: Fused::new(construction)?, shared: construction.attr("shared")? };
        let count = usize::try_from(construction.attr::<i64>("N")?).unwrap_or_default();
        let (shared, own) = group.counts();
        let arguments = construction.attr::<Vec<DType>>("Targuments")?;
        let of = |is_shared: bool| {
            let all = group.fused.types.iter().zip(&group.shared);
            all.filter(move |(_, shared)| **shared == is_shared).map(|(dtype, _)| *dtype)
        };
        let expected = of(true).chain((0..count).flat_map(|_| of(false)));
        ensure!(
            shared + own == group.fused.types.len()
                && own > 0
                && arguments.iter().copied().eq(expected),
            wrong(format!("{OP} has arguments of {arguments:?} for {count} outputs"))
        );
        Ok(group)
    }

    /// Returns how many inputs all outputs share, and how many each has of its own.
    fn counts(&self) -> (usize, usize) {
        let shared = self.shared.iter().filter(|shared| **shared).count();
        (shared, self.shared.len() - shared)
    }

    /// Returns the arguments that are the inputs of an output.
    fn arguments(&self, output: usize) -> Vec<usize> {
        let (count, own) = self.counts();
        let (mut shared, mut of_output) = (0.., count + output * own..);
        let place = |is_shared: &bool| if *is_shared { shared.next() } else { of_output.next() };
        self.shared.iter().filter_map(place).collect()
    }

    fn compute(&self, context: &Run<'_>) -> Result<()> {
        let (count, own) = self.counts();
        // Held, so that no output is in the memory of one.
        let shared = (0..count).map(|at| context.input(at)).collect::<Result<Vec<_>>>()?;
        let dtype = context.output_dtype(0)?;
        // The outputs that one launch can compute.
        let mut alike: BTreeMap<Form, Vec<Member>> = BTreeMap::new();
        for output in 0..context.output_count() {
            let arguments = self.arguments(output);
            // The arguments are not held here, which would count as uses.
            let shapes = arguments.iter().map(|&at| shape(&context.input(at)?));
            let shapes = shapes.collect::<Result<Vec<_>>>()?;
            let whole = shapes.iter().max_by_key(|shape| (shapes::count(shape), shape.len()));
            let Some(whole) = whole else { continue };
            let is_one = |shape: &Shape| shape != whole && shapes::count(shape) == 1;
            // More axes would be those of the output, too.
            let fits = |(shape, &is_shared): (&Shape, &bool)| {
                let can_be_one = shapes::count(shape) == 1 && shape.len() <= whole.len();
                (shape == whole && !is_shared) || can_be_one
            };
            if !shapes.iter().zip(&self.shared).all(fits) {
                self.fused.compute(context, OP, &arguments, output)?;
                continue;
            }
            self.fused.check_shapes(&shapes)?;
            let mut candidates = Vec::new();
            for (&at, (shape, is_shared)) in arguments.iter().zip(shapes.iter().zip(&self.shared)) {
                if shape == whole && !is_shared && context.input_dtype(at)? == dtype {
                    candidates.push(at);
                }
            }
            let (out, forwarded) =
                context.forward_or_output(&candidates, output, &to_host(whole))?;
            let argument =
                |at| if forwarded == Some(at) { Ok(out.clone()) } else { context.input(at) };
            let of_output = count + output * own..count + (output + 1) * own;
            let member = Member { own: of_output.map(argument).collect::<Result<_>>()?, out };
            let ones = shapes.iter().zip(&self.shared).enumerate();
            let ones = ones.map(|(at, (shape, shared))| u32::from(*shared || is_one(shape)) << at);
            let mut form = Form { ones: ones.sum(), is_wide: false };
            form.is_wide = self.fused.can_be_wide(dtype) && self.is_aligned(&member, form.ones);
            alike.entry(form).or_default().push(member);
        }
        for (form, members) in alike {
            for members in members.chunks(most_outputs(count, own)) {
                self.launch(context, &shared, members, form)?;
            }
        }
        Ok(())
    }

    /// Returns whether four neighbours of each tensor of an output can be read at once, except of inputs that are one element.
    fn is_aligned(&self, member: &Member, ones: u32) -> bool {
        let is_aligned = |one: &DeviceTensor| Operand::from(one).is_multiple_of(16);
        let own = (0..self.shared.len()).filter(|&at| !self.shared[at]).zip(&member.own);
        member.out.len().is_multiple_of(4)
            && is_aligned(&member.out)
            && own.filter(|(at, _)| ones >> at & 1 == 0).all(|(_, one)| is_aligned(one))
    }

    /// Enqueues outputs that fit into a launch.
    fn launch(
        &self,
        context: &Run<'_>,
        shared: &[DeviceTensor],
        members: &[Member],
        Form { ones, is_wide }: Form,
    ) -> Result<()> {
        let Some(first) = members.first() else { return Ok(()) };
        let of_members = members.iter().flat_map(|member| member.own.iter().chain([&member.out]));
        let operands: Vec<_> = shared.iter().chain(of_members).map(Operand::from).collect();
        let sizes = members.iter().map(|member| word(member.out.len()));
        let sizes = sizes.collect::<Result<Vec<_>>>()?;
        // Three bits for the place of each input among those of its kind, a bit for each that is shared, and one for each that is
        // one element.
        let (mut places, mut next) = (ones << (4 * MOST_INPUTS), [0, 0]);
        for (at, &is_shared) in self.shared.iter().enumerate() {
            let next = &mut next[usize::from(is_shared)];
            places |= *next << (3 * at) | u32::from(is_shared) << (3 * MOST_INPUTS + at);
            *next += 1;
        }
        let largest = sizes.iter().copied().max().unwrap_or_default() as usize;
        let [most, ..] = groups(if is_wide { largest / 4 } else { largest });
        Launch {
            op: OP,
            shader: match self.fused.shader() {
                (2, false) => shader!("multi_tensor.2"),
                (4, false) => shader!("multi_tensor.4"),
                (_, false) => shader!("multi_tensor.8"),
                (2, true) => shader!("multi_tensor.long.2"),
                (4, true) => shader!("multi_tensor.long.4"),
                (_, true) => shader!("multi_tensor.long.8"),
            },
            constants: &self.fused.constants(first.out.dtype(), places, is_wide)?,
            operands: &operands,
            numbers: &sizes,
            groups: [most, members.len() as u32, 1],
        }
        .enqueue(context)
    }
}

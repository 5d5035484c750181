//! Reverses sequences of different lengths.

use super::*;

/// The axis of the sequences, and the one of which each index has a length.
struct Axes {
    sequence: usize,
    batch: usize,
}

impl Axes {
    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        let axis = |name: &str| {
            let axis: i64 = construction.attr(name)?;
            usize::try_from(axis).map_err(|_| wrong(format!("Invalid {name} {axis}")))
        };
        Ok(Self { sequence: axis("seq_dim")?, batch: axis("batch_dim")? })
    }
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool])
    "ReverseSequence" ReverseSequence [Axes = Axes::new] () = |context, op, axes| {
        let (input, lengths) = (context.input(0)?, context.input(1)?);
        let (shape, found) = (shape(&input)?, shape(&lengths)?);
        let Axes { sequence, batch } = *axes;
        let [count] = found[..] else {
            return Err(wrong(format!("seq_lengths must be 1-dim, not {}", found.len())));
        };
        if sequence == batch {
            return Err(wrong(format!("batch_dim == seq_dim == {sequence}")));
        }
        for (name, axis) in [("seq_dim", sequence), ("batch_dim", batch)] {
            if axis >= shape.len() {
                return Err(wrong(format!("{name} must be < input rank ( {axis} vs. {})", shape.len())));
            }
        }
        if count != shape[batch] {
            return Err(wrong(format!("Length of seq_lengths != input.dims({batch}), ({count} vs. {})", shape[batch])));
        }
        let out = output(context, 0, &shape)?;
        if out.is_empty() {
            return Ok(());
        }
        let step = |axis: usize| word(shapes::count(&shape[axis + 1..]));
        Launch {
            op,
            shader: shader!("reverse_sequence"),
            constants: &[bytes(&out)?, element_type(lengths.dtype())?],
            operands: &[(&input).into(), (&lengths).into(), (&out).into()],
            numbers: &[word(out.len())?, word(shape[sequence])?, step(sequence)?, word(count)?, step(batch)?],
            groups: groups(out.len()),
        }
        .enqueue(context)
    };
}

//! Optimizers and updates of variables, in place. The numbers are those of the ops in
//! `shaders/optimize.comp`. TensorFlow 2.19 to 2.21 do not support them in plugins.

use super::*;

/// Runs a step of op `number`. `variables` are the inputs that change, the variable first, and
/// `scalars` the inputs of one number each.
fn step(
    context: &Run<'_>,
    op: &'static str,
    [number, nesterov]: [u32; 2],
    variables: &[usize],
    gradient: usize,
    scalars: &[usize],
) -> Result<()> {
    let variables = context.variables(variables)?;
    let gradient = context.input(gradient)?;
    check(&variables, &gradient)?;
    let scalars = scalars.iter().map(|&at| context.input(at)).collect::<Result<Vec<_>>>()?;
    for scalar in &scalars {
        ensure!(
            scalar.len() == 1,
            wrong(format!("a number of the optimizer is not a scalar: {:?}", scalar.shape()))
        );
    }
    let mut operands = [Operand::Value(0); 10];
    for (place, variable) in operands.iter_mut().zip(variables.iter()) {
        *place = variable.into();
    }
    operands[3] = (&gradient).into();
    for (place, scalar) in operands[4..].iter_mut().zip(&scalars) {
        *place = scalar.into();
    }
    Launch {
        op,
        shader: match gradient.dtype() {
            DType::Float64 => shader!("optimize.double"),
            _ => shader!("optimize"),
        },
        constants: &[number, element_type(gradient.dtype())?, nesterov],
        operands: &operands,
        numbers: &[word(gradient.len())?],
        groups: groups(gradient.len()),
    }
    .enqueue(context)
}

/// Checks that variables have the shape of their gradient.
fn check(variables: &[DeviceTensor], gradient: &DeviceTensor) -> Result<()> {
    for variable in variables {
        let (shape, other) = (variable.shape(), gradient.shape());
        ensure!(
            shape == other,
            wrong(format!("var and delta do not have the same shape: {shape:?} {other:?}"))
        );
    }
    Ok(())
}

/// Reads whether momentum is Nesterov's.
fn nesterov(construction: &OpKernelConstruction<'_>) -> Result<u32> {
    Ok(construction.attr::<bool>("use_nesterov")?.into())
}

/// Adds to a variable, or subtracts.
fn update(context: &Run<'_>, op: &'static str, number: u32) -> Result<()> {
    let (variables, value) = (context.variables(&[0])?, context.input(1)?);
    check(&variables, &value)?;
    elementwise::in_place(context, op, number, &variables[0], &value)
}

kernels! {
    types (T = [f32, f16, bf16, f64])
    "ResourceApplyGradientDescent" GradientDescent (host_memory("var"), variables) =
        |run, op| step(run, op, [0, 0], &[0], 2, &[1]);
    "ResourceApplyMomentum" Momentum [u32 = nesterov] (host_memory("var", "accum"), variables) =
        |run, op, nesterov| step(run, op, [1, *nesterov], &[0, 1], 3, &[2, 4]);
    "ResourceApplyKerasMomentum" KerasMomentum [u32 = nesterov] (host_memory("var", "accum"), variables) =
        |run, op, nesterov| step(run, op, [2, *nesterov], &[0, 1], 3, &[2, 4]);
    "ResourceApplyAdam" Adam [u32 = nesterov] (host_memory("var", "m", "v"), variables) =
        |run, op, nesterov| step(run, op, [3, *nesterov], &[0, 1, 2], 9, &[3, 4, 5, 6, 7, 8]);
    types (dtype = [f32, f16, bf16, f64, i8, i16, i64, u8, u16, u32, u64])
    "AssignAddVariableOp" AssignAdd (host_memory("resource"), variables) = |run, op| update(run, op, 0);
    "AssignSubVariableOp" AssignSub (host_memory("resource"), variables) = |run, op| update(run, op, 1);
}

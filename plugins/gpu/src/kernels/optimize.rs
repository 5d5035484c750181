//! Optimizers and updates of variables, in place. The numbers are those of the ops in
//! `shaders/optimize.comp`. TensorFlow 2.19 to 2.21 do not support them in plugins.

use super::*;
use core::marker::PhantomData;

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
        shader: shader!("optimize"),
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
        let (own, other) = (variable.shape(), gradient.shape());
        ensure!(
            own == other,
            wrong(format!("var and delta do not have the same shape: {own:?} {other:?}"))
        );
    }
    Ok(())
}

/// Defines optimizers: their op, its number, the variables by name, whether there is
/// `use_nesterov`, and the inputs: the variables, the gradient, the scalars.
macro_rules! optimizers {
    ($($op:literal $name:ident $number:literal $host:tt $has_nesterov:literal $variables:expr, $gradient:literal, $scalars:expr;)*) => {$(
        struct $name<T>(u32, PhantomData<T>);

        #[kernel(op = $op, types(T = [f32, f16, bf16]), host_memory $host, variables)]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                let nesterov = $has_nesterov && construction.attr("use_nesterov")?;
                Ok(Self(u32::from(nesterov), PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                step(context, $op, [$number, self.0], &$variables, $gradient, &$scalars)
            }
        }
    )*};
}

optimizers! {
    "ResourceApplyGradientDescent" GradientDescent 0 ("var") false [0], 2, [1];
    "ResourceApplyMomentum" Momentum 1 ("var", "accum") true [0, 1], 3, [2, 4];
    "ResourceApplyKerasMomentum" KerasMomentum 2 ("var", "accum") true [0, 1], 3, [2, 4];
    "ResourceApplyAdam" Adam 3 ("var", "m", "v") true [0, 1, 2], 9, [3, 4, 5, 6, 7, 8];
}

macro_rules! updates {
    ($($op:literal $name:ident = $number:literal;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[allow(non_camel_case_types, reason = "the attribute has this name")]
        const _: () = {
            #[kernel(
                op = $op,
                types(dtype = [f32, f16, bf16, i8, i16, i64, u8, u16, u32, u64]),
                host_memory("resource"),
                variables
            )]
            impl<dtype: Element> Kernel for $name<dtype> {
                type Platform = GpuPlatform;

                fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                    Ok(Self(PhantomData))
                }
                fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                    let variables = context.variables(&[0])?;
                    let value = context.input(1)?;
                    check(&variables, &value)?;
                    elementwise::in_place(context, $op, $number, &variables[0], &value)
                }
            }
        };
    )*};
}

updates! {
    "AssignAddVariableOp" AssignAdd = 0;
    "AssignSubVariableOp" AssignSub = 1;
}

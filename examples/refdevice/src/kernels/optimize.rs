//! An optimizer and updates of variables, in place.

use super::*;
use crate::math::optimize;
use core::marker::PhantomData;

/// Checks that the variables have the gradient's shape, and returns it.
fn check(variables: &[DeviceTensor], gradient: &DeviceTensor) -> Result<Shape> {
    for variable in variables {
        let (one, other) = (variable.shape(), gradient.shape());
        ensure!(
            one == other,
            wrong(format!("var and delta do not have the same shape: {one:?} {other:?}"))
        );
    }
    shape(gradient)
}

/// Checks that the hyperparameters of a step are scalars. The device would find out too late to report it.
fn check_scalars<'a>(numbers: impl IntoIterator<Item = &'a DeviceTensor>) -> Result<()> {
    for number in numbers {
        ensure!(
            number.len() == 1,
            wrong(format!("a number of the optimizer is not a scalar: {:?}", number.shape()))
        );
    }
    Ok(())
}

struct Adam<T> {
    nesterov: bool,
    elements: PhantomData<T>,
}

#[kernel(
    op = "ResourceApplyAdam",
    types(T = [f32, f64, f16, bf16]),
    host_memory("var", "m", "v"),
    variables
)]
impl<T: Floating> Kernel for Adam<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { nesterov: construction.attr("use_nesterov")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let variables = context.variables(&[0, 1, 2])?;
        let numbers = (3..9).map(|at| context.input(at)).collect::<Result<Vec<_>>>()?;
        check_scalars(&numbers)?;
        let gradient = context.input(9)?;
        let shape = check(&variables, &gradient)?;
        let nesterov = self.nesterov;
        let inputs: Vec<_> = [gradient].into_iter().chain(numbers).collect();
        launch_lists(context, "ResourceApplyAdam", &inputs, &variables, move |inputs, outs| {
            let number = |at: usize| scalar::<T>(inputs[at]);
            let numbers = optimize::Adam {
                powers: (number(1)?, number(2)?),
                rate: number(3)?,
                decays: (number(4)?, number(5)?),
                epsilon: number(6)?,
            };
            let [variable, m, v] =
                outs.try_into().map_err(|_| wrong("Adam has three variables"))?;
            let state = [view_mut(variable, &shape)?, view_mut(m, &shape)?, view_mut(v, &shape)?];
            optimize::adam(state, numbers, view(inputs[0], &shape)?, nesterov);
            Ok(())
        })
    }
}

/// Adds to a variable or subtracts from it.
fn update<T: Numeric>(context: &Run<'_>, op: &'static str, f: fn(T, T) -> T) -> Result<()> {
    let variables = context.variables(&[0])?;
    let value = context.input(1)?;
    check(&variables, &value)?;
    launch(context, op, [&value], [&variables[0]], move |[value], [variable]| {
        loops::update(elements_mut::<T>(variable)?, elements::<T>(value)?, f);
        Ok(())
    })
}

macro_rules! updates {
    ($($op:literal $name:ident = $function:ident;)*) => {$(
        struct $name<T>(PhantomData<T>);

        #[allow(non_camel_case_types, reason = "the attribute has this name")]
        const _: () = {
            #[kernel(
                op = $op,
                types(dtype = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64]),
                host_memory("resource"),
                variables
            )]
            impl<dtype: Numeric> Kernel for $name<dtype> {
                type Platform = RefPlatform;

                fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                    Ok(Self(PhantomData))
                }
                fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                    update::<dtype>(context, $op, dtype::$function)
                }
            }
        };
    )*};
}

updates! {
    "AssignAddVariableOp" AssignAdd = plus;
    "AssignSubVariableOp" AssignSub = minus;
}

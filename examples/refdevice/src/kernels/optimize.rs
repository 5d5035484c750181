//! Optimizers and updates of variables, in place.

use super::*;
use crate::math::optimize;
use core::marker::PhantomData;

/// Checks that the variables have the gradient's shape, and returns it.
fn check(variables: &[DeviceTensor], gradient: &DeviceTensor) -> Result<Shape> {
    for variable in variables {
        let (own, other) = (variable.shape(), gradient.shape());
        ensure!(
            own == other,
            wrong(format!("var and delta do not have the same shape: {own:?} {other:?}"))
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

/// Optimizers that read no attribute except `use_nesterov`.
macro_rules! optimizers {
    ($($op:literal $name:ident $host:tt $has_nesterov:literal = $body:expr;)*) => {$(
        struct $name<T> {
            nesterov: bool,
            elements: PhantomData<T>,
        }

        #[kernel(op = $op, types(T = [f32, f64, f16, bf16]), host_memory $host, variables)]
        impl<T: Floating> Kernel for $name<T> {
            type Platform = RefPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                let nesterov = $has_nesterov && construction.attr("use_nesterov")?;
                Ok(Self { nesterov, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str, bool) -> Result<()> = $body;
                body(context, $op, self.nesterov)
            }
        }
    )*};
}

optimizers! {
    "ResourceApplyGradientDescent" GradientDescent ("var") false = |context, op, _| {
        let variables = context.variables(&[0])?;
        let (rate, gradient) = (context.input(1)?, context.input(2)?);
        check_scalars([&rate])?;
        let shape = check(&variables, &gradient)?;
        let (ins, outs) = ([&rate, &gradient], [&variables[0]]);
        launch(context, op, ins, outs, move |[rate, gradient], [variable]| {
            let variable = view_mut::<T>(variable, &shape)?;
            optimize::gradient_descent(variable, scalar(rate)?, view(gradient, &shape)?);
            Ok(())
        })
    };
    "ResourceApplyMomentum" Momentum ("var", "accum") true =
        |context, op, nesterov| momentum::<T>(context, op, move |variable, sum, numbers, gradient| {
            optimize::momentum(variable, sum, numbers, gradient, nesterov);
        });
    "ResourceApplyKerasMomentum" KerasMomentum ("var", "accum") true =
        |context, op, nesterov| momentum::<T>(context, op, move |variable, sum, numbers, gradient| {
            optimize::keras_momentum(variable, sum, numbers, gradient, nesterov);
        });
    "ResourceApplyAdam" Adam ("var", "m", "v") true = |context, op, nesterov| {
        let variables = context.variables(&[0, 1, 2])?;
        let numbers = (3..9).map(|at| context.input(at)).collect::<Result<Vec<_>>>()?;
        check_scalars(&numbers)?;
        let gradient = context.input(9)?;
        let shape = check(&variables, &gradient)?;
        let reads = [&gradient, &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5]];
        let writes = [&variables[0], &variables[1], &variables[2]];
        launch(context, op, reads, writes, move |[gradient, p1, p2, rate, d1, d2, epsilon], [variable, m, v]| {
            let numbers = optimize::Adam::<T> {
                powers: (scalar(p1)?, scalar(p2)?),
                rate: scalar(rate)?,
                decays: (scalar(d1)?, scalar(d2)?),
                epsilon: scalar(epsilon)?,
            };
            let state = [view_mut(variable, &shape)?, view_mut(m, &shape)?, view_mut(v, &shape)?];
            optimize::adam(state, numbers, view(gradient, &shape)?, nesterov);
            Ok(())
        })
    };
}

/// Runs a step of one of the two kinds of momentum.
fn momentum<T: Floating>(
    context: &Run<'_>,
    op: &'static str,
    step: impl FnOnce(ViewMut<'_, T>, ViewMut<'_, T>, (T, T), View<'_, T>) + Send + 'static,
) -> Result<()> {
    let variables = context.variables(&[0, 1])?;
    let [rate, gradient, momentum] = [2, 3, 4].map(|at| context.input(at));
    let (rate, gradient, momentum) = (rate?, gradient?, momentum?);
    check_scalars([&rate, &momentum])?;
    let shape = check(&variables, &gradient)?;
    let (ins, outs) = ([&rate, &momentum, &gradient], [&variables[0], &variables[1]]);
    launch(context, op, ins, outs, move |[rate, momentum, gradient], [variable, sum]| {
        let (variable, sum) = (view_mut(variable, &shape)?, view_mut(sum, &shape)?);
        step(variable, sum, (scalar(rate)?, scalar(momentum)?), view(gradient, &shape)?);
        Ok(())
    })
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

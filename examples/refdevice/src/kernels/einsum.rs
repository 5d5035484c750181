//! `Einsum`: sums of products by an equation.

use super::*;
use crate::math::einsum::einsum;
use core::marker::PhantomData;
use se_plugin::toolkit::einsum::Einsum;

struct EinsumKernel<T> {
    equation: String,
    elements: PhantomData<T>,
}

#[kernel(op = "Einsum", types(T = [f32, f64, f16, bf16]))]
impl<T: Floating> Kernel for EinsumKernel<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { equation: construction.attr("equation")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let tensors = inputs(context, "inputs")?;
        let sizes = tensors.iter().map(shape).collect::<Result<Vec<_>>>()?;
        let sizes: Vec<_> = sizes.iter().map(Vec::as_slice).collect();
        let plan = Einsum::new(&self.equation, &sizes)?;
        let out = output(context, 0, plan.shape())?;
        launch_lists(context, "Einsum", &tensors, &[out], move |inputs, mut outs| {
            let (a, one) = (elements::<T>(inputs[0])?, [T::ONE]);
            let b = inputs.get(1).map_or(Ok(&one[..]), |b| elements(b))?;
            einsum(&plan, a, b, elements_mut(outs[0])?);
            Ok(())
        })
    }
}

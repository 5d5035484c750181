//! Inputs and outputs are named in the attribute, each of them. The compiler computes this last.

use tf_op_plugin::prelude::*;

#[op(name = "UiInputs", inputs(x), outputs(y))]
struct TwoInputs;

impl Op for TwoInputs {
    type Inputs = (Tensor<f32>, Tensor<f32>);
    type Outputs = Tensor<f32>;

    fn compute(&self, (x, _): Self::Inputs, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x)
    }
}

#[op(name = "UiOutputs", inputs(x), outputs(y, z))]
struct OneOutput;

impl Op for OneOutput {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x)
    }
}

fn main() {}

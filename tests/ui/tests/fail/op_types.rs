//! Types of inputs, outputs and attributes, and ops without their attribute. None of these mistakes hides another.

use std::cell::Cell;
use tf_op_plugin::prelude::*;
use tf_op_plugin::sync::Mutex;

// TensorFlow has no such type.
#[op(name = "UiInput", inputs(x), outputs(y))]
struct TakesACharacter;

impl Op for TakesACharacter {
    type Inputs = char;
    type Outputs = Tensor<f32>;

    fn compute(&self, _: char, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(Tensor::scalar(1.0))
    }
}

// An error is that of `compute`.
#[op(name = "UiOutput", inputs(x), outputs(y))]
struct ReturnsAResult;

impl Op for ReturnsAResult {
    type Inputs = Tensor<f32>;
    type Outputs = Result<Tensor<f32>>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Result<Tensor<f32>>> {
        Ok(Ok(x))
    }
}

// Attributes have types of TensorFlow's.
#[op(name = "UiAttribute", inputs(x), outputs(y))]
struct Unsigned {
    #[attr(default = 1)]
    count: usize,
}

impl Op for Unsigned {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x)
    }
}

// Several threads run an op at a time.
#[op(name = "UiState", inputs(x), outputs(y))]
struct Unshared {
    #[state(Cell::new(0))]
    count: Cell<u8>,
}

impl Op for Unshared {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x)
    }
}

// The memory of a tensor may be a NumPy array's, which the program can change after the call.
#[op(name = "UiKeeps", inputs(x), outputs(y))]
struct KeepsATensor {
    #[state(Mutex::new(None))]
    kept: Mutex<Option<Tensor<f32>>>,
}

impl Op for KeepsATensor {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        let y = x.map(|x| x);
        *self.kept.lock()? = Some(x);
        Ok(y)
    }
}

// TensorFlow would know nothing of it.
struct Forgotten;

impl Op for Forgotten {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x)
    }
}

// The attribute alone computes nothing.
#[op(name = "UiOp", inputs(x), outputs(y))]
struct Unfinished;

fn main() {}

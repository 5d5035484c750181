//! Options and fields of `#[op]`. None of these mistakes hides another.

use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

macro_rules! implement {
    ($($name:ident $(<$T:ident>)?)*) => {$(
        impl $(<$T: Element>)? Op for $name $(<$T>)? {
            type Inputs = Tensor<f32>;
            type Outputs = Tensor<f32>;

            fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
                Ok(x)
            }
        }
    )*};
}

implement! {
    WithoutAName Misnamed WithAField WithAMaximum WithoutAnExpression WithoutTypes<T> WithoutAParameter
}

// What is the op called?
#[op(inputs(x), outputs(y))]
struct WithoutAName;

// Names of ops are in camel case, those of arguments in lower case.
#[op(name = "my_op", inputs(X))]
struct Misnamed;

// Is it an attribute, or made of attributes?
#[op(name = "UiField", inputs(x), outputs(y))]
struct WithAField {
    factor: i64,
}

// Integers have a minimum, not a maximum.
#[op(name = "UiOption", inputs(x), outputs(y))]
struct WithAMaximum {
    #[attr(default = 1, max = 3)]
    factor: i64,
}

// A state has an expression.
#[op(name = "UiState", inputs(x), outputs(y))]
struct WithoutAnExpression {
    #[state]
    table: Vec<u8>,
}

// Which types?
#[op(name = "UiGeneric", inputs(x), outputs(y))]
struct WithoutTypes<T: Element> {
    element: PhantomData<T>,
}

// There is no such parameter.
#[op(name = "UiTypes", inputs(x), outputs(y), types(T = [f32]))]
struct WithoutAParameter;

// The fields are the attributes.
#[op(name = "UiFunction", inputs(x), outputs(y))]
fn function(x: Tensor<f32>) -> Tensor<f32> {
    x
}

#[op(name = "UiTuple", inputs(x), outputs(y))]
struct Tuple(i64);

#[op(name = "UiEnum", inputs(x), outputs(y))]
enum Either {}

fn main() {}

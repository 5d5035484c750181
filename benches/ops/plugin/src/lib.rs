//! The ops that `benches/ops` measures: those of `../../ops.cc`, in safe Rust on the SDK.

use tf_op_plugin::prelude::*;

tf_op_plugin::op_plugin!();

// Numbers.

/// Multiplies by a factor.
#[op(name = "RustScale", inputs(x: [..s]), outputs(y: [..s]))]
struct Scale {
    /// The factor.
    #[attr(default = 1.0)]
    factor: f32,
}

impl Op for Scale {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(x.map(|x| x * self.factor))
    }
}

/// Multiplies by a factor, in place where TensorFlow allows it.
#[op(name = "RustScaleReuse", inputs(x: [..s]), outputs(y: [..s]))]
struct ScaleReuse {
    /// The factor.
    #[attr(default = 1.0)]
    factor: f32,
}

impl Op for ScaleReuse {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, context: &OpContext<'_>) -> Result<Tensor<f32>> {
        context.reuse_map(x, 0, |x| x * self.factor)
    }
}

/// Returns for each number how many boundaries are not above it.
#[op(name = "RustBuckets", inputs(x: [..s]), outputs(buckets: [..s]))]
struct Buckets {
    /// The boundaries, in any order.
    #[attr]
    boundaries: Vec<f32>,
    #[state(sorted(&boundaries))]
    sorted: Vec<f32>,
}

fn sorted(boundaries: &[f32]) -> Vec<f32> {
    let mut sorted = boundaries.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted
}

impl Op for Buckets {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<i64>;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<Tensor<i64>> {
        Ok(x.map(|x| self.sorted.partition_point(|&boundary| boundary <= x) as i64))
    }
}

/// Computes `1 / (1 + exp(-x))`, large tensors by several threads.
#[op(name = "RustLogistic", inputs(x: [..s]), outputs(y: [..s]))]
struct Logistic;

impl Op for Logistic {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Tensor<f32>, context: &OpContext<'_>) -> Result<Tensor<f32>> {
        // About 10 ns each.
        let y = context.parallel_map(&x, 10_000, |x| 1.0 / (1.0 + (-x).exp()))?;
        y.with_shape(x.shape())
    }
}

// Strings.

/// Converts the letters of ASCII to upper case.
#[op(name = "RustUpper", inputs(text: [..s]), outputs(upper: [..s]))]
struct Upper;

impl Op for Upper {
    type Inputs = Strings;
    type Outputs = Strings;

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Strings> {
        let mut upper = StringsBuf::with_capacity(text.len());
        for text in text.iter() {
            upper.push_sized(text.len(), |upper| {
                for (upper, letter) in upper.iter_mut().zip(text) {
                    *upper = letter.to_ascii_uppercase();
                }
            });
        }
        upper.with_shape(text.shape())
    }
}

/// Splits texts at white space.
#[op(name = "RustWords", inputs(text: [n]), outputs(words: [_]))]
struct Words;

impl Op for Words {
    type Inputs = Strings;
    type Outputs = Ragged<Strings>;

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Ragged<Strings>> {
        let mut words = RaggedBuf::<StringsBuf>::new();
        for text in text.iter() {
            let parts = text.split(u8::is_ascii_whitespace);
            words.values.extend(parts.filter(|word| !word.is_empty()));
            words.end_row();
        }
        Ok(words.finish())
    }
}

/// Returns the bytes of texts, as numbers.
#[op(name = "RustCodes", inputs(text: [n]), outputs(codes: [_]))]
struct Codes;

impl Op for Codes {
    type Inputs = Strings;
    type Outputs = Ragged<Tensor<i32>>;

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Ragged<Tensor<i32>>> {
        let count = text.iter().map(<[u8]>::len).sum();
        let mut codes = RaggedBuf::<TensorBuf<i32>>::with_capacity(text.len(), count);
        for text in text.iter() {
            codes.values.extend_map(text, |&byte| i32::from(byte));
            codes.end_row();
        }
        Ok(codes.finish())
    }
}

//! Ops on texts: the tutorial of `tf-op-plugin`. Each op shows one more part of the SDK.

use regex::bytes::{Regex, RegexBuilder};
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;
use tf_op_plugin::toolkit::Real;

tf_op_plugin::op_plugin!();

/// Splits texts at white space.
///
/// The result is ragged: a row of words for each text.
#[op(name = "TextWords", inputs(text: [n]), outputs(words: [_]))]
struct Words {
    /// Whether to convert the words to lower case.
    #[attr(default = false)]
    lower: bool,
}

impl Op for Words {
    type Inputs = Strings;
    type Outputs = Ragged<Strings>;

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<Ragged<Strings>> {
        let mut words = RaggedBuf::<StringsBuf>::new();
        for text in text.texts() {
            for word in text?.split_whitespace() {
                if self.lower {
                    words.values.push(word.to_lowercase());
                } else {
                    words.values.push(word);
                }
            }
            words.end_row();
        }
        Ok(words.finish())
    }
}

/// Dampens the counts of words: `ln(1 + count / scale)`.
#[op(
    name = "TextDampen",
    inputs(counts: [..s]),
    outputs(dampened: [..s]),
    types(T = [f32, f64]),
    gradient = "TextDampenGrad"
)]
struct Dampen<T: Real> {
    /// The count that becomes `ln(2)`.
    #[attr(default = 1.0)]
    scale: f32,
    element: PhantomData<T>,
}

impl<T: Real> Op for Dampen<T> {
    type Inputs = Tensor<T>;
    type Outputs = Tensor<T>;

    fn compute(&self, counts: Tensor<T>, context: &OpContext<'_>) -> Result<Tensor<T>> {
        let scale = f64::from(self.scale);
        // In the memory of `counts` if TensorFlow needs them no more, else in a copy.
        context.reuse(counts, 0, |elements| {
            for element in elements {
                *element = T::from_f64((element.to_f64() / scale).ln_1p());
            }
            Ok(())
        })
    }
}

/// Computes the gradient of `TextDampen`: the names of the arguments say what they are.
#[op(
    name = "TextDampenGrad",
    inputs(counts: [..s], grad_dampened: [..s]),
    outputs(grad_counts: [..s]),
    types(T = [f32, f64])
)]
struct DampenGrad<T: Real> {
    /// The `scale` of `TextDampen`.
    #[attr(default = 1.0)]
    scale: f32,
    element: PhantomData<T>,
}

impl<T: Real> Op for DampenGrad<T> {
    type Inputs = (Tensor<T>, Tensor<T>);
    type Outputs = Tensor<T>;

    fn compute(&self, (counts, grad): Self::Inputs, context: &OpContext<'_>) -> Result<Tensor<T>> {
        let scale = f64::from(self.scale);
        context.reuse(grad, 0, |grad| {
            for (grad, count) in grad.iter_mut().zip(counts.iter()) {
                *grad = T::from_f64(grad.to_f64() / (scale + count.to_f64()));
            }
            Ok(())
        })
    }
}

/// Extracts the first match of a pattern from each text, in several columns.
///
/// The pattern is compiled once for each node of a graph.
#[op(
    name = "TextExtract",
    inputs(columns: N * [..s], fallback: []),
    outputs(matches: N * [..s])
)]
struct Extract {
    /// A regular expression in the syntax of the crate `regex`. If it has a group, the group is extracted.
    #[attr]
    pattern: String,
    /// Whether lower and upper case are the same.
    #[attr(default = "exact", allowed("exact", "ignore"))]
    case: String,
    #[state(compiled(&pattern, &case)?)]
    regex: Regex,
}

fn compiled(pattern: &str, case: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(case == "ignore");
    builder.build().or_code(Code::InvalidArgument).context("attribute `pattern`")
}

impl Op for Extract {
    /// `fallback` is the result for texts without a match; without it that is an error.
    type Inputs = (Vec<Strings>, Option<String>);
    type Outputs = Vec<Strings>;

    fn compute(
        &self,
        (columns, fallback): Self::Inputs,
        _: &OpContext<'_>,
    ) -> Result<Vec<Strings>> {
        let fallback = fallback.as_ref().map(String::as_bytes);
        let extract = |texts: &Strings| -> Result<Strings> {
            let mut matches = StringsBuf::new();
            for (index, text) in texts.iter().enumerate() {
                let found = self.regex.captures(text).and_then(|all| all.get(1).or(all.get(0)));
                let found = found.map(|found| found.as_bytes()).or(fallback);
                matches.push(found.ok_or_else(|| {
                    let text = String::from_utf8_lossy(text);
                    Error::invalid_argument(format!(
                        "text {index}, {text:?}, does not match {:?}; pass a `fallback`",
                        self.pattern
                    ))
                })?);
            }
            matches.with_shape(texts.shape())
        };
        let columns = columns.iter().enumerate();
        columns.map(|(at, texts)| extract(texts).context(format_args!("columns[{at}]"))).collect()
    }
}

/// Counts the insertions, deletions and replacements of characters that turn one text into another.
///
/// Large batches are computed by several threads.
#[op(name = "TextDistance", inputs(a: [..s], b: [..s]), outputs(distances: [..s]))]
struct Distance;

impl Op for Distance {
    type Inputs = (Strings, Strings);
    type Outputs = Tensor<i64>;

    fn compute(&self, (a, b): Self::Inputs, context: &OpContext<'_>) -> Result<Tensor<i64>> {
        let mut distances = TensorBuf::zeros(a.shape())?;
        // A pair of short texts takes about 1 µs.
        context.parallel_mut(&mut distances, 100, |start, part| {
            for (index, distance) in (start..).zip(part) {
                *distance = levenshtein(a.str(index)?, b.str(index)?);
            }
            Ok(())
        })?;
        distances.with_shape(a.shape())
    }
}

/// Returns the Levenshtein distance of two texts.
fn levenshtein(a: &str, b: &str) -> i64 {
    let b: Vec<char> = b.chars().collect();
    // The distances of what was read of `a` to each beginning of `b`.
    let mut row: Vec<i64> = (0..).take(b.len() + 1).collect();
    for from in a.chars() {
        let mut diagonal = row[0];
        row[0] += 1;
        for (at, &to) in b.iter().enumerate() {
            let replaced = diagonal + i64::from(from != to);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;

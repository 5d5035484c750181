//! Attention, which Keras writes as two products, a mask and a softmax between them, and its gradient as four products and the gradient of the
//! softmax. Each op between the products reads and writes all scores, of which there are as many as pairs of positions.
//!
//! All become `RustGpuAttention` and `RustGpuAttentionGrad`, which have no scores in memory. Both are replaced together: if the scores
//! are used by anything else, such as the dropout of a layer in training, all stays.

mod equation;
mod gradient;
mod mask;
mod users;

use super::matcher::REFERENCES;
use super::pattern::{
    View, change, first, has_blocking_ops, has_type, missing, operands, orders, placed, redirect,
    remove_unused, shorter,
};
use crate::kernels::attention::{ATTENTION, GRADIENT};
use equation::Product;
use gradient::Found;
use mask::Mask;
use se_plugin::Result;
use se_plugin::graph::{Graph, Input, Node};
use se_plugin::kernel::DType;
use std::cell::RefCell;
use users::{MOST_STEPS, Users};

/// Replaces what it finds on devices of this type, of the types of elements that `fuses` accepts.
pub(super) fn replace(
    graph: &mut Graph<'_>,
    device_type: &str,
    fuses: impl Fn(DType) -> bool,
) -> Result<()> {
    // As in `normalization`.
    if graph.nodes().any(|node| REFERENCES.contains(&node.op())) || has_blocking_ops(graph) {
        return Ok(());
    }
    let mut unused = Vec::new();
    for root in placed(graph, device_type, "Einsum") {
        let seen = RefCell::default();
        let found = Attention::find(View::new(graph, &seen), &root);
        if let Some(found) = found.filter(|found| fuses(found.dtype)) {
            found.apply(graph, &root, &mut unused)?;
        }
    }
    if unused.is_empty() { Ok(()) } else { remove_unused(graph, unused) }
}

/// The nodes of attention, which are in the graph.
struct Parts<'g> {
    /// The product of query and key, and their places among its operands.
    logits: Product<'g>,
    of_scores: [usize; 2],
    softmax: Softmax<'g>,
    /// The product of the softmax and the value, and their places.
    values: Product<'g>,
    of_result: [usize; 2],
}

/// Attention to replace, with the inputs of its op.
struct Attention {
    dtype: DType,
    inputs: Vec<String>,
    has_mask: bool,
    is_causal: bool,
    /// The type of what is added to scores, if anything is.
    bias: Option<DType>,
    scale: f32,
    masked: f32,
    heads_first: bool,
    gradient: Option<Gradient>,
}

/// The gradient to replace.
struct Gradient {
    /// That of the result.
    given: String,
    /// The nodes of those of query, key and value.
    results: [String; 3],
}

impl Attention {
    fn find(view: View<'_, '_>, root: &str) -> Option<Self> {
        let root = view.graph.node(root)?;
        let types = [DType::Float32, DType::Float16, DType::Bfloat16];
        let dtype = types.into_iter().find(|&dtype| has_type(root, "T", dtype))?;
        orders([0, 1]).into_iter().find_map(|of_result| {
            view.attempt(|| {
                let values = Product::of(root)?;
                let softmax = Softmax::find(view, values.operands[of_result[0]])?;
                let node = view.node(softmax.scores, &["Einsum"])?;
                let logits = Product::of(node).filter(|_| has_type(node, "T", dtype))?;
                let of_scores = logits.query_and_key()?;
                let heads_first = logits.heads_first(of_scores, &values, of_result)?;
                let lines = of_scores.map(|at| logits.operands[at]);
                let is_known = softmax.scale.is_none_or(|scale| scale.is_known(view, lines));
                let parts = Parts { logits, of_scores, softmax, values, of_result };
                is_known.then_some(())?;
                Self::of(view, root, &parts, dtype, heads_first)
            })
        })
    }

    /// Returns what to replace, unless something else needs it.
    fn of<'g>(
        view: View<'g, '_>,
        root: &'g Node<'_>,
        parts: &Parts<'g>,
        dtype: DType,
        heads_first: bool,
    ) -> Option<Self> {
        let gradient = Found::find(view, parts);
        let results = gradient.iter().flat_map(|found| found.results);
        let results: Vec<_> = results.chain([root.name()]).collect();
        // Scores that something else uses would be computed again.
        let mut users = Users::new(view, &results);
        let others = results.iter().filter(|&&name| name != root.name());
        let mut others = others.filter_map(|name| view.graph.node(name));
        let is_whole =
            users.are_replaced() && others.all(|node| users.waits_for_none(node, MOST_STEPS));
        if !is_whole || !is_on_one_device(view, root, &results) {
            return None;
        }
        let Parts { logits, of_scores: [query, key], softmax, values, of_result: [_, value] } =
            parts;
        let mut inputs =
            vec![logits.operands[*query], logits.operands[*key], values.operands[*value]];
        let mask = softmax.mask.as_ref();
        inputs.extend(mask.and_then(|mask| mask.tensor));
        let bias = softmax
            .bias
            .map(|bias| view.search(|| shorter(view, bias)).unwrap_or((bias, DType::Float32)));
        inputs.extend(bias.map(|(bias, _)| bias));
        // Such as a mask with the shape of the scores.
        if view.reaches(softmax.scores.node(), &inputs) {
            return None;
        }
        Some(Self {
            dtype,
            has_mask: mask.is_some_and(|mask| mask.tensor.is_some()),
            is_causal: mask.is_some_and(|mask| mask.is_causal),
            bias: bias.map(|(_, dtype)| dtype),
            scale: softmax.scale.map_or(1.0, |scale| scale.attribute()),
            masked: mask.map_or(0.0, |mask| mask.masked),
            heads_first,
            gradient: gradient.map(|found| Gradient {
                given: found.given.to_string(),
                results: found.results.map(str::to_owned),
            }),
            inputs: inputs.iter().map(ToString::to_string).collect(),
        })
    }

    fn apply(self, graph: &mut Graph<'_>, root: &str, unused: &mut Vec<String>) -> Result<()> {
        let node = graph.node_mut(root).ok_or_else(missing)?;
        unused.extend(operands(node).map(|input| input.node().to_owned()));
        self.set(change(node, ATTENTION, self.inputs.iter().cloned()));
        let Some(gradient) = &self.gradient else { return Ok(()) };
        let [query, key, value] = &gradient.results;
        for (output, result) in [(1, key), (2, value)] {
            redirect(graph, first(result), Input::Data { node: query, output });
            unused.push(result.clone());
        }
        let statistics = Input::Data { node: root, output: 1 };
        let given = [first(root).to_string(), statistics.to_string(), gradient.given.clone()];
        let node = graph.node_mut(query).ok_or_else(missing)?;
        unused.extend(operands(node).map(|input| input.node().to_owned()));
        self.set(change(node, GRADIENT, self.inputs.iter().cloned().chain(given)));
        Ok(())
    }

    /// Sets the attributes that both ops have.
    fn set(&self, node: &mut Node<'_>) {
        node.set_attr("T", self.dtype)
            .set_attr("B", self.bias.unwrap_or(DType::Float32))
            .set_attr("M", i64::from(self.has_mask))
            .set_attr("N", i64::from(self.bias.is_some()))
            .set_attr("scale", self.scale)
            .set_attr("causal", self.is_causal)
            .set_attr("masked", self.masked)
            .set_attr("heads_first", self.heads_first);
    }
}

/// Returns whether the results, and the nodes that were looked at, are where another one is.
fn is_on_one_device(view: View<'_, '_>, other: &Node<'_>, results: &[&str]) -> bool {
    let replaced = view.nodes().filter(|node| node.op() != "Const");
    let results = results.iter().filter_map(|name| view.graph.node(name));
    replaced.chain(results).all(|node| node.device() == other.device())
}

/// A softmax of scores in float32, and what they are computed from.
struct Softmax<'g> {
    node: Input<'g>,
    /// The product of query and key.
    scores: Input<'g>,
    mask: Option<Mask<'g>>,
    bias: Option<Input<'g>>,
    scale: Option<Scale<'g>>,
}

impl<'g> Softmax<'g> {
    /// Finds the softmax whose results are used as these.
    fn find(view: View<'g, '_>, probabilities: Input<'g>) -> Option<Self> {
        let mut node = view.plain(probabilities);
        if let Some([from]) = view.operands(node, &["Cast"]) {
            node = view.plain(from);
        }
        view.node(node, &["Softmax"]).filter(|node| has_type(node, "T", DType::Float32))?;
        let [mut scores] = view.operands(node, &["Softmax"])?;
        let mut chosen = None;
        if let Some([condition, given, otherwise]) = view.operands(scores, &["SelectV2"]) {
            (chosen, scores) = (Some((condition, view.number(otherwise)?)), given);
        }
        let mut bias = None;
        if let Some(terms) = view.operands(scores, &["AddV2", "Add"]) {
            let is_product = |input| view.search(|| product(view, input).is_some());
            let [given, added] = orders(terms).into_iter().find(|&[of, _]| is_product(of))?;
            (scores, bias) = (given, Some(added));
        }
        let (scores, scale) = product(view, scores)?;
        let mask = chosen.map(|(condition, masked)| Mask::of(view, condition, masked));
        Some(Self { node, scores, mask, bias, scale })
    }
}

/// What scores are multiplied by.
#[derive(Clone, Copy)]
struct Scale<'g> {
    factor: Input<'g>,
    /// Its value, if it is a constant.
    number: Option<f32>,
}

impl<'g> Scale<'g> {
    /// Returns the attribute of the op.
    fn attribute(self) -> f32 {
        self.number.unwrap_or(0.0)
    }

    /// Returns whether an input is this.
    fn is(self, view: View<'g, '_>, other: Input<'g>) -> bool {
        view.is_same(self.factor, other)
            || self.number.is_some() && view.number(other) == self.number
    }

    /// Returns whether it is a number, or the reciprocal root of the elements of a line of query and key, computed from the shape of one.
    fn is_known(self, view: View<'g, '_>, [query, key]: [Input<'g>; 2]) -> bool {
        if let Some(number) = self.number {
            // That is the attribute for the other case.
            return number != 0.0;
        }
        view.search(|| {
            let find = || {
                let root = match view.operands(self.factor, &["Reciprocal"]) {
                    Some([root]) => root,
                    None => {
                        let [one, root] = view.operands(self.factor, &["RealDiv"])?;
                        (view.number(one)? == 1.0).then_some(root)?
                    }
                };
                let [elements] = view.operands(root, &["Sqrt"])?;
                let [elements] = view.operands(elements, &["Cast"])?;
                let [shape, first, ..]: [_; 4] = view.operands(elements, &["StridedSlice"])?;
                let [of] = view.operands(shape, &["Shape"])?;
                let is_last = view.constant(first)?.ints()? == [-1];
                Some(is_last && (view.is_same(of, query) || view.is_same(of, key)))
            };
            find().unwrap_or(false)
        })
    }
}

/// Returns the product that scores are, and what it is multiplied by.
fn product<'g>(view: View<'g, '_>, scores: Input<'g>) -> Option<(Input<'g>, Option<Scale<'g>>)> {
    let (mut scores, mut scale) = (view.plain(scores), None);
    let from = |scores| {
        let scores = shorter(view, scores).map_or(scores, |(short, _)| short);
        view.node(scores, &["Einsum"]).map(|_| view.plain(scores))
    };
    if let Some(factors) = view.operands(scores, &["Mul"]) {
        let is_product = |input| view.search(|| from(input).is_some());
        let [of, factor] = orders(factors).into_iter().find(|&[of, _]| is_product(of))?;
        (scores, scale) = (of, Some(Scale { factor, number: view.search(|| view.number(factor)) }));
    }
    Some((from(scores)?, scale))
}

#[cfg(test)]
mod tests;

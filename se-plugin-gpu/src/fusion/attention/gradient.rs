//! The gradient of attention.

use super::Parts;
use super::equation::{Product, RESULT};
use crate::fusion::pattern::{View, operands, orders};
use se_plugin::graph::{Input, Node};

/// The gradient of attention, whose parts are in the graph.
pub(super) struct Found<'g> {
    /// The gradient of the result.
    pub(super) given: Input<'g>,
    /// The nodes of the gradients of query, key and value.
    pub(super) results: [&'g str; 3],
}

impl<'g> Found<'g> {
    /// Finds the gradient, if the graph has it whole.
    pub(super) fn find(view: View<'g, '_>, parts: &Parts<'g>) -> Option<Self> {
        let products = || view.graph.nodes().filter(|node| node.op() == "Einsum");
        let [query, key] = parts.of_scores;
        let [scores, value] = parts.of_result;
        products().find_map(|of_query| {
            view.attempt(|| {
                let slopes = Product::of(of_query)?.times(
                    view,
                    parts.logits.operands[key],
                    &parts.logits,
                    [RESULT, key, query],
                )?;
                let given = given(view, parts, slopes)?;
                let of_key = products().find(|&node| {
                    let factor = parts.logits.operands[query];
                    let find = || {
                        Product::of(node)?.times(view, factor, &parts.logits, [RESULT, query, key])
                    };
                    find().is_some_and(|found| view.is_same(found, slopes))
                })?;
                let of_value = products().find(|&node| {
                    let factor = parts.values.operands[scores];
                    let find = || {
                        Product::of(node)?.times(
                            view,
                            factor,
                            &parts.values,
                            [RESULT, scores, value],
                        )
                    };
                    find().is_some_and(|found| view.is_same(found, given))
                })?;
                let nodes = [of_query, of_key, of_value];
                let is_free =
                    |node: &Node<'_>| view.graph.is_preserved(node.name()).is_ok_and(|is| !is);
                let is_one = nodes.iter().all(|node| node.device() == of_query.device());
                // Those that get other names.
                (is_one && is_free(of_key) && is_free(of_value))
                    .then(|| Self { given, results: nodes.map(Node::name) })
            })
        })
    }
}

/// Returns the gradient of the result, if `slopes` are those of the product of query and key.
fn given<'g>(view: View<'g, '_>, parts: &Parts<'g>, slopes: Input<'g>) -> Option<Input<'g>> {
    let softmax = &parts.softmax;
    let mut slopes = whole(view, slopes);
    if let Some([from]) = view.operands(slopes, &["Cast"]) {
        slopes = from;
    }
    // TensorFlow's own passes change which of them are multiplied first.
    let mut factors = Vec::new();
    take_factors(view, slopes, &mut factors, 4);
    if let Some(scale) = softmax.scale {
        let at = factors.iter().position(|&factor| scale.is(view, factor))?;
        factors.remove(at);
    }
    if let Some(mask) = &softmax.mask {
        let [only] = factors[..] else { return None };
        let [condition, used, otherwise] = view.operands(only, &["SelectV2"])?;
        let is_mask =
            view.is_same(condition, mask.condition) && view.number(otherwise) == Some(0.0);
        is_mask.then_some(())?;
        factors.clear();
        take_factors(view, used, &mut factors, 4);
    }
    let at = factors.iter().position(|&factor| view.is_same(factor, softmax.node))?;
    factors.remove(at);
    let [differences] = factors[..] else { return None };
    let is_softmax = |&[_, other]: &[Input<'g>; 2]| view.is_same(other, softmax.node);
    let [of_softmax, sums] = view.operands(differences, &["Sub"])?;
    let sum = view.node(sums, &["Sum"]).filter(|sum| sum.attr("keep_dims").unwrap_or(false))?;
    let [products, axes] = operands(sum).collect::<Vec<_>>().try_into().ok()?;
    let is_last = matches!(view.constant(axes)?.ints()?[..], [-1 | 3]);
    let [factor, _] = orders(view.operands(products, &["Mul"])?).into_iter().find(is_softmax)?;
    (is_last && view.is_same(factor, of_softmax)).then_some(())?;
    let mut of_softmax = view.plain(of_softmax);
    if let Some([from]) = view.operands(of_softmax, &["Cast"]) {
        of_softmax = view.plain(from);
    }
    let [scores, value] = parts.of_result;
    let product = Product::of(view.node(of_softmax, &["Einsum"])?)?;
    product.times(view, parts.values.operands[value], &parts.values, [RESULT, value, scores])
}

/// Adds the factors of a product.
fn take_factors<'g>(
    view: View<'g, '_>,
    product: Input<'g>,
    factors: &mut Vec<Input<'g>>,
    depth: usize,
) {
    let product = whole(view, product);
    match view.operands::<2>(product, &["Mul"]) {
        Some(both) if depth > 0 => {
            both.into_iter().for_each(|factor| take_factors(view, factor, factors, depth - 1));
        }
        _ => factors.push(product),
    }
}

/// Returns a gradient before it was summed along axes of which the tensor has one element: scores have none.
fn whole<'g>(view: View<'g, '_>, input: Input<'g>) -> Input<'g> {
    let mut input = view.plain(input);
    let find = |input| {
        let [sum, _] = view.operands(input, &["Reshape"])?;
        let [from, axes] = view.operands(sum, &["Sum"])?;
        let axes = view.graph.node(axes.node())?;
        (axes.op() == "BroadcastGradientArgs").then(|| view.plain(from))
    };
    while let Some(from) = view.attempt(|| find(input)) {
        input = from;
    }
    input
}

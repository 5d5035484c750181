//! Products by `Einsum`, and the order of their axes.

use crate::fusion::pattern::{View, operands, orders};
use se_plugin::graph::{Input, Node};

/// The labels of the four axes of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axes([u8; 4]);

impl Axes {
    fn parse(labels: &str) -> Option<Self> {
        let labels: [u8; 4] = labels.trim().as_bytes().try_into().ok()?;
        let is_distinct = (0..4).all(|at| !labels[..at].contains(&labels[at]));
        (is_distinct && labels.iter().all(u8::is_ascii_alphabetic)).then_some(Self(labels))
    }
}

/// A product of two tensors of four axes.
#[derive(Debug)]
pub(super) struct Product<'g> {
    pub(super) operands: [Input<'g>; 2],
    /// Of the operands, and of the result.
    axes: [Axes; 3],
}

/// The place of the result among the axes of a product.
pub(super) const RESULT: usize = 2;

impl<'g> Product<'g> {
    /// Returns that of a node.
    pub(super) fn of(node: &'g Node<'_>) -> Option<Self> {
        let equation = node.attr::<String>("equation").ok().filter(|_| node.op() == "Einsum")?;
        let (inputs, result) = equation.split_once("->")?;
        let (first, second) = inputs.split_once(',')?;
        let [first, second, result] = [first, second, result].map(Axes::parse);
        let operands = operands(node).collect::<Vec<_>>().try_into().ok()?;
        Some(Self { operands, axes: [first?, second?, result?] })
    }

    /// Returns the places of query and key among the operands, if this is the product of both: the scores have the axes batch, head,
    /// line of the query, line of the key.
    pub(super) fn query_and_key(&self) -> Option<[usize; 2]> {
        let [.., row, column] = self.axes[RESULT].0;
        let has = |operand: usize, label: u8| self.axes[operand].0.contains(&label);
        orders([0, 1]).into_iter().find(|&[query, key]| has(query, row) && has(key, column))
    }

    /// Returns whether heads come before lines, if this is the product of query and key, and `values` that of their scores and values.
    pub(super) fn heads_first(
        &self,
        [query, key]: [usize; 2],
        values: &Self,
        [scores, value]: [usize; 2],
    ) -> Option<bool> {
        let is = |heads_first: bool| {
            let of = |batch: u8, head: u8, line: u8, element: u8| match heads_first {
                true => Axes([batch, head, line, element]),
                false => Axes([batch, line, head, element]),
            };
            let [batch, head, row, column] = self.axes[RESULT].0;
            let element = self.axes[query].0[3];
            let is_score = self.axes[query] == of(batch, head, row, element)
                && self.axes[key] == of(batch, head, column, element);
            let [batch, head, row, column] = values.axes[scores].0;
            let element = values.axes[value].0[3];
            let is_result = values.axes[value] == of(batch, head, column, element)
                && values.axes[RESULT] == of(batch, head, row, element);
            is_score && is_result
        };
        [false, true].into_iter().find(|&heads_first| is(heads_first))
    }

    /// Returns what `factor` is multiplied by, if this is a product with it whose axes are those of `other`: `roles` are places there of
    /// what is returned, of the factor and of the result.
    pub(super) fn times(
        &self,
        view: View<'g, '_>,
        factor: Input<'g>,
        other: &Self,
        [of, by, result]: [usize; 3],
    ) -> Option<Input<'g>> {
        let found = orders([0, 1]).into_iter().find(|&[at, factor_at]| {
            let mut roles = [result; 3];
            (roles[at], roles[factor_at]) = (of, by);
            view.is_same(self.operands[factor_at], factor) && self.has_axes(other, roles)
        });
        found.map(|[at, _]| self.operands[at])
    }

    /// Returns whether the axes are those of `other` at these places, by other labels.
    fn has_axes(&self, other: &Self, roles: [usize; 3]) -> bool {
        let labels = |axes: &Axes| axes.0.into_iter();
        let own = self.axes.iter().flat_map(labels);
        let its = roles.iter().flat_map(|&role| labels(&other.axes[role]));
        let pairs: Vec<_> = own.zip(its).collect();
        pairs.iter().all(|(own, its)| pairs.iter().all(|(known, of)| (known == own) == (of == its)))
    }
}

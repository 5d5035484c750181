//! Shape functions: runs of their own, and the comparison with what an op computes.

use super::abi;
use super::definition::{AttrKind, AttrValue};
use super::node::{Given, Node};
use super::outputs::Outputs;
use super::registry;
use crate::tensor::Tensor;
use crate::violations::Violation;
use tf_op_plugin::kernel::PartialShape;
use tf_op_plugin::{DType, Result};

/// The name of the shape function in violations.
const INFER: &str = "infer_shapes";

/// A shape of an input, for [`NodeShapes`]: an array of lengths, in which `None` is unknown, `()` for a scalar, or a
/// [`PartialShape`].
pub trait IntoShape {
    #[doc(hidden)]
    fn into_shape(self) -> PartialShape;
}

impl IntoShape for PartialShape {
    fn into_shape(self) -> PartialShape {
        self
    }
}

impl IntoShape for () {
    fn into_shape(self) -> PartialShape {
        PartialShape::new([])
    }
}

impl<const N: usize> IntoShape for [i64; N] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self.map(Some))
    }
}

impl<const N: usize> IntoShape for [Option<i64>; N] {
    fn into_shape(self) -> PartialShape {
        PartialShape::new(self)
    }
}

/// A run of an op's shape function, as when a graph is built. Inputs are in the order of the definition.
#[derive(Clone, Debug)]
#[must_use = "`infer` runs the function"]
pub struct NodeShapes {
    op: String,
    inputs: Vec<Vec<PartialShape>>,
    attributes: Vec<(String, AttrValue)>,
}

impl NodeShapes {
    pub(super) fn new(op: &str) -> Self {
        Self { op: op.to_owned(), inputs: Vec::new(), attributes: Vec::new() }
    }

    /// Adds the shape of an input of one tensor.
    pub fn input_shape(self, shape: impl IntoShape) -> Self {
        self.input_shapes([shape])
    }

    /// Adds the shapes of an input that is a list of tensors, or an optional one.
    pub fn input_shapes<S: IntoShape>(mut self, shapes: impl IntoIterator<Item = S>) -> Self {
        self.inputs.push(shapes.into_iter().map(S::into_shape).collect());
        self
    }

    /// Sets an attribute. A type has its default or the first allowed value.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Runs the shape function, and returns the shapes of the outputs.
    ///
    /// # Errors
    /// Those of the function, and TensorFlow's errors for inputs and attributes that do not fit the definition.
    ///
    /// # Panics
    /// If the function breaks a rule: an output that is not set, for instance.
    #[track_caller]
    pub fn infer(mut self) -> Result<Vec<PartialShape>> {
        let op = registry::op(&self.op);
        for attribute in op.iter().flat_map(|op| &op.attributes) {
            let is_given = self.attributes.iter().any(|(name, _)| *name == attribute.name);
            if attribute.kind == AttrKind::Type
                && !attribute.is_list
                && !is_given
                && attribute.default.is_none()
            {
                let first = attribute.allowed.first().cloned();
                let dtype = first.unwrap_or(AttrValue::Type(DType::Float32));
                self.attributes.push((attribute.name.clone(), dtype));
            }
        }
        let types: Vec<Given> = self.inputs.iter().map(|shapes| vec![None; shapes.len()]).collect();
        let node = Node::new(&self.op, &self.op, &types, &self.attributes)?;
        let result = abi::infer(&node, self.inputs.concat());
        if let Ok(shapes) = &result {
            check_set(&node, shapes);
        }
        node.account.check_freed(false);
        Violation::check(&node.account.log.take());
        Ok(result?.into_iter().map(|shape| shape.unwrap_or_else(PartialShape::unknown)).collect())
    }
}

/// Records a violation for each output that the function did not set.
fn check_set(node: &Node, shapes: &[Option<PartialShape>]) {
    for (slot, _) in node.outputs.iter().zip(shapes).filter(|(_, shape)| shape.is_none()) {
        let what =
            format!("the shape of output `{}` is not set; call `set_unknown` first", slot.name);
        node.account.add(INFER, what);
    }
}

/// Runs the shape function with all that is known of the inputs' shapes, with their ranks, and with nothing, and compares
/// its results with the outputs, up to the first that differs.
pub(super) fn check(node: &Node, inputs: &[Tensor], outputs: &Outputs) {
    let full = |shape: &[i64]| PartialShape::new(shape.iter().copied().map(Some));
    let ranks = |shape: &[i64]| PartialShape::new(shape.iter().map(|_| None));
    let nothing = |_: &[i64]| PartialShape::unknown();
    let levels = [&full as &dyn Fn(&[i64]) -> PartialShape, &ranks, &nothing];
    for known in levels {
        let shapes: Vec<_> = inputs.iter().map(|tensor| known(&tensor.shape)).collect();
        let shown: Vec<_> = shapes.iter().map(text).collect();
        let found = match abi::infer(node, shapes) {
            Ok(inferred) => {
                check_set(node, &inferred);
                differences(&inferred, outputs)
            }
            Err(error) => {
                vec![format!("fails, and `compute` succeeds: {error}; no graph can have the node")]
            }
        };
        for what in &found {
            node.account.add(INFER, format!("{what} (inputs of the shapes {})", shown.join(", ")));
        }
        if !found.is_empty() {
            break;
        }
    }
}

/// Returns a text for each output that does not have the shape that was inferred.
fn differences(inferred: &[Option<PartialShape>], outputs: &Outputs) -> Vec<String> {
    let mut found = Vec::new();
    for (index, (shape, tensor)) in inferred.iter().zip(&outputs.tensors).enumerate() {
        if let Some(shape) = shape
            && !fits(shape, &tensor.shape)
        {
            found.push(format!(
                "output {index}, `{}`, has the shape {:?}, and the shape function says {}",
                outputs.names[index],
                tensor.shape,
                text(shape)
            ));
        }
    }
    found
}

fn text(shape: &PartialShape) -> String {
    AttrValue::from(shape.clone()).to_string()
}

fn fits(shape: &PartialShape, found: &[i64]) -> bool {
    shape.dims().is_none_or(|dims| {
        dims.len() == found.len()
            && dims.iter().zip(found).all(|(dim, len)| dim.is_none_or(|dim| dim == *len))
    })
}

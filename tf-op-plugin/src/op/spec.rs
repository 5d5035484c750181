//! What an op consists of, as `#[op]` collects it.

use super::attribute::AttributeSpec;
use crate::dtype::DType;

/// The facts of an op that its attribute and its doc comments say.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The op's name.
    pub name: &'static str,
    /// The documentation, in Markdown.
    pub doc: &'static str,
    /// The inputs.
    pub inputs: &'static [ArgSpec],
    /// The outputs.
    pub outputs: &'static [ArgSpec],
    /// Whether the op is stateful: TensorFlow neither folds nor merges its nodes.
    pub stateful: bool,
    /// The gradient: an op's name, or `module:function`; empty if there is none.
    pub gradient: &'static str,
    /// File and line of the attribute.
    pub place: &'static str,
}

/// An input or an output.
#[derive(Clone, Copy, Debug)]
pub struct ArgSpec {
    /// The name.
    pub name: &'static str,
    /// The attribute that counts the tensors of a list; empty for `num_NAME`.
    pub count: &'static str,
    /// The dimensions, if they are declared.
    pub shape: Option<&'static [Dim]>,
}

/// A declared dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Of this length.
    Fixed(i64),
    /// Of the same length as all others of this name.
    Named(&'static str),
    /// Of any length.
    Any,
    /// Any number of dimensions, the same as all others of this name.
    Rest(&'static str),
}

/// The type of an input or an output, which its Rust type decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgType {
    /// The type of the elements.
    pub dtype: DType,
    /// How many tensors there are.
    pub repeat: Repeat,
    /// The shape that all values of the type have: no dimension of a number, one of a [`TensorBuf`](crate::TensorBuf).
    pub shape: Option<&'static [Dim]>,
}

/// How many tensors an input or an output has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One.
    One,
    /// None or one.
    Optional,
    /// Any number.
    List,
    /// Two: values and row splits.
    Ragged,
}

impl ArgSpec {
    /// Returns the declared shape, or that of the type.
    pub(super) const fn dims(&self, ty: &ArgType) -> Option<&'static [Dim]> {
        match self.shape {
            Some(dims) => Some(dims),
            None => ty.shape,
        }
    }

    /// Returns the attribute that counts the tensors of a list.
    pub(super) fn count_attribute(&self) -> String {
        match self.count {
            "" => format!("num_{}", self.name),
            count => String::from(count),
        }
    }

    /// Returns the names that TensorFlow gets.
    pub(super) fn names(&self, repeat: Repeat) -> Vec<String> {
        match repeat {
            Repeat::Ragged => {
                vec![format!("{}_values", self.name), format!("{}_row_splits", self.name)]
            }
            _ => vec![String::from(self.name)],
        }
    }
}

/// What `#[op]` implements: the part of an [`Op`](super::Op) that is not code of the author's.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no definition of an op",
    note = "put `#[op(name = \"...\", inputs(...), outputs(...))]` on `struct {Self}`"
)]
pub trait OpSpec: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    const SPEC: Spec;

    #[doc(hidden)]
    fn attributes() -> Vec<AttributeSpec>;

    /// Reads the attributes: one that only `#[state]` needs would be dead code.
    #[doc(hidden)]
    fn use_attributes(&self);

    #[doc(hidden)]
    fn create(
        construction: &crate::kernel::OpKernelConstruction<'_>,
    ) -> tf_plugin_core::Result<Self>;
}

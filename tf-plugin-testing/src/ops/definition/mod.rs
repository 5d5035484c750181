//! Definitions of ops, as TensorFlow's registry has them.

mod check;
mod parse;
mod value;

pub(super) use parse::{argument, attribute};
pub use value::AttrValue;
pub(super) use value::Dims;

use tf_fs_sys::TF_ShapeInferenceFn;
use tf_op_plugin::__private::wire::{put_bytes, put_bytes_if_any, put_message, put_varint};
use tf_op_plugin::DType;

/// The definition of an op.
#[derive(Clone, Debug, Default)]
pub(super) struct OpDef {
    pub(super) name: String,
    pub(super) inputs: Vec<ArgDef>,
    pub(super) outputs: Vec<ArgDef>,
    pub(super) attributes: Vec<AttrDef>,
    pub(super) is_stateful: bool,
    pub(super) infer_shapes: TF_ShapeInferenceFn,
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArgDef {
    pub(super) name: String,
    /// The attribute with the length of a list.
    pub(super) count: Option<String>,
    pub(super) kind: ArgKind,
    pub(super) is_ref: bool,
}

/// The type of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgKind {
    /// Always the same.
    Type(DType),
    /// That in an attribute.
    Attr(String),
    /// A list of tensors of the types in an attribute.
    ListAttr(String),
}

impl ArgDef {
    /// Returns whether the argument is a list of tensors.
    pub(super) fn is_list(&self) -> bool {
        self.count.is_some() || matches!(self.kind, ArgKind::ListAttr(_))
    }
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttrDef {
    pub(super) name: String,
    pub(super) kind: AttrKind,
    pub(super) is_list: bool,
    pub(super) minimum: Option<i64>,
    /// The values that it may have; all if there are none.
    pub(super) allowed: Vec<AttrValue>,
    pub(super) default: Option<AttrValue>,
}

/// The kind of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttrKind {
    String,
    Int,
    Float,
    Bool,
    Type,
    Shape,
    Tensor,
    Func,
}

impl AttrKind {
    pub(super) const ALL: [Self; 8] = [
        Self::String,
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::Type,
        Self::Shape,
        Self::Tensor,
        Self::Func,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Type => "type",
            Self::Shape => "shape",
            Self::Tensor => "tensor",
            Self::Func => "func",
        }
    }
}

impl OpDef {
    pub(super) fn attribute(&self, name: &str) -> Option<&AttrDef> {
        self.attributes.iter().find(|one| one.name == name)
    }

    /// Returns the serialised `OpDef`.
    pub(super) fn to_proto(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, self.name.as_bytes());
        for (number, arguments) in [(2, &self.inputs), (3, &self.outputs)] {
            for argument in arguments {
                put_message(&mut out, number, |out| argument.encode(out));
            }
        }
        for attribute in &self.attributes {
            put_message(&mut out, 4, |out| attribute.encode(out));
        }
        if self.is_stateful {
            put_varint(&mut out, 17, 1);
        }
        out
    }
}

impl ArgDef {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, self.name.as_bytes());
        match &self.kind {
            ArgKind::Type(dtype) => put_varint(out, 3, dtype.as_raw().into()),
            ArgKind::Attr(name) => put_bytes(out, 4, name.as_bytes()),
            ArgKind::ListAttr(name) => put_bytes(out, 6, name.as_bytes()),
        }
        put_bytes_if_any(out, 5, self.count.as_deref().unwrap_or_default().as_bytes());
        if self.is_ref {
            put_varint(out, 16, 1);
        }
    }
}

impl AttrDef {
    /// Returns the type as TensorFlow writes it.
    pub(super) fn type_text(&self) -> String {
        match self.is_list {
            true => format!("list({})", self.kind.name()),
            false => self.kind.name().to_owned(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, 1, self.name.as_bytes());
        put_bytes(out, 2, self.type_text().as_bytes());
        if let Some(default) = &self.default {
            put_message(out, 3, |out| default.encode(out));
        }
        if let Some(minimum) = self.minimum {
            put_varint(out, 5, 1);
            put_varint(out, 6, minimum.cast_unsigned());
        }
        if !self.allowed.is_empty() {
            put_message(out, 7, |out| AttrValue::List(self.allowed.clone()).encode(out));
        }
    }
}

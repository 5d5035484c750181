//! Values of attributes.

use std::fmt;
use tf_op_plugin::__private::type_name;
use tf_op_plugin::__private::wire::put_bytes;
use tf_op_plugin::DType;
use tf_op_plugin::kernel::PartialShape;
use tf_op_plugin::node::Attribute;

/// The value of an attribute of a node: a `bool`, an `i64`, an `i32`, an `f32`, a string, a [`DType`], a [`PartialShape`], or an
/// array or a `Vec` of one of these, each by [`From`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttrValue {
    /// A string of any bytes.
    String(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A boolean.
    Bool(bool),
    /// A type.
    Type(DType),
    /// A shape.
    Shape(PartialShape),
    /// A list of values of one kind.
    List(Vec<AttrValue>),
}

macro_rules! values {
    ($($type:ty, |$value:ident| $conversion:expr;)*) => {$(
        impl From<$type> for AttrValue {
            fn from($value: $type) -> Self {
                $conversion
            }
        }

        impl From<Vec<$type>> for AttrValue {
            fn from(values: Vec<$type>) -> Self {
                Self::List(values.into_iter().map(Self::from).collect())
            }
        }

        impl<const N: usize> From<[$type; N]> for AttrValue {
            fn from(values: [$type; N]) -> Self {
                Self::List(values.into_iter().map(Self::from).collect())
            }
        }
    )*};
}

values! {
    &str, |value| Self::String(value.as_bytes().to_vec());
    String, |value| Self::String(value.into_bytes());
    &[u8], |value| Self::String(value.to_vec());
    i64, |value| Self::Int(value);
    i32, |value| Self::Int(value.into());
    f32, |value| Self::Float(value);
    bool, |value| Self::Bool(value);
    DType, |value| Self::Type(value);
    PartialShape, |value| Self::Shape(value);
}

impl AttrValue {
    /// Returns the name of the kind in error texts, as TensorFlow has it.
    pub(in crate::ops) fn kind(&self) -> String {
        match self {
            Self::String(_) => "string".into(),
            Self::Int(_) => "int".into(),
            Self::Float(_) => "float".into(),
            Self::Bool(_) => "bool".into(),
            Self::Type(_) => "type".into(),
            Self::Shape(_) => "shape".into(),
            Self::List(list) => match list.first() {
                None => "list(any)".into(),
                Some(first) => format!("list({})", first.kind()),
            },
        }
    }

    /// Appends the serialised `AttrValue`.
    pub(in crate::ops) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::String(bytes) => put_bytes(out, 2, bytes),
            Self::Int(value) => value.encode(out),
            Self::Float(value) => value.encode(out),
            Self::Bool(value) => value.encode(out),
            Self::Type(value) => value.encode(out),
            Self::Shape(value) => value.encode(out),
            Self::List(values) => {
                // The fields of a list are those of a value, and need not be packed.
                let mut list = Vec::new();
                values.iter().for_each(|value| value.encode(&mut list));
                put_bytes(out, 1, &list);
            }
        }
    }
}

/// TensorFlow's form of a value in error texts.
impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Type(value) => write!(f, "DT_{}", type_name(*value).to_uppercase()),
            Self::Shape(shape) => match shape.dims() {
                None => f.write_str("<unknown>"),
                Some(dims) => write!(f, "{}", Dims(dims)),
            },
            Self::List(values) => {
                let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

/// Dimensions as TensorFlow prints them: `[2,?]`.
pub(in crate::ops) struct Dims<'d>(pub(in crate::ops) &'d [Option<i64>]);

impl fmt::Display for Dims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dim = |dim: &Option<i64>| dim.map_or_else(|| String::from("?"), |dim| dim.to_string());
        let dims: Vec<_> = self.0.iter().map(dim).collect();
        write!(f, "[{}]", dims.join(","))
    }
}

/// Returns the type with one of TensorFlow's names, as in `float` or `DT_FLOAT`.
pub(in crate::ops) fn type_of_name(name: &str) -> Option<DType> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("dt_").unwrap_or(&name);
    DType::ALL.iter().copied().find(|one| type_name(*one) == name || one.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_op_plugin::node::Node;

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut node = Node::new("n", "Op");
        let mut set = |name: &str, value: AttrValue| {
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            node.set_raw_attr(name, bytes);
        };
        set("ints", [1_i64, -1].into());
        set("floats", vec![1.5_f32].into());
        set("texts", ["a", ""].into());
        set("types", [DType::Float32].into());
        set("empty", Vec::<bool>::new().into());
        set("shape", PartialShape::new([None, Some(2)]).into());
        assert_eq!(node.attr::<Vec<i64>>("ints").unwrap(), [1, -1]);
        assert_eq!(node.attr::<Vec<f32>>("floats").unwrap(), [1.5]);
        assert_eq!(node.attr::<Vec<String>>("texts").unwrap(), ["a", ""]);
        assert_eq!(node.attr::<Vec<DType>>("types").unwrap(), [DType::Float32]);
        assert!(node.attr::<Vec<bool>>("empty").unwrap().is_empty());
        let shape = node.attr::<PartialShape>("shape").unwrap();
        assert_eq!(AttrValue::from(shape).to_string(), "[?,2]");
        for dtype in DType::ALL {
            assert_eq!(type_of_name(&AttrValue::from(*dtype).to_string()), Some(*dtype));
        }
    }
}

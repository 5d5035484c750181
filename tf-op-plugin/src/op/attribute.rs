//! Attributes of ops: their types, defaults and limits.

use crate::dtype::DType;
use crate::kernel::{Attribute, OpKernelConstruction, PartialShape};
use core::fmt::{self, Write as _};
use serde_json::{Value, json};
use tf_plugin_core::{Error, Result, ensure};

/// The keywords of Python that Rust's fields can be named like. TensorFlow changes such names of inputs, and not of attributes:
/// the wrappers of the whole library are then a syntax error.
const PYTHON_KEYWORDS: [&str; 21] = [
    "and", "assert", "class", "def", "del", "elif", "except", "finally", "from", "global",
    "import", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "try", "with", "yield",
];

/// An attribute of an op.
#[derive(Clone, Debug)]
pub struct AttributeSpec {
    /// The name.
    pub name: &'static str,
    /// The documentation, in Markdown.
    pub doc: &'static str,
    /// The type, as TensorFlow writes it.
    pub kind: &'static str,
    /// The default, as TensorFlow writes it and as JSON.
    pub default: Option<(String, Value)>,
    /// The lowest number, or the fewest elements of a list.
    pub minimum: Option<Minimum>,
    /// The values that it may have; all if there are none.
    pub allowed: &'static [&'static str],
}

/// The lowest value of an attribute, as its author has written it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Minimum {
    /// That of an integer or a float, or the fewest elements of a list.
    Int(i64),
    /// That of a float.
    Float(f64),
}

impl Minimum {
    const fn to_float(self) -> f64 {
        match self {
            Self::Int(minimum) => minimum as f64,
            Self::Float(minimum) => minimum,
        }
    }

    /// Returns whether a number, or the length of a list, is not less.
    fn allows(self, value: &Value) -> bool {
        let size = value.as_i64().or(value.as_array().map(|list| list.len() as i64));
        match (self, size) {
            (Self::Int(minimum), Some(size)) => size >= minimum,
            _ => value.as_f64().is_some_and(|value| value >= self.to_float()),
        }
    }

    pub(super) fn json(self) -> Value {
        match self {
            Self::Int(minimum) => json!(minimum),
            Self::Float(minimum) => json!(minimum),
        }
    }
}

impl fmt::Display for Minimum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(minimum) => minimum.fmt(f),
            Self::Float(minimum) => minimum.fmt(f),
        }
    }
}

impl AttributeSpec {
    /// Creates an attribute of a type.
    #[must_use]
    pub fn new<T: OpAttribute>(
        name: &'static str,
        doc: &'static str,
        default: Option<T>,
        minimum: Option<Minimum>,
        allowed: &'static [&'static str],
    ) -> Self {
        let default = default.map(|default| (default.literal(), default.json()));
        Self { name, doc, kind: T::KIND, default, minimum, allowed }
    }

    /// Checks the limits and the default: TensorFlow aborts the process, or fails its import, for those that do not fit.
    pub(super) fn check(&self) -> Result<()> {
        let Self { name, kind, .. } = self;
        ensure!(
            !PYTHON_KEYWORDS.contains(name),
            Error::invalid_argument(format!(
                "attribute `{name}` is a keyword of Python, in which TensorFlow's wrappers would be invalid; rename it"
            ))
        );
        let has_minimum = *kind == "int" || *kind == "float" || kind.starts_with("list(");
        ensure!(
            self.minimum.is_none() || has_minimum,
            Error::invalid_argument(format!("attribute `{name}` is a {kind}, which has no `min`"))
        );
        ensure!(
            *kind == "float" || !matches!(self.minimum, Some(Minimum::Float(_))),
            Error::invalid_argument(format!(
                "attribute `{name}` is a {kind}, whose `min` is an integer"
            ))
        );
        ensure!(
            self.allowed.is_empty() || kind.ends_with("string") || kind.ends_with("string)"),
            Error::invalid_argument(format!(
                "attribute `{name}` is a {kind}; `allowed` is for strings"
            ))
        );
        let Some((literal, default)) = &self.default else { return Ok(()) };
        let numbers = default.as_array().map_or(core::slice::from_ref(default), Vec::as_slice);
        // JSON has `null` for them.
        let is_finite = !kind.contains("float") || !numbers.contains(&Value::Null);
        ensure!(
            is_finite,
            Error::invalid_argument(format!(
                "attribute `{name}` cannot have its default, {literal}: TensorFlow's wrappers in Python have finite numbers only; \
                 choose one, such as `f32::MAX`"
            ))
        );
        let reaches = self.minimum.is_none_or(|minimum| minimum.allows(default));
        let texts = default.as_array().map_or(core::slice::from_ref(default), Vec::as_slice);
        let is_allowed = |text: &Value| self.allowed.iter().any(|one| text == one);
        ensure!(
            reaches && (self.allowed.is_empty() || texts.iter().all(is_allowed)),
            Error::invalid_argument(format!(
                "attribute `{name}` cannot have its default, {literal}; change `default`, `min` or `allowed`"
            ))
        );
        Ok(())
    }

    /// Returns the definition as TensorFlow's `REGISTER_OP` has it.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: ", self.name);
        if self.kind == "string" && !self.allowed.is_empty() {
            let allowed: Vec<_> = self.allowed.iter().map(|one| quoted(one)).collect();
            let _ = write!(text, "{{{}}}", allowed.join(", "));
        } else {
            text.push_str(self.kind);
        }
        // TensorFlow has none for floats: `read` checks those.
        if let Some(minimum) = self.minimum
            && self.kind != "float"
        {
            let _ = write!(text, " >= {minimum}");
        }
        if let Some((default, _)) = &self.default {
            let _ = write!(text, " = {default}");
        }
        text
    }
}

/// Reads an attribute, which TensorFlow has checked except for the values of lists and the limits of floats.
///
/// # Errors
/// `INVALID_ARGUMENT`, naming the attribute.
pub fn read<T: OpAttribute>(
    construction: &OpKernelConstruction<'_>,
    name: &str,
    minimum: Option<Minimum>,
    allowed: &[&str],
) -> Result<T> {
    let value: T = construction.attr(name)?;
    if let (Some(minimum), Some(float)) = (minimum, value.float()) {
        ensure!(
            float >= minimum.to_float(),
            Error::invalid_argument(format!(
                "attribute `{name}` is {float}; it should be at least {minimum}"
            ))
        );
    }
    if !allowed.is_empty() {
        for text in value.texts() {
            ensure!(
                allowed.contains(&text),
                Error::invalid_argument(format!(
                    "attribute `{name}` is {text:?}; it can be {}",
                    allowed.join(", ")
                ))
            );
        }
    }
    Ok(value)
}

/// Returns a text in the quotes of TensorFlow's `REGISTER_OP`.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for byte in text.bytes() {
        match byte {
            b'\'' | b'\\' => quoted.extend(['\\', byte.into()]),
            b' '..=b'~' => quoted.push(byte.into()),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('\'');
    quoted
}

/// Returns the name of a type as TensorFlow's `REGISTER_OP` has it.
#[must_use]
pub fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float16 => "half",
        DType::Float32 => "float",
        DType::Float64 => "double",
        other => other.name(),
    }
}

/// A type that an attribute of an op can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of an op's attribute",
    note = "write `i64`, `i32`, `f32`, `bool`, `String`, `DType`, a `Vec` of one of these, or `PartialShape`"
)]
pub trait OpAttribute: Attribute {
    #[doc(hidden)]
    const KIND: &'static str;
    #[doc(hidden)]
    fn literal(&self) -> String;
    #[doc(hidden)]
    fn json(&self) -> Value;
    #[doc(hidden)]
    fn texts(&self) -> Vec<&str> {
        Vec::new()
    }
    /// Returns the number that it is, if it is a float.
    #[doc(hidden)]
    fn float(&self) -> Option<f64> {
        None
    }
}

macro_rules! attributes {
    ($($type:ty, $kind:literal, $list:literal, |$value:ident| $literal:expr, $json:expr $(, $float:expr)?;)*) => {$(
        impl OpAttribute for $type {
            const KIND: &'static str = $kind;

            fn literal(&self) -> String {
                let $value = self;
                $literal
            }

            fn json(&self) -> Value {
                let $value = self;
                $json
            }

            $(fn float(&self) -> Option<f64> {
                let $value = self;
                $float
            })?
        }

        impl OpAttribute for Vec<$type> {
            const KIND: &'static str = $list;

            fn literal(&self) -> String {
                let literals: Vec<_> = self.iter().map(OpAttribute::literal).collect();
                format!("[{}]", literals.join(", "))
            }

            fn json(&self) -> Value {
                self.iter().map(OpAttribute::json).collect()
            }
        }
    )*};
}

attributes! {
    i64, "int", "list(int)", |value| value.to_string(), json!(value);
    i32, "int", "list(int)", |value| value.to_string(), json!(value);
    f32, "float", "list(float)", |value| format!("{value:?}"), json!(value), Some((*value).into());
    bool, "bool", "list(bool)", |value| value.to_string(), json!(value);
    DType, "type", "list(type)", |value| format!("DT_{}", type_name(*value).to_uppercase()), json!(value.name());
}

impl OpAttribute for String {
    const KIND: &'static str = "string";

    fn literal(&self) -> String {
        quoted(self)
    }

    fn json(&self) -> Value {
        json!(self)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self]
    }
}

impl OpAttribute for Vec<String> {
    const KIND: &'static str = "list(string)";

    fn literal(&self) -> String {
        let literals: Vec<_> = self.iter().map(|text| quoted(text)).collect();
        format!("[{}]", literals.join(", "))
    }

    fn json(&self) -> Value {
        json!(self)
    }

    fn texts(&self) -> Vec<&str> {
        self.iter().map(String::as_str).collect()
    }
}

impl OpAttribute for PartialShape {
    const KIND: &'static str = "shape";

    fn literal(&self) -> String {
        match self.dims() {
            None => String::from("{ unknown_rank: true }"),
            Some(dims) => {
                let dims: Vec<_> = dims
                    .iter()
                    .map(|dim| format!("dim {{ size: {} }}", dim.unwrap_or(-1)))
                    .collect();
                format!("{{ {} }}", dims.join(" "))
            }
        }
    }

    fn json(&self) -> Value {
        json!(self.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_tensorflow_refuses_is_an_error() {
        let one = Some(Minimum::Int(1));
        let number = |default, minimum| AttributeSpec::new("n", "", Some(default), minimum, &[]);
        number(3_i64, Some(Minimum::Int(3))).check().unwrap();
        assert!(number(3_i64, Some(Minimum::Int(4))).check().is_err());
        let error = number(3_i64, Some(Minimum::Float(0.5))).check().unwrap_err().to_string();
        assert!(error.contains("attribute `n` is a int, whose `min` is an integer"), "{error}");
        let float = |minimum| AttributeSpec::new("x", "", Some(0.5_f32), Some(minimum), &[]);
        float(Minimum::Float(0.5)).check().unwrap();
        float(Minimum::Int(0)).check().unwrap();
        assert!(
            float(Minimum::Int(1)).check().is_err() && float(Minimum::Float(0.6)).check().is_err()
        );
        let list = |default| AttributeSpec::new("n", "", Some(default), one, &[]);
        list(vec![0_i64]).check().unwrap();
        assert!(list(Vec::<i64>::new()).check().is_err());
        let text = |default: &str| {
            AttributeSpec::new("s", "", Some(String::from(default)), None, &["a", "b"])
        };
        text("a").check().unwrap();
        assert!(
            text("c").check().unwrap_err().to_string().contains("cannot have its default, 'c'")
        );
        assert!(AttributeSpec::new::<bool>("b", "", None, one, &[]).check().is_err());
        assert!(AttributeSpec::new::<i64>("n", "", None, None, &["1"]).check().is_err());
        for floats in [vec![f32::NAN], vec![0.5, f32::INFINITY]] {
            let floats = AttributeSpec::new("f", "", Some(floats), None, &[]).check();
            assert!(floats.unwrap_err().to_string().contains("finite numbers only"));
        }
        AttributeSpec::new("f", "", Some(f32::MAX), None, &[]).check().unwrap();
        assert!(AttributeSpec::new("f", "", Some(-f32::INFINITY), None, &[]).check().is_err());
        let error = AttributeSpec::new::<i64>("from", "", None, None, &[]).check().unwrap_err();
        assert!(error.to_string().contains("`from` is a keyword of Python"), "{error}");
    }

    #[test]
    fn definitions_have_the_form_of_tensorflow() {
        let text = |spec: AttributeSpec| spec.text();
        let new = |default| AttributeSpec::new::<bool>("lower", "", default, None, &[]);
        assert_eq!(text(new(None)), "lower: bool");
        assert_eq!(text(new(Some(false))), "lower: bool = false");
        let number = AttributeSpec::new("n", "", Some(3_i64), Some(Minimum::Int(-1)), &[]);
        assert_eq!(text(number), "n: int >= -1 = 3");
        let float = AttributeSpec::new("x", "", Some(0.5_f32), Some(Minimum::Float(0.5)), &[]);
        assert_eq!(text(float), "x: float = 0.5");
        let mode = AttributeSpec::new("mode", "", Some(String::from("a")), None, &["a", "it's"]);
        assert_eq!(text(mode), r"mode: {'a', 'it\'s'} = 'a'");
        let floats =
            AttributeSpec::new("f", "", Some(vec![1.0_f32, 0.5]), Some(Minimum::Int(1)), &[]);
        assert_eq!(text(floats), "f: list(float) >= 1 = [1.0, 0.5]");
        let shape = PartialShape::new([Some(2), None]);
        let shape = AttributeSpec::new("s", "", Some(shape), None, &[]);
        assert_eq!(text(shape), "s: shape = { dim { size: 2 } dim { size: -1 } }");
        assert_eq!(
            text(AttributeSpec::new("t", "", Some(DType::Float16), None, &[])),
            "t: type = DT_HALF"
        );
        assert_eq!(quoted("ü\n"), r"'\303\274\012'");
    }
}

//! Sample calls of ops, as authors write them.

use crate::ops::definition::AttrValue;
use crate::tensor::{Content, Tensor};
use serde_json::{Map, Value, json};

/// A sample call of an op: its arguments and, if you like, its results. The cases of
/// [`conformance!`](crate::ops::conformance!) make calls with other sizes, types and values from it.
///
/// Inputs and outputs are [`Tensor`]s, and attributes [`AttrValue`]s, as in a [`Call`](crate::ops::Call) of the host.
///
/// ```
/// use tf_plugin_testing::ops::Sample;
///
/// Sample::new("TextWords")
///     .input("text", ["To be", ""])
///     .attribute("lower", true)
///     .output("words_values", ["to", "be"])
///     .output("words_row_splits", [0, 2, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct Sample {
    op: String,
    inputs: Map<String, Value>,
    attributes: Map<String, Value>,
    outputs: Map<String, Value>,
    without: Map<String, Value>,
}

impl Sample {
    /// Creates a call of the op with this name, without arguments.
    pub fn new(op: impl Into<String>) -> Self {
        let [inputs, attributes, outputs, without] = <[Map<String, Value>; 4]>::default();
        Self { op: op.into(), inputs, attributes, outputs, without }
    }

    /// Sets an input. A ragged input is two: `NAME_values` and `NAME_row_splits`.
    ///
    /// Numbers are converted to the input's type. An op with a type parameter is called with each of its types; integers
    /// lose what is after the point, and unsigned ones their sign.
    #[must_use]
    pub fn input(mut self, name: &str, tensor: impl Into<Tensor>) -> Self {
        self.inputs.insert(name.to_owned(), tensor_json(&tensor.into()));
        self
    }

    /// Sets an input that is a list of tensors. An input that is missing in the call is an empty list.
    #[must_use]
    pub fn list<T: Into<Tensor>>(
        mut self,
        name: &str,
        tensors: impl IntoIterator<Item = T>,
    ) -> Self {
        let tensors = tensors.into_iter().map(|tensor| tensor_json(&tensor.into())).collect();
        self.inputs.insert(name.to_owned(), tensors);
        self
    }

    /// Sets an attribute. A type can also be its name in Python, such as `"int64"`.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attributes.insert(name.to_owned(), attribute_json(&value.into()));
        self
    }

    /// Sets an expected output. A ragged output is two, as a ragged input; a tensor of a list is `NAME[0]`, `NAME[1]` and so on.
    ///
    /// It is compared for types to which the inputs are converted without a change.
    #[must_use]
    pub fn output(mut self, name: &str, tensor: impl Into<Tensor>) -> Self {
        self.outputs.insert(name.to_owned(), tensor_json(&tensor.into()));
        self
    }

    /// Leaves this call out of a case, and says why.
    #[must_use]
    pub fn without(mut self, case: &str, reason: &str) -> Self {
        self.without.insert(case.to_owned(), reason.into());
        self
    }

    pub(super) fn json(&self) -> Value {
        let Self { op, inputs, attributes, outputs, without } = self;
        json!({ "op": op, "inputs": inputs, "attributes": attributes, "outputs": outputs, "without": without })
    }
}

/// Returns bytes as a text for JSON: each is the character with its number.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// Returns a tensor for Python. Bytes also hold what JSON does not have, such as NaN.
fn tensor_json(tensor: &Tensor) -> Value {
    let dtype = tensor.dtype().map(|dtype| dtype.name());
    match &tensor.content {
        Content::Bytes(bytes) => {
            json!({ "dtype": dtype, "shape": tensor.shape, "bytes": latin1(bytes) })
        }
        Content::Strings(strings) => {
            let strings: Vec<_> = strings.iter().map(|string| latin1(string)).collect();
            json!({ "dtype": dtype, "shape": tensor.shape, "strings": strings })
        }
    }
}

fn attribute_json(value: &AttrValue) -> Value {
    match value {
        AttrValue::String(bytes) => latin1(bytes).into(),
        AttrValue::Int(value) => (*value).into(),
        // Python reads the text; JSON has finite numbers only.
        AttrValue::Float(value) => value.to_string().into(),
        AttrValue::Bool(value) => (*value).into(),
        AttrValue::Type(value) => value.name().into(),
        AttrValue::Shape(value) => json!(value.dims()),
        AttrValue::List(values) => values.iter().map(attribute_json).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_op_plugin::DType;
    use tf_op_plugin::kernel::PartialShape;

    #[test]
    fn calls_are_written_for_python() {
        let call = Sample::new("Op")
            .input("x", [[1.0, f64::NAN]])
            .input("small", [-1_i8, 1])
            .input("text", b"a\xff\0")
            .list("list", [["a"], ["b"]])
            .attribute("flag", true)
            .attribute("sizes", Vec::<i64>::new())
            .attribute("scale", 0.5)
            .attribute("types", [DType::Float16])
            .attribute("shape", PartialShape::new([Some(2), None]))
            .output("y", 1)
            .without("python_forks", "slow");
        let written = call.json();
        let x = [1.0_f64, f64::NAN].map(f64::to_ne_bytes).concat();
        let x = json!({ "dtype": "float64", "shape": [1, 2], "bytes": latin1(&x) });
        assert_eq!(written["inputs"]["x"], x);
        assert_eq!(written["inputs"]["small"]["bytes"], "\u{ff}\u{1}");
        let text = json!({ "dtype": "string", "shape": [], "strings": ["a\u{ff}\u{0}"] });
        assert_eq!(written["inputs"]["text"], text);
        assert_eq!(written["inputs"]["list"][1]["strings"], json!(["b"]));
        let attributes = json!({
            "flag": true, "sizes": [], "scale": "0.5", "types": ["float16"], "shape": [2, null],
        });
        assert_eq!(written["attributes"], attributes);
        assert_eq!(written["outputs"]["y"]["dtype"], "int32");
        assert_eq!(written["without"]["python_forks"], "slow");
    }
}

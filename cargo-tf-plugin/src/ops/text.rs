//! Python's texts: names, strings, documentation.

use serde_json::Value;

/// The words of Python that cannot be a name.
const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except finally \
    for from global if import in is lambda nonlocal not or pass raise return try while with yield print exec";

/// Returns a name in Python: TensorFlow appends `_` to keywords.
pub(super) fn name(name: &str) -> String {
    let is_keyword = KEYWORDS.split_whitespace().any(|keyword| keyword == name);
    if is_keyword { format!("{name}_") } else { name.to_owned() }
}

/// Returns a string in quotes. JSON strings are also Python strings.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Escapes a text for a docstring.
pub(crate) fn docstring(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    // The last quote would end the docstring early.
    match text.strip_suffix('"') {
        Some(rest) => format!("{rest}\\\""),
        None => text,
    }
}

/// Formats a value of an attribute: `kind` is its type in TensorFlow.
pub(super) fn literal(kind: &str, value: &Value) -> String {
    let element = kind.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')'));
    if let (Some(element), Value::Array(values)) = (element, value) {
        let values: Vec<_> = values.iter().map(|value| literal(element, value)).collect();
        // A tuple: a default that nobody can change.
        return match values.as_slice() {
            [one] => format!("({one},)"),
            values => format!("({})", values.join(", ")),
        };
    }
    match (kind, value) {
        (_, Value::Bool(true)) => "True".to_owned(),
        (_, Value::Bool(false)) => "False".to_owned(),
        (_, Value::Null) => "None".to_owned(),
        ("type", Value::String(name)) => format!("tf.{name}"),
        // JSON has the number of 64 bits that is nearest to the attribute's, which has 32.
        ("float", Value::Number(number)) => match number.as_f64() {
            Some(number) => format!("{:?}", number as f32),
            None => number.to_string(),
        },
        ("shape", Value::Array(dims)) => {
            let dims: Vec<_> = dims.iter().map(|dim| literal("int", dim) + ", ").collect();
            format!("({})", dims.concat().trim_end())
        }
        (_, value) => value.to_string(),
    }
}

/// Returns the type hint of an attribute.
pub(super) fn hint(kind: &str) -> String {
    match kind {
        "int" | "float" | "bool" => kind.to_owned(),
        "string" => "str".to_owned(),
        "type" => "tf.DType".to_owned(),
        "shape" => "_runtime.ShapeLike".to_owned(),
        list => match list.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')')) {
            Some(element) => format!("Sequence[{}]", hint(element)),
            None => "object".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_python_s() {
        for (kind, value, python) in [
            ("bool", json!(false), "False"),
            ("int", json!(-3), "-3"),
            ("float", json!(f64::from(0.1_f32)), "0.1"),
            ("float", json!(1.0), "1.0"),
            ("string", json!("a\"\n"), r#""a\"\n""#),
            ("type", json!("float32"), "tf.float32"),
            ("shape", json!([2, null]), "(2, None,)"),
            ("shape", json!([]), "()"),
            ("shape", json!(null), "None"),
            ("list(int)", json!([1]), "(1,)"),
            ("list(string)", json!(["a", "b"]), "(\"a\", \"b\")"),
            ("list(bool)", json!([]), "()"),
        ] {
            assert_eq!(literal(kind, &value), python, "{kind}");
        }
        assert_eq!(hint("list(type)"), "Sequence[tf.DType]");
        assert_eq!((name("lambda"), name("x")), ("lambda_".to_owned(), "x".to_owned()));
        assert_eq!(docstring(r#"a\b """c""#), r#"a\\b \"\"\"c\""#);
    }
}

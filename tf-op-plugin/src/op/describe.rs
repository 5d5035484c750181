//! The description of a library's ops, for `cargo tf-plugin` and the Python wrappers.

use super::attribute::Minimum;
use super::register::{Instance, OpEntry};
use super::shapes::Declared;
use super::spec::{ArgSpec, ArgType, Repeat};
use serde_json::{Value, json};

/// Returns the description of all ops of the library, as JSON:
///
/// ```json
/// {"layout": 1, "ops": [{
///   "name": "TextWords", "doc": "…", "stateful": false, "gradient": null, "place": "src/lib.rs:7", "error": null,
///   "inputs": [{"name": "text", "type": "string", "repeat": "one", "count": null, "shape": "[..s]"}],
///   "outputs": [{"name": "words", "type": "string", "repeat": "ragged", "count": null, "shape": null}],
///   "types": [{"name": "T", "allowed": ["float32", "int64"]}],
///   "attributes": [{"name": "lower", "type": "bool", "default": false, "minimum": null, "allowed": [], "doc": "…"}]
/// }]}
/// ```
///
/// `type` is Python's name of a type, or the name of a type parameter. `repeat` is `one`, `optional`, `list` or `ragged`;
/// a ragged argument is two of TensorFlow's, `NAME_values` and `NAME_row_splits`. `count` is the attribute with the length
/// of a list. An attribute without a default has no `default`. `error` says why an op could not be registered in TensorFlow.
#[must_use]
pub fn describe() -> String {
    let ops: Vec<Value> = OpEntry::all().into_iter().map(op).collect();
    json!({ "layout": 1, "ops": ops }).to_string()
}

fn op(entry: &OpEntry) -> Value {
    let spec = &entry.spec;
    let types: Vec<Value> = entry
        .parameters()
        .into_iter()
        .map(|(name, allowed)| {
            let allowed: Vec<_> = allowed.iter().map(|dtype| dtype.name()).collect();
            json!({ "name": name, "allowed": allowed })
        })
        .collect();
    let attributes: Vec<Value> = (entry.attributes)()
        .into_iter()
        .map(|one| {
            let mut attribute = json!({
                "name": one.name,
                "type": one.kind,
                "minimum": one.minimum.map(Minimum::json),
                "allowed": one.allowed,
                "doc": one.doc,
            });
            if let Some((_, default)) = one.default {
                attribute["default"] = default;
            }
            attribute
        })
        .collect();
    json!({
        "name": spec.name,
        "doc": spec.doc,
        "stateful": spec.stateful,
        "gradient": (!spec.gradient.is_empty()).then_some(spec.gradient),
        "place": spec.place,
        "error": entry.error.get(),
        "inputs": arguments(entry, spec.inputs, |one| one.inputs),
        "outputs": arguments(entry, spec.outputs, |one| one.outputs),
        "types": types,
        "attributes": attributes,
    })
}

fn arguments(
    entry: &OpEntry,
    args: &[ArgSpec],
    types: fn(&Instance) -> &'static [ArgType],
) -> Vec<Value> {
    let Some(first) = entry.instances.first() else { return Vec::new() };
    args.iter()
        .zip(types(first))
        .enumerate()
        .map(|(index, (arg, ty))| {
            let (repeat, is_list) = match ty.repeat {
                Repeat::One => ("one", false),
                Repeat::Optional => ("optional", true),
                Repeat::List => ("list", true),
                Repeat::Ragged => ("ragged", false),
            };
            json!({
                "name": arg.name,
                "type": entry.parameter(types, index).unwrap_or(ty.dtype.name()),
                "repeat": repeat,
                "count": is_list.then(|| arg.count_attribute()),
                "shape": arg.dims(ty).map(|dims| Declared(dims).to_string()),
            })
        })
        .collect()
}

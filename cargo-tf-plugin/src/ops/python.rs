//! The Python module with the wrappers of a library's ops.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::text::{docstring, hint, literal, name, quoted};
use super::{Argument, Attribute, Description, Op, Repeat, snake_case};

/// Names in the package, and in its module of ops, that a function must not replace.
const PACKAGE_NAMES: [&str; 7] =
    ["device_types", "float", "ops", "plugin_path", "register", "sys", "tf"];

/// Names that wrappers have besides those of their op.
const OWN_NAMES: [&str; 1] = ["name"];

/// Returns the module: `library` is the file's name.
pub(crate) fn module(library: &str, description: &Description) -> Result<String> {
    let ops = &description.ops;
    check_functions(ops)?;
    let mut exported = Vec::new();
    for op in ops {
        check_names(op)?;
        exported.push(name(&snake_case(&op.name)));
        exported.extend(result_class(op));
    }
    let exported: String = exported.iter().map(|name| format!("    {},\n", quoted(name))).collect();
    let functions =
        |op: &Op| format!("    {}: {},\n", quoted(&op.name), quoted(&snake_case(&op.name)));
    let functions: String = ops.iter().map(functions).collect();
    let mut text = format!(
        "\"\"\"The ops of {library}.\n\nGenerated from the library by `cargo tf-plugin`.\n\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from typing import List, NamedTuple, Optional, Sequence\n\n\
         import tensorflow as tf\n\n\
         from . import _runtime\n\n\
         __all__ = [\n{exported}]\n\n\
         _ops = _runtime.load({{\n{functions}}})\n"
    );
    for op in ops {
        wrapper(&mut text, op);
    }
    for op in ops {
        gradient(&mut text, op, description)?;
    }
    Ok(text)
}

/// Checks the names of the functions.
fn check_functions(ops: &[Op]) -> Result<()> {
    for (at, op) in ops.iter().enumerate() {
        let function = snake_case(&op.name);
        if PACKAGE_NAMES.contains(&&*function) {
            bail!(
                "the op {} ({}) would be the Python function `{function}`, a name that the package uses; rename the op",
                op.name,
                op.place
            );
        }
        if let Some(other) = ops[..at].iter().find(|other| snake_case(&other.name) == function) {
            bail!(
                "the ops {} ({}) and {} ({}) would both be the Python function `{function}`; rename one",
                other.name,
                other.place,
                op.name,
                op.place
            );
        }
    }
    Ok(())
}

fn check_names(op: &Op) -> Result<()> {
    let mut known: Vec<&str> = OWN_NAMES.to_vec();
    let attributes = op.attributes.iter().map(|attribute| &attribute.name);
    for one in op.inputs.iter().map(|input| &input.name).chain(attributes) {
        if known.contains(&&**one) {
            bail!(
                "the op {} ({}) has an argument `{one}` twice, or one that each wrapper in Python has; rename it",
                op.name,
                op.place
            );
        }
        known.push(one);
    }
    Ok(())
}

/// Returns the class of several outputs.
fn result_class(op: &Op) -> Option<String> {
    (op.outputs.len() > 1).then(|| format!("{}Output", op.name))
}

/// A parameter that is given by its name.
struct Keyword {
    name: String,
    hint: String,
    default: Option<String>,
    doc: String,
}

/// Returns the keywords of a wrapper: attributes that the inputs do not decide.
fn keywords(op: &Op) -> Vec<Keyword> {
    let mut keywords = Vec::new();
    for parameter in op.types.iter().filter(|parameter| !op.infers(&parameter.name)) {
        let types: Vec<_> = parameter.allowed.iter().map(|name| format!("tf.{name}")).collect();
        keywords.push(Keyword {
            name: parameter.name.clone(),
            hint: hint("type"),
            // That of the definition, which has one if no tensor decides the type.
            default: types.first().cloned(),
            doc: format!("A type: {}.", types.join(", ")),
        });
    }
    for output in &op.outputs {
        let Some(count) = output.count.as_ref().filter(|count| !op.counts(count)) else { continue };
        if !keywords.iter().any(|keyword| keyword.name == *count) {
            let (default, doc) = match output.repeat {
                Repeat::Optional => (
                    Some("1".to_owned()),
                    format!("1 for the output `{}`, 0 for None; 1 by default.", output.name),
                ),
                _ => (None, format!("How many tensors the output `{}` has.", output.name)),
            };
            keywords.push(Keyword { name: count.clone(), hint: hint("int"), default, doc });
        }
    }
    keywords.extend(op.attributes.iter().map(|attribute| Keyword {
        name: attribute.name.clone(),
        hint: match attribute.default.as_ref().is_some_and(serde_json::Value::is_null) {
            true => format!("Optional[{}]", hint(&attribute.kind)),
            false => hint(&attribute.kind),
        },
        default: attribute.default.as_ref().map(|value| literal(&attribute.kind, value)),
        doc: attribute_doc(attribute),
    }));
    keywords
}

fn attribute_doc(attribute: &Attribute) -> String {
    let mut facts = Vec::new();
    if !attribute.allowed.is_empty() {
        let allowed: Vec<_> = attribute.allowed.iter().map(|text| quoted(text)).collect();
        facts.push(format!("one of {}", allowed.join(", ")));
    }
    if let Some(minimum) = &attribute.minimum {
        facts.push(match attribute.kind.starts_with("list(") {
            true => format!("at least {minimum} elements"),
            false => format!("at least {minimum}"),
        });
    }
    if let Some(default) = &attribute.default {
        facts.push(format!("{} by default", literal(&attribute.kind, default)));
    }
    let facts = facts.join("; ");
    match (attribute.doc.trim(), &*facts) {
        ("", "") => format!("Of the type {}.", attribute.kind),
        ("", facts) => format!("{}.", capital(facts)),
        (doc, "") => doc.to_owned(),
        (doc, facts) => format!("{doc} {}.", capital(facts)),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Says what an argument is: `a ragged tensor of string`.
fn kind(op: &Op, argument: &Argument) -> String {
    let element = match op.types.iter().find(|parameter| parameter.name == argument.element) {
        Some(parameter) => alternatives(&parameter.allowed),
        None => argument.element.clone(),
    };
    let shape = match &argument.shape {
        Some(shape) => format!(" with the shape {shape}"),
        None => String::new(),
    };
    match argument.repeat {
        Repeat::One => format!("A tensor of {element}{shape}."),
        Repeat::Optional => format!("A tensor of {element}{shape}, or None."),
        Repeat::List => format!("A list of tensors of {element}{shape}."),
        Repeat::Ragged => match &argument.shape {
            Some(shape) => {
                format!("A ragged tensor of {element}; its values have the shape {shape}.")
            }
            None => format!("A ragged tensor of {element}."),
        },
    }
}

/// Joins words: `float32, float64 or int32`.
fn alternatives(words: &[String]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        words => words.concat(),
    }
}

fn input_hint(argument: &Argument) -> &'static str {
    match argument.repeat {
        Repeat::One => "_runtime.TensorLike",
        Repeat::Optional => "Optional[_runtime.TensorLike]",
        Repeat::List => "Sequence[_runtime.TensorLike]",
        Repeat::Ragged => "_runtime.RaggedLike",
    }
}

fn output_hint(argument: &Argument) -> &'static str {
    match argument.repeat {
        Repeat::One => "tf.Tensor",
        Repeat::Optional => "Optional[tf.Tensor]",
        Repeat::List => "List[tf.Tensor]",
        Repeat::Ragged => "tf.RaggedTensor",
    }
}

/// Adds lines of documentation, each with `indent` spaces.
fn paragraph(text: &mut String, indent: usize, doc: &str) {
    for line in docstring(doc.trim()).lines() {
        let _ = writeln!(text, "{}", format!("{:indent$}{line}", "").trim_end());
    }
}

/// Adds a name and its documentation; other lines of it are indented further.
fn described(text: &mut String, indent: usize, name: &str, doc: &str) {
    let mut lines = doc.trim().lines();
    paragraph(text, indent, &format!("{name}: {}", lines.next().unwrap_or_default()));
    for line in lines {
        paragraph(text, indent + 2, line);
        if line.trim().is_empty() {
            text.push('\n');
        }
    }
}

/// Adds the wrapper of an op.
fn wrapper(text: &mut String, op: &Op) {
    let keywords = keywords(op);
    let class = result_class(op);
    if let Some(class) = &class {
        let _ = write!(text, "\n\nclass {class}(NamedTuple):\n");
        let _ = write!(text, "    \"\"\"The outputs of `{}`.\"\"\"\n\n", snake_case(&op.name));
        for output in &op.outputs {
            let _ = writeln!(text, "    {}: {}", name(&output.name), output_hint(output));
        }
    }
    let returns = match (&class, op.outputs.as_slice()) {
        (Some(class), _) => class,
        (None, [one]) => output_hint(one),
        (None, _) => "Optional[tf.Operation]",
    };
    let function = name(&snake_case(&op.name));
    let _ = write!(text, "\n\n@_runtime.op\ndef {function}(\n");
    for (at, input) in op.inputs.iter().enumerate() {
        // Python allows a default only if all arguments behind have one.
        let rest = &op.inputs[at..];
        let is_last = rest.iter().all(|input| input.repeat == Repeat::Optional);
        let default = if is_last { " = None" } else { "" };
        let _ = writeln!(text, "    {}: {}{default},", name(&input.name), input_hint(input));
    }
    text.push_str("    *,\n");
    for Keyword { name: keyword, hint, default, .. } in &keywords {
        let default = default.as_ref().map_or_else(String::new, |it| format!(" = {it}"));
        let _ = writeln!(text, "    {}: {hint}{default},", name(keyword));
    }
    let _ = write!(text, "    name: Optional[str] = None,\n) -> {returns}:\n");

    let doc = op.doc.trim();
    let doc = if doc.is_empty() { format!("The op {}.", op.name) } else { doc.to_owned() };
    let mut lines = String::new();
    paragraph(&mut lines, 4, &doc);
    let _ = write!(text, "    \"\"\"{}\n    Args:\n", lines.trim_start());
    for input in &op.inputs {
        described(text, 6, &name(&input.name), &kind(op, input));
    }
    for keyword in &keywords {
        described(text, 6, &name(&keyword.name), &keyword.doc);
    }
    described(text, 6, "name", "A name for the node, in graphs.");
    match op.outputs.as_slice() {
        [] => {}
        [one] => {
            text.push_str("\n    Returns:\n");
            described(text, 6, &name(&one.name), &kind(op, one));
        }
        outputs => {
            let _ = write!(text, "\n    Returns:\n      {}, with\n", class.unwrap_or_default());
            for output in outputs {
                described(text, 8, &name(&output.name), &kind(op, output));
            }
        }
    }
    text.push_str("    \"\"\"\n");
    body(text, op, &keywords);
}

fn body(text: &mut String, op: &Op, keywords: &[Keyword]) {
    let function = snake_case(&op.name);
    let inputs: Vec<_> = op.inputs.iter().map(|input| name(&input.name)).collect();
    let given: String = keywords
        .iter()
        .map(|it| name(&it.name))
        .map(|it| format!("{}: {it}, ", quoted(&it)))
        .collect();
    let given = given.trim_end_matches(", ");
    if !inputs.is_empty() {
        let all: String = inputs.iter().map(|input| format!("{input}, ")).collect();
        let all = all.trim_end();
        let _ = write!(
            text,
            "    if _runtime.is_symbolic({}):\n        return _runtime.symbolic({}, ({all}), {{{given}}}, name)\n",
            inputs.join(", "),
            name(&function)
        );
    }
    for (input, argument) in inputs.iter().zip(&op.inputs) {
        if argument.repeat == Repeat::Ragged {
            let dtypes = match op.types.iter().find(|it| it.name == argument.element) {
                Some(parameter) => {
                    parameter.allowed.iter().map(|it| format!(", tf.{it}")).collect()
                }
                None => format!(", tf.{}", argument.element),
            };
            let _ =
                writeln!(text, "    {input} = _runtime.rows({}, {input}{dtypes})", quoted(input));
        }
    }
    let _ = writeln!(text, "    _result = _ops.{}(", name(&function));
    for (input, argument) in inputs.iter().zip(&op.inputs) {
        let own = &argument.name;
        let _ = match argument.repeat {
            Repeat::One | Repeat::List => writeln!(text, "        {input}={input},"),
            Repeat::Optional => {
                writeln!(text, "        {input}=[] if {input} is None else [{input}],")
            }
            Repeat::Ragged => writeln!(
                text,
                "        {own}_values={input}.values,\n        {own}_row_splits={input}.row_splits,"
            ),
        };
    }
    for keyword in keywords {
        let _ = writeln!(text, "        {0}={0},", name(&keyword.name));
    }
    text.push_str("        name=name,\n    )\n");
    // The tensors that TensorFlow's wrapper returns: of one it returns only that.
    let mut at = 0;
    let mut next = |argument: &Argument| {
        let first = at;
        at += if argument.repeat == Repeat::Ragged { 2 } else { 1 };
        match argument.repeat {
            Repeat::Ragged => format!("_runtime.ragged(_result[{first}], _result[{}])", first + 1),
            Repeat::Optional => format!("_runtime.optional(_result[{first}])"),
            Repeat::One | Repeat::List => format!("_result[{first}]"),
        }
    };
    let returned = match (result_class(op), op.outputs.as_slice()) {
        (Some(class), outputs) => {
            let outputs: Vec<_> = outputs.iter().map(&mut next).collect();
            format!("{class}({})", outputs.join(", "))
        }
        (None, [one]) if one.repeat == Repeat::Ragged => next(one),
        (None, [one]) if one.repeat == Repeat::Optional => "_runtime.optional(_result)".to_owned(),
        (None, _) => "_result".to_owned(),
    };
    let _ = writeln!(text, "    return {returned}");
}

/// Returns the arguments with what says how many tensors each has, for `_runtime`.
fn layout(arguments: &[Argument]) -> String {
    let each = |argument: &Argument| {
        let count = match (&argument.repeat, &argument.count) {
            (Repeat::Ragged, _) => "2".to_owned(),
            (_, Some(count)) => quoted(count),
            (_, None) => "1".to_owned(),
        };
        format!("({}, {count}), ", quoted(&argument.name))
    };
    let all: String = arguments.iter().map(each).collect();
    format!("({})", all.trim_end())
}

/// Adds the registration of an op's gradient, if it has one.
fn gradient(text: &mut String, op: &Op, description: &Description) -> Result<()> {
    let Some(by) = &op.gradient else { return Ok(()) };
    if let Some((problem, advice)) = description.wrong_gradient(op) {
        bail!("{problem}; {advice}");
    }
    let op_name = quoted(&op.name);
    if by.contains(':') {
        let _ = write!(text, "\n\n_runtime.gradient_by({op_name}, {})\n", quoted(by));
        return Ok(());
    }
    let Some(by) = description.get(by) else { return Ok(()) };
    let function = name(&snake_case(&by.name));
    let has = |arguments: &[Argument], name: &str| arguments.iter().any(|it| it.name == name);
    let _ = write!(
        text,
        "\n\n@_runtime.gradient({op_name})\ndef _{}_gradient(op, *gradients):\n    \
         given = _runtime.Given(op, gradients, {}, {})\n    result = {function}(\n",
        snake_case(&op.name),
        layout(&op.inputs),
        layout(&op.outputs)
    );
    for input in &by.inputs {
        let own = &input.name;
        let value = match own.strip_prefix("grad_").filter(|of| has(&op.outputs, of)) {
            Some(of) if input.repeat == Repeat::Optional => {
                format!("_runtime.optional(given.gradient({}))", quoted(of))
            }
            Some(of) => format!("given.gradient({})", quoted(of)),
            None if input.repeat == Repeat::Optional => format!("given.optional({})", quoted(own)),
            None => format!("given.tensor({})", quoted(own)),
        };
        let _ = writeln!(text, "        {}={value},", name(own));
    }
    for keyword in keywords(by) {
        let own = &keyword.name;
        let is_known = op.attributes.iter().any(|it| it.name == *own)
            || op.types.iter().any(|it| it.name == *own);
        let counted = by.outputs.iter().find(|it| it.count.as_deref() == Some(own));
        let of = counted.and_then(|it| it.name.strip_prefix("grad_"));
        if let Some(of) = of {
            let _ = writeln!(text, "        {}=given.length({}),", name(own), quoted(of));
        } else if is_known {
            let _ = writeln!(text, "        {}=op.get_attr({}),", name(own), quoted(own));
        }
    }
    text.push_str("    )\n");
    let of = |output: &Argument| output.name.strip_prefix("grad_").unwrap_or_default().to_owned();
    let results: Vec<_> = match by.outputs.as_slice() {
        [one] => vec![format!("{}: result", quoted(&of(one)))],
        several => several
            .iter()
            .map(|output| format!("{}: result.{}", quoted(&of(output)), name(&output.name)))
            .collect(),
    };
    let _ = writeln!(text, "    return given.of_inputs({{{}}})", results.join(", "));
    Ok(())
}

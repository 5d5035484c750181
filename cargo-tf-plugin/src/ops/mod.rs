//! The ops of a library, as the library describes them.

pub(crate) mod python;
mod text;

use std::env::consts::ARCH;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::artefact::Artefact;
use crate::probe::{self, Event};

/// The layout of the description that this command knows.
const LAYOUT: u32 = 1;

/// The time limit for loading a library to read its description.
const LIMIT: Duration = Duration::from_secs(60);

/// What `tf_plugin_ops` of a library returns.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Description {
    layout: u32,
    #[serde(default)]
    pub(crate) ops: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Op {
    pub(crate) name: String,
    /// The documentation, in Markdown.
    pub(crate) doc: String,
    pub(crate) stateful: bool,
    /// An op, or `module:function` in Python.
    pub(crate) gradient: Option<String>,
    /// File and line.
    pub(crate) place: String,
    /// Why it could not be registered.
    #[serde(default)]
    pub(crate) error: Option<String>,
    pub(crate) inputs: Vec<Argument>,
    pub(crate) outputs: Vec<Argument>,
    pub(crate) types: Vec<TypeParameter>,
    pub(crate) attributes: Vec<Attribute>,
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// Python's name of a type, or a type parameter.
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) repeat: Repeat,
    /// The attribute with the length of a list.
    pub(crate) count: Option<String>,
    pub(crate) shape: Option<String>,
}

/// How many tensors an argument has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Repeat {
    One,
    /// None or one.
    Optional,
    List,
    /// Values and row splits.
    Ragged,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TypeParameter {
    pub(crate) name: String,
    pub(crate) allowed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    /// The type, as TensorFlow writes it.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The default; null is one, of a shape.
    #[serde(default, deserialize_with = "even_null", skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
    /// The lowest number, or the fewest elements.
    pub(crate) minimum: Option<Number>,
    pub(crate) allowed: Vec<String>,
    pub(crate) doc: String,
}

fn even_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Description {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let advice = "use the `cargo tf-plugin` of the SDK's version";
        let known: Self = serde_json::from_str(text)
            .with_context(|| format!("the description of the ops is not understood; {advice}"))?;
        if known.layout != LAYOUT {
            bail!(
                "the description of the ops has the layout {}, not {LAYOUT}; {advice}",
                known.layout
            );
        }
        Ok(known)
    }

    /// Loads a library of ops in a separate process, and returns its description.
    pub(crate) fn of(library: &Artefact) -> Result<Self> {
        let path = &library.path;
        if library.machine != ARCH {
            bail!(
                "{} is for {} and this machine is {ARCH}: a library is loaded to find out about its ops; make the wheel on a \
                 machine of its kind",
                path.display(),
                library.machine
            );
        }
        let run = probe::run(&std::path::absolute(path)?, None, LIMIT)?;
        let found = run.events.iter().find_map(|event| match event {
            Event::Ops(text) => Some(text),
            _ => None,
        });
        let Some(text) = found else {
            bail!(
                "{} does not say which ops it has; write `tf_op_plugin::op_plugin!();` in it once, and see what \
                 `cargo tf-plugin check {0}` says",
                path.display()
            );
        };
        Self::parse(text)
    }

    /// Returns an op.
    pub(crate) fn get(&self, name: &str) -> Option<&Op> {
        self.ops.iter().find(|op| op.name == name)
    }

    /// Returns what is wrong with the gradient of an op, if anything is, and what to do.
    pub(crate) fn wrong_gradient(&self, op: &Op) -> Option<(String, &'static str)> {
        let by = op.gradient.as_deref()?;
        let (name, place) = (&op.name, &op.place);
        if let Some((module, function)) = by.split_once(':') {
            return (module.is_empty() || function.is_empty()).then(|| {
                (
                    format!(
                        "the gradient of {name} ({place}) is `{by}`, which names no Python function"
                    ),
                    "write `module:function`; a module that begins with `.` is one of the wheel's package",
                )
            });
        }
        let Some(gradient) = self.get(by) else {
            return Some((
                format!(
                    "the gradient of {name} ({place}) is {by}, which the library does not have"
                ),
                "define that op, or name a Python function as `module:function`",
            ));
        };
        let problem = op.mismatch(gradient)?;
        Some((
            format!("the gradient of {name}, {by} ({}), does not fit: {problem}", gradient.place),
            "name its inputs as those of the op, or `grad_` and an output; name its outputs `grad_` and an input",
        ))
    }
}

impl Op {
    /// Returns whether a tensor among the inputs decides a type parameter.
    fn infers(&self, parameter: &str) -> bool {
        self.inputs.iter().any(|input| input.element == parameter)
    }

    /// Returns whether the inputs decide the attribute that counts a list.
    fn counts(&self, count: &str) -> bool {
        self.inputs.iter().any(|input| input.count.as_deref() == Some(count))
    }

    /// Returns lines that describe the op, each with its name: for `check`.
    pub(crate) fn facts(&self, verbose: bool) -> Vec<(String, String)> {
        let mut facts = vec![("python".to_owned(), format!("{}()", snake_case(&self.name)))];
        for (role, arguments) in [("input", &self.inputs), ("output", &self.outputs)] {
            facts.extend(arguments.iter().map(|it| (role.to_owned(), it.text())));
        }
        for parameter in &self.types {
            facts.push((
                "type".to_owned(),
                format!("{}: {}", parameter.name, parameter.allowed.join(", ")),
            ));
        }
        facts.extend(self.attributes.iter().map(|it| ("attribute".to_owned(), it.text(verbose))));
        if self.stateful {
            facts.push((
                "stateful".to_owned(),
                "TensorFlow neither folds nor merges its nodes".to_owned(),
            ));
        }
        if let Some(gradient) = &self.gradient {
            facts.push(("gradient".to_owned(), gradient.clone()));
        }
        if verbose {
            facts.push(("place".to_owned(), self.place.clone()));
        }
        facts
    }

    /// Returns what is wrong with the names of `gradient`, the op that computes this op's gradient.
    pub(crate) fn mismatch(&self, gradient: &Self) -> Option<String> {
        let has = |arguments: &[Argument], name: &str| arguments.iter().any(|it| it.name == name);
        let of = |name: &str| name.strip_prefix("grad_").map(str::to_owned);
        for input in &gradient.inputs {
            let name = &input.name;
            let is_gradient = of(name).is_some_and(|of| has(&self.outputs, &of));
            if !is_gradient && !has(&self.inputs, name) && !has(&self.outputs, name) {
                return Some(format!(
                    "its input `{name}` is neither an input nor an output of {}, nor `grad_` and an output",
                    self.name
                ));
            }
        }
        for output in &gradient.outputs {
            let name = &output.name;
            let Some(input) = of(name).and_then(|of| self.inputs.iter().find(|it| it.name == of))
            else {
                return Some(format!(
                    "its output `{name}` is not `grad_` and an input of {}",
                    self.name
                ));
            };
            let is_list = |repeat| matches!(repeat, Repeat::List | Repeat::Optional);
            if is_list(input.repeat) != is_list(output.repeat) {
                return Some(format!(
                    "its output `{name}` and the input `{}` of {} are not both lists",
                    input.name, self.name
                ));
            }
        }
        let given = |name: &str| {
            self.attributes.iter().any(|it| it.name == name)
                || self.types.iter().any(|it| it.name == name)
        };
        let mut types = gradient.types.iter().filter(|it| !gradient.infers(&it.name));
        if let Some(parameter) = types.find(|it| !given(&it.name)) {
            return Some(format!("its type `{}` is not one of {}", parameter.name, self.name));
        }
        let mut needed = gradient.attributes.iter().filter(|it| it.default.is_none());
        needed.find(|it| !given(&it.name)).map(|it| {
            format!("its attribute `{}` is not one of {}, and has no default", it.name, self.name)
        })
    }
}

impl Argument {
    fn text(&self) -> String {
        let repeat = match (self.repeat, &self.count) {
            (Repeat::One, _) => String::new(),
            (Repeat::Ragged, _) => "ragged ".to_owned(),
            (Repeat::Optional, _) => "optional ".to_owned(),
            (Repeat::List, Some(count)) => format!("{count} * "),
            (Repeat::List, None) => "list of ".to_owned(),
        };
        let shape = self.shape.as_ref().map_or_else(String::new, |shape| format!(" {shape}"));
        format!("{}: {repeat}{}{shape}", self.name, self.element)
    }
}

impl Attribute {
    fn text(&self, verbose: bool) -> String {
        let default = self.default.as_ref();
        let default = default
            .map_or_else(String::new, |value| format!(" = {}", text::literal(&self.kind, value)));
        let minimum = self
            .minimum
            .as_ref()
            .map_or_else(String::new, |minimum| format!(", at least {minimum}"));
        let allowed = match self.allowed.as_slice() {
            [] => String::new(),
            allowed => format!(", one of {}", allowed.join(", ")),
        };
        let doc = match self.doc.trim() {
            doc if verbose && !doc.is_empty() => format!(": {}", doc.replace('\n', " ")),
            _ => String::new(),
        };
        format!("{}: {}{default}{minimum}{allowed}{doc}", self.name, self.kind)
    }
}

/// Returns the name of an op's wrapper in Python, as TensorFlow derives it: `TextWords` is `text_words`.
pub(crate) fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        if letter.is_ascii_uppercase() && at > 0 {
            let is_lower = |at: usize| letters.get(at).is_some_and(char::is_ascii_lowercase);
            if (is_lower(at - 1) || is_lower(at + 1)) && letters[at - 1] != '>' {
                snake.push('_');
            }
        }
        snake.push(if *letter == '>' { '_' } else { letter.to_ascii_lowercase() });
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrappers_are_named_as_tensorflow_names_them() {
        for (op, wrapper) in [
            ("TextWords", "text_words"),
            ("HTTPGet", "http_get"),
            ("Conv2D", "conv2d"),
            ("Conv2DBackprop", "conv2d_backprop"),
            ("S3Words", "s3_words"),
            ("A", "a"),
            ("My>Op", "my_op"),
        ] {
            assert_eq!(snake_case(op), wrapper);
        }
    }

    fn argument(name: &str, repeat: &str) -> Value {
        json!({ "name": name, "type": "float32", "repeat": repeat, "count": null, "shape": null })
    }

    fn op(name: &str, inputs: &[Value], outputs: &[Value], attributes: &[Value]) -> Op {
        let op = json!({
            "name": name, "doc": "", "stateful": false, "gradient": null, "place": "src/lib.rs:1", "types": [],
            "inputs": inputs, "outputs": outputs, "attributes": attributes,
        });
        serde_json::from_value(op).expect("an op")
    }

    #[test]
    fn a_gradient_is_matched_by_names() {
        let one = |name| argument(name, "one");
        let attribute = |name: &str| json!({ "name": name, "type": "int", "minimum": null, "allowed": [], "doc": "" });
        let forward = op("F", &[one("x"), argument("ys", "list")], &[one("z")], &[attribute("n")]);
        let problem = |inputs: &[Value], outputs: &[Value], attributes: &[Value]| {
            forward.mismatch(&op("G", inputs, outputs, attributes)).unwrap_or_default()
        };
        let [x, grad_z, grad_x] = ["x", "grad_z", "grad_x"].map(one);
        let fine = problem(
            &[x, one("z"), grad_z],
            &[grad_x.clone(), argument("grad_ys", "list")],
            &[attribute("n")],
        );
        assert_eq!(fine, "");
        assert!(
            problem(&[one("q")], std::slice::from_ref(&grad_x), &[])
                .contains("its input `q` is neither")
        );
        assert!(problem(&[], &[one("x")], &[]).contains("its output `x` is not `grad_`"));
        assert!(problem(&[], &[one("grad_ys")], &[]).contains("are not both lists"));
        let missing = problem(&[], &[grad_x], &[attribute("m")]);
        assert!(missing.contains("its attribute `m` is not one of F"), "{missing}");
    }

    #[test]
    fn names_of_functions_are_unique_and_not_those_of_the_package() {
        let module = |names: &[&str]| {
            let ops = names.iter().map(|name| op(name, &[], &[], &[])).collect();
            python::module("libx.so", &Description { layout: LAYOUT, ops })
        };
        assert!(module(&["HttpGet", "HttpPut", "Import"]).is_ok());
        for name in ["Ops", "Register", "Tf", "Float"] {
            let error = module(&[name]).expect_err("taken").to_string();
            assert!(error.contains("a name that the package uses; rename the op"), "{error}");
        }
        let error = module(&["HTTPGet", "HttpGet"]).expect_err("twice").to_string();
        assert!(error.contains("would both be the Python function `http_get`"), "{error}");
    }

    #[test]
    fn a_gradient_that_does_not_fit_is_not_left_out() {
        let module = |gradient: &str| {
            let mut forward = op("F", &[argument("x", "one")], &[argument("y", "one")], &[]);
            forward.gradient = Some(gradient.to_owned());
            let by = op("G", &[argument("grad_z", "one")], &[argument("grad_x", "one")], &[]);
            python::module("libx.so", &Description { layout: LAYOUT, ops: vec![forward, by] })
        };
        for (gradient, problem) in [
            (
                "G",
                "the gradient of F, G (src/lib.rs:1), does not fit: its input `grad_z` is neither",
            ),
            ("H", "is H, which the library does not have; define that op"),
            (":f", "names no Python function; write `module:function`"),
        ] {
            let error = module(gradient).expect_err(gradient).to_string();
            assert!(error.contains(problem), "{error}");
        }
        assert!(module("m:f").is_ok());
    }

    #[test]
    fn an_unknown_layout_is_refused() {
        let error = Description::parse(r#"{"layout": 2}"#).expect_err("newer").to_string();
        assert!(error.contains("has the layout 2, not 1; use the `cargo tf-plugin`"), "{error}");
        let error = Description::parse("null").expect_err("none").to_string();
        assert!(error.contains("is not understood"), "{error}");
    }

    #[test]
    fn names_that_each_wrapper_has_are_refused() {
        let parsed = |input: &str| Description {
            layout: LAYOUT,
            ops: vec![op("F", &[argument(input, "one")], &[], &[])],
        };
        let error = python::module("libx.so", &parsed("name")).expect_err("taken").to_string();
        assert!(error.contains("the op F (src/lib.rs:1) has an argument `name` twice"), "{error}");
        let text = python::module("libx.so", &parsed("lambda")).expect("a module");
        assert!(text.contains("    lambda_: _runtime.TensorLike,\n    *,\n"), "{text}");
        // Placeholders of Keras are passed by Python's names, too.
        let attribute = json!({ "name": "from", "type": "int", "default": 1, "minimum": null, "allowed": [], "doc": "" });
        let ops = vec![op("F", &[argument("x", "one")], &[], &[attribute])];
        let text =
            python::module("libx.so", &Description { layout: LAYOUT, ops }).expect("a module");
        assert!(text.contains(r#"(x,), {"from_": from_}, name)"#), "{text}");
    }
}

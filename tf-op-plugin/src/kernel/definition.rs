//! New ops.

use crate::abi::ops::{self, Ops};
use crate::abi::shapes::{Infer, ShapeInferenceContext, infer};
use crate::abi::status::Status;
use crate::dtype::DType;
use crate::inventory::Inventory;
use crate::wire::{Value, each_of, values};
use tf_plugin_core::__private::boundary::catch;
use tf_plugin_core::{Error, Result, ensure};

/// The definition of an op that TensorFlow does not have. [`register_op!`](crate::register_op) registers it
/// when the plugin is loaded, before the kernels.
///
/// Python has no wrapper for such an op. In a graph or a `tf.function`, call
/// `op_def_library.apply_op("MyOp", x=x)` of `tensorflow.python.framework`.
pub trait OpDefinition: 'static {
    /// The op's name: a capital letter followed by letters and digits. If TensorFlow has an op of this name,
    /// that one is used.
    const NAME: &'static str;

    /// Adds attributes, inputs and outputs.
    fn define(op: &mut OpDefinitionBuilder);

    /// Sets the shapes of the outputs; by default they are unknown.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for inputs that do not match: the node is then not created.
    fn infer_shapes(shapes: &mut ShapeInferenceContext<'_>) -> Result<()> {
        shapes.set_unknown()
    }
}

/// The parts of an op's definition, in the syntax of TensorFlow's `REGISTER_OP`. A mistake in a text
/// **aborts the process** when the plugin is loaded: TensorFlow has no function to check it before.
#[derive(Debug, Default)]
pub struct OpDefinitionBuilder {
    pub(crate) attributes: Vec<String>,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) is_stateful: bool,
    pub(crate) is_commutative: bool,
    pub(crate) is_aggregate: bool,
    pub(crate) allows_uninitialized_input: bool,
}

impl OpDefinitionBuilder {
    /// Adds an attribute, as in `"T: {float, double} = DT_FLOAT"`.
    pub fn attribute(&mut self, text: impl Into<String>) -> &mut Self {
        self.attributes.push(text.into());
        self
    }

    /// Adds an input, as in `"x: T"` or `"xs: N * T"`.
    pub fn input(&mut self, text: impl Into<String>) -> &mut Self {
        self.inputs.push(text.into());
        self
    }

    /// Adds an output, as in `"y: T"`.
    pub fn output(&mut self, text: impl Into<String>) -> &mut Self {
        self.outputs.push(text.into());
        self
    }

    /// Marks the op as stateful: it depends on more than its inputs, or has an effect besides its outputs.
    pub fn stateful(&mut self) -> &mut Self {
        self.is_stateful = true;
        self
    }

    /// Marks the op as commutative: its two inputs may be swapped.
    pub fn commutative(&mut self) -> &mut Self {
        self.is_commutative = true;
        self
    }

    /// Marks the op as an aggregate: it combines any number of inputs of one type and shape, in any grouping.
    pub fn aggregate(&mut self) -> &mut Self {
        self.is_aggregate = true;
        self
    }

    /// Allows variables without a value as inputs.
    pub fn allows_uninitialized_input(&mut self) -> &mut Self {
        self.allows_uninitialized_input = true;
        self
    }

    /// Checks for the mistakes that the SDK can find.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.chars().all(|one| one.is_ascii_alphanumeric());
        ensure!(
            is_name,
            Error::invalid_argument(format!(
                "`{name}` is not a name of an op; write a capital letter followed by letters and digits"
            ))
        );
        for text in self.attributes.iter().chain(&self.inputs).chain(&self.outputs) {
            let parts = text.split_once(':');
            let is_fine = parts.is_some_and(|(name, of)| {
                let name = name.trim();
                name.starts_with(|first: char| first.is_ascii_alphabetic())
                    && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
                    && !of.trim().is_empty()
                    && text.is_ascii()
                    && !text.contains('\0')
            });
            ensure!(
                is_fine,
                Error::invalid_argument(format!("`{text}` should have the form `name: type`"))
            );
        }
        self.attributes.iter().try_for_each(|text| check_attribute(text))
    }
}

/// The names of types that [`DType`] does not have, or has by another name.
const OTHER_TYPES: [&str; 9] = [
    "half",
    "float",
    "double",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
    "int2",
    "uint2",
];

/// Checks an attribute for what TensorFlow refuses.
fn check_attribute(text: &str) -> Result<()> {
    let (name, of) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    let plain = name.strip_suffix("_ref").unwrap_or(name);
    let mut types = DType::ALL.iter().map(|dtype| dtype.name()).chain(OTHER_TYPES);
    ensure!(
        types.all(|of| of != plain),
        Error::invalid_argument(format!(
            "attribute `{name}` has the name of a type of elements; rename it"
        ))
    );
    let minimum = of.split_once(">=").filter(|(kind, _)| kind.trim().starts_with("list("));
    let is_negative = minimum.is_some_and(|(_, minimum)| minimum.trim().starts_with('-'));
    ensure!(
        !is_negative,
        Error::invalid_argument(format!(
            "attribute `{name}` is a list with a negative minimum; write 0 or more"
        ))
    );
    Ok(())
}

/// An op, as [`register_op!`](crate::register_op) collects it.
#[derive(Clone, Copy, Debug)]
pub struct OpRegistration {
    /// The name.
    pub name: &'static str,
    define: fn(&mut OpDefinitionBuilder),
    infer: Infer,
}

static ALL: Inventory<OpRegistration> = Inventory::new();

impl OpRegistration {
    /// Adds the op to those of the plugin.
    #[doc(hidden)]
    pub fn collect(&'static self) {
        ALL.push(self);
    }

    /// Returns all ops of the plugin, always in the same order.
    pub fn all() -> Vec<&'static Self> {
        let mut all = ALL.all();
        all.sort_by_key(|op| op.name);
        all
    }

    /// Registers the op with the host, unless there is one of its name.
    pub fn register(&self, status: &Status) -> Result<()> {
        let mut op = OpDefinitionBuilder::default();
        catch("the definition of an op", || {
            (self.define)(&mut op);
            op.check(self.name)
        })?;
        if Ops::of_host(status)?.get(self.name)?.is_some() {
            log::debug!("TensorFlow has an op {}", self.name);
            return Ok(());
        }
        ops::register(status, self.name, &op, self.infer)
    }

    /// Creates the registration of a definition.
    #[must_use]
    pub const fn new<O: OpDefinition>() -> Self {
        Self { name: O::NAME, define: O::define, infer: infer::<O> }
    }
}

/// Registers an [`OpDefinition`] when the plugin is loaded: `register_op!(MyOp);`, outside of functions.
#[macro_export]
macro_rules! register_op {
    ($definition:ty) => {
        $crate::__private::collect! {
            $crate::__private::OpRegistration,
            $crate::__private::OpRegistration::new::<$definition>()
        }
    };
}

/// The parts of a host's op definition that matter to kernels.
#[derive(Debug, Default)]
pub struct Definition {
    /// Attributes that are a type or a list of types.
    pub type_attributes: Vec<String>,
    /// Inputs, then outputs.
    pub arguments: Vec<String>,
}

/// Returns whether TensorFlow has an op: its own, or one that a plugin has registered. A graph pass that inserts an op
/// of [`register_op!`](crate::register_op) must check this, because the registration may have failed.
///
/// Returns `false` if TensorFlow has no function to look ops up.
#[must_use]
pub fn host_has_op(op: &str) -> bool {
    Status::new().is_ok_and(|status| Ops::of_host(&status).is_ok_and(|ops| ops.has(op)))
}

impl Definition {
    /// Reads an `OpDef`.
    pub fn read(message: &[u8]) -> Result<Self> {
        let mut definition = Self::default();
        for field in values(message) {
            match field? {
                (2 | 3, Value::Bytes(argument)) => definition.arguments.push(string(argument, 1)?),
                (4, Value::Bytes(attribute)) => {
                    let (name, kind) = (string(attribute, 1)?, string(attribute, 2)?);
                    let is_type = kind == "type" || kind == "list(type)";
                    definition.type_attributes.extend(is_type.then_some(name));
                }
                _ => {}
            }
        }
        Ok(definition)
    }
}

/// Returns the string in a field of a message.
fn string(message: &[u8], number: u32) -> Result<String> {
    let text = each_of(message, number).next().transpose()?;
    Ok(String::from_utf8_lossy(text.unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read() {
        // name: "Op" input_arg { name: "x" } output_arg { name: "y" } attr { name: "T" type: "type" }
        // attr { name: "N" type: "int" }
        let mut message = vec![0x0a, 2, b'O', b'p', 0x12, 3, 0x0a, 1, b'x', 0x1a, 3, 0x0a, 1, b'y'];
        message.extend([0x22, 9, 0x0a, 1, b'T', 0x12, 4]);
        message.extend(b"type");
        message.extend([0x22, 8, 0x0a, 1, b'N', 0x12, 3]);
        message.extend(b"int");
        let definition = Definition::read(&message).unwrap();
        assert_eq!(definition.arguments, ["x", "y"]);
        assert_eq!(definition.type_attributes, ["T"]);
        assert!(Definition::read(&message[..message.len() - 1]).is_err());
    }

    #[test]
    fn mistakes_are_found_before_tensorflow_aborts() {
        let check = |name: &str, input: &str| {
            let mut op = OpDefinitionBuilder::default();
            op.attribute("T: {float, double} = DT_FLOAT").input(input).output("y: T");
            op.check(name)
        };
        check("MyOp2", "xs: N * T").unwrap();
        for name in ["myOp", "My-Op", ""] {
            assert!(check(name, "x: T").is_err(), "{name}");
        }
        for input in ["x", "x:", "2x: T", "x y: T", ": T"] {
            assert!(check("MyOp", input).is_err(), "{input}");
        }
    }

    #[test]
    fn attributes_on_which_tensorflow_aborts_are_refused() {
        let check = |text: &str| {
            OpDefinitionBuilder::default()
                .attribute(text)
                .check("MyOp")
                .map_err(|it| it.to_string())
        };
        check("halves: bool = false").unwrap();
        check("n: int >= -1").unwrap();
        check("xs: list(int) >= 0").unwrap();
        for name in
            ["half", "float", "double", "string", "resource", "bfloat16", "int32_ref", "int2"]
        {
            let error = check(&format!("{name} : bool")).unwrap_err();
            assert!(error.contains("has the name of a type"), "{error}");
        }
        let error = check("xs: list(int)>= -1").unwrap_err();
        assert!(error.contains("attribute `xs` is a list with a negative minimum"), "{error}");
    }
}

//! Nodes: an op with its inputs and attributes, as TensorFlow completes and checks them.

use super::account::Account;
use super::definition::{ArgDef, ArgKind, AttrDef, AttrValue, OpDef};
use super::registry::{self, CPU};
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::sync::Arc;
use tf_op_plugin::__private::{describe, type_name};
use tf_op_plugin::node::Node as NodeDef;
use tf_op_plugin::{Code, DType, Error, Result, ensure};

/// The device of all nodes.
pub(super) const DEVICE: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) op: Arc<OpDef>,
    pub(super) name: String,
    pub(super) attributes: BTreeMap<String, AttrValue>,
    pub(super) inputs: Vec<Slot>,
    pub(super) outputs: Vec<Slot>,
    /// The serialised `NodeDef`.
    pub(super) definition: Vec<u8>,
    pub(super) account: Arc<Account>,
}

/// A tensor of a node.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The name of the argument, with an index in a list.
    pub(super) name: String,
    pub(super) dtype: DType,
}

/// The types of the tensors that are passed for an argument; `None` for one that any type fits.
pub(super) type Given = Vec<Option<DType>>;

/// Returns the types of tensors.
pub(super) fn types_of(tensors: &[Tensor]) -> Result<Given> {
    let dtype = |one: &Tensor| DType::known_or_error(one.data_type).map(Some);
    tensors.iter().map(dtype).collect()
}

impl Node {
    /// Completes a node.
    pub(super) fn new(
        op: &str,
        name: &str,
        inputs: &[Given],
        attributes: &[(String, AttrValue)],
    ) -> Result<Self> {
        let op = registry::op(op).ok_or_else(|| not_registered(op))?;
        let mut known: BTreeMap<String, AttrValue> = BTreeMap::new();
        for (name, value) in attributes {
            ensure!(
                op.attribute(name).is_some(),
                Error::invalid_argument(format!(
                    "NodeDef mentions attr '{name}' not in Op<{}>; its attributes are: {}",
                    op.name,
                    joined(op.attributes.iter().map(|one| &*one.name))
                ))
            );
            known.insert(name.clone(), value.clone());
        }
        ensure!(
            inputs.len() == op.inputs.len(),
            Error::invalid_argument(format!(
                "{} has {} input(s), got {}; pass in this order: {}",
                op.name,
                op.inputs.len(),
                inputs.len(),
                joined(op.inputs.iter().map(|one| &*one.name))
            ))
        );
        let mut index = 0;
        for (argument, given) in op.inputs.iter().zip(inputs) {
            infer(&op.name, index, argument, given, &mut known)?;
            index += given.len();
        }
        for attribute in &op.attributes {
            complete(&op, attribute, &mut known)?;
        }
        let slots = |arguments: &[ArgDef]| -> Result<Vec<Slot>> {
            arguments
                .iter()
                .map(|one| slots(one, &known))
                .collect::<Result<Vec<_>>>()
                .map(|all| all.concat())
        };
        let (inputs, outputs) = (slots(&op.inputs)?, slots(&op.outputs)?);
        let definition = definition(&op, name, &inputs, &known);
        let account = Account::new(&op.name);
        Ok(Self {
            name: name.to_owned(),
            attributes: known,
            inputs,
            outputs,
            definition,
            account,
            op,
        })
    }
}

/// Joins names for a message.
fn joined<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::from("none") } else { names.join(", ") }
}

#[cold]
fn not_registered(op: &str) -> Error {
    let described: serde_json::Value = serde_json::from_str(&describe()).unwrap_or_default();
    let ops = described["ops"].as_array();
    let why = ops.and_then(|ops| ops.iter().find(|one| one["name"] == op)?["error"].as_str());
    let all = registry::op_names();
    let text = match why {
        Some(why) => why.to_owned(),
        None if all.is_empty() => format!(
            "Op type not registered '{op}'; this test has no ops at all: write `use my_crate as _;` if the test is not in \
             the crate of the ops"
        ),
        None => format!(
            "Op type not registered '{op}'; there are: {}",
            joined(all.iter().map(String::as_str))
        ),
    };
    Error::new(Code::NotFound, text)
}

/// Infers the attributes that the tensors of an input decide, and checks those that are known. `first` is the index of its
/// first tensor.
fn infer(
    op: &str,
    first: usize,
    argument: &ArgDef,
    given: &Given,
    known: &mut BTreeMap<String, AttrValue>,
) -> Result<()> {
    let name = &argument.name;
    ensure!(
        argument.is_list() || given.len() == 1,
        Error::invalid_argument(format!("input `{name}` is one tensor, got {}", given.len()))
    );
    if let Some(count) = &argument.count {
        decide(name, count, AttrValue::Int(given.len() as i64), known)?;
    }
    let wanted = match &argument.kind {
        ArgKind::Type(wanted) => Some(AttrValue::Type(*wanted)),
        ArgKind::Attr(attribute) => {
            let dtype = given.iter().flatten().next().copied().map(AttrValue::Type);
            dtype.map(|dtype| known.entry(attribute.clone()).or_insert(dtype).clone())
        }
        ArgKind::ListAttr(attribute) => {
            let types: Vec<_> = given.iter().flatten().copied().map(AttrValue::Type).collect();
            // A shape alone says no type.
            if types.len() == given.len() {
                decide(name, attribute, AttrValue::List(types), known)?;
            }
            None
        }
    };
    for (index, dtype) in (first..).zip(given) {
        if let (Some(AttrValue::Type(wanted)), Some(dtype)) = (&wanted, dtype) {
            ensure!(
                wanted == dtype,
                Error::invalid_argument(format!(
                    "cannot compute {op} as input #{index}(zero-based) was expected to be a {} tensor but is a {} tensor; \
                     it is the input `{name}`",
                    type_name(*wanted),
                    type_name(*dtype)
                ))
            );
        }
    }
    Ok(())
}

/// Sets an attribute that an input decides, or checks it.
fn decide(
    input: &str,
    attribute: &str,
    value: AttrValue,
    known: &mut BTreeMap<String, AttrValue>,
) -> Result<()> {
    let before = known.entry(attribute.to_owned()).or_insert_with(|| value.clone());
    ensure!(
        *before == value,
        Error::invalid_argument(format!(
            "input `{input}` makes the attribute '{attribute}' {value}, and it is {before} by another input or by `attr`; \
             change one of them"
        ))
    );
    Ok(())
}

/// Adds the default of an attribute that the node does not have, and checks its value.
fn complete(
    op: &OpDef,
    attribute: &AttrDef,
    known: &mut BTreeMap<String, AttrValue>,
) -> Result<()> {
    if let Some(value) = known.get(&attribute.name) {
        return attribute.check(value);
    }
    let Some(default) = &attribute.default else {
        return Err(Error::invalid_argument(format!(
            "NodeDef missing attr '{0}' from Op<{1}>; pass it with `.attr(\"{0}\", ...)`",
            attribute.name, op.name
        )));
    };
    known.insert(attribute.name.clone(), default.clone());
    Ok(())
}

/// Returns the tensors of an argument.
fn slots(argument: &ArgDef, known: &BTreeMap<String, AttrValue>) -> Result<Vec<Slot>> {
    let dtype_in = |attribute: &str| match known.get(attribute) {
        Some(AttrValue::Type(dtype)) => Ok(*dtype),
        _ => Err(Error::internal(format!("the attribute '{attribute}' is not a type"))),
    };
    let count = match argument.count.as_ref().and_then(|count| known.get(count)) {
        Some(AttrValue::Int(count)) => usize::try_from(*count).map_err(Error::invalid_argument)?,
        _ => 1,
    };
    let types = match &argument.kind {
        ArgKind::Type(dtype) => vec![*dtype; count],
        ArgKind::Attr(attribute) => vec![dtype_in(attribute)?; count],
        ArgKind::ListAttr(attribute) => match known.get(attribute) {
            Some(AttrValue::List(types)) => types
                .iter()
                .filter_map(
                    |one| if let AttrValue::Type(dtype) = one { Some(*dtype) } else { None },
                )
                .collect(),
            _ => Vec::new(),
        },
    };
    let slot = |(index, dtype)| {
        let name = match argument.is_list() {
            true => format!("{}[{index}]", argument.name),
            false => argument.name.clone(),
        };
        Slot { name, dtype }
    };
    Ok(types.into_iter().enumerate().map(slot).collect())
}

/// Returns the serialised `NodeDef`.
fn definition(
    op: &OpDef,
    name: &str,
    inputs: &[Slot],
    attributes: &BTreeMap<String, AttrValue>,
) -> Vec<u8> {
    let mut node = NodeDef::new(name, op.name.as_str());
    node.set_device(DEVICE).set_inputs((0..inputs.len()).map(|index| format!("input_{index}")));
    for (name, value) in attributes {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        node.set_raw_attr(name, bytes);
    }
    debug_assert!(node.is_on(CPU));
    let mut definition = Vec::new();
    node.encode(&mut definition);
    definition
}

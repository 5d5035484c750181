//! Nodes of graphs, and the values of their attributes.

mod attribute;
mod constant;

pub use attribute::Attribute;
pub use constant::Constant;

use crate::wire::{Value, fields, put_bytes, put_bytes_if_any, put_message, text, values};
use std::borrow::Cow;
use std::fmt;
use tf_plugin_core::{Error, Result};

/// Fields of `NodeDef`.
const NAME: u32 = 1;
const OP: u32 = 2;
const INPUT: u32 = 3;
const DEVICE: u32 = 4;
const ATTR: u32 = 5;
/// Fields of an entry of a map.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// A node of a graph: an operation with its inputs, attributes and device.
///
/// Fields that this SDK does not know stay in the node, byte by byte. The name of a node cannot be changed,
/// because others refer to it.
pub struct Node<'a> {
    name: Cow<'a, str>,
    op: Cow<'a, str>,
    device: Cow<'a, str>,
    inputs: Vec<Cow<'a, str>>,
    attributes: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
    /// Fields that this SDK does not know.
    others: Vec<&'a [u8]>,
    /// The serialised node, until it is changed.
    untouched: Option<&'a [u8]>,
}

/// An input of a node: a value, or a node to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input<'n> {
    /// A value.
    Data {
        /// The node that computes it.
        node: &'n str,
        /// The index of that node's output.
        output: usize,
    },
    /// A control input, without a value: the node runs after that one. These inputs come after all others.
    Control {
        /// The node to wait for.
        node: &'n str,
    },
}

impl<'n> Input<'n> {
    /// Parses an input in the form that graphs use: `node`, `node:1`, or `^node`.
    #[must_use]
    pub fn parse(text: &'n str) -> Self {
        if let Some(node) = text.strip_prefix('^') {
            return Self::Control { node };
        }
        let output = text.rsplit_once(':').and_then(|(node, output)| {
            let is_number = output.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| output.parse().ok()).flatten().map(|output| (node, output))
        });
        let (node, output) = output.unwrap_or((text, 0));
        Self::Data { node, output }
    }

    /// Returns the node that the input comes from.
    #[must_use]
    pub fn node(self) -> &'n str {
        match self {
            Self::Data { node, .. } | Self::Control { node } => node,
        }
    }
}

/// The form that graphs use.
impl fmt::Display for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // After a `:` in the name a number would be read as the output.
            Self::Data { node, output: 0 } if !node.contains(':') => f.write_str(node),
            Self::Data { node, output } => write!(f, "{node}:{output}"),
            Self::Control { node } => write!(f, "^{node}"),
        }
    }
}

impl<'a> Node<'a> {
    /// Creates a node with a name and an operation.
    #[must_use]
    pub fn new(name: impl Into<String>, op: impl Into<String>) -> Self {
        Self {
            name: Cow::Owned(name.into()),
            op: Cow::Owned(op.into()),
            device: Cow::Borrowed(""),
            inputs: Vec::new(),
            attributes: Vec::new(),
            others: Vec::new(),
            untouched: None,
        }
    }

    /// Reads a serialised `NodeDef`.
    #[doc(hidden)]
    pub fn decode(node: &'a [u8]) -> Result<Self> {
        let mut read = Node { untouched: Some(node), ..Self::new("", "") };
        for field in fields(node) {
            let field = field?;
            match (field.number, field.value) {
                (NAME, Value::Bytes(name)) => read.name = Cow::Borrowed(text(name)?),
                (OP, Value::Bytes(op)) => read.op = Cow::Borrowed(text(op)?),
                (INPUT, Value::Bytes(input)) => read.inputs.push(Cow::Borrowed(text(input)?)),
                (DEVICE, Value::Bytes(device)) => read.device = Cow::Borrowed(text(device)?),
                (ATTR, Value::Bytes(entry)) => {
                    let (mut key, mut value): (_, &[u8]) = ("", &[]);
                    for field in values(entry) {
                        match field? {
                            (KEY, Value::Bytes(name)) => key = text(name)?,
                            (VALUE, Value::Bytes(bytes)) => value = bytes,
                            _ => {}
                        }
                    }
                    read.put_attribute(Cow::Borrowed(key), Cow::Borrowed(value));
                }
                _ => read.others.push(field.raw),
            }
        }
        Ok(read)
    }

    /// Returns the serialised `NodeDef` that was decoded, if nothing is changed.
    #[doc(hidden)]
    pub fn untouched(&self) -> Option<&'a [u8]> {
        self.untouched
    }

    /// Appends the serialised `NodeDef`.
    #[doc(hidden)]
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_bytes_if_any(out, NAME, self.name.as_bytes());
        put_bytes_if_any(out, OP, self.op.as_bytes());
        for input in &self.inputs {
            put_bytes(out, INPUT, input.as_bytes());
        }
        put_bytes_if_any(out, DEVICE, self.device.as_bytes());
        for (name, value) in &self.attributes {
            put_message(out, ATTR, |entry| {
                put_bytes(entry, KEY, name.as_bytes());
                put_bytes(entry, VALUE, value);
            });
        }
        for other in &self.others {
            out.extend_from_slice(other);
        }
    }

    /// Returns the name, which is unique in its graph.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name, which may borrow from the serialised graph.
    #[doc(hidden)]
    pub fn shared_name(&self) -> Cow<'a, str> {
        self.name.clone()
    }

    /// Returns the operation, such as `MatMul`.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Sets the operation.
    pub fn set_op(&mut self, op: impl Into<String>) -> &mut Self {
        let op = op.into();
        if self.op != op {
            self.op = Cow::Owned(op);
            self.touch();
        }
        self
    }

    /// Returns the device on which TensorFlow has placed the node, such as
    /// `/job:localhost/replica:0/task:0/device:MY_DEVICE:0`.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns whether the node is on a device of this type.
    #[must_use]
    pub fn is_on(&self, device_type: &str) -> bool {
        self.device.split('/').any(|part| {
            let device = part.strip_prefix("device:").and_then(|rest| rest.split(':').next());
            device.is_some_and(|found| found == device_type)
        })
    }

    /// Sets the device of the node.
    pub fn set_device(&mut self, device: impl Into<String>) -> &mut Self {
        let device = device.into();
        if self.device != device {
            self.device = Cow::Owned(device);
            self.touch();
        }
        self
    }

    /// Returns the inputs: first those with values, in the order of the operation's arguments, then the control
    /// inputs.
    #[must_use]
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = Input<'_>> {
        self.inputs.iter().map(|input| Input::parse(input))
    }

    /// Sets the inputs, each as an [`Input`] or its text. Control inputs are moved behind the others, where
    /// TensorFlow requires them.
    pub fn set_inputs<I: ToString>(&mut self, inputs: impl IntoIterator<Item = I>) -> &mut Self {
        let mut inputs: Vec<Cow<'a, str>> =
            inputs.into_iter().map(|input| Cow::Owned(input.to_string())).collect();
        inputs.sort_by_key(|input| input.starts_with('^'));
        if self.inputs != inputs {
            self.inputs = inputs;
            self.touch();
        }
        self
    }

    /// Returns the names of the attributes.
    #[must_use]
    pub fn attr_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.attributes.iter().map(|(name, _)| &**name)
    }

    /// Returns whether there is an attribute of this name.
    #[must_use]
    pub fn has_attr(&self, name: &str) -> bool {
        self.raw_attr(name).is_some()
    }

    /// Returns the value of an attribute.
    ///
    /// # Errors
    /// [`Code::NotFound`](crate::Code::NotFound) if there is no attribute of this name,
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) if it is of another type; the message names
    /// node and attribute.
    pub fn attr<T: Attribute>(&self, name: &str) -> Result<T> {
        let what = || format!("the attribute `{name}` of the node `{}`", self.name);
        let value = self.raw_attr(name).ok_or_else(|| Error::not_found(what()))?;
        T::decode(value).map_err(|error| error.context(what()))
    }

    /// Sets an attribute.
    pub fn set_attr(&mut self, name: &str, value: impl Attribute) -> &mut Self {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        self.set_raw_attr(name, bytes)
    }

    /// Removes an attribute, and returns whether it existed.
    pub fn remove_attr(&mut self, name: &str) -> bool {
        let before = self.attributes.len();
        self.attributes.retain(|(other, _)| other != name);
        let was_there = self.attributes.len() < before;
        if was_there {
            self.touch();
        }
        was_there
    }

    /// Returns an attribute as a serialised `AttrValue`.
    #[must_use]
    pub fn raw_attr(&self, name: &str) -> Option<&[u8]> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// Sets an attribute to a serialised `AttrValue`.
    pub fn set_raw_attr(&mut self, name: &str, value: impl Into<Vec<u8>>) -> &mut Self {
        let value = value.into();
        if self.raw_attr(name) != Some(&value) {
            self.put_attribute(Cow::Owned(name.to_owned()), Cow::Owned(value));
            self.touch();
        }
        self
    }

    fn put_attribute(&mut self, name: Cow<'a, str>, value: Cow<'a, [u8]>) {
        match self.attributes.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// Returns whether the node differs from the one in TensorFlow's graph.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.untouched.is_none()
    }

    fn touch(&mut self) {
        self.untouched = None;
    }
}

/// A copy counts as changed, even in the place of its original.
impl Clone for Node<'_> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            op: self.op.clone(),
            device: self.device.clone(),
            inputs: self.inputs.clone(),
            attributes: self.attributes.clone(),
            others: self.others.clone(),
            untouched: None,
        }
    }
}

/// Leaves out the values of attributes, which may be megabytes.
impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("op", &self.op)
            .field("device", &self.device)
            .field("inputs", &self.inputs)
            .field("attributes", &self.attr_names().collect::<Vec<_>>())
            .field("is_changed", &self.is_changed())
            .finish_non_exhaustive()
    }
}

//! The functions of a graph's library, compared with those of the same name in other libraries.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tf_op_plugin::__private::wire::{Value, each_of, fields};
use tf_plugin_core::Result;

/// A function of a library.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a [u8],
    /// The serialised `FunctionDef`.
    pub(crate) definition: &'a [u8],
    /// A hash of the definition.
    pub(crate) digest: u64,
}

/// Returns the functions of a serialised `FunctionDefLibrary` that have names.
pub(crate) fn functions(library: &[u8]) -> Result<Vec<Function<'_>>> {
    let mut functions = Vec::new();
    // Field 1 of a library is a function, whose field 1 is its signature, whose field 1 is its name.
    for definition in each_of(library, 1) {
        let definition = definition?;
        let Some(signature) = each_of(definition, 1).next().transpose()? else { continue };
        let Some(name) = each_of(signature, 1).next().transpose()? else { continue };
        functions.push(Function { name, definition, digest: digest(definition, Kind::Function)? });
    }
    Ok(functions)
}

/// A message that has maps, or fields with maps.
#[derive(Clone, Copy)]
enum Kind {
    Function,
    /// An entry of a map to the arguments' attributes.
    ArgumentEntry,
    Arguments,
    Node,
    /// An entry of a map to values of attributes.
    AttributeEntry,
    Attribute,
    List,
    /// A function's name with its attributes.
    Call,
    /// One without maps.
    Other,
}

impl Kind {
    /// Returns the kind of a field, and whether it is a map.
    fn of(self, field: u32) -> (Self, bool) {
        match (self, field) {
            (Self::Function, 3) => (Self::Node, false),
            (Self::Function, 4 | 6 | 8) => (Self::Other, true),
            (Self::Function, 7) => (Self::ArgumentEntry, true),
            (Self::ArgumentEntry, 2) => (Self::Arguments, false),
            (Self::Function | Self::Node, 5) | (Self::Arguments, 1) | (Self::Call, 2) => {
                (Self::AttributeEntry, true)
            }
            (Self::AttributeEntry, 2) => (Self::Attribute, false),
            (Self::Attribute, 1) => (Self::List, false),
            (Self::Attribute, 10) | (Self::List, 9) => (Self::Call, false),
            _ => (Self::Other, false),
        }
    }
}

/// Returns a hash of a message. The order of a map's entries does not count: the same map is serialised in several orders.
fn digest(message: &[u8], kind: Kind) -> Result<u64> {
    let mut all = DefaultHasher::new();
    let mut maps = 0_u64;
    if matches!(kind, Kind::Other) {
        message.hash(&mut all);
        return Ok(all.finish());
    }
    for field in fields(message) {
        let field = field?;
        let (inner, is_map) = kind.of(field.number);
        let value_hash = match field.value {
            Value::Bytes(bytes) => digest(bytes, inner)?,
            _ => digest(field.raw, Kind::Other)?,
        };
        if is_map {
            let mut entry = DefaultHasher::new();
            (field.number, value_hash).hash(&mut entry);
            maps = maps.wrapping_add(entry.finish());
        } else {
            (field.number, value_hash).hash(&mut all);
        }
    }
    maps.hash(&mut all);
    Ok(all.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tf_op_plugin::__private::wire::{put_bytes, put_message};

    /// Returns a library with a function of a node with these inputs and attributes, which it returns in that order, too.
    fn library(inputs: [&[u8]; 2], attributes: [&[u8]; 2]) -> Vec<u8> {
        let mut library = Vec::new();
        put_message(&mut library, 1, |function| {
            put_message(function, 1, |signature| put_bytes(signature, 1, b"f"));
            put_message(function, 3, |node| {
                inputs.iter().for_each(|input| put_bytes(node, 3, input));
                for name in attributes {
                    put_message(node, 5, |entry| {
                        put_bytes(entry, 1, name);
                        put_message(entry, 2, |value| put_bytes(value, 2, name));
                    });
                }
            });
            attributes
                .iter()
                .for_each(|name| put_message(function, 4, |ret| put_bytes(ret, 1, name)));
        });
        library
    }

    #[test]
    fn the_order_counts_except_in_maps() {
        let digest = |inputs, attributes| {
            let library = library(inputs, attributes);
            let functions = functions(&library).unwrap();
            assert_eq!(functions[0].name, b"f");
            functions[0].digest
        };
        let first = digest([b"x", b"y"], [b"a", b"b"]);
        assert_eq!(first, digest([b"x", b"y"], [b"b", b"a"]));
        assert_ne!(first, digest([b"y", b"x"], [b"a", b"b"]));
        assert_ne!(first, digest([b"x", b"y"], [b"a", b"c"]));
    }
}

//! What TensorFlow's registry checks: definitions, and values of attributes.

use super::{ArgDef, ArgKind, AttrDef, AttrKind, AttrValue, OpDef};
use std::collections::BTreeSet;
use tf_op_plugin::{Error, Result, ensure};

impl OpDef {
    /// Checks the definition. TensorFlow aborts the process for one that is wrong.
    pub(in crate::ops) fn check(&self) -> std::result::Result<(), String> {
        let is_name = self.name.starts_with(|first: char| first.is_ascii_uppercase())
            && self.name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
        if !is_name {
            return Err(format!("`{}` is not a name of an op", self.name));
        }
        let mut names = BTreeSet::new();
        let attributes = self.attributes.iter().map(|one| &one.name);
        let arguments = self.inputs.iter().chain(&self.outputs);
        for name in attributes.chain(arguments.clone().map(|one| &one.name)) {
            if !names.insert(name) {
                return Err(format!("two attributes or arguments are named `{name}`"));
            }
        }
        for attribute in &self.attributes {
            if let Some(default) = &attribute.default {
                attribute.check(default).map_err(|error| error.message().to_owned())?;
            }
        }
        arguments.into_iter().try_for_each(|argument| self.check_argument(argument))
    }

    fn check_argument(&self, argument: &ArgDef) -> std::result::Result<(), String> {
        let has = |name: &str, kind, is_list, what: &str| match self.attribute(name) {
            None => Err(format!("No attr with name '{name}' for `{}`", argument.name)),
            Some(one) if one.kind == kind && one.is_list == is_list => Ok(one),
            Some(one) => Err(format!(
                "Attr '{name}' used as {what} of `{}` has type {}",
                argument.name,
                one.type_text()
            )),
        };
        match &argument.kind {
            ArgKind::Type(_) => {}
            ArgKind::Attr(name) => drop(has(name, AttrKind::Type, false, "type")?),
            ArgKind::ListAttr(name) => drop(has(name, AttrKind::Type, true, "types")?),
        }
        if let Some(count) = &argument.count {
            let minimum = has(count, AttrKind::Int, false, "length")?.minimum;
            if minimum.is_none_or(|minimum| minimum < 0) {
                return Err(format!(
                    "Attr '{count}' used as length of `{}` must have a minimum >= 0",
                    argument.name
                ));
            }
        }
        Ok(())
    }
}

impl AttrDef {
    /// Checks a value of the attribute, with TensorFlow's texts.
    pub(in crate::ops) fn check(&self, value: &AttrValue) -> Result<()> {
        let (kind, wanted) = (value.kind(), self.type_text());
        let is_empty_list = self.is_list && kind == "list(any)";
        ensure!(
            kind == wanted || is_empty_list,
            Error::invalid_argument(format!(
                "AttrValue had value with type '{kind}' when '{wanted}' expected for attr '{}'",
                self.name
            ))
        );
        let values = match value {
            AttrValue::List(values) => &values[..],
            value => std::slice::from_ref(value),
        };
        if let Some(minimum) = self.minimum {
            let (what, size) = match value {
                AttrValue::Int(value) => ("Value", *value),
                _ => ("Length", values.len() as i64),
            };
            ensure!(
                size >= minimum,
                Error::invalid_argument(format!(
                    "{what} for attr '{}' of {size} must be at least minimum {minimum}",
                    self.name
                ))
            );
        }
        for value in values {
            if !self.allowed.is_empty() && !self.allowed.contains(value) {
                let allowed: Vec<_> = self.allowed.iter().map(in_list).collect();
                return Err(Error::invalid_argument(format!(
                    "Value for attr '{}' of {} is not in the list of allowed values: {}",
                    self.name,
                    in_list(value),
                    allowed.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// Returns a value as in TensorFlow's list of allowed ones: types have lower case.
fn in_list(value: &AttrValue) -> String {
    match value {
        AttrValue::Type(dtype) => tf_op_plugin::__private::type_name(*dtype).to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{argument, attribute};
    use super::*;
    use tf_op_plugin::DType;

    fn op(attributes: &[&str], inputs: &[&str]) -> std::result::Result<(), String> {
        let attributes: Vec<_> = attributes.iter().map(|text| attribute(text).unwrap()).collect();
        let inputs = inputs.iter().map(|text| argument(text, &attributes).unwrap()).collect();
        OpDef { name: "Op".into(), inputs, attributes, ..OpDef::default() }.check()
    }

    #[test]
    fn definitions_on_which_tensorflow_aborts_are_refused() {
        op(&["T: type", "N: int >= 1", "L: list(type)"], &["x: N * T", "y: L"]).unwrap();
        for (attributes, inputs, part) in [
            (&["T: type"][..], &["x: U"][..], "No attr with name 'U' for `x`"),
            (&["T: int"], &["x: T"], "Attr 'T' used as type of `x` has type int"),
            (&["N: int"], &["x: N * int32"], "must have a minimum >= 0"),
            (&["N: float"], &["x: N * int32"], "Attr 'N' used as length of `x` has type float"),
            (&["x: int"], &["x: int32"], "two attributes or arguments are named `x`"),
            (&["n: int >= 2 = 1"], &[], "Value for attr 'n' of 1 must be at least minimum 2"),
            (&["s: {'a'} = 'b'"], &[], "is not in the list of allowed values: \"a\""),
        ] {
            let error = op(attributes, inputs).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let unnamed = OpDef { name: "op".into(), ..OpDef::default() };
        assert!(unnamed.check().is_err());
    }

    #[test]
    fn values_are_checked_as_by_tensorflow() {
        let check = |text: &str, value: AttrValue| {
            attribute(text).unwrap().check(&value).map_err(|error| error.message().to_owned())
        };
        check("n: int >= 1", 1_i64.into()).unwrap();
        check("l: list(int)", Vec::<bool>::new().into()).unwrap();
        for (text, value, expected) in [
            (
                "n: int",
                true.into(),
                "AttrValue had value with type 'bool' when 'int' expected for attr 'n'",
            ),
            ("n: int >= 1", 0_i64.into(), "Value for attr 'n' of 0 must be at least minimum 1"),
            (
                "l: list(int) >= 1",
                Vec::<i64>::new().into(),
                "Length for attr 'l' of 0 must be at least minimum 1",
            ),
            (
                "T: {float, double}",
                DType::String.into(),
                "Value for attr 'T' of string is not in the list of allowed values: float, double",
            ),
            (
                "s: {'a', 'b'}",
                "c".into(),
                "Value for attr 's' of \"c\" is not in the list of allowed values: \"a\", \"b\"",
            ),
        ] {
            assert_eq!(check(text, value).unwrap_err(), expected);
        }
    }
}

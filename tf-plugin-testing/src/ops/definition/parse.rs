//! The syntax of TensorFlow's `REGISTER_OP`.

use super::value::type_of_name;
use super::{ArgDef, ArgKind, AttrDef, AttrKind, AttrValue};
use tf_op_plugin::DType;
use tf_op_plugin::kernel::PartialShape;

type Parsed<T> = Result<T, String>;

/// Reads an attribute, such as `n: int >= 1 = 3`.
pub(in crate::ops) fn attribute(text: &str) -> Parsed<AttrDef> {
    let mut rest = Rest(text);
    let mut read = || -> Parsed<_> {
        let name = rest.name(|first| first.is_ascii_alphabetic(), "a name")?;
        rest.expect(":")?;
        let is_list = rest.eat("list");
        if is_list {
            rest.expect("(")?;
        }
        let (kind, allowed) = rest.kind()?;
        if is_list {
            rest.expect(")")?;
        }
        let has_minimum = kind == AttrKind::Int || is_list;
        let minimum = match rest.eat(">=") {
            true if has_minimum => Some(rest.integer()?),
            true => return Err(format!("a {} has no minimum", kind.name())),
            false => None,
        };
        let default = match rest.eat("=") {
            true if is_list => Some(rest.list(kind)?),
            true => Some(rest.value(kind)?),
            false => None,
        };
        rest.end()?;
        Ok(AttrDef { name, kind, is_list, minimum, allowed, default })
    };
    read().map_err(|why| format!("attribute \"{text}\": {why}"))
}

/// Reads an input or an output, such as `xs: N * T`. `attributes` are those of the op.
pub(in crate::ops) fn argument(text: &str, attributes: &[AttrDef]) -> Parsed<ArgDef> {
    let mut rest = Rest(text);
    let mut read = || -> Parsed<_> {
        let name = rest.name(|first| first.is_ascii_lowercase(), "a name in lower case")?;
        rest.expect(":")?;
        let is_ref = rest.eat("Ref(");
        let mut word = rest.word()?;
        let count = rest.eat("*").then(|| word.clone());
        if count.is_some() {
            word = rest.word()?;
        }
        if is_ref {
            rest.expect(")")?;
        }
        rest.end()?;
        let is_list = attributes.iter().any(|one| one.name == word && one.is_list);
        let kind = match type_of_name(&word) {
            Some(dtype) => ArgKind::Type(dtype),
            None if is_list => ArgKind::ListAttr(word),
            None => ArgKind::Attr(word),
        };
        Ok(ArgDef { name, count, kind, is_ref })
    };
    read().map_err(|why| format!("argument \"{text}\": {why}"))
}

/// What is left of a text.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    /// Skips white space, and then a text if it comes next.
    fn eat(&mut self, text: &str) -> bool {
        self.0 = self.0.trim_start();
        let after = self.0.strip_prefix(text);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    fn expected(&self, what: &str) -> String {
        match self.0 {
            "" => format!("{what} is missing at the end"),
            rest => format!("expected {what} before `{rest}`"),
        }
    }

    fn end(&mut self) -> Parsed<()> {
        self.eat("");
        if self.0.is_empty() { Ok(()) } else { Err(self.expected("nothing")) }
    }

    /// Takes the characters up to the first that does not fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> String {
        self.eat("");
        let end = self.0.find(|one| !fits(one)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken.to_owned()
    }

    fn name(&mut self, first: impl Fn(char) -> bool, what: &str) -> Parsed<String> {
        self.eat("");
        if !self.0.starts_with(&first) {
            return Err(self.expected(what));
        }
        let is_lower = !first('A');
        Ok(self.take(|one| {
            one == '_' || one.is_ascii_alphanumeric() && !(is_lower && one.is_ascii_uppercase())
        }))
    }

    fn word(&mut self) -> Parsed<String> {
        self.name(|first| first.is_ascii_alphabetic(), "a type")
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let word = self.word()?;
        type_of_name(&word).ok_or_else(|| format!("`{word}` is not a type"))
    }

    /// Reads a type of attributes, and the values that it allows.
    fn kind(&mut self) -> Parsed<(AttrKind, Vec<AttrValue>)> {
        if !self.eat("{") {
            let word = self.word()?;
            if let Some(kind) = AttrKind::ALL.into_iter().find(|kind| kind.name() == word) {
                return Ok((kind, Vec::new()));
            }
            let group =
                group(&word).ok_or_else(|| format!("`{word}` is not a type of attributes"))?;
            return Ok((AttrKind::Type, group.iter().copied().map(AttrValue::Type).collect()));
        }
        self.eat("");
        let kind = match self.0.starts_with(['\'', '"']) {
            true => AttrKind::String,
            false => AttrKind::Type,
        };
        let mut allowed = Vec::new();
        loop {
            allowed.push(self.value(kind)?);
            if self.eat("}") {
                return Ok((kind, allowed));
            }
            self.expect(",")?;
        }
    }

    fn list(&mut self, kind: AttrKind) -> Parsed<AttrValue> {
        self.expect("[")?;
        let mut values = Vec::new();
        while !self.eat("]") {
            if !values.is_empty() {
                self.expect(",")?;
            }
            values.push(self.value(kind)?);
        }
        Ok(AttrValue::List(values))
    }

    fn value(&mut self, kind: AttrKind) -> Parsed<AttrValue> {
        match kind {
            AttrKind::String => self.quoted().map(AttrValue::String),
            AttrKind::Int => self.integer().map(AttrValue::Int),
            AttrKind::Float => {
                let text = self.take(|one| one.is_ascii_alphanumeric() || "+-.".contains(one));
                text.parse().map(AttrValue::Float).map_err(|_| format!("`{text}` is not a float"))
            }
            AttrKind::Bool => match &*self.word()? {
                "true" => Ok(AttrValue::Bool(true)),
                "false" => Ok(AttrValue::Bool(false)),
                other => Err(format!("`{other}` is not a bool")),
            },
            AttrKind::Type => self.dtype().map(AttrValue::Type),
            AttrKind::Shape => self.shape().map(AttrValue::Shape),
            AttrKind::Tensor | AttrKind::Func => {
                Err(format!("this host has no defaults of the type {}", kind.name()))
            }
        }
    }

    fn integer(&mut self) -> Parsed<i64> {
        let text = self.take(|one| one.is_ascii_digit() || one == '-');
        text.parse().map_err(|_| self.expected("an integer"))
    }

    /// Reads a string in quotes, with the escapes of C.
    fn quoted(&mut self) -> Parsed<Vec<u8>> {
        let quote = if self.eat("'") { b'\'' } else { b'"' };
        if quote == b'"' {
            self.expect("\"")?;
        }
        let (text, mut bytes) = (self.0.as_bytes(), Vec::new());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at += 1;
            if byte == quote {
                self.0 = self.0.get(at..).unwrap_or_default();
                return Ok(bytes);
            }
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            let octal =
                text[at..].iter().take(3).take_while(|one| (b'0'..b'8').contains(one)).count();
            if octal > 0 {
                let digits = text[at..at + octal].iter();
                bytes
                    .push(digits.fold(0_u8, |value, digit| value.wrapping_mul(8) + (digit - b'0')));
                at += octal;
                continue;
            }
            bytes.push(match text.get(at) {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'r') => b'\r',
                Some(&other) => other,
                None => break,
            });
            at += 1;
        }
        Err(String::from("a string has no end"))
    }

    /// Reads a `TensorShapeProto` in the text format.
    fn shape(&mut self) -> Parsed<PartialShape> {
        self.expect("{")?;
        let (mut dims, mut is_unknown) = (Vec::new(), false);
        while !self.eat("}") {
            if self.eat("unknown_rank") {
                self.expect(":")?;
                is_unknown = self.value(AttrKind::Bool)? == AttrValue::Bool(true);
                continue;
            }
            for part in ["dim", "{", "size", ":"] {
                self.expect(part)?;
            }
            let size = self.integer()?;
            dims.push((size >= 0).then_some(size));
            self.expect("}")?;
        }
        Ok(if is_unknown { PartialShape::unknown() } else { PartialShape::new(dims) })
    }
}

/// Returns the types of a group's name.
fn group(name: &str) -> Option<&'static [DType]> {
    use DType::*;
    Some(match name {
        "numbertype" | "numerictype" => &[
            Float32, Float64, Int64, Int32, Uint8, Uint16, Int16, Int8, Complex64, Complex128,
            Qint8, Quint8, Qint32, Float16, Uint32, Uint64, Bfloat16,
        ],
        "realnumbertype" | "realnumerictype" => &[
            Float32, Float64, Int32, Uint8, Int16, Int8, Int64, Bfloat16, Uint16, Float16, Uint32,
            Uint64,
        ],
        "quantizedtype" => &[Qint8, Quint8, Qint32, Qint16, Quint16],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_a_type_limits_and_a_default() {
        let read = |text| attribute(text).unwrap();
        let lower = read("lower: bool = false");
        assert_eq!((lower.kind, lower.default), (AttrKind::Bool, Some(AttrValue::Bool(false))));
        let number = read("n: int >= -1 = 3");
        assert_eq!((number.minimum, number.default), (Some(-1), Some(AttrValue::Int(3))));
        let mode = read(r"mode: {'a', 'it\'s'} = 'a'");
        assert_eq!(mode.allowed, [AttrValue::from("a"), AttrValue::from("it's")]);
        let floats = read("f: list(float) >= 1 = [1.0, 5e-1]");
        assert_eq!(floats.default, Some(AttrValue::from([1.0_f32, 0.5])));
        assert_eq!((floats.type_text(), floats.minimum), ("list(float)".into(), Some(1)));
        let shape = read("s: shape = { dim { size: 2 } dim { size: -1 } }").default;
        assert_eq!(shape, Some(AttrValue::from(PartialShape::new([Some(2), None]))));
        let unknown = read("s: shape = { unknown_rank: true }").default;
        assert_eq!(unknown, Some(AttrValue::from(PartialShape::unknown())));
        let types = read("T: {float, int64} = DT_INT64");
        assert_eq!(types.allowed, [DType::Float32, DType::Int64].map(AttrValue::from));
        assert_eq!(read("T: realnumbertype").allowed.len(), 12);
        assert_eq!(read("T: list({half, string})").allowed.len(), 2);
        assert_eq!(read(r"s: string = '\303\274\012'").default, Some(AttrValue::from("ü\n")));
        assert_eq!(read("s: list(string) = []").default, Some(AttrValue::List(Vec::new())));
    }

    #[test]
    fn arguments_have_a_type_and_a_count() {
        let attributes = [attribute("L: list(type)").unwrap()];
        let read = |text| argument(text, &attributes).unwrap();
        assert_eq!(read("x: int32").kind, ArgKind::Type(DType::Int32));
        assert_eq!(read("x: T").kind, ArgKind::Attr("T".into()));
        assert_eq!(read("x: L").kind, ArgKind::ListAttr("L".into()));
        let list = read("xs: N * string");
        assert_eq!((list.count.as_deref(), list.is_list()), (Some("N"), true));
        assert!(read("x: Ref(T)").is_ref);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("n int", "expected `:` before `int`"),
            ("n: integer", "`integer` is not a type of attributes"),
            ("n: float >= 1", "a float has no minimum"),
            ("n: int = x", "expected an integer before `x`"),
            ("n: int = 1 2", "expected nothing before `2`"),
            ("s: string = 'a", "a string has no end"),
            ("s: {'a', 'b'", "`,` is missing at the end"),
            ("b: bool = yes", "`yes` is not a bool"),
            ("t: type = DT_X", "`DT_X` is not a type"),
        ] {
            let error = attribute(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        for (text, part) in [
            ("X: T", "expected a name in lower case"),
            ("x: ", "a type is missing at the end"),
            ("x: N * ", "a type is missing at the end"),
            ("camelCase: T", "expected `:` before `Case: T`"),
        ] {
            let error = argument(text, &[]).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}

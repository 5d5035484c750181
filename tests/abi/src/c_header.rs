//! Names in a C header: what it declares, without what it means. The meaning (sizes, offsets, values,
//! types) comes from a C++ compiler, see [`compare`](crate::compare).
//!
//! This reads the plain C subset that TensorFlow's plugin headers are written in and refuses the rest,
//! so that nothing is passed over in silence. Conditional compilation is not followed: what stands
//! under `#ifdef` counts as declared.

/// The declarations of one header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CHeader {
    /// Paths of the included headers, without quotes.
    pub includes: Vec<String>,
    /// Structs and unions with a body, inner before outer.
    pub records: Vec<CRecord>,
    /// Names of all other types: enums, opaque structs, function pointers.
    pub types: Vec<String>,
    /// Tags that follow `struct` anywhere.
    pub tags: Vec<String>,
    /// Enumerators, `constexpr` and `const` variables and object-like macros with a value.
    pub constants: Vec<CConstant>,
    /// Functions, declared or defined.
    pub functions: Vec<CFunction>,
}

/// A struct or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CRecord {
    /// Its name; that of the enclosing record and the field, joined by `::`, if it has none.
    pub name: String,
    /// Whether it is a union.
    pub is_union: bool,
    /// Names of the fields in order.
    pub fields: Vec<String>,
    /// For a struct or union declared as the type of a field: the enclosing record and the field.
    pub within: Option<(String, String)>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CConstant {
    /// Its name.
    pub name: String,
    /// Whether a macro defines it, so that it may be something else than a value.
    pub is_macro: bool,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CFunction {
    /// Its name.
    pub name: String,
    /// Whether the header defines it.
    pub inline: bool,
}

impl CHeader {
    /// Reads the text of a header.
    ///
    /// # Errors
    /// The declaration that is outside the subset which this reader knows.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut header = Self::default();
        let code = header.directives(&without_comments(text));
        let tokens = tokens(&code);
        let mut rest = tokens.as_slice();
        while let Some(first) = rest.first() {
            if rest.starts_with(&["extern", "\"C\"", "{"].map(String::from)) {
                rest = &rest[3..];
            } else if first == "}" || first == ";" {
                // The end of `extern "C" {`, or a stray semicolon.
                rest = &rest[1..];
            } else {
                let (statement, length) = statement(rest)?;
                header.statement(statement).map_err(|problem| {
                    format!(
                        "cannot read `{}`: {problem}; teach `CHeader` this form",
                        shorten(&statement.join(" "))
                    )
                })?;
                rest = &rest[length..];
            }
        }
        Ok(header)
    }

    /// Takes the preprocessor's lines out of `text` and returns what is left.
    fn directives(&mut self, text: &str) -> String {
        let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut code = String::new();
        for line in joined.lines() {
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                code.push_str(line);
                code.push('\n');
                continue;
            };
            let directive = directive.trim();
            if let Some(path) = directive.strip_prefix("include") {
                self.includes.push(path.trim().trim_matches(['"', '<', '>']).to_owned());
            } else if let Some(macro_text) = directive.strip_prefix("define ") {
                self.define(macro_text.trim());
            }
        }
        code
    }

    fn define(&mut self, text: &str) {
        let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
        let (name, replacement) = text.split_at(end);
        // A function-like macro, an include guard, or an attribute in disguise.
        let no_value = replacement.starts_with('(')
            || replacement.trim().is_empty()
            || replacement.trim().starts_with("__");
        if !no_value {
            self.add_constant(name, true);
        }
    }

    /// The same macro may be defined in several branches.
    fn add_constant(&mut self, name: &str, is_macro: bool) {
        if !self.constants.iter().any(|constant| constant.name == name) {
            self.constants.push(CConstant { name: name.to_owned(), is_macro });
        }
    }

    fn statement(&mut self, statement: &[String]) -> Result<(), String> {
        for pair in statement.windows(2) {
            if pair[0] == "struct" && is_name(&pair[1]) && !self.tags.contains(&pair[1]) {
                self.tags.push(pair[1].clone());
            }
        }
        let (is_typedef, declaration) = match statement {
            [first, rest @ ..] if first == "typedef" => (true, rest),
            all => (false, all),
        };
        let body = declaration.iter().position(|token| token == "{");
        match (declaration.first().map(String::as_str), body) {
            (Some(keyword @ ("struct" | "union" | "enum")), Some(open)) => {
                let close = matching(declaration, open)?;
                let body = &declaration[open + 1..close];
                if (keyword, open, close + 1) == ("enum", 1, declaration.len()) {
                    // Constants without a type.
                    return self.enumerators(body);
                }
                let name = match (&declaration[1..open], &declaration[close + 1..]) {
                    (_, [name]) if is_typedef && is_name(name) => name,
                    ([name], []) if !is_typedef && is_name(name) => name,
                    _ => return Err("no single name".into()),
                };
                if keyword == "enum" {
                    self.types.push(name.clone());
                    return self.enumerators(body);
                }
                self.record(name, keyword == "union", body, None)
            }
            _ if is_typedef => {
                let name = declarator(declaration)?;
                if !self.types.contains(&name) {
                    self.types.push(name);
                }
                Ok(())
            }
            // A forward declaration; the tag is noted already.
            (Some("struct" | "union" | "enum"), None) if declaration.len() == 2 => Ok(()),
            _ => self.value_or_function(declaration),
        }
    }

    fn value_or_function(&mut self, declaration: &[String]) -> Result<(), String> {
        let first_of = |text: &str| declaration.iter().position(|token| token == text);
        let is_constant = match declaration.first().map(String::as_str) {
            Some("constexpr") => true,
            // Not a function that returns something constant.
            Some("const") => first_of("=").is_some(),
            _ => false,
        };
        if is_constant {
            let equals = first_of("=").ok_or("a constant without a value")?;
            let name = declarator(&declaration[..equals])?;
            self.add_constant(&name, false);
            return Ok(());
        }
        let open = first_of("(").ok_or("neither type, constant nor function")?;
        let name = declaration[..open]
            .last()
            .filter(|name| is_name(name) && !name.starts_with("__"))
            .ok_or("a function without a plain name")?;
        let close = matching(declaration, open)?;
        let inline = match &declaration[close + 1..] {
            [] => false,
            [body, ..] if body == "{" => true,
            _ => return Err("something follows the parameters".into()),
        };
        self.functions.push(CFunction { name: name.clone(), inline });
        Ok(())
    }

    fn enumerators(&mut self, body: &[String]) -> Result<(), String> {
        for enumerator in split(body, ",") {
            match enumerator {
                [] => {}
                [name, ..] if is_name(name) => self.add_constant(name, false),
                _ => return Err("an enumerator without a name".into()),
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        name: &str,
        is_union: bool,
        body: &[String],
        within: Option<(String, String)>,
    ) -> Result<(), String> {
        let mut fields = Vec::new();
        for member in split(body, ";") {
            let Some(first) = member.first() else {
                continue;
            };
            if member.iter().any(|token| token == ":") {
                return Err("a bit-field".into());
            }
            match member.iter().position(|token| token == "{") {
                Some(open) if first == "struct" || first == "union" => {
                    let close = matching(member, open)?;
                    let [field] = &member[close + 1..] else {
                        return Err("an inner struct that is not the type of one field".into());
                    };
                    self.record(
                        &format!("{name}::{field}"),
                        first == "union",
                        &member[open + 1..close],
                        Some((name.to_owned(), field.clone())),
                    )?;
                    fields.push(field.clone());
                }
                Some(_) => return Err("a member with a body".into()),
                None => {
                    for part in split(member, ",") {
                        fields.push(declarator(part)?);
                    }
                }
            }
        }
        self.records.push(CRecord { name: name.to_owned(), is_union, fields, within });
        Ok(())
    }
}

/// The name that a declaration without body and value declares.
fn declarator(declaration: &[String]) -> Result<String, String> {
    // Of an array the bounds do not matter, which may have parentheses too.
    let bounds = declaration.iter().position(|token| token == "[");
    let name = match declaration.iter().position(|token| token == "(") {
        Some(open) if bounds.is_some_and(|bounds| bounds < open) => {
            declaration[..bounds.unwrap_or_default()].last()
        }
        // `void (*name)(...)`, also `void (* const name)(...)`.
        Some(open) if declaration.get(open + 1).is_some_and(|star| star == "*") => {
            let close = matching(declaration, open)?;
            declaration[..close].last()
        }
        Some(_) => return Err("a function where a variable is expected".into()),
        None => declaration[..bounds.unwrap_or(declaration.len())].last(),
    };
    name.filter(|name| is_name(name)).cloned().ok_or_else(|| "no name".into())
}

/// The tokens of the first statement, without its semicolon, and how many tokens it takes with it.
fn statement(tokens: &[String]) -> Result<(&[String], usize), String> {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            ";" => return Ok((&tokens[..at], at + 1)),
            "(" | "[" => at = matching(tokens, at)?,
            "{" => {
                let close = matching(tokens, at)?;
                if at > 0 && tokens[at - 1] == ")" {
                    return Ok((&tokens[..=close], close + 1));
                }
                at = close;
            }
            _ => {}
        }
        at += 1;
    }
    Err(format!("no semicolon ends `{}`; is the header whole?", shorten(&tokens.join(" "))))
}

/// Where the bracket that opens at `open` closes.
fn matching(tokens: &[String], open: usize) -> Result<usize, String> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(at);
        }
    }
    Err(format!("no bracket closes `{}`; is the header whole?", shorten(&tokens[open..].join(" "))))
}

/// The parts between separators outside all brackets.
fn split<'a>(tokens: &'a [String], separator: &str) -> Vec<&'a [String]> {
    let mut depth = 0_usize;
    tokens
        .split(|token| {
            match token.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && token == separator
        })
        .collect()
}

/// Replaces each comment by a space and leaves strings alone.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let length = if c == '"' || c == '\'' { quoted(rest, c) } else { c.len_utf8() };
            code.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        };
        code.push(' ');
        rest = &rest[length..];
    }
    code
}

/// Length of the literal at the start of `text`, both quotes included. A quote that does not close on
/// its line is one character.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    1
}

/// Words, literals and single punctuation marks.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let length = if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
            continue;
        } else if is_word(c) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if c == '"' || c == '\'' {
            quoted(rest, c)
        } else {
            c.len_utf8()
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        short.push_str(" ...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        items.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn every_form_of_declaration_is_read() {
        let header = CHeader::parse(
            r##"
            #ifndef GUARD_H_ // a comment; with a semicolon
            #define GUARD_H_
            #include "some/header.h"
            #define API __attribute__((visibility("default")))
            #define OFFSET(TYPE, MEMBER) (offsetof(TYPE, MEMBER))
            #define MAJOR 3
            #define LONG_SIZE \
              OFFSET(Point, y)
            #ifdef __cplusplus
            extern "C" {
            #endif
            typedef struct Opaque_st* Opaque;
            typedef struct Hidden Hidden;
            typedef void (*Visitor)(const char* key /* not ; null */, void* const);
            typedef union Value {
              int64_t whole;
              struct { char* bytes; int length; } text;
            } Value;
            typedef enum Kind { KIND_A = 0, KIND_B, KIND_LAST, } Kind;
            struct Point {
              double x, *y;
              char name[16 + sizeof(char)];
              TF_Bool (*hook)(int, int);
            #define POINT_SIZE OFFSET(Point, hook)
            };
            struct Declared_st;
            enum { UNNAMED = (1), };
            constexpr int VERSION = 1;
            const size_t POINT_ARGS =
                OFFSET(Point, y);
            constexpr size_t SIZE =
                sizeof(Point);
            API extern void Declared(Hidden*, Kind);
            API extern void Variadic(const char* format, ...);
            static inline void Defined(Value* v) { if (v) { v->whole = 1; } }
            const char* Message(void);
            #ifdef __cplusplus
            }  /* end extern "C" */
            #endif
            #endif
            "##,
        )
        .expect("plain C");
        assert_eq!(header.includes, names(["some/header.h"]));
        assert_eq!(header.types, names(["Opaque", "Hidden", "Visitor", "Kind"]));
        assert_eq!(
            header.tags,
            names(["Opaque_st", "Hidden", "Point", "Declared_st"]),
            "tags in order"
        );
        let record = |name: &str| {
            header
                .records
                .iter()
                .find(|record| record.name == name)
                .unwrap_or_else(|| panic!("no record {name} in {:?}", header.records))
        };
        assert_eq!(record("Value").fields, names(["whole", "text"]));
        assert!(record("Value").is_union);
        assert_eq!(record("Value::text").fields, names(["bytes", "length"]));
        assert_eq!(record("Value::text").within, Some(("Value".into(), "text".into())));
        assert_eq!(record("Point").fields, names(["x", "y", "name", "hook"]));
        assert_eq!(header.records.len(), 3);
        let constants: Vec<_> = header
            .constants
            .iter()
            .map(|constant| (constant.name.as_str(), constant.is_macro))
            .collect();
        assert_eq!(
            constants,
            [
                ("MAJOR", true),
                ("LONG_SIZE", true),
                ("POINT_SIZE", true),
                ("KIND_A", false),
                ("KIND_B", false),
                ("KIND_LAST", false),
                ("UNNAMED", false),
                ("VERSION", false),
                ("POINT_ARGS", false),
                ("SIZE", false),
            ]
        );
        let functions: Vec<_> = header
            .functions
            .iter()
            .map(|function| (function.name.as_str(), function.inline))
            .collect();
        assert_eq!(
            functions,
            [("Declared", false), ("Variadic", false), ("Defined", true), ("Message", false)]
        );
    }

    #[test]
    fn what_it_cannot_read_is_an_error_and_not_passed_over() {
        for (text, names) in [
            ("struct A { int x : 3; };", "bit-field"),
            ("struct A { struct { int x; }; };", "inner struct"),
            ("struct A { int get(); };", "a function where"),
            ("struct A { int x; } a, b;", "no single name"),
            ("template <class T> struct B;", "neither type"),
            ("typedef struct A { int x;", "no bracket closes"),
            ("int f(void)", "no semicolon"),
        ] {
            let problem = CHeader::parse(text).expect_err(text);
            assert!(problem.contains(names), "{text}: {problem}");
        }
    }
}

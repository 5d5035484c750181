//! Shaders in OpenCL C: their GLSL with the types and functions of `shaders/opencl.h`.
//!
//! OpenCL C is C: a program has no variables except those of functions, and only a kernel can declare the memory that a
//! group shares. So the push constants and the shared arrays are members of a struct `Context`, and each function of a
//! shader has a pointer to it as its first parameter. C's preprocessor expands GLSL's macros; conditions are decided
//! here, so that declarations can be moved before the functions.

use super::{Source, layout, source, without_suffixes};
use crate::backend::{PUSH_BYTES, WORKGROUP};
use se_plugin::{Error, Result};
use std::ffi::CStr;
use std::fmt::Write as _;

/// The entry point of each program.
pub const ENTRY: &CStr = c"run";

/// The types that shaders convert to, as in `uint(x)`. `COMPUTE` and `SCALAR` are macros for one of them.
const TYPES: [&str; 16] = [
    "COMPUTE", "SCALAR", "bool", "double", "dvec2", "float", "int", "int64_t", "uint", "uint16_t",
    "uint64_t", "uint8_t", "uvec2", "uvec4", "vec2", "vec4",
];

/// Macros of `shaders/opencl.h` that a shader defines unless they are defined.
const OF_HEADER: [&str; 2] = ["MULTIPLY_ADD", "PLUS"];

/// Returns the program of a source with these values of specialization constants.
///
/// # Errors
/// `INTERNAL` for text that is not understood; `INVALID_ARGUMENT` for push constants that C would have at another place.
pub(crate) fn program_of(source: &Source, constants: &[u32]) -> Result<String> {
    layout::check(source)?;
    let mut preprocessor = Preprocessor::default();
    preprocessor.defined.extend(OF_HEADER.map(|name| (name.to_owned(), String::new())));
    for (name, value) in &source.definitions {
        preprocessor.define(&format!("{name} {value}"));
    }
    preprocessor.process(&source.file, source.text)?;
    let mut shader = Shader::default();
    for item in items(&preprocessor.text) {
        let added = shader.add(&item, constants);
        added.ok_or_else(|| not_understood(&source.file, &item))?;
    }
    Ok(shader.program(&preprocessor.macros))
}

#[cold]
fn not_understood(name: &str, text: &str) -> Error {
    Error::internal(format!("`{name}` has text that is not understood: {}", text.trim()))
}

/// Returns the identifier at the start of a text, and the rest.
fn identifier(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// The text of a shader with all that it includes, without comments and directives.
#[derive(Default)]
struct Preprocessor {
    defined: Vec<(String, String)>,
    /// What follows `#define`, for C's preprocessor.
    macros: Vec<String>,
    text: String,
    /// Of each open condition: whether its lines are taken, and whether any of its lines were.
    conditions: Vec<[bool; 2]>,
}

impl Preprocessor {
    fn process(&mut self, file: &str, text: &str) -> Result<()> {
        // A `\` at the end of a line continues it.
        for line in text.replace("\\\n", "").lines() {
            let line = line.split("//").next().unwrap_or_default();
            match line.trim_start().strip_prefix('#') {
                Some(directive) => {
                    let done = self.directive(directive).ok_or_else(|| not_understood(file, line));
                    if let Some(other) = done? {
                        self.process(other, source(other)?)?;
                    }
                }
                None if self.is_taken() => {
                    self.text.push_str(&without_suffixes(line));
                    self.text.push('\n');
                }
                None => {}
            }
        }
        Ok(())
    }

    fn is_taken(&self) -> bool {
        self.conditions.iter().all(|[is_taken, _]| *is_taken)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut of_name = self.defined.iter().filter(|(known, _)| known == name);
        of_name.next().map(|(_, value)| &**value)
    }

    fn define(&mut self, definition: &str) {
        let (name, value) = identifier(definition);
        self.defined.push((name.to_owned(), value.trim().to_owned()));
        self.macros.push(without_suffixes(definition));
    }

    /// Decides `NAME == VALUE`.
    fn is_equal(&self, condition: &str) -> Option<bool> {
        let (name, value) = condition.split_once("==")?;
        Some(self.value(name.trim()) == Some(value.trim()))
    }

    /// Processes a directive. Returns the file that it includes; the outer `None` is for one that is not understood.
    fn directive<'a>(&mut self, directive: &'a str) -> Option<Option<&'a str>> {
        let (what, rest) = identifier(directive.trim_start());
        let rest = rest.trim();
        let condition = match what {
            "ifdef" => Some(self.value(rest).is_some()),
            "ifndef" => Some(self.value(rest).is_none()),
            "if" => Some(self.is_equal(rest)?),
            _ => None,
        };
        if let Some(is_true) = condition {
            self.conditions.push([is_true, is_true]);
            return Some(None);
        }
        let is_true = match what {
            "elif" => self.is_equal(rest)?,
            _ => true,
        };
        match what {
            "elif" | "else" => {
                let [is_taken, was_taken] = self.conditions.last_mut()?;
                *is_taken = is_true && !*was_taken;
                *was_taken |= *is_taken;
            }
            "endif" => {
                self.conditions.pop()?;
            }
            _ if !self.is_taken() => {}
            "define" => self.define(rest),
            "include" => return Some(Some(rest.strip_prefix('"')?.strip_suffix('"')?)),
            // OpenCL C has what the extensions enable.
            "version" | "extension" => {}
            _ => return None,
        }
        Some(None)
    }
}

/// Divides the text into declarations and functions.
fn items(text: &str) -> Vec<String> {
    let (mut items, mut item, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in text.chars() {
        if item.is_empty() && c.is_whitespace() {
            continue;
        }
        item.push(c);
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A struct, or a block of push constants, ends with a semicolon.
        let is_function = || !["struct ", "layout("].iter().any(|start| item.starts_with(start));
        if depth == 0 && (c == ';' || c == '}' && is_function()) {
            items.push(std::mem::take(&mut item));
        }
    }
    if !item.is_empty() {
        items.push(item);
    }
    items
}

/// Divides a list at its commas, except those in parentheses.
fn split(list: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let is_comma = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(is_comma).collect()
}

struct Function {
    /// What is before its name: the type of its result.
    result: String,
    name: String,
    /// Its parameters and what follows, without the opening parenthesis.
    rest: String,
}

/// An array that the threads of a group share.
struct Shared {
    kind: String,
    name: String,
    count: String,
}

/// The parts of a program.
#[derive(Default)]
struct Shader {
    /// Constants, as macros: arrays have their number of elements from them, for which C takes no variable.
    constants: String,
    types: String,
    shared: Vec<Shared>,
    functions: Vec<Function>,
}

impl Shader {
    /// Adds an item; returns `None` if it is not understood.
    fn add(&mut self, item: &str, constants: &[u32]) -> Option<()> {
        if let Some(rest) = item.strip_prefix("layout(constant_id = ") {
            // `0) const uint OP = 0;`
            let (id, rest) = rest.split_once(") const ")?;
            let (kind, rest) = rest.split_once(' ')?;
            // What is given is the bits, which a conversion would not keep.
            (kind != "float").then_some(())?;
            let (name, otherwise) = rest.strip_suffix(';')?.split_once(" = ")?;
            let value = constants.get(id.parse::<usize>().ok()?).map(|value| format!("{value}u"));
            self.constant(kind, name, value.as_deref().unwrap_or(otherwise));
        } else if let Some(rest) = item.strip_prefix("layout(push_constant, scalar) uniform Push ")
        {
            let members = rest.strip_suffix(" push;")?;
            self.types.push_str(&format!("typedef struct {members} Push;\n"));
        } else if item.starts_with("layout(") {
            // Groups have as many threads as the kernel's attribute says; the header has the buffers.
            let known = ["layout(local_size_x = 256) in;", "layout(buffer_reference, "];
            known.iter().any(|start| item.starts_with(start)).then_some(())?;
        } else if let Some(rest) = item.strip_prefix("const ") {
            // `uint A = 1, B = A + 1;`
            let (kind, list) = rest.strip_suffix(';')?.split_once(' ')?;
            for constant in split(list) {
                let (name, value) = constant.split_once(" = ")?;
                self.constant(kind, name.trim(), value);
            }
        } else if let Some(rest) = item.strip_prefix("shared ") {
            // `float partial[256];`
            let (kind, rest) = rest.split_once(' ')?;
            let (name, count) = rest.strip_suffix("];")?.split_once('[')?;
            (!count.contains(['[', ']', ','])).then_some(())?;
            let [kind, name, count] = [kind, name, count].map(str::to_owned);
            self.shared.push(Shared { kind, name, count });
        } else if let Some(rest) = item.strip_prefix("struct ") {
            let (name, members) = rest.strip_suffix(';')?.split_once(' ')?;
            self.types.push_str(&format!("typedef struct {members} {name};\n"));
        } else {
            // `uint name(uint a) { … }`
            let (head, rest) = item.strip_suffix('}').and(item.split_once('('))?;
            let (result, name) = head.strip_prefix("precise ").unwrap_or(head).split_once(' ')?;
            let is_name = !name.is_empty() && identifier(name).1.is_empty();
            let is_type = identifier(result).1.is_empty();
            (is_name && is_type && rest.contains('{')).then_some(())?;
            let [result, name, rest] = [result, name, rest].map(str::to_owned);
            self.functions.push(Function { result, name, rest });
        }
        Some(())
    }

    fn constant(&mut self, kind: &str, name: &str, value: &str) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        self.constants.push_str(&format!("{name} (({kind})({value}))\n"));
    }

    /// Rewrites conversions, and what needs the context: calls, push constants and shared arrays.
    fn rewrite(&self, text: &str, out: &mut String) {
        // Of each open parenthesis, whether it is that of a conversion.
        let mut open = Vec::new();
        let (mut rest, mut is_member) = (text, false);
        while let Some(c) = rest.chars().next() {
            let (word, behind) = identifier(rest);
            let starts = |next: &str| behind.trim_start().starts_with(next);
            if word.is_empty() {
                out.push(c);
                match c {
                    '(' => open.push(false),
                    ')' if open.pop() == Some(true) => out.push(')'),
                    _ => {}
                }
                rest = &rest[c.len_utf8()..];
            } else if !is_member && starts("(") && TYPES.contains(&word) {
                let _ = write!(out, "(({word})(");
                open.push(true);
                rest = behind.trim_start().strip_prefix('(').unwrap_or_default();
            } else if !is_member && starts("(") && self.functions.iter().any(|f| f.name == word) {
                let arguments = behind.trim_start().strip_prefix('(').unwrap_or_default();
                let comma = if arguments.trim_start().starts_with(')') { "" } else { ", " };
                let _ = write!(out, "f_{word}(context{comma}");
                open.push(false);
                rest = arguments;
            } else {
                let is_shared = || starts("[") && self.shared.iter().any(|of| of.name == word);
                if !is_member && (word == "push" || is_shared()) {
                    out.push_str("context->");
                }
                out.push_str(word);
                rest = behind;
            }
            is_member = c == '.';
        }
    }

    fn program(&self, macros: &[String]) -> String {
        let mut program = String::new();
        let define = |definition: &str, program: &mut String| {
            // OpenCL C defines some of these names too.
            let _ = write!(program, "#undef {}\n#define ", identifier(definition).0);
            self.rewrite(&definition.replace("[[unroll]] ", ""), program);
            program.push('\n');
        };
        macros.iter().for_each(|definition| define(definition, &mut program));
        program.push_str(include_str!("../shaders/opencl.h"));
        self.constants.lines().for_each(|definition| define(definition, &mut program));
        program.push_str(&self.types);
        program.push_str("typedef struct {\n    Push push;\n");
        for Shared { kind, name, .. } in &self.shared {
            let _ = writeln!(program, "    local {kind} *{name};");
        }
        program.push_str("} Context;\n");
        for Function { result, name, rest } in &self.functions {
            let comma = if rest.trim_start().starts_with(')') { "" } else { ", " };
            let _ = write!(program, "static {result} f_{name}(const Context *context{comma}");
            self.rewrite(&rest.replace("[[unroll]] ", ""), &mut program);
            program.push('\n');
        }
        // The launch sets as many bytes, whatever the shader takes.
        let words = PUSH_BYTES / 8;
        let _ = write!(
            program,
            "typedef struct {{ ulong words[{words}]; }} Words;\n\
             kernel __attribute__((reqd_work_group_size({WORKGROUP}, 1, 1))) void {}(Words words) {{\n    \
             union {{ Words words; Push push; }} argument;\n    \
             argument.words = words;\n    \
             Context context;\n    \
             context.push = argument.push;\n",
            ENTRY.to_string_lossy()
        );
        for Shared { kind, name, count } in &self.shared {
            let _ = write!(program, "    local {kind} shared_{name}[");
            self.rewrite(count, &mut program);
            let _ = writeln!(program, "];\n    context.{name} = shared_{name};");
        }
        program.push_str("    f_main(&context);\n}\n");
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a text of declarations and functions becomes, without the header.
    fn translated(text: &str, constants: &[u32]) -> Option<String> {
        let mut shader = Shader::default();
        for item in items(text) {
            shader.add(&item, constants)?;
        }
        let program = shader.program(&[]);
        let (_, own) = program.split_once(include_str!("../shaders/opencl.h"))?;
        let (own, _) = own.split_once("typedef struct { ulong words[16]; } Words;")?;
        Some(own.to_owned())
    }

    #[test]
    fn functions_get_the_context_and_conversions_become_casts() {
        let text = "layout(constant_id = 1) const uint OP = 0;\n\
            layout(constant_id = 2) const bool IS_WIDE = false;\n\
            const uint A = 1,\n   B = max(A, 2);\n\
            struct Axis { uint len, a; };\n\
            layout(push_constant, scalar) uniform Push { uint n; Axis axes[2]; } push;\n\
            shared float part[2 * A];\n\
            precise float of(uint part) { return float(uint(push.n) + part) * part[0]; }\n\
            void main() { [[unroll]] for (;;) part[of (1u)] = s.part[push.axes[0].of(1)]; other( ); main(); }";
        let expected = "#undef OP\n#define OP ((uint)(7u))\n\
            #undef IS_WIDE\n#define IS_WIDE ((bool)(false))\n\
            #undef A\n#define A ((uint)(1))\n\
            #undef B\n#define B ((uint)(max(A, 2)))\n\
            typedef struct { uint len, a; } Axis;\n\
            typedef struct { uint n; Axis axes[2]; } Push;\n\
            typedef struct {\n    Push push;\n    local float *part;\n} Context;\n\
            static float f_of(const Context *context, uint part) { return ((float)(((uint)(context->push.n)) + part)) * context->part[0]; }\n\
            static void f_main(const Context *context) { for (;;) context->part[f_of(context, 1u)] = s.part[context->push.axes[0].of(1)]; other( ); f_main(context); }\n";
        assert_eq!(translated(text, &[0, 7]).unwrap(), expected);
    }

    #[test]
    fn conditions_are_decided_and_macros_are_kept() {
        let mut preprocessor = Preprocessor::default();
        preprocessor.define("MOST 4");
        for line in [
            "ifdef NONE",
            "define A 1",
            "include \"none\"",
            "ifndef MOST",
            "else",
            "endif",
            "else",
            "define B(x) x",
            "if MOST == 2",
            "define C",
            "elif MOST == 4",
            "define D",
            "elif MOST == 4",
            "define E",
            "else",
            "define F",
            "endif",
            "endif",
            "version 460",
            "extension GL_ANY : require",
        ] {
            assert_eq!(preprocessor.directive(line), Some(None), "{line}");
        }
        assert_eq!(preprocessor.macros, ["MOST 4", "B(x) x", "D"]);
        assert_eq!(preprocessor.directive(" include \"a.glsl\""), Some(Some("a.glsl")));
        for line in ["pragma once", "if MOST > 2", "include <a>", "endif", "else"] {
            assert_eq!(preprocessor.directive(line), None, "{line}");
        }
    }

    #[test]
    fn an_unknown_construct_is_an_error() {
        for text in [
            "layout(constant_id = 0) uint A;",
            "layout(constant_id = 0) const float A = 1;",
            "layout(std430) buffer B { uint a; };",
            "shared float a[2], b[2];",
            "shared float a[2][2];",
            "uint a = 1;",
            "const uint A;",
            "uint f(uint a);",
            "uint f(uint a) {",
            "uvec2[2] f() { }",
        ] {
            assert_eq!(translated(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn each_shader_is_translated() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/shaders");
        let mut count = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(".spv") else { continue };
            if name.ends_with(crate::backend::CooperativeMatrix::SHADERS) {
                continue;
            }
            let program = Source::of_crate(name).and_then(|source| program_of(&source, &[1; 20]));
            let program = program.unwrap_or_else(|error| panic!("{name}: {error}"));
            for left in ["layout(", "shared ", "#if MOST", "[[unroll]]", " uniform "] {
                let (_, own) = program.split_once("memoryBarrierBuffer()\n").unwrap();
                assert!(!own.contains(left), "{name}: {left}");
            }
            assert_eq!(program.matches("kernel __attribute__").count(), 1, "{name}");
            count += 1;
        }
        assert!(count > 30, "{count}");
    }
}

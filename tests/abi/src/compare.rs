//! Comparing the Rust declarations with the headers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::c_header::{CHeader, CRecord};
use crate::compiler::Compiler;
use crate::headers::{DECLARED, HEADERS, Header};
use crate::measured::{GARBAGE, Measured};
use crate::rust_source::{AliasKind, Module, RustSource};

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// One text for each difference; none if both sides agree.
    pub problems: Vec<String>,
    /// Optional host functions that no header declares, and the types and constants of [`DECLARED`] that
    /// no header has, sorted.
    pub absent: BTreeSet<String>,
    /// The header's functions that fill a record, with the fields that each writes, as `Record::field`.
    pub filled: BTreeMap<String, Vec<String>>,
}

/// Compares `source`, which was measured as `measured`, with the headers in `include_dirs`, where the
/// first directory that has a header counts.
///
/// # Errors
/// When a header is missing or cannot be read, or there is no C++ compiler. A difference is no error.
pub fn compare(
    compiler: &Compiler,
    include_dirs: &[&Path],
    source: &RustSource,
    measured: &Measured,
) -> Result<Comparison, String> {
    let mut comparer =
        Comparer { source, measured, result: Comparison::default(), program: Program::default() };
    for header in HEADERS {
        let c = if header.in_all_releases || find_header(header.path, include_dirs).is_ok() {
            comparer.program.include(header.path);
            read_header(header, include_dirs)?
        } else {
            CHeader::default()
        };
        let module = source
            .modules
            .get(header.module)
            .ok_or_else(|| format!("tf-fs-sys has no module {}", header.module))?;
        Pair { header, module, c: &c, comparer: &mut comparer }.compare();
    }
    comparer.run(compiler, include_dirs)
}

/// The names of a header, with the constants of the header it wraps that it gives no name of its own.
fn read_header(header: &Header, include_dirs: &[&Path]) -> Result<CHeader, String> {
    let mut names = parse_header(header.path, include_dirs)?;
    if let Some(wraps) = header.wraps {
        let path = names
            .includes
            .iter()
            .find(|path| path.rsplit('/').next() == Some(wraps.file))
            .ok_or_else(|| {
            format!("{} does not include {}; adapt its line in HEADERS", header.path, wraps.file)
        })?;
        for constant in parse_header(path, include_dirs)?.constants {
            let renamed = constant
                .name
                .strip_prefix(wraps.prefix)
                .map(|rest| format!("{}{rest}", wraps.becomes));
            if !names.constants.iter().any(|known| Some(&known.name) == renamed.as_ref()) {
                names.constants.push(constant);
            }
        }
    }
    Ok(names)
}

fn find_header(path: &str, include_dirs: &[&Path]) -> Result<PathBuf, String> {
    include_dirs
        .iter()
        .map(|directory| directory.join(path))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            format!("no include directory has {path}; is this TensorFlow's `include` directory?")
        })
}

fn parse_header(path: &str, include_dirs: &[&Path]) -> Result<CHeader, String> {
    let file = find_header(path, include_dirs)?;
    let text = std::fs::read_to_string(&file)
        .map_err(|problem| format!("{}: {problem}", file.display()))?;
    CHeader::parse(&text).map_err(|problem| format!("{}: {problem}", file.display()))
}

struct Comparer<'a> {
    source: &'a RustSource,
    measured: &'a Measured,
    result: Comparison,
    program: Program,
}

/// The C++ program in the making, and what its output is compared with.
#[derive(Default)]
struct Program {
    /// The headers.
    includes: String,
    /// Declarations before the function.
    declarations: String,
    /// Statements; each prints one line.
    statements: String,
    /// First two columns of the lines to come.
    lines: Vec<(&'static str, String)>,
}

impl Program {
    fn include(&mut self, path: &str) {
        let _ = writeln!(self.includes, "#include \"{path}\"");
    }

    fn line(&mut self, kind: &'static str, item: &str, statement: &str) {
        self.lines.push((kind, item.to_owned()));
        self.statements.push_str("  ");
        self.statements.push_str(statement);
        self.statements.push('\n');
    }

    fn ty(&mut self, item: &str, header: &str, rust: &str) {
        let statement = format!("type<{header}, {rust}>(\"{item}\");");
        self.line("type", item, &statement);
    }
}

/// One header and its module.
struct Pair<'p, 'a> {
    header: &'static Header,
    module: &'a Module,
    c: &'p CHeader,
    comparer: &'p mut Comparer<'a>,
}

impl<'p> Pair<'p, '_> {
    fn compare(&mut self) {
        self.records();
        self.types();
        self.constants();
        self.functions();
    }

    fn problem(&mut self, text: String) {
        self.comparer.result.problems.push(text);
    }

    fn only_in_header(&mut self, name: &str, what: &str) {
        self.problem(format!(
            "`{name}`: only the header {} has this {what}; declare it in the module `{}` of tf-fs-sys",
            self.header.path, self.header.module
        ));
    }

    fn only_in_rust(&mut self, name: &str, what: &str) {
        let known = DECLARED.iter().any(|(names, _)| names.contains(&name));
        if known && what != "required function" {
            self.comparer.result.absent.insert(name.to_owned());
            return;
        }
        self.problem(format!(
            "`{name}`: only tf-fs-sys (module `{}`) has this {what}, the header {} does not; remove it{}",
            self.header.module,
            self.header.path,
            if what == "required function" {
                ", or make it optional if other releases have it"
            } else {
                ""
            }
        ));
    }

    fn records(&mut self) {
        let c = self.c;
        let mut found = BTreeSet::new();
        // Outer records come first, so that the name of an inner one can be looked up.
        let mut names = BTreeMap::new();
        for record in c.records.iter().rev() {
            let name = self.rust_name(record, &names);
            let rust = self.module.records.iter().find(|rust| Some(&rust.name) == name.as_ref());
            let Some(rust) = rust else {
                if self.header.whole {
                    self.only_in_header(&record.name, "struct, or its fields");
                }
                continue;
            };
            if let Some((parent, field)) = &record.within {
                let parent = names.get(parent).unwrap_or(parent);
                let _ = writeln!(
                    self.comparer.program.declarations,
                    "using {} = decltype({parent}::{field});",
                    rust.name
                );
            }
            names.insert(record.name.clone(), rust.name.clone());
            found.insert(rust.name.clone());
            if record.is_union != rust.is_union {
                self.problem(format!(
                    "`{}`: a {} in the header {}, a {} in tf-fs-sys; make both the same",
                    rust.name,
                    keyword(record.is_union),
                    self.header.path,
                    keyword(rust.is_union)
                ));
            }
            self.fields(record, rust);
        }
        for rust in &self.module.records {
            if !found.contains(&rust.name) {
                self.only_in_rust(&rust.name, "struct");
                // The types that mention it still have to compile.
                let _ = writeln!(
                    self.comparer.program.declarations,
                    "{} {};",
                    keyword(rust.is_union),
                    rust.name
                );
            }
        }
    }

    /// The name on the Rust side: the same, or for a record without a name the type of its field.
    fn rust_name(&self, record: &CRecord, names: &BTreeMap<String, String>) -> Option<String> {
        let Some((parent, field)) = &record.within else {
            return Some(record.name.clone());
        };
        let parent = names.get(parent)?;
        let parent = self.module.records.iter().find(|rust| &rust.name == parent)?;
        let field = parent.fields.iter().find(|rust| &rust.name == field)?;
        Some(field.cpp.clone())
    }

    fn fields(&mut self, record: &CRecord, rust: &crate::rust_source::Record) {
        let name = &rust.name;
        self.comparer.program.line(
            "record",
            name,
            &format!("record(\"{name}\", sizeof({name}), alignof({name}));"),
        );
        let rust_fields: Vec<&str> = rust.fields.iter().map(|field| &*field.name).collect();
        let mut both = Vec::new();
        for field in &record.fields {
            if rust_fields.contains(&field.as_str()) {
                both.push(field.as_str());
            } else {
                self.only_in_header(&format!("{name}::{field}"), "field");
            }
        }
        let mut rust_both = Vec::new();
        for field in &rust_fields {
            if both.contains(field) {
                rust_both.push(*field);
            } else {
                self.only_in_rust(&format!("{name}::{field}"), "field");
            }
        }
        if let Some((_, field)) = both.iter().zip(&rust_both).find(|(c, rust)| c != rust) {
            self.problem(format!(
                "`{name}::{field}`: out of order; the header {} has the fields in the order {}",
                self.header.path,
                record.fields.join(", ")
            ));
        }
        for field in &rust.fields {
            if both.contains(&field.name.as_str()) {
                let item = format!("{name}::{}", field.name);
                let statement =
                    format!("field(\"{item}\", offsetof({name}, {}), sizeof({item}));", field.name);
                self.comparer.program.line("field", &item, &statement);
                self.comparer.program.ty(&item, &format!("decltype({item})"), &field.cpp);
            }
        }
    }

    fn types(&mut self) {
        let c = self.c;
        let is_record = |name: &str| c.records.iter().any(|record| record.name == name);
        // A macro that stands where Rust has a type is a type.
        let macros = c.constants.iter().filter(|constant| {
            constant.is_macro && self.module.aliases.iter().any(|a| a.name == constant.name)
        });
        let c_types: BTreeSet<&str> = c
            .types
            .iter()
            .chain(macros.map(|constant| &constant.name))
            .map(String::as_str)
            .collect();
        for name in &c_types {
            // A header may declare once more what is another's.
            let known = is_record(name)
                || self.comparer.source.modules.values().any(|module| {
                    module.opaque.iter().any(|opaque| opaque == name)
                        || module.aliases.iter().any(|alias| alias.name == *name)
                });
            if !known && self.header.whole {
                self.only_in_header(name, "type");
            }
        }
        for name in &self.module.opaque {
            let known = c_types.contains(name.as_str()) || c.tags.contains(name) || is_record(name);
            if !known {
                self.only_in_rust(name, "type");
                let _ = writeln!(self.comparer.program.declarations, "struct {name};");
            } else if self.comparer.measured.record(name).is_some_and(|record| record.size > 0) {
                // The storage is private, but there is some.
                let statement = format!("record(\"{name}\", sizeof({name}), alignof({name}));");
                self.comparer.program.line("record", name, &statement);
            }
        }
        for alias in &self.module.aliases {
            let name = &alias.name;
            if c_types.contains(name.as_str()) {
                let header = format!("Plain<{name}>::type");
                self.comparer.program.ty(name, &header, &alias.cpp);
            } else if let Some(function) = self.exported(name) {
                self.comparer.program.ty(function, &format!("decltype(&{function})"), &alias.cpp);
            } else if alias.kind == AliasKind::Function && alias.used {
                // A shorthand; what uses it is compared with the header.
            } else {
                self.only_in_rust(name, "type");
                let _ =
                    writeln!(self.comparer.program.declarations, "using {name} = {};", alias.cpp);
            }
        }
    }

    /// The function that the header declares and the plugin defines, if `alias` is its type.
    fn exported(&self, alias: &str) -> Option<&'p str> {
        let name = alias.strip_suffix("Fn")?;
        let c = self.c;
        c.functions
            .iter()
            .find(|function| function.name == name && !function.inline)
            .map(|function| function.name.as_str())
    }

    fn constants(&mut self) {
        let c = self.c;
        let is_type = |name: &str| self.module.aliases.iter().any(|alias| alias.name == name);
        let rust: BTreeMap<&str, &str> =
            self.module.constants.iter().map(|(name, cpp)| (name.as_str(), cpp.as_str())).collect();
        let mut found = BTreeSet::new();
        for constant in &c.constants {
            let name = constant.name.as_str();
            let Some(cpp) = rust.get(name) else {
                if !is_type(name) && self.header.whole {
                    self.only_in_header(name, "constant");
                }
                continue;
            };
            found.insert(name);
            let program = &mut self.comparer.program;
            let statement = format!("constant(\"{name}\", static_cast<long long>({name}));");
            program.line("constant", name, &statement);
            // A macro that is a plain number has the type that its user wants.
            let ty = format!("Constant<decltype({name}), {cpp}, {}>::type", constant.is_macro);
            program.ty(name, &ty, cpp);
        }
        for name in rust.keys() {
            if !found.contains(name) {
                self.only_in_rust(name, "constant");
            }
        }
    }

    fn functions(&mut self) {
        let c = self.c;
        let module = self.module;
        let mut found = BTreeSet::new();
        for function in &c.functions {
            let name = function.name.as_str();
            let cpp = if function.inline {
                let rust = module.functions.iter().find(|rust| rust.name == name);
                if let Some((rust, record)) =
                    rust.and_then(|rust| Some((rust, rust.fills.as_ref()?)))
                {
                    let statement = format!("filled<{record}>(\"{name}\", &{});", rust.name);
                    self.comparer.program.line("filled", name, &statement);
                }
                rust.map(|rust| &rust.cpp)
            } else {
                let rust = module.host_functions.iter().find(|rust| rust.name == name);
                rust.map(|rust| &rust.cpp)
            };
            if let Some(cpp) = cpp {
                found.insert(name);
                // Of several the one that has this type; if none has, the program does not compile and says so.
                let address = if self.header.overloaded.contains(&name) {
                    format!("static_cast<{cpp}>(&{name})")
                } else {
                    format!("&{name}")
                };
                self.comparer.program.ty(name, &format!("decltype({address})"), cpp);
            } else if self.header.whole
                && !self.header.without.contains(&name)
                && !module.aliases.iter().any(|alias| self.exported(&alias.name) == Some(name))
            {
                self.only_in_header(name, "function");
            }
        }
        for function in &module.host_functions {
            if found.contains(function.name.as_str()) {
            } else if function.required {
                self.only_in_rust(&function.name, "required function");
            } else {
                self.comparer.result.absent.insert(function.name.clone());
            }
        }
        for function in &module.functions {
            if !found.contains(function.name.as_str()) {
                self.only_in_rust(&function.name, "function");
            }
        }
    }
}

fn keyword(is_union: bool) -> &'static str {
    if is_union { "union" } else { "struct" }
}

impl Comparer<'_> {
    fn run(mut self, compiler: &Compiler, include_dirs: &[&Path]) -> Result<Comparison, String> {
        let output = match compiler.run(&self.program.text(), include_dirs) {
            Ok(output) => output,
            // What was found so far may be the cause, and says it better.
            Err(problem) if !self.result.problems.is_empty() => {
                self.result.problems.push(problem);
                return Ok(self.result);
            }
            Err(problem) => return Err(problem),
        };
        let mut lines = BTreeMap::new();
        for line in output.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            if let [kind, item, rest @ ..] = columns.as_slice() {
                lines.insert((*kind, *item), rest.to_vec());
            }
        }
        for (kind, item) in std::mem::take(&mut self.program.lines) {
            let columns = lines
                .get(&(kind, item.as_str()))
                .ok_or_else(|| format!("the C++ program says nothing of `{item}`"))?;
            match kind {
                "type" => self.ty(&item, columns),
                "record" => self.record(&item, columns),
                "field" => self.field(&item, columns),
                "constant" => self.constant(&item, columns),
                _ => self.filled(&item, columns, &lines)?,
            }
        }
        Ok(self.result)
    }

    fn differ(&mut self, item: &str, what: &str, header: &str, rust: &str) {
        self.result.problems.push(format!(
            "`{item}`: the {what} is {header} in the header and {rust} in tf-fs-sys; correct tf-fs-sys"
        ));
    }

    fn ty(&mut self, item: &str, columns: &[&str]) {
        if columns.first() != Some(&"1") {
            let spelled = |at: usize| {
                let text = columns.get(at).copied().unwrap_or_default();
                let start = text.find("T = ").map_or(0, |start| start + 4);
                format!("`{}`", text[start..].trim_end_matches(']'))
            };
            self.differ(item, "type", &spelled(1), &spelled(2));
        }
    }

    fn numbers(&mut self, item: &str, columns: &[&str], rust: &[(&str, Option<i128>)]) {
        for (at, (what, rust)) in rust.iter().enumerate() {
            let header = columns.get(at).copied().unwrap_or("unknown");
            let rust = rust.map_or("not measured".to_owned(), |number| number.to_string());
            if header != rust {
                self.differ(item, what, header, &rust);
            }
        }
    }

    fn record(&mut self, item: &str, columns: &[&str]) {
        let record = self.measured.record(item);
        let rust = [
            ("size", record.map(|record| record.size as i128)),
            ("alignment", record.map(|record| record.align as i128)),
        ];
        self.numbers(item, columns, &rust);
    }

    fn field(&mut self, item: &str, columns: &[&str]) {
        let field = item.split_once("::").and_then(|(record, field)| {
            let fields = &self.measured.record(record)?.fields;
            fields.iter().find(|measured| measured.name == field)
        });
        let rust = [
            ("offset", field.map(|field| field.offset as i128)),
            ("size", field.map(|field| field.size as i128)),
        ];
        self.numbers(item, columns, &rust);
    }

    fn constant(&mut self, item: &str, columns: &[&str]) {
        let constants = &self.measured.constants;
        let value = constants.iter().find(|(name, _)| *name == item);
        self.numbers(item, columns, &[("value", value.map(|(_, value)| *value))]);
    }

    /// Compares what the header's function leaves in each field with what the Rust function leaves.
    fn filled(
        &mut self,
        item: &str,
        columns: &[&str],
        lines: &BTreeMap<(&str, &str), Vec<&str>>,
    ) -> Result<(), String> {
        let source = self.source;
        let functions = source.modules.values().flat_map(|module| &module.functions);
        let record = functions
            .filter(|function| function.name == item)
            .find_map(|function| function.fills.as_deref())
            .ok_or_else(|| format!("`{item}` fills nothing"))?;
        let measured = self.measured;
        let layout =
            measured.record(record).ok_or_else(|| format!("`{record}` was not measured"))?;
        let header = bytes(columns.first().copied().unwrap_or_default());
        let rust = measured
            .filled
            .iter()
            .find(|(name, _)| *name == item)
            .map(|(_, bytes)| bytes.as_slice())
            .ok_or_else(|| format!("`{item}` was not measured"))?;
        let mut written = Vec::new();
        for field in &layout.fields {
            let name = format!("{record}::{}", field.name);
            let rust = rust.get(field.offset..field.offset + field.size);
            let header = lines.get(&("field", name.as_str())).and_then(|columns| {
                let offset: usize = columns.first()?.parse().ok()?;
                let size: usize = columns.get(1)?.parse().ok()?;
                header.get(offset..offset + size)
            });
            if header.is_some_and(|bytes| bytes.iter().any(|byte| *byte != GARBAGE)) {
                written.push(name.clone());
            }
            if header.is_none() || header != rust {
                let [header, rust] = [header, rust].map(Option::unwrap_or_default);
                self.result.problems.push(format!(
                    "`{item}`: leaves the bytes {header:02x?} in `{name}` in the header and {rust:02x?} \
                     in tf-fs-sys; correct tf-fs-sys"
                ));
            }
        }
        self.result.filled.insert(item.to_owned(), written);
        Ok(())
    }
}

/// The bytes of a text of hexadecimal digits.
fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .filter_map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok())
        .collect()
}

impl Program {
    fn text(&self) -> String {
        let Self { includes, declarations, statements, .. } = self;
        format!(
            r#"#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
{includes}
namespace abi_tests {{

// As the Rust types are spelled.
template <class Result, class... Arguments> using Function = Result (*)(Arguments...);
template <class Result, class... Arguments>
using VariadicFunction = Result (*)(Arguments..., ...);
template <class Element, std::size_t N> using Array = Element[N];

// The integer below an enum; other types as they are.
template <class T, bool = std::is_enum<T>::value> struct Plain {{ using type = T; }};
template <class T> struct Plain<T, true> {{ using type = std::underlying_type_t<T>; }};

// The type of a constant; of a macro that is a plain number, the type in Rust.
template <class Header, class Rust, bool is_macro> struct Constant {{
  using type = std::conditional_t<
      is_macro && std::is_arithmetic<Header>::value && std::is_integral<Rust>::value, Rust,
      std::remove_cv_t<Header>>;
}};

template <class T> const char* spelled() {{ return __PRETTY_FUNCTION__; }}

template <class Header, class Rust> void type(const char* item) {{
  std::printf("type\t%s\t%d\t%s\t%s\n", item, std::is_same<Header, Rust>::value ? 1 : 0,
              spelled<Header>(), spelled<Rust>());
}}
void record(const char* item, std::size_t size, std::size_t alignment) {{
  std::printf("record\t%s\t%zu\t%zu\n", item, size, alignment);
}}
void field(const char* item, std::size_t offset, std::size_t size) {{
  std::printf("field\t%s\t%zu\t%zu\n", item, offset, size);
}}
void constant(const char* item, long long value) {{
  std::printf("constant\t%s\t%lld\n", item, value);
}}
template <class Record> void filled(const char* item, void (*fill)(Record*)) {{
  unsigned char bytes[sizeof(Record)];
  Record record;
  std::memset(&record, {GARBAGE:#x}, sizeof record);
  fill(&record);
  std::memcpy(bytes, &record, sizeof record);
  std::printf("filled\t%s\t", item);
  for (unsigned char byte : bytes) std::printf("%02x", byte);
  std::printf("\n");
}}

{declarations}
void run() {{
{statements}}}

}}  // namespace abi_tests

int main() {{ abi_tests::run(); }}
"#
        )
    }
}

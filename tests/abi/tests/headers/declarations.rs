//! Declarations in Rust, those of `tf-fs-sys` and those that bindgen makes of the headers, as texts that
//! can be compared: the type of each name, spelled alike on both sides.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::{
    Attribute, Fields, ForeignItem, ForeignItemFn, GenericArgument, Item, PathArguments,
    PointerMutability, ReturnType, Type, UseTree, Visibility,
};

use crate::records::invokes;

/// The declarations of one side.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// The kind of each name; a field's name is `Record::field`.
    pub(crate) kinds: BTreeMap<String, String>,
    /// Sizes, alignments, offsets and values, as in `Size of TF_Status`.
    pub(crate) numbers: BTreeMap<String, i128>,
    /// The functions of the host, and whether each release must have it.
    pub(crate) host: BTreeMap<String, bool>,
}

impl Declarations {
    /// Collects the values that an inline function's body writes into the record that it gets.
    pub(crate) fn assignments(&mut self, function: &str, body: &str) {
        for statement in body.split(';') {
            if let Some((field, value)) = statement.split_once('=') {
                let field = field.rsplit(['.', '>']).next().unwrap_or_default().trim();
                let name = format!("{function} -> {field}");
                self.kinds.insert(name, value.trim().to_owned());
            }
        }
    }
}

/// The type aliases of one side.
#[derive(Default)]
pub(crate) struct Aliases {
    targets: BTreeMap<String, Type>,
    public: BTreeSet<String>,
    used: RefCell<BTreeSet<String>>,
}

impl Aliases {
    /// # Panics
    /// When two aliases of one name, which only private ones can have, are different types.
    pub(crate) fn of(file: &syn::File) -> Self {
        let mut aliases = Self::default();
        for item in &file.items {
            let (name, target, visibility) = match item {
                Item::Type(item) => (item.ident.to_string(), (*item.ty).clone(), &item.vis),
                // bindgen's way with an alias of an enum.
                Item::Use(item) => {
                    let UseTree::Path(path) = &item.tree else { continue };
                    let UseTree::Rename(to) = &*path.tree else { continue };
                    let of = &to.ident;
                    (to.rename.to_string(), syn::parse_quote!(#of), &item.vis)
                }
                _ => continue,
            };
            if is_public(visibility) {
                aliases.public.insert(name.clone());
            }
            let text = target.to_token_stream().to_string();
            if let Some(other) = aliases.targets.insert(name.clone(), target) {
                let other = other.to_token_stream().to_string();
                assert_eq!(other, text, "two types have the name `{name}`; rename one");
            }
        }
        aliases
    }

    /// The names of those that are public.
    pub(crate) fn names(&self) -> &BTreeSet<String> {
        &self.public
    }

    /// Whether another declaration mentions the alias.
    pub(crate) fn is_used(&self, name: &str) -> bool {
        self.used.borrow().contains(name)
    }

    /// Returns the type that an alias names.
    fn target(&self, ty: &Type) -> Option<&Type> {
        match ty {
            Type::Path(path) => self.targets.get(&last_segment(path)),
            _ => None,
        }
    }

    fn is_integer(&self, ty: &Type) -> bool {
        match self.target(ty) {
            Some(target) => self.is_integer(target),
            None => matches!(ty, Type::Path(path) if integer(&last_segment(path)).is_some()),
        }
    }

    /// Names of integers, which the header may have enums for.
    fn integers(&self) -> BTreeSet<String> {
        let names = self.public.iter().filter(|name| !name.starts_with("macro_"));
        names.filter(|name| self.is_integer(&self.targets[*name])).map(|name| plain(name)).collect()
    }
}

/// The integers that have a name on both sides: there they are not the same as other integers.
pub(crate) fn common_integers(rust: &Aliases, header: &Aliases) -> BTreeSet<String> {
    rust.integers().intersection(&header.integers()).cloned().collect()
}

/// The name without what the wrapped header of status codes, bindgen or [`super::header`] add to it.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("macro_").unwrap_or(name).replacen("TSL_", "TF_", 1);
    match name.as_str() {
        "TF_Filesystem_Option_Value_Union__bindgen_ty_1" => {
            "TF_Filesystem_Option_Value_Buffer".into()
        }
        _ => name,
    }
}

/// The name of a field without the underscore that bindgen gives to keywords.
fn plain_field(name: &syn::Ident) -> String {
    name.unraw().to_string().trim_end_matches('_').to_owned()
}

fn integer(name: &str) -> Option<&'static str> {
    Some(match name {
        "c_char" => "c_char",
        "c_schar" | "i8" => "i8",
        "c_uchar" | "u8" => "u8",
        "c_short" | "i16" => "i16",
        "c_ushort" | "u16" => "u16",
        "c_int" | "i32" => "i32",
        "c_uint" | "u32" => "u32",
        "i64" => "i64",
        "u64" => "u64",
        "c_longlong" => "c_longlong",
        "c_ulonglong" => "c_ulonglong",
        "isize" => "isize",
        "usize" => "usize",
        _ => return None,
    })
}

/// Spells the types of one side. What C does not have keeps its name in Rust, which no header has.
pub(crate) struct Reader<'a> {
    aliases: &'a Aliases,
    named_integers: &'a BTreeSet<String>,
    declarations: Declarations,
}

impl<'a> Reader<'a> {
    pub(crate) fn read(
        file: &syn::File,
        aliases: &'a Aliases,
        named_integers: &'a BTreeSet<String>,
    ) -> Declarations {
        let mut reader = Self { aliases, named_integers, declarations: Declarations::default() };
        for name in &aliases.public {
            reader.add(name, reader.resolve(&aliases.targets[name]));
        }
        for item in &file.items {
            reader.item(item);
        }
        reader.declarations
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) if is_public(&item.vis) => {
                self.record("struct", &item.ident.to_string(), &item.attrs, &item.fields);
            }
            Item::Union(item) if is_public(&item.vis) => {
                let fields = Fields::Named(item.fields.clone());
                self.record("union", &item.ident.to_string(), &item.attrs, &fields);
            }
            // The header's are integers: of an enum, a value that Rust does not know is undefined behaviour.
            Item::Enum(item) if is_public(&item.vis) => {
                self.add(&item.ident.to_string(), "enum".into());
            }
            Item::Const(item) if is_public(&item.vis) => {
                let name = item.ident.to_string();
                let kind = format!("constant {}", self.spell(&item.ty));
                let value = item.expr.to_token_stream().to_string().replace(' ', "");
                if let Ok(value) = value.parse() {
                    let name = name.strip_prefix("macro_").unwrap_or(&name);
                    self.declarations.numbers.insert(format!("Value of {name}"), value);
                }
                self.add(&name, kind);
            }
            Item::Const(item) => self.layout(&item.expr.to_token_stream().to_string()),
            Item::Fn(item) if is_public(&item.vis) => {
                self.named_function(&item.sig);
                let body = item.block.to_token_stream().to_string();
                self.declarations.assignments(&item.sig.ident.to_string(), &body);
            }
            Item::ForeignMod(item) => {
                for function in &item.items {
                    if let ForeignItem::Fn(function) = function {
                        self.named_function(&function.sig);
                    }
                }
            }
            Item::Macro(item) if invokes(item, "host_functions") => {
                self.host_functions(item.mac.tokens.clone());
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, kind: String) {
        let name = name.strip_prefix("macro_").unwrap_or(name);
        self.declarations.kinds.insert(name.to_owned(), kind);
    }

    fn record(&mut self, keyword: &str, name: &str, attributes: &[Attribute], fields: &Fields) {
        let name = &plain(name);
        let representations: Vec<String> = attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("repr"))
            .map(|attribute| attribute.meta.to_token_stream().to_string().replace(' ', ""))
            .collect();
        let representation = representations.join(" ");
        let is_private = |field: &syn::Field| !is_public(&field.vis);
        if representation.contains("repr(C") && fields.iter().all(is_private) {
            self.add(name, "opaque".into());
            return;
        }
        let mut names = Vec::new();
        for field in fields {
            let field_name = field.ident.as_ref().map(plain_field).unwrap_or_default();
            if is_private(field) {
                names.push(format!("private {field_name}"));
            } else {
                let kind = self.spell(&field.ty);
                self.declarations.kinds.insert(format!("{name}::{field_name}"), kind);
                names.push(field_name);
            }
        }
        self.add(name, format!("{representation} {keyword} {{ {} }}", names.join(", ")));
    }

    /// bindgen's checks of layouts, which say each number: `["Size of TF_X"][... - 24usize];`.
    fn layout(&mut self, checks: &str) {
        for check in checks.split("[\"").skip(1) {
            let (name, rest) = check.split_once("\"]").expect("the name of a check of bindgen's");
            let number = rest
                .split_once("usize")
                .and_then(|(number, _)| number.rsplit(' ').next()?.parse().ok())
                .unwrap_or_else(|| panic!("`{name}`: no number in {rest}"));
            let (what, record) = name.rsplit_once(' ').expect("the name of a record");
            let record = match record.split_once("::") {
                Some((record, field)) => {
                    format!("{}::{}", plain(record), field.trim_end_matches('_'))
                }
                None => plain(record),
            };
            self.declarations.numbers.insert(format!("{what} {record}"), number);
        }
    }

    /// Reads the functions of a table. It has the form of an `extern` block, except for a word before each function and
    /// the semicolon before further arguments.
    fn host_functions(&mut self, table: TokenStream) {
        let Some(TokenTree::Group(functions)) = table.into_iter().last() else {
            panic!("a table without functions")
        };
        let comma = |token| match &token {
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                Punct::new(',', Spacing::Alone).into()
            }
            _ => token,
        };
        let tokens = functions.stream().into_iter().map(|token| match &token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                let arguments = group.stream().into_iter().map(comma).collect();
                Group::new(Delimiter::Parenthesis, arguments).into()
            }
            _ => token,
        });
        let parser = |input: syn::parse::ParseStream<'_>| {
            while !input.is_empty() {
                input.call(Attribute::parse_outer)?;
                let need: syn::Ident = input.parse()?;
                let function: ForeignItemFn = input.parse()?;
                self.declarations.host.insert(function.sig.ident.to_string(), need == "required");
                self.named_function(&function.sig);
            }
            Ok(())
        };
        parser.parse2(tokens.collect()).expect("a table of functions");
    }

    fn named_function(&mut self, signature: &syn::Signature) {
        let inputs = signature.inputs.iter().map(|input| match input {
            syn::FnArg::Typed(input) => self.spell(&input.ty),
            syn::FnArg::Receiver(_) => "self".into(),
        });
        let kind = self.function(inputs, signature.variadic.is_some(), &signature.output);
        self.add(&signature.ident.to_string(), kind);
    }

    fn function(
        &self,
        inputs: impl Iterator<Item = String>,
        variadic: bool,
        output: &ReturnType,
    ) -> String {
        let inputs: Vec<String> = inputs.chain(variadic.then(|| "...".into())).collect();
        let output = match output {
            ReturnType::Default => String::new(),
            ReturnType::Type(_, ty) => format!(" -> {}", self.spell(ty)),
        };
        format!("fn({}){output}", inputs.join(", "))
    }

    /// A type: aliases resolved, except those of integers that have a name on both sides.
    fn spell(&self, ty: &Type) -> String {
        match ty {
            Type::Path(path) => {
                let name = last_segment(path);
                if let Some(target) = self.aliases.targets.get(&name) {
                    self.aliases.used.borrow_mut().insert(name.clone());
                    let name = plain(&name);
                    return if self.named_integers.contains(&name) {
                        name
                    } else {
                        self.spell(target)
                    };
                }
                match nullable(path).map(|inner| self.spell(inner)) {
                    Some(function) if function.starts_with("fn(") => function,
                    Some(inner) => format!("Option<{inner}>"),
                    None => integer(&name).map_or_else(|| plain(&name), String::from),
                }
            }
            Type::Ptr(pointer) => {
                let is_mut = matches!(pointer.mutability, PointerMutability::Mut(_));
                self.spell_pointer(is_mut, &pointer.elem)
            }
            Type::Reference(reference) => {
                self.spell_pointer(reference.mutability.is_some(), &reference.elem)
            }
            Type::FnPtr(function) => {
                let inputs = function.inputs.iter().map(|input| self.spell(&input.ty));
                let spelled = self.function(inputs, function.variadic.is_some(), &function.output);
                let abi = function.abi.as_ref().and_then(|abi| abi.name.as_ref());
                let is_c = abi.is_some_and(|abi| abi.value() == "C");
                if is_c { spelled } else { format!("not extern \"C\": {spelled}") }
            }
            Type::Array(array) => {
                let length = array.len.to_token_stream().to_string().replace("usize", "");
                format!("[{}; {length}]", self.spell(&array.elem))
            }
            other => other.to_token_stream().to_string(),
        }
    }

    fn spell_pointer(&self, is_mut: bool, target: &Type) -> String {
        format!("*{} {}", if is_mut { "mut" } else { "const" }, self.spell(target))
    }

    /// As [`Reader::spell`], with named integers resolved at the top level too.
    fn resolve(&self, ty: &Type) -> String {
        match self.aliases.target(ty) {
            Some(target) => self.resolve(target),
            None => self.spell(ty),
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The last name of a path such as `core::ffi::c_int`.
fn last_segment(path: &syn::TypePath) -> String {
    path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// The `T` of `Option<T>`.
fn nullable(path: &syn::TypePath) -> Option<&Type> {
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            GenericArgument::Type(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

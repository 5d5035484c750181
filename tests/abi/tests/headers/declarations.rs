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

/// What one side declares.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// What each name is; that of a field is `Record::field`.
    pub(crate) kinds: BTreeMap<String, String>,
    /// Sizes, alignments, offsets and values, as in `Size of TF_Status`.
    pub(crate) numbers: BTreeMap<String, i128>,
    /// The functions of the host, and whether each release must have it.
    pub(crate) host: BTreeMap<String, bool>,
}

impl Declarations {
    /// What the body of an inline function writes into the record that it is given.
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
    /// # Errors
    /// When two aliases of one name, which only private ones can have, are different types.
    pub(crate) fn of(file: &syn::File) -> Result<Self, String> {
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
            let other = aliases.targets.insert(name.clone(), target);
            if other.is_some_and(|other| other.to_token_stream().to_string() != text) {
                return Err(format!("two types have the name `{name}`; rename one"));
            }
        }
        Ok(aliases)
    }

    /// The names of those that are public.
    pub(crate) fn names(&self) -> &BTreeSet<String> {
        &self.public
    }

    /// Whether another declaration mentions the alias.
    pub(crate) fn is_used(&self, name: &str) -> bool {
        self.used.borrow().contains(name)
    }

    /// Names of integers, which the header may have enums for.
    fn integers(&self) -> BTreeSet<String> {
        let is_integer = |name: &str| {
            let mut name = name.to_owned();
            while let Some(target) = self.targets.get(&name) {
                match last_segment(target) {
                    Some(next) => name = next,
                    None => return false,
                }
            }
            integer(&name).is_some()
        };
        let names = self.public.iter().filter(|name| !name.starts_with("macro_"));
        names.filter(|name| is_integer(name)).map(|name| plain(name)).collect()
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

/// Spells the types of one side.
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
    ) -> Result<Declarations, String> {
        let mut reader = Self { aliases, named_integers, declarations: Declarations::default() };
        for name in &aliases.public {
            let kind = reader.resolve(&aliases.targets[name])?;
            reader.add(name, kind);
        }
        for item in &file.items {
            reader.item(item)?;
        }
        Ok(reader.declarations)
    }

    fn item(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::Struct(item) if is_public(&item.vis) => {
                self.record("struct", &item.ident.to_string(), &item.attrs, &item.fields)?;
            }
            Item::Union(item) if is_public(&item.vis) => {
                let fields = Fields::Named(item.fields.clone());
                self.record("union", &item.ident.to_string(), &item.attrs, &fields)?;
            }
            Item::Enum(item) if is_public(&item.vis) => {
                return Err(format!(
                    "`{}` is an enum, for which a value that Rust does not know is undefined \
                     behaviour; declare an integer alias and constants",
                    item.ident
                ));
            }
            Item::Const(item) if is_public(&item.vis) => {
                let name = item.ident.to_string();
                let kind = format!("constant {}", self.spell(&item.ty)?);
                let value = item.expr.to_token_stream().to_string().replace(' ', "");
                if let Ok(value) = value.parse() {
                    let name = name.strip_prefix("macro_").unwrap_or(&name);
                    self.declarations.numbers.insert(format!("Value of {name}"), value);
                }
                self.add(&name, kind);
            }
            Item::Const(item) => self.layout(&item.expr.to_token_stream().to_string())?,
            Item::Fn(item) if is_public(&item.vis) => {
                self.named_function(&item.sig)?;
                let body = item.block.to_token_stream().to_string();
                self.declarations.assignments(&item.sig.ident.to_string(), &body);
            }
            Item::ForeignMod(item) => {
                for function in &item.items {
                    if let ForeignItem::Fn(function) = function {
                        self.named_function(&function.sig)?;
                    }
                }
            }
            Item::Macro(item) if invokes(item, "host_functions") => {
                let functions = self
                    .host_functions(item.mac.tokens.clone())
                    .map_err(|problem| format!("host_functions!: {problem}"))?;
                functions.iter().try_for_each(|function| self.named_function(&function.sig))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, name: &str, kind: String) {
        let name = name.strip_prefix("macro_").unwrap_or(name);
        self.declarations.kinds.insert(name.to_owned(), kind);
    }

    fn record(
        &mut self,
        keyword: &str,
        name: &str,
        attributes: &[Attribute],
        fields: &Fields,
    ) -> Result<(), String> {
        let name = &plain(name);
        let mut representations = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            representations.push(attribute.meta.to_token_stream().to_string().replace(' ', ""));
        }
        if !representations.concat().contains("repr(C") {
            return Err(format!("`{name}` has no `#[repr(C)]`; add it"));
        }
        let (public, private): (Vec<_>, Vec<_>) =
            fields.iter().partition(|field| is_public(&field.vis));
        if public.is_empty() {
            self.add(name, "opaque".into());
            return Ok(());
        }
        if !private.is_empty() {
            return Err(format!(
                "`{name}` has public and private fields; make all public, or none"
            ));
        }
        let mut names = Vec::new();
        for field in public {
            let ident = field.ident.as_ref().ok_or_else(|| format!("`{name}` has no names"))?;
            let field_name = format!("{name}::{}", plain_field(ident));
            let kind =
                self.spell(&field.ty).map_err(|problem| format!("`{field_name}`: {problem}"))?;
            self.declarations.kinds.insert(field_name, kind);
            names.push(plain_field(ident));
        }
        let kind = format!("{} {keyword} {{ {} }}", representations.join(" "), names.join(", "));
        self.add(name, kind);
        Ok(())
    }

    /// bindgen's checks of layouts, which say each number: `["Size of TF_X"][... - 24usize];`.
    fn layout(&mut self, checks: &str) -> Result<(), String> {
        for check in checks.replace(' ', "\u{1}").split("[\"").skip(1) {
            let (name, rest) =
                check.split_once("\"]").ok_or("a check of bindgen's without a name")?;
            let name = name.replace('\u{1}', " ");
            let number = rest
                .split_once("usize")
                .and_then(|(number, _)| number.rsplit('\u{1}').next()?.parse().ok())
                .ok_or_else(|| format!("`{name}`: no number in {rest}"))?;
            let (what, record) = name.rsplit_once(' ').ok_or("a check of bindgen's of nothing")?;
            let record = match record.split_once("::") {
                Some((record, field)) => {
                    format!("{}::{}", plain(record), field.trim_end_matches('_'))
                }
                None => plain(record),
            };
            self.declarations.numbers.insert(format!("{what} {record}"), number);
        }
        Ok(())
    }

    /// The functions of a table, which is of the form of an `extern` block but for a word before each and the
    /// semicolon before further arguments.
    fn host_functions(&mut self, table: TokenStream) -> syn::Result<Vec<ForeignItemFn>> {
        let Some(TokenTree::Group(functions)) = table.into_iter().last() else {
            return Err(syn::Error::new(proc_macro2::Span::call_site(), "no functions"));
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
            let mut functions = Vec::new();
            while !input.is_empty() {
                input.call(Attribute::parse_outer)?;
                let need: syn::Ident = input.parse()?;
                if need != "required" && need != "optional" {
                    return Err(syn::Error::new(need.span(), "not `required` or `optional`"));
                }
                let function: ForeignItemFn = input.parse()?;
                self.declarations.host.insert(function.sig.ident.to_string(), need == "required");
                functions.push(function);
            }
            Ok(functions)
        };
        parser.parse2(tokens.collect())
    }

    fn named_function(&mut self, signature: &syn::Signature) -> Result<(), String> {
        let kind = self.function(signature)?;
        self.add(&signature.ident.to_string(), kind);
        Ok(())
    }

    fn function(&self, signature: &syn::Signature) -> Result<String, String> {
        let mut inputs = Vec::new();
        for input in &signature.inputs {
            match input {
                syn::FnArg::Typed(input) => inputs.push(self.spell(&input.ty)?),
                syn::FnArg::Receiver(_) => return Err("a receiver outside an impl".into()),
            }
        }
        self.pointer(inputs, signature.variadic.is_some(), &signature.output)
    }

    fn pointer(
        &self,
        mut inputs: Vec<String>,
        variadic: bool,
        output: &ReturnType,
    ) -> Result<String, String> {
        if variadic {
            inputs.push("...".into());
        }
        let output = match output {
            ReturnType::Default => String::new(),
            ReturnType::Type(_, ty) => format!(" -> {}", self.spell(ty)?),
        };
        Ok(format!("fn({}){output}", inputs.join(", ")))
    }

    /// A type: aliases resolved, except those of integers that have a name on both sides.
    fn spell(&self, ty: &Type) -> Result<String, String> {
        match ty {
            Type::Path(_) => {
                let name = last_segment(ty).ok_or("a type without a name")?;
                if let Some(target) = self.aliases.targets.get(&name) {
                    self.aliases.used.borrow_mut().insert(name.clone());
                    let name = plain(&name);
                    return if self.named_integers.contains(&name) {
                        Ok(name)
                    } else {
                        self.spell(target)
                    };
                }
                if let Some(inner) = nullable(ty) {
                    let inner = self.spell(inner)?;
                    return if inner.starts_with("fn(") {
                        Ok(inner)
                    } else {
                        Err(format!("`Option<{inner}>` has no counterpart in C"))
                    };
                }
                let known = ["c_void", "bool", "f32", "f64", "c_float", "c_double"];
                match integer(&name) {
                    Some(name) => Ok(name.into()),
                    None if known.contains(&name.as_str()) => {
                        Ok(name.replace("c_float", "f32").replace("c_double", "f64"))
                    }
                    // All of TensorFlow's but one in the storage of its strings.
                    None if name.contains('_') || name == "TStringOwnerCApi" => Ok(plain(&name)),
                    None => Err(format!("`{name}` has no known counterpart in C")),
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
                let abi = function.abi.as_ref().and_then(|abi| abi.name.as_ref());
                if abi.is_none_or(|abi| abi.value() != "C") {
                    return Err("a function pointer that is not `extern \"C\"`; add it".into());
                }
                let inputs = function.inputs.iter().map(|input| self.spell(&input.ty));
                self.pointer(
                    inputs.collect::<Result<_, _>>()?,
                    function.variadic.is_some(),
                    &function.output,
                )
            }
            Type::Array(array) => {
                let length = array.len.to_token_stream().to_string().replace("usize", "");
                Ok(format!("[{}; {length}]", self.spell(&array.elem)?))
            }
            Type::Tuple(tuple) if tuple.elems.is_empty() => Ok("()".into()),
            _ => Err("a type that C does not have".into()),
        }
    }

    fn spell_pointer(&self, is_mut: bool, target: &Type) -> Result<String, String> {
        Ok(format!("*{} {}", if is_mut { "mut" } else { "const" }, self.spell(target)?))
    }

    /// As [`Reader::spell`], with named integers resolved at the top level too.
    fn resolve(&self, ty: &Type) -> Result<String, String> {
        match last_segment(ty).and_then(|name| self.aliases.targets.get(&name)) {
            Some(target) => self.resolve(target),
            None => self.spell(ty),
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The last name of a path such as `core::ffi::c_int`.
fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// The `T` of `Option<T>`.
fn nullable(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
            GenericArgument::Type(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

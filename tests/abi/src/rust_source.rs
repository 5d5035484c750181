//! What the sources of `tf-fs-sys` declare, and the C++ type that each Rust type stands for. Also part
//! of the build script, which generates the code that measures the same declarations.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Item, PathArguments, PointerMutability, ReturnType,
    Token, Type, Visibility, braced, parenthesized,
};

/// The declarations of all modules, by name of the module.
#[derive(Clone, Debug, Default)]
pub struct RustSource {
    /// Declarations of each module.
    pub modules: BTreeMap<String, Module>,
}

/// The public declarations of one module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Structs and unions with public fields.
    pub records: Vec<Record>,
    /// Structs without public fields: only the name matters.
    pub opaque: Vec<String>,
    /// Type aliases.
    pub aliases: Vec<Alias>,
    /// Constants: name and C++ type.
    pub constants: Vec<(String, String)>,
    /// Functions of the host, from `host_functions!`.
    pub host_functions: Vec<HostFunction>,
    /// Functions with a body.
    pub functions: Vec<Function>,
}

/// A struct or union.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Whether it is a union.
    pub is_union: bool,
    /// Its fields in order.
    pub fields: Vec<Field>,
}

/// A field of a [`Record`].
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type in C++.
    pub cpp: String,
}

/// A type alias.
#[derive(Clone, Debug)]
pub struct Alias {
    /// Its name.
    pub name: String,
    /// The type in C++ that it stands for, all aliases resolved.
    pub cpp: String,
    /// What it stands for.
    pub kind: AliasKind,
    /// Whether a field, a function or another alias of any module mentions it.
    pub used: bool,
}

/// What an [`Alias`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasKind {
    /// An integer, which may be an enum in C.
    Integer,
    /// A function pointer, nullable or not.
    Function,
    /// Anything else.
    Other,
}

/// A function that the host provides.
#[derive(Clone, Debug)]
pub struct HostFunction {
    /// Its name.
    pub name: String,
    /// Whether each supported TensorFlow has it.
    pub required: bool,
    /// The type of a pointer to it in C++.
    pub cpp: String,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type of a pointer to the C function in C++.
    pub cpp: String,
    /// The record that it fills, for a function whose only parameter is `&mut Record`.
    pub fills: Option<String>,
}

impl RustSource {
    /// Reads modules, given as name and source text. They may use each other's types.
    ///
    /// # Errors
    /// A declaration that has no C counterpart, such as a struct without `#[repr(C)]`, or one that this
    /// reader does not know.
    pub fn parse<'a>(
        modules: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut files = Vec::new();
        for (name, text) in modules {
            let file = syn::parse_file(text).map_err(|problem| format!("{name}.rs: {problem}"))?;
            files.push((name, file));
        }
        let types = Types::collect(files.iter().flat_map(|(_, file)| &file.items));
        let mut source = Self::default();
        for (name, file) in &files {
            let mut module = Module::default();
            for item in &file.items {
                module.add(item, &types).map_err(|problem| format!("{name}.rs: {problem}"))?;
            }
            source.modules.insert((*name).to_owned(), module);
        }
        // Only now is known what is used.
        for module in source.modules.values_mut() {
            for alias in &mut module.aliases {
                alias.used = types.used.borrow().contains(&alias.name);
            }
        }
        Ok(source)
    }

    /// The host functions of all modules.
    pub fn host_functions(&self) -> impl Iterator<Item = &HostFunction> {
        self.modules.values().flat_map(|module| &module.host_functions)
    }
}

impl Module {
    fn add(&mut self, item: &Item, types: &Types<'_>) -> Result<(), String> {
        match item {
            Item::Struct(item) if is_public(&item.vis) => {
                let name = item.ident.to_string();
                need_repr_c(&name, &item.attrs)?;
                let fields = public_fields(&name, item.fields.iter(), types)?;
                if fields.is_empty() {
                    self.opaque.push(name);
                } else {
                    self.records.push(Record { name, is_union: false, fields });
                }
            }
            Item::Union(item) if is_public(&item.vis) => {
                let name = item.ident.to_string();
                need_repr_c(&name, &item.attrs)?;
                self.records.push(Record {
                    fields: public_fields(&name, item.fields.named.iter(), types)?,
                    name,
                    is_union: true,
                });
            }
            Item::Enum(item) if is_public(&item.vis) => {
                return Err(format!(
                    "`{}` is an enum, for which a value that Rust does not know is undefined \
                     behaviour; declare an integer alias and constants",
                    item.ident
                ));
            }
            Item::Const(item) if is_public(&item.vis) => {
                self.constants.push((item.ident.to_string(), types.spell(&item.ty)?))
            }
            Item::Type(item) if is_public(&item.vis) => self.aliases.push(Alias {
                name: item.ident.to_string(),
                cpp: types.resolve(&item.ty)?,
                kind: types.kind(&item.ty),
                used: false,
            }),
            Item::Fn(item) if is_public(&item.vis) => {
                let mut inputs = Vec::new();
                for input in &item.sig.inputs {
                    match input {
                        FnArg::Typed(input) => inputs.push(&*input.ty),
                        FnArg::Receiver(_) => return Err("a receiver outside an impl".into()),
                    }
                }
                let fills = match inputs.as_slice() {
                    [Type::Reference(reference)] if reference.mutability.is_some() => {
                        last_segment(&reference.elem)
                    }
                    _ => None,
                };
                self.functions.push(Function {
                    name: item.sig.ident.to_string(),
                    cpp: types.pointer_to_function(inputs, &item.sig.output)?,
                    fills,
                });
            }
            Item::Macro(item) if item.mac.path.segments.last().is_some_and(is_host_functions) => {
                let table: HostTable = item
                    .mac
                    .parse_body()
                    .map_err(|problem| format!("host_functions!: {problem}"))?;
                for entry in table.entries {
                    let mut cpp = types.pointer_to_function(&entry.inputs, &entry.output)?;
                    if entry.variadic {
                        cpp.insert_str(0, "Variadic");
                    }
                    self.host_functions.push(HostFunction {
                        cpp,
                        name: entry.name,
                        required: entry.required,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_host_functions(segment: &syn::PathSegment) -> bool {
    segment.ident == "host_functions"
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn need_repr_c(name: &str, attributes: &[Attribute]) -> Result<(), String> {
    let has = attributes.iter().any(|attribute| {
        attribute.path().is_ident("repr")
            && attribute.parse_args::<Ident>().is_ok_and(|argument| argument == "C")
    });
    if has { Ok(()) } else { Err(format!("`{name}` has no `#[repr(C)]`; add it")) }
}

/// The fields of a struct or union, none if all are private.
fn public_fields<'a>(
    record: &str,
    fields: impl Iterator<Item = &'a syn::Field>,
    types: &Types<'_>,
) -> Result<Vec<Field>, String> {
    let (public, private): (Vec<_>, Vec<_>) = fields.partition(|field| is_public(&field.vis));
    if !public.is_empty() && !private.is_empty() {
        return Err(format!("`{record}` has public and private fields; make all public, or none"));
    }
    public
        .into_iter()
        .map(|field| {
            let name = field
                .ident
                .as_ref()
                .ok_or_else(|| format!("`{record}` has fields without names; name them"))?
                .unraw()
                .to_string();
            let cpp = types
                .spell(&field.ty)
                .map_err(|problem| format!("`{record}::{name}`: {problem}"))?;
            Ok(Field { name, cpp })
        })
        .collect()
}

/// The named types of all modules.
struct Types<'s> {
    aliases: BTreeMap<String, &'s Type>,
    records: BTreeSet<String>,
    used: RefCell<BTreeSet<String>>,
}

impl<'s> Types<'s> {
    fn collect(items: impl Iterator<Item = &'s Item>) -> Self {
        let mut types =
            Self { aliases: BTreeMap::new(), records: BTreeSet::new(), used: RefCell::default() };
        for item in items {
            match item {
                Item::Type(item) => {
                    types.aliases.insert(item.ident.to_string(), &item.ty);
                }
                Item::Struct(item) => {
                    types.records.insert(item.ident.to_string());
                }
                Item::Union(item) => {
                    types.records.insert(item.ident.to_string());
                }
                _ => {}
            }
        }
        types
    }

    /// The C++ type for a Rust type. An alias of an integer keeps its name, because C may have an enum
    /// of that name; other aliases are resolved, because C need not have them.
    fn spell(&self, ty: &Type) -> Result<String, String> {
        match ty {
            Type::Path(_) => {
                let name = last_segment(ty).ok_or("a type without a name")?;
                if let Some(primitive) = primitive(&name) {
                    return Ok(primitive.to_owned());
                }
                if let Some(target) = self.aliases.get(&name) {
                    self.used.borrow_mut().insert(name.clone());
                    return match self.kind(target) {
                        AliasKind::Integer => Ok(name),
                        AliasKind::Function | AliasKind::Other => self.resolve(target),
                    };
                }
                if self.records.contains(&name) {
                    return Ok(name);
                }
                match nullable(ty) {
                    Some(inner) if self.kind(inner) == AliasKind::Function => self.spell(inner),
                    _ => Err(format!("`{name}` has no known counterpart in C")),
                }
            }
            Type::Ptr(pointer) => {
                let target = self.spell(&pointer.elem)?;
                Ok(match pointer.mutability {
                    PointerMutability::Const(_) => format!("{target} const*"),
                    PointerMutability::Mut(_) => format!("{target}*"),
                })
            }
            Type::Reference(reference) => {
                let target = self.spell(&reference.elem)?;
                Ok(match reference.mutability {
                    None => format!("{target} const*"),
                    Some(_) => format!("{target}*"),
                })
            }
            Type::FnPtr(function) => {
                let abi = function.abi.as_ref().and_then(|abi| abi.name.as_ref());
                if abi.is_none_or(|abi| abi.value() != "C") {
                    return Err("a function pointer that is not `extern \"C\"`; add it".into());
                }
                let inputs = function.inputs.iter().map(|input| &input.ty);
                self.pointer_to_function(inputs, &function.output)
            }
            Type::Array(array) => match &array.len {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(length), .. }) => {
                    Ok(format!("Array<{}, {length}>", self.spell(&array.elem)?))
                }
                _ => Err("an array whose length is not a literal".into()),
            },
            Type::Tuple(tuple) if tuple.elems.is_empty() => Ok("void".into()),
            _ => Err("a type that C does not have".into()),
        }
    }

    /// As [`Types::spell`], with integer aliases resolved at the top level too.
    fn resolve(&self, ty: &Type) -> Result<String, String> {
        match last_segment(ty).and_then(|name| self.aliases.get(&name)) {
            Some(target) => self.resolve(target),
            None => self.spell(ty),
        }
    }

    fn kind(&self, ty: &Type) -> AliasKind {
        if matches!(ty, Type::FnPtr(_)) {
            return AliasKind::Function;
        }
        let Some(name) = last_segment(ty) else {
            return AliasKind::Other;
        };
        if let Some(primitive) = primitive(&name) {
            let integer = !matches!(primitive, "void" | "bool" | "float" | "double");
            return if integer { AliasKind::Integer } else { AliasKind::Other };
        }
        match (self.aliases.get(&name), nullable(ty)) {
            (Some(target), _) => self.kind(target),
            (None, Some(inner)) => self.kind(inner),
            (None, None) => AliasKind::Other,
        }
    }

    fn pointer_to_function<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a Type>,
        output: &ReturnType,
    ) -> Result<String, String> {
        let mut parts = vec![match output {
            ReturnType::Default => "void".to_owned(),
            ReturnType::Type(_, ty) => self.spell(ty)?,
        }];
        for input in inputs {
            parts.push(self.spell(input)?);
        }
        Ok(format!("Function<{}>", parts.join(", ")))
    }
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
    let segment = path.path.segments.last()?;
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) if segment.ident == "Option" => {
            match arguments.args.first()? {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            }
        }
        _ => None,
    }
}

fn primitive(name: &str) -> Option<&'static str> {
    Some(match name {
        "c_void" => "void",
        "c_char" => "char",
        "c_schar" => "signed char",
        "c_uchar" => "unsigned char",
        "c_short" => "short",
        "c_ushort" => "unsigned short",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_long" => "long",
        "c_ulong" => "unsigned long",
        "c_longlong" => "long long",
        "c_ulonglong" => "unsigned long long",
        "bool" => "bool",
        "i8" => "std::int8_t",
        "u8" => "std::uint8_t",
        "i16" => "std::int16_t",
        "u16" => "std::uint16_t",
        "i32" => "std::int32_t",
        "u32" => "std::uint32_t",
        "i64" => "std::int64_t",
        "u64" => "std::uint64_t",
        "isize" => "std::ptrdiff_t",
        "usize" => "std::size_t",
        "f32" => "float",
        "f64" => "double",
        _ => return None,
    })
}

/// The input of `host_functions!`.
struct HostTable {
    entries: Vec<HostEntry>,
}

struct HostEntry {
    required: bool,
    name: String,
    inputs: Vec<Type>,
    /// Whether `; ...` follows the inputs: further arguments of any type.
    variadic: bool,
    output: ReturnType,
}

struct Argument {
    ty: Type,
}

impl Parse for HostTable {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Token![struct]>()?;
        input.parse::<Ident>()?;
        let body;
        braced!(body in input);
        let mut entries = Vec::new();
        while !body.is_empty() {
            entries.push(body.parse()?);
        }
        Ok(Self { entries })
    }
}

impl Parse for HostEntry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        let need: Ident = input.parse()?;
        let required = match need.to_string().as_str() {
            "required" => true,
            "optional" => false,
            _ => {
                return Err(syn::Error::new(need.span(), "neither required nor optional"));
            }
        };
        input.parse::<Token![fn]>()?;
        let name = input.parse::<Ident>()?.to_string();
        let arguments;
        parenthesized!(arguments in input);
        let mut inputs = Vec::new();
        while !arguments.is_empty() && !arguments.peek(Token![;]) {
            inputs.push(arguments.parse::<Argument>()?.ty);
            if arguments.peek(Token![,]) {
                arguments.parse::<Token![,]>()?;
            }
        }
        let variadic = !arguments.is_empty();
        if variadic {
            arguments.parse::<Token![;]>()?;
            arguments.parse::<Token![...]>()?;
        }
        let output = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self { required, name, inputs, variadic, output })
    }
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.parse::<Ident>()?;
        input.parse::<Token![:]>()?;
        Ok(Self { ty: input.parse()? })
    }
}

//! `#[op]`.

pub(crate) mod export;
mod fields;
mod signature;

use crate::args::{self, Macro, flag, krate};
use crate::errors::Errors;
use crate::export::note;
use crate::kernel::{Types, combinations, string, types};
use fields::Field;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use signature::Arg;
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Fields, GenericParam, Lit, LitStr, Meta, Path,
};

/// The options of `#[op]`.
struct Options {
    /// `None` after a mistake.
    name: Option<LitStr>,
    inputs: Vec<Arg>,
    outputs: Vec<Arg>,
    types: Vec<Types>,
    stateful: bool,
    gradient: LitStr,
    krate: Path,
}

/// Returns the output of `#[op]`.
pub(crate) fn op(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = parse(options, &mut errors);
    let item: DeriveInput = match syn::parse2(item.clone()) {
        Ok(item) => item,
        Err(_) => {
            errors.at(
                Span::call_site(),
                "expected a struct; put `#[op(...)]` on the struct whose fields are the op's attributes",
            );
            return errors.before(item);
        }
    };
    let output = expand(item, &options, &mut errors);
    errors.before(output)
}

fn expand(mut item: DeriveInput, options: &Options, errors: &mut Errors) -> TokenStream {
    let Data::Struct(data) = &mut item.data else {
        errors.over(&item.ident, "an op is a struct, whose fields are the op's attributes");
        return item.into_token_stream();
    };
    let given: Vec<&mut syn::Field> = match &mut data.fields {
        Fields::Named(fields) => fields.named.iter_mut().collect(),
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            errors.over(fields, "an op's attributes have names; write `struct ... { name: type }`");
            return item.into_token_stream();
        }
    };
    if let Some(cfg) = item.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        let message = "`#[op]` would register the op without the struct; write `#[cfg(...)]` above `#[op(...)]`";
        errors.over(cfg, message);
    }
    let is_unit = given.is_empty();
    let fields: Vec<Field> =
        given.into_iter().filter_map(|field| fields::read(field, errors)).collect();
    let implementation = match &options.name {
        Some(name) if errors.is_empty() => {
            implementation(&item, name, &fields, is_unit, options, errors)
        }
        _ => None,
    };
    let implementation = implementation.unwrap_or_else(|| placeholder(&item, options));
    quote!(#item #implementation)
}

/// Returns the `impl` of an op with a mistake, without which the author's `impl Op` would be one more.
fn placeholder(item: &DeriveInput, options: &Options) -> TokenStream {
    let (krate, ident) = (&options.krate, &item.ident);
    let private = quote!(#krate::__private);
    let (generics, arguments, where_clause) = item.generics.split_for_impl();
    quote! {
        impl #generics #private::OpSpec for #ident #arguments #where_clause {
            const SPEC: #private::Spec = #private::Spec {
                name: "",
                doc: "",
                inputs: &[],
                outputs: &[],
                stateful: false,
                gradient: "",
                place: "",
            };

            fn attributes() -> ::std::vec::Vec<#private::AttributeSpec> {
                ::std::vec::Vec::new()
            }

            fn use_attributes(&self) {}

            fn create(_: &#krate::kernel::OpKernelConstruction<'_>) -> #krate::Result<Self> {
                ::core::unreachable!()
            }
        }
    }
}

fn implementation(
    item: &DeriveInput,
    name: &LitStr,
    fields: &[Field],
    is_unit: bool,
    options: &Options,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let ident = &item.ident;
    let mut params = Vec::new();
    for param in &item.generics.params {
        let GenericParam::Type(param) = param else {
            errors.over(param, "an op's parameters are types of elements, such as `T`");
            return None;
        };
        if !options.types.iter().any(|types| types.attribute == param.ident) {
            errors.over(
                &param.ident,
                format!("which types can `{0}` be? write `types({0} = [f32, f64])`", param.ident),
            );
            return None;
        }
        params.push(&param.ident);
    }
    for types in &options.types {
        if !params.contains(&&types.attribute) {
            errors.over(
                &types.attribute,
                format!(
                    "`{ident}` has no parameter `{0}`; write `struct {ident}<{0}>`",
                    types.attribute
                ),
            );
            return None;
        }
    }
    let doc = doc(&item.attrs);
    let inputs = options.inputs.iter().map(|arg| arg.spec(&private));
    let outputs = options.outputs.iter().map(|arg| arg.spec(&private));
    let (stateful, gradient) = (options.stateful, &options.gradient);
    let attributes = fields.iter().filter_map(|field| field.spec(&private));
    let reads = fields.iter().filter_map(|field| field.read(&private));
    let parameters: Vec<_> = fields.iter().filter_map(Field::parameter).collect();
    let states = fields.iter().filter_map(Field::state);
    let used = fields.iter().filter(|field| field.is_attribute()).map(|field| &field.name);
    let names = fields.iter().map(|field| &field.name);
    let value = if is_unit { quote!(Self) } else { quote!(Self { #(#names),* }) };
    let construction =
        fields.iter().any(Field::is_attribute).then(|| quote!(__construction)).unwrap_or(quote!(_));
    let (generics, arguments, where_clause) = item.generics.split_for_impl();
    let body = quote! {
        #(#states)*
        ::core::result::Result::Ok(#value)
    };
    // Clippy's limit of parameters.
    let (create, from_attributes) = if parameters.len() > 7 {
        (quote!(#(let #parameters = #reads;)* #body), None)
    } else {
        let from_attributes = quote! {
            impl #generics #ident #arguments #where_clause {
                /// Creates the op from its attributes, as for a node of a graph.
                fn from_attributes(#(#parameters),*) -> #krate::Result<Self> {
                    #body
                }
            }
        };
        (quote!(Self::from_attributes(#(#reads),*)), Some(from_attributes))
    };
    let combinations = combinations(name, &options.types, errors)?;
    let count = combinations.len();
    let instances = combinations.iter().map(|picked| {
        let arguments = params.iter().map(|param| {
            picked.iter().find(|(attribute, _)| attribute == param).map(|(_, ty)| *ty)
        });
        let types = picked.iter().map(|(attribute, ty)| {
            let name = LitStr::new(&attribute.to_string(), attribute.span());
            quote!((#name, <#ty as #private::Element>::DTYPE))
        });
        quote!(#private::Instance::new::<#ident<#(#arguments),*>>(&[#(#types),*]))
    });
    let first = combinations.first().map(|picked| {
        let arguments = params.iter().map(|param| {
            picked.iter().find(|(attribute, _)| attribute == param).map(|(_, ty)| *ty)
        });
        quote!(#ident<#(#arguments),*>)
    })?;
    let made = quote!(#private::elf_note::ElfNote::op(#name, ::core::cfg!(panic = "abort")));
    let note = note(&private, &name.to_token_stream(), &made);
    Some(quote! {
        impl #generics #private::OpSpec for #ident #arguments #where_clause {
            const SPEC: #private::Spec = #private::Spec {
                name: #name,
                doc: #doc,
                inputs: &[#(#inputs),*],
                outputs: &[#(#outputs),*],
                stateful: #stateful,
                gradient: #gradient,
                place: ::core::concat!(::core::file!(), ":", ::core::line!()),
            };

            fn attributes() -> ::std::vec::Vec<#private::AttributeSpec> {
                ::std::vec![#(#attributes),*]
            }

            fn use_attributes(&self) {
                #(let _ = &self.#used;)*
            }

            fn create(
                #construction: &#krate::kernel::OpKernelConstruction<'_>,
            ) -> #krate::Result<Self> {
                #create
            }
        }

        #from_attributes

        const _: () = {
            static __TF_OP_INSTANCES: [#private::Instance; #count] = [#(#instances),*];
            #private::collect! {
                #private::OpEntry,
                #private::OpEntry::new::<#first>(&__TF_OP_INSTANCES)
            }
        };

        #note
    })
}

/// Returns the text of doc comments, as an expression.
fn doc(attributes: &[Attribute]) -> TokenStream {
    let mut text = String::new();
    let mut parts = TokenStream::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        if !meta.path.is_ident("doc") {
            continue;
        }
        match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => {
                let line = line.value();
                text.push_str(line.strip_prefix(' ').unwrap_or(&line));
            }
            // Such as `include_str!`, which the compiler expands here, too.
            other => {
                let before = std::mem::take(&mut text);
                parts.extend(quote!(#before, #other,));
            }
        }
        text.push('\n');
    }
    let text = text.trim_end();
    if parts.is_empty() {
        return text.trim().to_token_stream();
    }
    quote!(::core::concat!(#parts #text))
}

/// Checks the name of an op that TensorFlow does not have.
fn is_new_op(op: &LitStr, errors: &mut Errors) -> bool {
    let name = op.value();
    let is_name = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|one| one.is_ascii_alphanumeric());
    if !is_name {
        errors.at(
            op.span(),
            format!(
                "{name:?} is not a name of an op; write a capital letter followed by letters and digits, such as \
                 \"TextWords\""
            ),
        );
    }
    is_name
}

/// Reads the options, and continues after a mistake.
fn parse(tokens: TokenStream, errors: &mut Errors) -> Options {
    const OF: Macro = Macro::Op;
    let mut options = Options {
        name: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        types: Vec::new(),
        stateful: false,
        gradient: LitStr::new("", Span::call_site()),
        krate: OF.default_crate(),
    };
    let given = args::each(tokens, OF, errors, |name, option, value, errors| match option {
        "name" => {
            let op = string(value, name, "`name = \"TextWords\"`", errors);
            options.name = op.filter(|op| is_new_op(op, errors));
        }
        "inputs" => options.inputs = signature::args(value, name, errors),
        "outputs" => options.outputs = signature::args(value, name, errors),
        "types" => types(value, name, &mut options.types, errors),
        "stateful" => options.stateful = flag(value, option, errors),
        "gradient" => {
            if let Some(gradient) = string(value, name, "`gradient = \"MyOpGrad\"`", errors) {
                options.gradient = gradient;
            }
        }
        _ => options.krate = krate(value, name, OF, errors),
    });
    if given.is_some_and(|given| !given.iter().any(|name| name == "name")) {
        errors.at(Span::call_site(), "what is the op's name? write `#[op(name = \"TextWords\")]`");
    }
    let all: Vec<&Arg> = options.inputs.iter().chain(&options.outputs).collect();
    for (index, arg) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.name == arg.name) {
            errors.at(
                arg.name.span(),
                format!("`{}` is there twice; inputs and outputs have different names", arg.name),
            );
        }
    }
    options
}

#[cfg(test)]
mod tests;

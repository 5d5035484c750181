//! `#[kernel]`.

mod library;

use crate::args::{self, Macro, flag, krate, list, literals, value};
use crate::conditions::split;
use crate::errors::Errors;
use crate::item::{self, text};
use crate::strings;
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{GenericParam, LitInt, LitStr, Path, Token};

/// The maximum number of kernels that one attribute registers.
const MAX: usize = 1024;

/// The options of `#[kernel]`.
struct Options {
    /// `None` after a mistake.
    op: Option<LitStr>,
    types: Vec<Types>,
    host_memory: Vec<LitStr>,
    label: LitStr,
    priority: LitInt,
    variables: bool,
    variants: bool,
    krate: Path,
}

/// An attribute of the op, and the types that it may have.
pub(crate) struct Types {
    pub(crate) attribute: Ident,
    types: Vec<TokenStream>,
}

/// Returns the output of `#[kernel]`.
pub(crate) fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = parse(options, Span::call_site(), &mut errors);
    let output = match item::parse(item, "Kernel", &mut errors) {
        Err(other) => other,
        Ok(mut item) => match platform(&item) {
            Some(platform) => library::implement(&mut item, options, &platform, &mut errors),
            None => {
                let mut output = item.with_items(TokenStream::new());
                if let Some(registrations) = collected(&item.header, &options, &mut errors) {
                    output.extend(quote! { const _: () = { #registrations }; });
                }
                output
            }
        },
    };
    errors.before(output)
}

/// Returns the parameter of an `impl` that is the platform, as `type Platform = P;` says.
fn platform(item: &item::FilesystemImpl) -> Option<Ident> {
    let platform = item.types.iter().find(|ty| ty.name == "Platform")?;
    let [TokenTree::Punct(_), TokenTree::Ident(platform)] =
        &*item::flatten(platform.signature.clone())
    else {
        return None;
    };
    let mut params = item.header.generics.type_params();
    params.any(|param| param.ident == *platform).then(|| platform.clone())
}

/// Returns code that adds the kernels to those of the plugin when it is loaded.
fn collected(header: &item::Header, options: &Options, errors: &mut Errors) -> Option<TokenStream> {
    let private = private(options);
    let Registrations { alias, all } = registrations(header, options, None, errors)?;
    let collected =
        all.iter().map(|one| quote!(#private::collect! { #private::Registration, #one }));
    Some(quote!(#alias #(#collected)*))
}

/// Returns the path of the items for the output of macros.
fn private(options: &Options) -> TokenStream {
    let krate = &options.krate;
    quote!(#krate::__private)
}

/// The registrations of one attribute.
struct Registrations {
    /// The author's type, by a name that an author's type cannot have.
    alias: TokenStream,
    /// An expression for each combination of types.
    all: Vec<TokenStream>,
}

/// Returns the registrations of an attribute. `platform` is the parameter of the `impl` that is the platform.
fn registrations(
    header: &item::Header,
    options: &Options,
    platform: Option<&Ident>,
    errors: &mut Errors,
) -> Option<Registrations> {
    let op = options.op.as_ref()?;
    let private = private(options);
    let mut params = Vec::new();
    for param in &header.generics.params {
        let param = match param {
            GenericParam::Type(param) => &param.ident,
            GenericParam::Const(param) => {
                let message = format!(
                    "TensorFlow chooses kernels by types, so `{}` cannot be a parameter of one; write an \
                     `impl` for each value",
                    param.ident
                );
                errors.over(&param.ident, message);
                return None;
            }
            GenericParam::Lifetime(_) => continue,
        };
        let is_platform = platform == Some(param);
        if !is_platform && !options.types.iter().any(|types| types.attribute == *param) {
            errors.over(
                param,
                format!(
                    "which types can `{param}` be? name the parameter as the op names the attribute, and \
                     write `types({param} = [f32, f64])`; if it is the platform, write `type Platform = {param};`"
                ),
            );
            return None;
        }
        params.push(param);
    }
    for Types { attribute, types } in &options.types {
        if params.contains(&attribute)
            && let Some(constant) = types.iter().find(|ty| is_constant(ty))
        {
            let message = format!(
                "`{attribute}` is a parameter of the `impl`, so `{0}` should be a Rust type; for a type that \
                 Rust does not have, write an `impl` without the parameter",
                text(constant)
            );
            errors.over(constant, message);
            return None;
        }
    }
    let combinations = combinations(op, &options.types, errors)?;
    let Options { host_memory, label, priority, variables, variants, .. } = options;
    let self_type = &header.self_type;
    let alias = quote!(type __SeKernel<#(#params),*> = #self_type;);
    let mut all = Vec::new();
    for picked in combinations {
        let arguments = params.iter().map(|param| {
            let picked = picked.iter().find(|(attribute, _)| attribute == param);
            picked.map_or_else(|| quote!(#param), |(_, ty)| (*ty).clone())
        });
        let constraints = picked.iter().map(|(attribute, ty)| {
            let name = LitStr::new(&attribute.unraw().to_string(), attribute.span());
            if is_constant(ty) {
                quote!((#name, #ty))
            } else {
                quote!((#name, <#ty as #private::Element>::DTYPE))
            }
        });
        all.push(quote! {
            #private::registration::<__SeKernel<#(#arguments),*>>(
                #op,
                ::core::concat!(::core::file!(), ":", ::core::line!()),
                #private::Options {
                    types: &[#(#constraints),*],
                    host_memory: &[#(#host_memory),*],
                    label: #label,
                    priority: #priority,
                    variables: #variables,
                    variants: #variants,
                },
            )
        });
    }
    Some(Registrations { alias, all })
}

/// Returns each combination of the types that attributes may have. The last attribute changes fastest.
pub(crate) fn combinations<'t>(
    op: &LitStr,
    all: &'t [Types],
    errors: &mut Errors,
) -> Option<Vec<Vec<(&'t Ident, &'t TokenStream)>>> {
    let count = all.iter().try_fold(1_usize, |count, types| {
        count.checked_mul(types.types.len()).filter(|&count| count <= MAX)
    });
    let Some(count) = count else {
        errors.over(op, format!("these are more than {MAX} kernels; name fewer types"));
        return None;
    };
    let pick = |number: usize| {
        let mut rest = number;
        let mut picked = Vec::new();
        for Types { attribute, types } in all.iter().rev() {
            picked.insert(0, (attribute, &types[rest % types.len()]));
            rest /= types.len();
        }
        picked
    };
    Some((0..count).map(pick).collect())
}

/// Whether this is a constant of the enum `DType` in place of a Rust type.
fn is_constant(ty: &TokenStream) -> bool {
    let mut tokens = item::flatten(ty.clone());
    tokens.retain(|token| matches!(token, TokenTree::Ident(_)));
    matches!(&*tokens, [.., dtype, _] if dtype.to_string() == "DType")
}

/// Reads the options of the attribute at `place`, and continues after a mistake.
fn parse(tokens: TokenStream, place: Span, errors: &mut Errors) -> Options {
    const OF: Macro = Macro::Kernel;
    let mut options = Options {
        op: None,
        types: Vec::new(),
        host_memory: Vec::new(),
        label: LitStr::new("", Span::call_site()),
        priority: LitInt::new("0", Span::call_site()),
        variables: false,
        variants: false,
        krate: OF.default_crate(),
    };
    let given = args::each(tokens, OF, errors, |name, option, value, errors| match option {
        "op" => {
            let op = string(value, name, "`op = \"Relu\"`", errors);
            options.op = op.filter(|op| is_op(op, errors));
        }
        "types" => types(value, name, &mut options.types, errors),
        "host_memory" => options.host_memory = strings(value, name, errors),
        "label" => {
            if let Some(label) = string(value, name, "`label = \"...\"`", errors) {
                options.label = label;
            }
        }
        "priority" => {
            if let Some(priority) = priority(value, name, errors) {
                options.priority = priority;
            }
        }
        "variables" => options.variables = flag(value, option, errors),
        "variants" => options.variants = flag(value, option, errors),
        _ => options.krate = krate(value, name, OF, errors),
    });
    if given.is_some_and(|given| !given.iter().any(|name| name == "op")) {
        errors.at(place, "which op is this a kernel for? write `#[kernel(op = \"Relu\")]`");
    }
    options
}

pub(crate) fn is_op(op: &LitStr, errors: &mut Errors) -> bool {
    let name = op.value();
    let is_name = name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if !is_name {
        errors.at(
            op.span(),
            format!("no op has the name {name:?}; write it as in `tf.raw_ops`, such as \"MatMul\""),
        );
    }
    is_name
}

pub(crate) fn string(
    tokens: TokenStream,
    name: &Ident,
    example: &str,
    errors: &mut Errors,
) -> Option<LitStr> {
    let message = format!("expected a string literal; write {example}");
    value(tokens, name, &message, errors, strings::literal)
}

fn priority(tokens: TokenStream, name: &Ident, errors: &mut Errors) -> Option<LitInt> {
    let message = "expected a whole number; write `priority = 1`";
    let (minus, number) = value(tokens, name, message, errors, |input| {
        Ok((input.parse::<Option<Token![-]>>()?, input.parse::<LitInt>()?))
    })?;
    if minus.is_some() || number.base10_digits().starts_with('-') {
        let message = "the SDK's own kernels have negative priorities; give the preferred kernel a higher one, such as \
                       `priority = 1`";
        errors.at(number.span(), message);
        return None;
    }
    Some(number)
}

fn strings(value: TokenStream, name: &Ident, errors: &mut Errors) -> Vec<LitStr> {
    let example = "`host_memory(\"perm\")`";
    literals(value, name, example, errors, |input| {
        let message = format!("expected the name of an input or output; write {example}");
        let span = input.span();
        strings::literal(input).map_err(|_| syn::Error::new(span, message))
    })
}

pub(crate) fn types(value: TokenStream, name: &Ident, all: &mut Vec<Types>, errors: &mut Errors) {
    let example = "`types(T = [f32, f64])`";
    for element in list(value, name, example, errors) {
        let parser = |input: ParseStream<'_>| {
            let attribute = Ident::parse_any(input).map_err(|error| {
                syn::Error::new(
                    error.span(),
                    format!("expected an attribute's name; write {example}"),
                )
            })?;
            input.parse::<Token![=]>().map_err(|_| {
                syn::Error::new(attribute.span(), format!("expected a value; write {example}"))
            })?;
            Ok((attribute, input.parse::<TokenStream>()?))
        };
        let Some((attribute, value)) = errors.ok(parser.parse2(element)) else { continue };
        let types = match &*item::flatten(value.clone()) {
            [] => Vec::new(),
            [TokenTree::Group(list)] if list.delimiter() == Delimiter::Bracket => {
                split(list.stream())
            }
            _ => vec![value],
        };
        if types.is_empty() {
            errors.at(attribute.span(), format!("`{attribute}` has no types; write {example}"));
        } else if all.iter().any(|other| other.attribute == attribute) {
            let message =
                format!("`{attribute}` is given twice; name all of its types in one list");
            errors.at(attribute.span(), message);
        } else {
            all.push(Types { attribute, types });
        }
    }
}

#[cfg(test)]
mod tests;

//! The fields of an op: its attributes, and what it computes from them.

use crate::args::literals;
use crate::conditions::split;
use crate::errors::Errors;
use crate::item::flatten;
use crate::strings;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Lit, LitStr, Meta, Token, Type};

/// A field.
pub(super) struct Field {
    pub(super) name: Ident,
    ty: TokenStream,
    /// Whether the type is `String`, whose default may be a literal.
    is_string: bool,
    doc: TokenStream,
    kind: Kind,
}

enum Kind {
    /// An attribute of the op.
    Attribute { default: Option<TokenStream>, minimum: Option<Lit>, allowed: Vec<LitStr> },
    /// What an expression returns, in which the fields before it can be used by name.
    State(TokenStream),
}

/// Reads a field, and removes its helper attributes.
pub(super) fn read(field: &mut syn::Field, errors: &mut Errors) -> Option<Field> {
    let name = field.ident.clone()?;
    let is_helper = |attribute: &syn::Attribute| {
        attribute.path().is_ident("attr") || attribute.path().is_ident("state")
    };
    let (helpers, others) = field.attrs.drain(..).partition::<Vec<_>, _>(is_helper);
    field.attrs = others;
    if let Some(cfg) = field.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
        let message = "TensorFlow has one definition of an op: a field cannot depend on the build; write `#[cfg(...)]` above \
                       `#[op(...)]` of two structs";
        errors.over(cfg, message);
        return None;
    }
    if let [one] = &*helpers
        && one.path().is_ident("attr")
        && !is_attribute_name(&name.unraw().to_string())
    {
        errors.over(
            &name,
            format!(
                "TensorFlow's attributes have ASCII names that begin with a letter; rename `{name}`"
            ),
        );
        return None;
    }
    let kind = match &*helpers {
        [] if is(&field.ty, "PhantomData") => Kind::State(quote!(::core::marker::PhantomData)),
        [] => {
            errors.over(
                &name,
                format!(
                    "`{name}` is neither an attribute nor made of them; write `#[attr]`, `#[attr(default = ...)]` or \
                     `#[state(...)]` above it"
                ),
            );
            return None;
        }
        [one] if one.path().is_ident("state") => match &one.meta {
            Meta::List(list) if !list.tokens.is_empty() => Kind::State(list.tokens.clone()),
            _ => {
                let message = "expected an expression; write `#[state(Regex::new(&pattern)?)]`";
                errors.over(one, message);
                return None;
            }
        },
        [one] => match &one.meta {
            Meta::Path(_) => attribute(TokenStream::new(), errors),
            Meta::List(list) => attribute(list.tokens.clone(), errors),
            Meta::NameValue(_) => {
                errors.over(one, "expected options; write `#[attr(default = ...)]`");
                return None;
            }
        },
        [_, second, ..] => {
            errors.over(second, "a field has one `#[attr]` or one `#[state]`; remove this one");
            return None;
        }
    };
    let (ty, is_string) = (field.ty.to_token_stream(), is(&field.ty, "String"));
    Some(Field { name, ty, is_string, doc: super::doc(&field.attrs), kind })
}

fn is_attribute_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
}

/// Reads the options of `#[attr]`.
fn attribute(tokens: TokenStream, errors: &mut Errors) -> Kind {
    const USAGE: &str = "`default = ...`, `min = 1`, `allowed(\"a\", \"b\")`";
    let (mut default, mut minimum, mut allowed) = (None, None, Vec::new());
    for option in split(tokens) {
        let mut value = flatten(option).into_iter();
        let Some(TokenTree::Ident(name)) = value.next() else {
            errors.at(proc_macro2::Span::call_site(), format!("expected {USAGE}"));
            continue;
        };
        let value: TokenStream = value.collect();
        match &*name.to_string() {
            "default" => {
                let parser = |input: ParseStream<'_>| {
                    input.parse::<Token![=]>()?;
                    // Not `syn::Expr`, which knows no arrays without the feature `full`.
                    match input.is_empty() {
                        true => Err(input.error("expected an expression")),
                        false => input.parse::<TokenStream>(),
                    }
                };
                default = errors.ok(parser.parse2(value));
            }
            "min" => {
                let parser = |input: ParseStream<'_>| {
                    input.parse::<Token![=]>()?;
                    match input.parse::<Lit>()? {
                        number @ (Lit::Int(_) | Lit::Float(_)) => Ok(number),
                        other => Err(syn::Error::new(other.span(), "expected a number")),
                    }
                };
                minimum = errors.ok(parser.parse2(value));
            }
            "allowed" => {
                let example = "`allowed(\"a\", \"b\")`";
                allowed = literals(value, &name, example, errors, strings::literal);
            }
            other => errors.at(name.span(), format!("unknown option `{other}`; expected {USAGE}")),
        }
    }
    Kind::Attribute { default, minimum, allowed }
}

/// Returns whether the last segment of a type's path is this.
fn is(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        _ => false,
    }
}

/// Returns the `min` of an attribute as an expression.
fn limit(minimum: Option<&Lit>, private: &TokenStream) -> TokenStream {
    match minimum {
        Some(Lit::Float(minimum)) => {
            quote!(::core::option::Option::Some(#private::Minimum::Float(#minimum)))
        }
        Some(minimum) => quote!(::core::option::Option::Some(#private::Minimum::Int(#minimum))),
        None => quote!(::core::option::Option::None),
    }
}

impl Field {
    pub(super) const fn is_attribute(&self) -> bool {
        matches!(self.kind, Kind::Attribute { .. })
    }

    /// Returns the specification of an attribute.
    pub(super) fn spec(&self, private: &TokenStream) -> Option<TokenStream> {
        let Kind::Attribute { default, minimum, allowed } = &self.kind else { return None };
        let (ty, doc, name) = (&self.ty, &self.doc, self.text());
        let default = match default {
            None => quote!(::core::option::Option::None),
            Some(default) if self.is_string => {
                quote!(::core::option::Option::Some(::std::string::String::from(#default)))
            }
            Some(default) => quote!(::core::option::Option::Some(#default)),
        };
        let minimum = limit(minimum.as_ref(), private);
        Some(quote! {
            #private::AttributeSpec::new::<#ty>(#name, #doc, #default, #minimum, &[#(#allowed),*])
        })
    }

    /// Returns the expression that reads an attribute of a node.
    pub(super) fn read(&self, private: &TokenStream) -> Option<TokenStream> {
        let Kind::Attribute { minimum, allowed, .. } = &self.kind else { return None };
        let (text, minimum) = (self.text(), limit(minimum.as_ref(), private));
        Some(quote!(#private::read_attribute(__construction, #text, #minimum, &[#(#allowed),*])?))
    }

    /// Returns the parameter for the value of an attribute.
    pub(super) fn parameter(&self) -> Option<TokenStream> {
        let Self { name, ty, .. } = self;
        self.is_attribute().then(|| quote!(#name: #ty))
    }

    /// Returns the statement that makes a state.
    pub(super) fn state(&self) -> Option<TokenStream> {
        let Self { name, ty, .. } = self;
        match &self.kind {
            Kind::Attribute { .. } => None,
            Kind::State(expression) => Some(quote!(let #name: #ty = #expression;)),
        }
    }

    fn text(&self) -> LitStr {
        LitStr::new(&self.name.unraw().to_string(), self.name.span())
    }
}

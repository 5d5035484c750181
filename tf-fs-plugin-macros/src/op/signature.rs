//! The inputs and outputs of an op: `inputs(text: [..s], xs: N * [3, k])`.

use crate::args::list;
use crate::errors::Errors;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{LitInt, LitStr, Token, bracketed};

const EXAMPLE: &str = "`inputs(text: [..s], weights: [n, 3])`";

/// An input or an output.
pub(super) struct Arg {
    pub(super) name: Ident,
    /// The attribute that counts the tensors of a list; empty if it is not given.
    count: String,
    shape: Option<Vec<Dim>>,
}

/// A declared dimension.
enum Dim {
    Fixed(i64),
    Named(String),
    Any,
    Rest(String),
}

impl Arg {
    pub(super) fn spec(&self, private: &TokenStream) -> TokenStream {
        let name = LitStr::new(&self.name.unraw().to_string(), self.name.span());
        let count = &self.count;
        let shape = match &self.shape {
            None => quote!(::core::option::Option::None),
            Some(dims) => {
                let dims = dims.iter().map(|dim| match dim {
                    Dim::Fixed(len) => quote!(#private::Dim::Fixed(#len)),
                    Dim::Named(name) => quote!(#private::Dim::Named(#name)),
                    Dim::Any => quote!(#private::Dim::Any),
                    Dim::Rest(name) => quote!(#private::Dim::Rest(#name)),
                });
                quote!(::core::option::Option::Some(&[#(#dims),*]))
            }
        };
        quote!(#private::ArgSpec { name: #name, count: #count, shape: #shape })
    }
}

/// Reads the arguments in the parentheses after a name.
pub(super) fn args(value: TokenStream, name: &Ident, errors: &mut Errors) -> Vec<Arg> {
    let elements = list(value, name, EXAMPLE, errors);
    elements.into_iter().filter_map(|element| errors.ok(arg.parse2(element))).collect()
}

fn arg(input: ParseStream<'_>) -> syn::Result<Arg> {
    let name = Ident::parse_any(input)
        .map_err(|error| at(error.span(), "expected the name of an argument"))?;
    let text = name.unraw().to_string();
    if !text.starts_with(|first: char| first.is_ascii_lowercase())
        || !text.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
    {
        let message = format!("TensorFlow's arguments have lower-case names; rename `{text}`");
        return Err(syn::Error::new(name.span(), message));
    }
    let mut arg = Arg { name, count: String::new(), shape: None };
    if input.is_empty() {
        return Ok(arg);
    }
    let span = input.span();
    input.parse::<Token![:]>().map_err(|_| at(span, "expected `:` after the name"))?;
    if !input.peek(syn::token::Bracket) {
        let span = input.span();
        let count = Ident::parse_any(input).map_err(|_| {
            at(span, "expected a shape in brackets, or the attribute that counts a list")
        })?;
        arg.count = count.unraw().to_string();
        if input.is_empty() {
            return Ok(arg);
        }
        let span = input.span();
        input.parse::<Token![*]>().map_err(|_| at(span, "expected `*` and a shape"))?;
    }
    let content;
    bracketed!(content in input);
    let dims: Vec<Dim> = content.parse_terminated(dim, Token![,])?.into_iter().collect();
    if dims.iter().filter(|dim| matches!(dim, Dim::Rest(_))).count() > 1 {
        return Err(at(arg.name.span(), "a shape has one `..` at most"));
    }
    if !input.is_empty() {
        return Err(at(input.span(), "expected `,` after the shape"));
    }
    arg.shape = Some(dims);
    Ok(arg)
}

fn at(span: Span, message: &str) -> syn::Error {
    syn::Error::new(span, format!("{message}; write {EXAMPLE}"))
}

fn dim(input: ParseStream<'_>) -> syn::Result<Dim> {
    if input.peek(LitInt) {
        return Ok(Dim::Fixed(input.parse::<LitInt>()?.base10_parse()?));
    }
    if input.parse::<Option<Token![_]>>()?.is_some() {
        return Ok(Dim::Any);
    }
    let is_rest = input.parse::<Option<Token![..]>>()?.is_some();
    let span = input.span();
    let name = Ident::parse_any(input).map_err(|_| {
        at(span, "a dimension is a name, a number, `_`, or a name after `..` for any number of dimensions")
    })?;
    let name = name.unraw().to_string();
    Ok(if is_rest { Dim::Rest(name) } else { Dim::Named(name) })
}

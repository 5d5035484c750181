//! `filesystem_plugins! { ... }`.

use crate::args::{self, Macro};
use crate::errors::Errors;
use crate::export::{self, Served};
use crate::schemes::{self, Schemes};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Token, Type};

const EXAMPLE: &str = "`\"s3\" | \"s3a\" => S3Fs`";

/// Returns the output of `filesystem_plugins!`.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let (entries, options) = at_semicolon(input);
    let options = args::parse(options, Macro::FilesystemPlugins, &mut errors);
    let served = parse_entries(entries, &mut errors);
    let exports = export::expand(&quote!(FilesystemPlugins), &served, &options, &errors);
    errors.before(quote! {
        /// All filesystems that this plugin exports; no value of it exists.
        #[derive(Debug)]
        pub enum FilesystemPlugins {}
        #exports
    })
}

/// Splits the input at the first `;`.
fn at_semicolon(input: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = input.into_iter();
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    let entries = tokens.by_ref().take_while(|token| !is_end(token)).collect();
    (entries, tokens.collect())
}

fn parse_entries(entries: TokenStream, errors: &mut Errors) -> Vec<Served> {
    let mut served = Vec::new();
    if entries.is_empty() {
        errors
            .at(Span::call_site(), format!("which types does this plugin export? write {EXAMPLE}"));
        return served;
    }
    let mut all = Schemes::default();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let literals = parse_schemes(input)?;
            let ty: Type = input.parse()?;
            let schemes = literals.iter().filter_map(|scheme| all.add(scheme, errors));
            served.push(Served { schemes: schemes.collect(), ty: ty.to_token_stream() });
            if !input.is_empty() && input.parse::<Token![,]>().is_err() {
                let message = format!("expected `,`, or `;` before options; write {EXAMPLE}, ...");
                return Err(input.error(message));
            }
        }
        Ok(())
    };
    let result = parser.parse2(entries);
    errors.ok(result);
    served
}

fn parse_schemes(input: ParseStream<'_>) -> syn::Result<Vec<syn::LitStr>> {
    let mut literals = vec![schemes::literal(input, EXAMPLE)?];
    loop {
        if input.parse::<Option<Token![|]>>()?.is_some() {
            literals.push(schemes::literal(input, EXAMPLE)?);
        } else if input.parse::<Option<Token![=>]>>()?.is_some() {
            return Ok(literals);
        } else {
            let span = if input.is_empty() { Span::call_site() } else { input.span() };
            let message = format!("expected `|` or `=>` after a scheme; write {EXAMPLE}");
            return Err(syn::Error::new(span, message));
        }
    }
}

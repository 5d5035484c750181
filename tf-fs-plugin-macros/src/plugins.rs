//! `filesystem_plugins! { ... }`.

use crate::args::{self, Macro, Options};
use crate::errors::Errors;
use crate::export::{self, Served};
use crate::schemes::{self, Schemes};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Token, Type};

const EXAMPLE: &str = "`\"s3\" | \"s3a\" => S3Fs`";

/// The output of `filesystem_plugins!`.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let (entries, options) = at_semicolon(input);
    let options = args::parse(options, Macro::FilesystemPlugins, &mut errors);
    let served = parse_entries(entries, &mut errors);
    let exports = exports(&served, &options, &errors);
    let errors = errors.into_tokens();
    quote!(#errors #exports)
}

fn exports(served: &[Served<TokenStream>], options: &Options, errors: &Errors) -> TokenStream {
    let exports = export::expand(&quote!(FilesystemPlugins), served, options, errors);
    quote! {
        /// All filesystems that this plugin exports; no value of it exists.
        #[derive(Debug)]
        pub enum FilesystemPlugins {}
        #exports
    }
}

/// What stands before and after the first `;`.
fn at_semicolon(input: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = input.into_iter();
    let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
    let entries = tokens.by_ref().take_while(|token| !is_end(token)).collect();
    (entries, tokens.collect())
}

fn parse_entries(entries: TokenStream, errors: &mut Errors) -> Vec<Served<TokenStream>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let mut errors = Errors::default();
        let served = parse_entries(text.parse().unwrap(), &mut errors);
        let served = served.iter().map(|Served { ty, schemes }| {
            let schemes = quote!(#(#schemes)*).to_string();
            format!("{schemes} -> {ty}").replace('"', "")
        });
        (served.collect(), errors.messages())
    }

    #[test]
    fn types_with_their_schemes() {
        let (served, errors) = read("\"s3\" | \"s3a\" => S3<A, B>, \"xx\" => a::X,");
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(served, ["s3 s3a -> S3 < A , B >", "xx -> a :: X"]);
    }

    #[test]
    fn the_form_is_shown_after_a_mistake() {
        for (text, expected) in [
            ("", "which types does this plugin export?"),
            ("A", "a scheme is a string literal"),
            ("\"aa\"", "expected `|` or `=>` after a scheme"),
            ("\"aa\" A", "expected `|` or `=>` after a scheme"),
            ("\"aa\" | => A", "a scheme is a string literal"),
            ("\"aa\" => A \"bb\" => B", "expected `,`, or `;` before options"),
            ("\"aa\" => A, \"aa\" => B", "the scheme \"aa\" is listed twice"),
            ("\"aa\" => A, \"bb-\" => B", "TensorFlow never finds the scheme \"bb-\""),
        ] {
            let (_, errors) = read(text);
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            assert!(errors[0].starts_with(expected), "{text}: {errors:?}");
        }
    }

    #[test]
    fn options_stand_after_the_semicolon() {
        let output = |text: &str| expand(text.parse().unwrap()).to_string().replace(' ', "");
        let all = output("\"aa\" => A, \"bb\" => B");
        assert!(all.contains("pubenumFilesystemPlugins{}"), "{all}");
        assert!(all.contains("Registration::new::<B,__TfFsPluginScheme1>(\"bb\")"), "{all}");
        assert!(all.contains("__private::PluginforFilesystemPlugins{"), "{all}");
        assert!(all.contains("TF_InitKernel"), "{all}");
        let few = output("\"aa\" => A; autoload = false, allow_panic_abort");
        assert!(!few.contains("TF_InitKernel"), "{few}");
        assert!(!few.contains("compile_error"), "{few}");
    }

    #[test]
    fn what_is_right_is_exported_in_spite_of_a_mistake() {
        let output = expand("\"aa\" => A, \"bb-\" => B, \"cc\" C".parse().unwrap());
        let output = output.to_string().replace(' ', "");
        assert_eq!(output.matches("::core::compile_error!{").count(), 2, "{output}");
        assert!(output.contains("Registration::new::<A,"), "{output}");
        assert!(output.contains("enumFilesystemPlugins"), "{output}");
    }
}

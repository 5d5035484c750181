//! Mistakes, collected so that all of them are reported together.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// The mistakes found so far, each with the `cfg` predicate under which it is one.
#[derive(Default)]
pub(crate) struct Errors(Vec<(syn::Error, Option<TokenStream>)>);

impl Errors {
    /// Adds a mistake at one token, or at the macro's name.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.conditional(span, None, message);
    }

    /// Adds a mistake that spans all of `tokens`.
    pub(crate) fn over(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.0.push((syn::Error::new_spanned(tokens, message), None));
    }

    /// Adds a mistake that only counts where the predicate `condition` holds.
    pub(crate) fn conditional(
        &mut self,
        span: Span,
        condition: Option<TokenStream>,
        message: impl std::fmt::Display,
    ) {
        self.0.push((syn::Error::new(span, message), condition));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value, or adds the mistake and returns `None`.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push((error, None))).ok()
    }

    /// Returns items that make the compiler report the mistakes, followed by `output`.
    pub(crate) fn before(self, output: TokenStream) -> TokenStream {
        let mistakes = self.0.into_iter().map(|(error, condition)| {
            let errors = error.into_iter().map(|error| error.to_compile_error());
            match condition {
                None => quote!(#(#errors)*),
                Some(condition) => quote!(#(#[cfg(#condition)] #errors)*),
            }
        });
        mistakes.chain([output]).collect()
    }

    #[cfg(test)]
    pub(crate) fn messages(&self) -> Vec<String> {
        self.0.iter().map(|(error, _)| error.to_string()).collect()
    }
}

//! Mistakes, collected so that all of them are reported together.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Vec<Mistake>);

struct Mistake {
    error: syn::Error,
    /// The `cfg` predicate under which it is one.
    condition: Option<TokenStream>,
}

impl Errors {
    /// A mistake that one token, or the macro's name, represents.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// A mistake that reaches over all of `tokens`.
    pub(crate) fn over(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// A mistake only where the predicate `condition` holds.
    pub(crate) fn conditional(
        &mut self,
        span: Span,
        condition: Option<TokenStream>,
        message: impl std::fmt::Display,
    ) {
        let error = syn::Error::new(span, message);
        self.0.push(Mistake { error, condition });
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        let condition = None;
        self.0.push(Mistake { error, condition });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value, or `None` and one more mistake.
    pub(crate) fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Items that make the compiler report the mistakes, and `output` behind them.
    pub(crate) fn before(self, output: TokenStream) -> TokenStream {
        let mistakes = self.0.into_iter().map(|Mistake { error, condition }| {
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
        let texts = self.0.iter().map(|mistake| mistake.error.to_string());
        texts.collect()
    }
}

//! String literals, as macros of the author write them.

use crate::conditions::split;
use crate::item::flatten;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser as _};
use syn::{Lit, LitStr, Path, Token};

/// Reads a string literal: plain, a fragment of `macro_rules!`, in parentheses, or from `concat!` or `stringify!`, which
/// the compiler expands after this.
pub(crate) fn literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    if input.peek(LitStr) {
        return input.parse();
    }
    let ahead = input.fork();
    if let Ok(group) = ahead.parse::<Group>() {
        let is_transparent = matches!(group.delimiter(), Delimiter::None | Delimiter::Parenthesis);
        if is_transparent {
            input.parse::<Group>()?;
            return literal.parse2(group.stream());
        }
    }
    let path = input.call(Path::parse_mod_style)?;
    input.parse::<Token![!]>()?;
    let arguments: Group = input.parse()?;
    let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    let text = match &*name {
        "concat" => split(arguments.stream()).into_iter().map(displayed).collect(),
        "stringify" => Ok(stringified(arguments.stream())),
        _ => {
            Err(syn::Error::new_spanned(&path, "only `concat!` and `stringify!` are expanded here"))
        }
    };
    Ok(LitStr::new(&text?, arguments.span()))
}

/// Returns an argument of `concat!` as that displays it.
fn displayed(argument: TokenStream) -> syn::Result<String> {
    if let Ok(text) = literal.parse2(argument.clone()) {
        return Ok(text.value());
    }
    Ok(match syn::parse2(flatten(argument).into_iter().collect())? {
        Lit::Int(number) => number.base10_digits().to_owned(),
        Lit::Float(number) => number.base10_digits().to_owned(),
        Lit::Bool(value) => value.value.to_string(),
        Lit::Char(value) => value.value().to_string(),
        other => return Err(syn::Error::new_spanned(other, "`concat!` displays other literals")),
    })
}

fn stringified(tokens: TokenStream) -> String {
    match &*flatten(tokens.clone()) {
        [TokenTree::Ident(name)] => name.to_string(),
        _ => tokens.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn what_macros_write_is_a_literal() {
        let fragment = |tokens| Group::new(Delimiter::None, tokens);
        let name = fragment(quote!("Relu"));
        let twice = fragment(quote!(#name));
        for tokens in [
            quote!("Relu"),
            quote!(#name),
            quote!(#twice),
            quote!(("Relu")),
            quote!(concat!("Re", "lu")),
            quote!(::core::concat!("Re", stringify!(lu),)),
            quote!(stringify!(Relu)),
            quote!(std::concat!(concat!("R", 'e'), #twice)),
        ] {
            let found = literal.parse2(tokens.clone()).map(|found| found.value());
            let found = found.unwrap_or_else(|error| panic!("{tokens}: {error}"));
            let expected = if tokens.to_string().starts_with("std") { "ReRelu" } else { "Relu" };
            assert_eq!(found, expected, "{tokens}");
        }
        let found = literal.parse2(quote!(concat!("V", 2, true, 1.5))).map(|found| found.value());
        assert_eq!(found.unwrap(), "V2true1.5");
        for tokens in [quote!(relu), quote!(), quote!(format!("a")), quote!(1), quote!(["a"])] {
            assert!(literal.parse2(tokens.clone()).is_err(), "{tokens}");
        }
    }
}

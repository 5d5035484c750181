//! Under which `cfg` predicate an item exists.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::quote;

/// Returns the predicate of an item with these attributes, each given as the tokens between its
/// brackets; `None` if the item always exists.
///
/// An attribute macro sees the items before the compiler removes those whose `cfg` does not hold.
pub(crate) fn of<'a>(attributes: impl IntoIterator<Item = &'a TokenStream>) -> Option<TokenStream> {
    combine(attributes.into_iter().filter_map(of_attribute), |all| quote!(all(#(#all),*)))
}

/// Returns a predicate that holds if any of these holds; an item without a predicate always exists.
pub(crate) fn any<'a>(
    predicates: impl IntoIterator<Item = &'a Option<TokenStream>>,
) -> Option<TokenStream> {
    let predicates: Option<Vec<_>> = predicates.into_iter().cloned().collect();
    combine(predicates?, |any| quote!(any(#(#any),*)))
}

/// Returns `#[cfg(...)]`, or nothing for an item that always exists.
pub(crate) fn attribute(condition: Option<&TokenStream>) -> Option<TokenStream> {
    condition.map(|condition| quote!(#[cfg(#condition)]))
}

fn combine(
    predicates: impl IntoIterator<Item = TokenStream>,
    with: impl FnOnce(&[TokenStream]) -> TokenStream,
) -> Option<TokenStream> {
    let predicates: Vec<_> = predicates.into_iter().collect();
    match predicates.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(with(several)),
    }
}

fn of_attribute(attribute: &TokenStream) -> Option<TokenStream> {
    let mut tokens = attribute.clone().into_iter();
    let (TokenTree::Ident(name), TokenTree::Group(arguments)) = (tokens.next()?, tokens.next()?)
    else {
        return None;
    };
    if arguments.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    if name == "cfg" {
        // A comma may follow the predicate.
        return split(arguments.stream()).into_iter().next();
    }
    if name == "cfg_attr" {
        let mut parts = split(arguments.stream()).into_iter();
        let outer = parts.next()?;
        let inner = of(&parts.collect::<Vec<_>>())?;
        return Some(quote!(any(not(#outer), #inner)));
    }
    None
}

/// Splits tokens at their commas.
pub(crate) fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(TokenStream::new()),
            token => parts.last_mut().expect("never empty").extend([token]),
        }
    }
    if parts.last().is_some_and(TokenStream::is_empty) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(attributes: &[&str]) -> Option<String> {
        let attributes: Vec<TokenStream> =
            attributes.iter().map(|text| text.parse().unwrap()).collect();
        of(&attributes).map(|tokens| tokens.to_string().replace(' ', ""))
    }

    #[test]
    fn other_attributes_are_no_condition() {
        let others = ["inline", "doc = \"cfg(x)\"", "rustfmt::skip", "unsafe(no_mangle)", "cfg"];
        assert_eq!(condition(&others), None);
    }

    #[test]
    fn one_and_several_cfgs() {
        assert_eq!(condition(&["cfg(unix)"]).unwrap(), "unix");
        assert_eq!(condition(&["cfg(unix,)"]).unwrap(), "unix");
        assert_eq!(
            condition(&["cfg(unix)", "inline", "cfg(feature = \"x\")"]).unwrap(),
            "all(unix,feature=\"x\")"
        );
    }

    #[test]
    fn only_the_cfgs_inside_of_cfg_attr_count() {
        assert_eq!(condition(&["cfg_attr(unix, inline, doc = \"\")"]), None);
        assert_eq!(condition(&["cfg_attr(unix, inline, cfg(a))"]).unwrap(), "any(not(unix),a)");
        assert_eq!(
            condition(&["cfg_attr(any(a, b), cfg_attr(c, cfg(d)), cfg(e))"]).unwrap(),
            "any(not(any(a,b)),all(any(not(c),d),e))"
        );
    }

    #[test]
    fn what_is_always_there_makes_any_of_them_so() {
        let unix = Some(quote!(unix));
        assert!(any([&unix, &None]).is_none());
        assert_eq!(any([&unix]).unwrap().to_string(), "unix");
        let both = any([&unix, &Some(quote!(windows))]).unwrap();
        assert_eq!(both.to_string().replace(' ', ""), "any(unix,windows)");
    }
}

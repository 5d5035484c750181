//! `impl Filesystem for T`: the missing associated types, and the table of operations.

use crate::args::Macro;
use crate::conditions;
use crate::errors::Errors;
use crate::item::{FilesystemImpl, Member, names_macro};
use crate::operations::{TYPES, flag, needed_type};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Path, Token, Type};

/// Returns the `impl` with the missing associated types, and its `OperationTable`.
pub(crate) fn expand(
    item: &mut FilesystemImpl,
    of: Macro,
    krate: &Path,
    errors: &mut Errors,
) -> TokenStream {
    remove_second_attribute(item, of, errors);
    for invocation in &item.macros {
        errors.over(
            invocation,
            "macros cannot be used as items in `impl Filesystem`, because the attribute reads the \
             names of the methods; write the methods out",
        );
    }
    let types = missing_types(item, krate, errors);
    let implementation = item.with_items(types);
    let provided = item.methods.iter().filter_map(|method| {
        let flag = flag(&method.name)?;
        let condition = conditions::attribute(method.condition.as_ref());
        Some(quote!(#condition let ops = ops.union(#krate::Operations::#flag);))
    });
    let self_type = &item.header.self_type;
    let (generics, _, where_clause) = item.header.generics.split_for_impl();
    quote! {
        #implementation

        #[automatically_derived]
        impl #generics #krate::OperationTable for #self_type #where_clause {
            const PROVIDED: #krate::Operations = {
                let ops = #krate::Operations::NONE;
                #(#provided)*
                ops
            };
        }
    }
}

/// Removes and reports a second attribute: two would give two tables.
fn remove_second_attribute(item: &mut FilesystemImpl, of: Macro, errors: &mut Errors) {
    const CONTAINED: &str = "one attribute is enough, and `#[filesystem_plugin]` contains \
                             `#[filesystem]`; remove this `#[filesystem]`";
    item.header.attributes.retain(|attribute| {
        let is_plugin = names_macro(attribute, "filesystem_plugin");
        if names_macro(attribute, "filesystem") {
            errors.over(attribute, CONTAINED);
        } else if is_plugin && of == Macro::Filesystem {
            errors.at(Span::call_site(), CONTAINED);
        } else if is_plugin {
            errors.over(
                attribute,
                "one attribute exports all schemes; write them into the first, such as \
                 `schemes(\"s3\", \"s3a\")`, and remove this one",
            );
        } else {
            return true;
        }
        false
    });
}

fn missing_types(item: &FilesystemImpl, krate: &Path, errors: &mut Errors) -> TokenStream {
    let mut injected = TokenStream::new();
    for name in TYPES {
        let ident = format_ident!("{name}");
        let given: Vec<_> =
            item.types.iter().filter(|ty| ty.name == name).map(|ty| ty.condition.clone()).collect();
        if given.iter().any(Option::is_none) {
            continue;
        }
        let mut value = quote!(#krate::Unsupported);
        if given.is_empty() {
            let users: Vec<_> = item
                .methods
                .iter()
                .filter(|method| needed_type(&method.name) == Some(name))
                .collect();
            if let Some(first) = users.first()
                && item.macros.is_empty()
            {
                let condition = conditions::any(users.iter().map(|user| &user.condition));
                let message = format!(
                    "`{}` is implemented, so `type {name} = ...;` must be given too",
                    first.name
                );
                errors.conditional(first.name.span(), condition, message);
                value = users.iter().find_map(|user| mentioned_type(user, &ident)).unwrap_or(value);
            }
        }
        // Where a type is given under a condition, it is missing where that does not hold.
        let otherwise = conditions::any(&given).map(|given| quote!(#[cfg(not(#given))]));
        injected.extend(quote!(#otherwise type #ident = #value;));
    }
    injected
}

/// Returns the type that the signature has where `Self::Name` is expected. Only used after a
/// mistake, to keep the compiler from reporting a second one.
fn mentioned_type(method: &Member, name: &Ident) -> Option<TokenStream> {
    let container = if name == "Transaction" { "Arc" } else { "Result" };
    let ty = first_argument(method.signature.clone(), container)?;
    let unclear = ["Self", "impl", "_"];
    let is_clear = ty.clone().into_iter().all(|token| match token {
        TokenTree::Ident(ident) => !unclear.iter().any(|unclear| ident == unclear),
        _ => true,
    });
    (is_clear && !ty.is_empty()).then_some(ty)
}

/// Returns `A` of the first `container<A, ...>` in `tokens`.
fn first_argument(tokens: TokenStream, container: &str) -> Option<TokenStream> {
    let find = |input: ParseStream<'_>| {
        let mut found = None;
        while found.is_none() && !input.is_empty() {
            found = match input.parse()? {
                TokenTree::Group(group) => first_argument(group.stream(), container),
                TokenTree::Ident(ident) if ident == container && input.peek(Token![<]) => {
                    input.parse::<Token![<]>()?;
                    Some(input.parse::<Type>()?.into_token_stream())
                }
                _ => None,
            };
        }
        // The parser requires that all tokens are read.
        input.parse::<TokenStream>()?;
        Ok(found)
    };
    find.parse2(tokens).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item;

    #[test]
    fn what_a_signature_mentions_keeps_a_second_error_away() {
        for (method, expected) in [
            (
                "new_random_access_file() -> tf::Result<Box<dyn Fn() -> u8>>",
                "typeReader=Box<dynFn()->u8>;",
            ),
            ("new_random_access_file() -> Result<Self::Reader>", "typeReader=k::Unsupported;"),
            ("new_random_access_file() -> Result<impl X>", "typeReader=k::Unsupported;"),
            ("new_random_access_file()", "typeReader=k::Unsupported;"),
            ("start_transaction() -> Result<Arc<Tx>>", "typeTransaction=Tx;"),
            (
                "add_to_transaction(&self, _: Uri<'_>, t: &Arc<Tx>) -> Result<()>",
                "typeTransaction=Tx;",
            ),
        ] {
            let text = format!("impl Filesystem for T {{ fn {method} {{}} }}");
            let mut errors = Errors::default();
            let item = item::parse(text.parse().unwrap(), "Filesystem", &mut errors);
            let Ok(mut item) = item else { panic!("{:?}", errors.messages()) };
            let krate = syn::parse_quote!(k);
            let output = expand(&mut item, Macro::Filesystem, &krate, &mut errors).to_string();
            assert_eq!(errors.messages().len(), 1, "{:?}", errors.messages());
            assert!(output.replace(' ', "").contains(expected), "{method}: {output}");
        }
    }
}

//! `#[kernel]` on an `impl<P: Bound> Kernel for Op<P>`: a kernel of a library, for the platforms of plugins.

use super::{Options, Registrations, parse, private, registrations};
use crate::errors::Errors;
use crate::item::{FilesystemImpl, names_macro};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Meta;
use syn::spanned::Spanned as _;

/// Returns the `impl`, and one of `LibraryKernel` with the registrations of all its `#[kernel]`: this attribute and those
/// below it, since the trait can be implemented only once.
pub(super) fn implement(
    item: &mut FilesystemImpl,
    first: Options,
    platform: &Ident,
    errors: &mut Errors,
) -> TokenStream {
    let attributes = std::mem::take(&mut item.header.attributes);
    let (others, attributes) =
        attributes.into_iter().partition(|attribute| names_macro(attribute, "kernel"));
    item.header.attributes = attributes;
    let others: Vec<_> = others;
    let mut all = vec![first];
    all.extend(others.into_iter().map(|attribute| {
        let place = attribute.path().span();
        let tokens = match attribute.meta {
            Meta::List(list) => list.tokens,
            _ => TokenStream::new(),
        };
        parse(tokens, place, errors)
    }));
    let mut output = item.with_items(TokenStream::new());
    let private = private(&all[0]);
    let mut lists = Vec::new();
    for options in &all {
        let found = registrations(&item.header, options, Some(platform), errors);
        let Some(Registrations { alias, all }) = found else { return output };
        lists.push(quote!({ #alias #(list.push(#all);)* }));
    }
    let (generics, _, where_clause) = item.header.generics.split_for_impl();
    let self_type = &item.header.self_type;
    // Lints of the names of parameters, and conditions, hold for both.
    let kept = ["allow", "cfg"];
    let attributes = item.header.attributes.iter();
    let attributes = attributes.filter(|one| kept.iter().any(|name| one.path().is_ident(name)));
    output.extend(quote! {
        #(#attributes)*
        impl #generics #private::LibraryKernel for #self_type #where_clause {
            fn add_to(list: &mut #private::KernelList) {
                #(#lists)*
            }
        }
    });
    output
}

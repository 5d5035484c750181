//! `#[filesystem_plugin]` and `#[filesystem]`.

use crate::args::{self, Macro};
use crate::errors::Errors;
use crate::export::{self, Served};
use crate::item::{self, text};
use crate::table;
use proc_macro2::TokenStream;
use quote::ToTokens as _;

/// Returns the output of `#[filesystem_plugin]` or of `#[filesystem]`.
pub(crate) fn expand(options: TokenStream, item: TokenStream, of: Macro) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::parse(options, of, &mut errors);
    let output = match item::parse(item, "Filesystem", &mut errors) {
        Err(other) => other,
        Ok(mut item) => {
            let mut output = table::expand(&mut item, of, &options.krate, &mut errors);
            let generics = &item.header.generics;
            let ty = &item.header.self_type;
            if of == Macro::FilesystemPlugin && !generics.params.is_empty() {
                let scheme = options.schemes.first();
                errors.over(
                    &generics.params,
                    format!(
                        "a plugin exports a concrete type, and `{ty}` is generic; write \
                         `#[filesystem]` here and `filesystem_plugins! {{ {scheme} => {name}<...> }}`",
                        ty = text(ty),
                        scheme = scheme.map_or_else(|| "\"mem\"".to_owned(), text),
                        name = text(ty).split('<').next().unwrap_or_default(),
                    ),
                );
            } else if of == Macro::FilesystemPlugin {
                let ty = ty.to_token_stream();
                let served = [Served { ty: ty.clone(), schemes: options.schemes.clone() }];
                output.extend(export::expand(&ty, &served, &options, &errors));
            }
            output
        }
    };
    errors.before(output)
}

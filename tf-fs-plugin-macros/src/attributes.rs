//! `#[filesystem_plugin]` and `#[filesystem]`.

use crate::args::{self, Macro};
use crate::errors::Errors;
use crate::export::{self, Served};
use crate::item::{self, Item, text};
use crate::table;
use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

/// The output of `#[filesystem]`.
pub(crate) fn filesystem(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, Macro::Filesystem)
}

/// The output of `#[filesystem_plugin]`.
pub(crate) fn filesystem_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, Macro::FilesystemPlugin)
}

fn expand(options: TokenStream, item: TokenStream, of: Macro) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::parse(options, of, &mut errors);
    let output = match item::parse(item, "Filesystem", &mut errors) {
        Item::Other(item) => item,
        Item::Filesystem(mut item) => {
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
    let errors = errors.into_tokens();
    quote!(#errors #output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: &str = "impl Filesystem for T { fn stat() { } }";

    fn plugin(options: &str, item: &str) -> String {
        let output = filesystem_plugin(options.parse().unwrap(), item.parse().unwrap());
        output.to_string().replace(' ', "")
    }

    #[test]
    fn filesystem_exports_nothing() {
        let output = filesystem(TokenStream::new(), ITEM.parse().unwrap()).to_string();
        assert!(output.contains("OperationTable for T"), "{output}");
        assert!(!output.contains("__private"), "{output}");
    }

    #[test]
    fn filesystem_plugin_exports_too() {
        let output = plugin("scheme = \"mem\"", ITEM);
        assert!(output.contains("OperationTableforT"), "{output}");
        assert!(output.contains("__private::PluginforT{"), "{output}");
        assert!(output.contains("TF_InitPlugin"), "{output}");
    }

    #[test]
    fn after_a_mistake_everything_is_still_there() {
        let output = plugin("scheme = \"my-fs\", x", ITEM);
        assert_eq!(output.matches("::core::compile_error!{").count(), 2, "{output}");
        assert!(output.contains("implFilesystemforT{fnstat(){}typeReader="), "{output}");
        assert!(output.contains("OperationTableforT"), "{output}");
        assert!(output.contains("__private::PluginforT{"), "{output}");
    }

    #[test]
    fn a_generic_type_is_not_exported() {
        let output = plugin("scheme = \"mem\"", "impl<T> Filesystem for a::S<T> {}");
        let fix = r#"filesystem_plugins!{\"mem\"=>a::S<...>}"#;
        assert!(output.contains(fix), "{output}");
        assert!(output.contains("impl<T>::tf_fs_plugin::OperationTablefora::S<T>"), "{output}");
        assert!(!output.contains("__private"), "{output}");
    }
}

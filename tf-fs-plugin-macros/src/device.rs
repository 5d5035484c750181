//! `#[device_plugin]`.

use crate::args::{self, Macro, Options};
use crate::errors::Errors;
use crate::export::panic_abort;
use crate::item::{self, Item, text};
use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

/// The output of `#[device_plugin]`.
pub(crate) fn device_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::parse(options, Macro::DevicePlugin, &mut errors);
    let output = match item::parse(item, "Platform", &mut errors) {
        Item::Other(item) => item,
        Item::Filesystem(item) => {
            let mut output = item.with_items(TokenStream::new());
            let generics = &item.header.generics;
            let ty = &item.header.self_type;
            if generics.params.is_empty() {
                output.extend(export(&ty.to_token_stream(), &options));
            } else {
                errors.over(
                    &generics.params,
                    format!(
                        "a plugin exports a concrete type, and `{}` is generic; wrap it in a type without \
                         parameters",
                        text(ty)
                    ),
                );
            }
            output
        }
    };
    let errors = errors.into_tokens();
    quote!(#errors #output)
}

fn export(platform: &TokenStream, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let panic_abort = panic_abort(options);
    quote! {
        #panic_abort

        // A second platform in the crate is a second macro of this name, which `cargo check` refuses.
        #[allow(non_local_definitions)] // in a function, such as the `main` of an example
        #[doc(hidden)]
        #[macro_export]
        macro_rules! a_crate_exports_only_one_platform {
            () => {};
        }

        const _: () = #private::check::<#platform>();

        const _: () = {
            static __SE_PLUGIN_LOADS: #private::Loads = #private::Loads::new();
            #[unsafe(no_mangle)]
            unsafe extern "C" fn SE_InitPlugin(
                params: *mut #private::SE_PlatformRegistrationParams,
                status: *mut #private::TF_Status,
            ) {
                // SAFETY: the host hands over its own structs, each with its size, and a status.
                unsafe { #private::init_plugin::<#platform>(params, status, &__SE_PLUGIN_LOADS) }
            }
            // The type in the header.
            const _: #private::SE_InitPluginFn = SE_InitPlugin;
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(options: &str, item: &str) -> String {
        let output = device_plugin(options.parse().unwrap(), item.parse().unwrap());
        output.to_string().replace(' ', "")
    }

    const ITEM: &str = "impl Platform for T { const NAME: &'static str = \"X\"; }";

    #[test]
    fn the_entry_is_exported_and_the_names_are_checked() {
        let output = output("", ITEM);
        assert!(output.starts_with("implPlatformforT{constNAME:&'staticstr=\"X\";}"), "{output}");
        assert!(output.contains("::se_plugin::__private::check::<T>()"), "{output}");
        assert!(output.contains("fnSE_InitPlugin("), "{output}");
        assert!(output.contains("init_plugin::<T>(params,status,&__SE_PLUGIN_LOADS)"), "{output}");
        assert!(output.contains("compile_error!"), "{output}");
        assert_eq!(output.matches("#[unsafe(no_mangle)]").count(), 1);
    }

    #[test]
    fn options_are_heeded() {
        let output = output("allow_panic_abort, crate = a::b", ITEM);
        assert!(!output.contains("compile_error"), "{output}");
        assert!(output.contains("a::b::__private::init_plugin"), "{output}");
        assert!(!output.contains("::se_plugin"), "{output}");
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (options, item, expected) in [
            ("", "struct T;", "expected`implPlatformfor...`,foundastruct"),
            ("", "impl T {}", "foundaninherent`impl`"),
            ("", "impl platform for T {}", "write`Platform`"),
            ("", "impl<X> Platform for T<X> {}", "`T<X>`isgeneric"),
            ("name = \"X\"", ITEM, "constNAME:&'staticstr"),
            ("autoload = false", ITEM, "unknownoption`autoload`"),
        ] {
            let output = output(options, item);
            assert!(output.contains(expected), "{options} {item}: {output}");
        }
    }
}

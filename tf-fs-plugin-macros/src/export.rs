//! What the shared library exports: `TF_InitPlugin` and `TF_InitKernel`.

use crate::args::Options;
use crate::conditions;
use crate::schemes::Scheme;
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

/// A filesystem type with the schemes that it serves.
pub(crate) struct Served<T> {
    pub(crate) ty: T,
    pub(crate) schemes: Vec<Scheme>,
}

/// The exports of a crate; `plugin` is the type that stands for them in tests.
pub(crate) fn expand<T: ToTokens>(
    plugin: &T,
    served: &[Served<T>],
    options: &Options,
    condition: Option<&TokenStream>,
) -> TokenStream {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let mut registrations = Vec::new();
    let mut items = TokenStream::new();
    for Served { ty, schemes } in served {
        for scheme in schemes {
            // Not names that an author's type could have: theirs is resolved in here too.
            let marker = format_ident!("__TfFsPluginScheme{}", registrations.len());
            let registration = format_ident!("__TF_FS_PLUGIN_REGISTRATION_{}", registrations.len());
            items.extend(quote! {
                struct #marker;
                static #registration: #private::Registration =
                    #private::Registration::new::<#ty, #marker>(#scheme);
                impl #private::Scheme for #marker {
                    fn registration() -> &'static #private::Registration {
                        &#registration
                    }
                }
            });
            registrations.push(registration);
        }
    }
    let count = registrations.len();
    let kernel = options.autoload.then(|| {
        quote! {
            #[unsafe(no_mangle)]
            extern "C" fn TF_InitKernel() {
                #private::autoload(TF_InitKernel as *const ::core::ffi::c_void);
            }
        }
    });
    let condition = conditions::attribute(condition);
    let panic_abort = panic_abort(options, condition.as_ref());
    quote! {
        #panic_abort

        // A second one in the crate is a second macro of this name, which the compiler refuses where
        // two functions of the same symbol would only be refused by a build.
        #condition
        #[doc(hidden)]
        #[macro_export]
        macro_rules! a_crate_exports_only_one_plugin__list_all_types_in_one_filesystem_plugins {
            () => {};
        }

        #condition
        const _: () = {
            #items
            static __TF_FS_PLUGIN_REGISTRATIONS: [&#private::Registration; #count] =
                [#(&#registrations),*];
            impl #private::Plugin for #plugin {
                fn registrations() -> &'static [&'static #private::Registration] {
                    &__TF_FS_PLUGIN_REGISTRATIONS
                }
            }
            #[unsafe(no_mangle)]
            unsafe extern "C" fn TF_InitPlugin(info: *mut #private::TF_FilesystemPluginInfo) {
                // SAFETY: the host hands over null or a zeroed struct.
                unsafe { #private::init_plugin(info, &__TF_FS_PLUGIN_REGISTRATIONS) }
            }
            // The type in the header.
            const _: #private::TF_InitPluginFn = TF_InitPlugin;
            #kernel
        };
    }
}

fn panic_abort(options: &Options, condition: Option<&TokenStream>) -> Option<TokenStream> {
    (!options.allow_panic_abort).then(|| {
        quote! {
            #condition
            #[cfg(not(panic = "unwind"))]
            ::core::compile_error!(
                "with `panic = \"abort\"` a panic in this plugin would kill the Python process \
                 instead of becoming an error; remove `panic = \"abort\"` from the profile in \
                 Cargo.toml, or write `allow_panic_abort`"
            );
        }
    })
}

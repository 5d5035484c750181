//! What the shared library exports: `TF_InitPlugin` and `TF_InitKernel`.

use crate::args::Options;
use crate::errors::Errors;
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

/// A filesystem type with the schemes that it serves.
pub(crate) struct Served {
    pub(crate) ty: TokenStream,
    pub(crate) schemes: Vec<Literal>,
}

/// Returns the exports of a crate; `plugin` is the type that represents them in tests.
///
/// A second plugin in the crate is an error only once there are no other `errors`.
pub(crate) fn expand(
    plugin: &TokenStream,
    served: &[Served],
    options: &Options,
    errors: &Errors,
) -> TokenStream {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let mut registrations = Vec::new();
    let mut items = TokenStream::new();
    for Served { ty, schemes } in served {
        for scheme in schemes {
            // Names that an author's type cannot have, because that type is resolved in here, too.
            let marker = format_ident!("__TfFsPluginScheme{}", registrations.len());
            let registration = format_ident!("__TF_FS_PLUGIN_REGISTRATION_{}", registrations.len());
            // The same tokens twice, so that the compiler reports a wrong type only once.
            let registered = quote!(#private::Registration::new::<#ty, #marker>(#scheme));
            let panics = quote!(::core::cfg!(panic = "abort"));
            items.extend(note(&private, &quote!(#scheme), &quote!(#registered.note(#panics))));
            items.extend(quote! {
                struct #marker;
                static #registration: #private::Registration = #registered;
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
                #private::autoload();
            }
        }
    });
    let panic_abort = panic_abort(options);
    let only_one = errors.is_empty().then(|| {
        only_one(&quote!(a_crate_exports_only_one_plugin__list_all_types_in_one_filesystem_plugins))
    });
    quote! {
        #panic_abort

        #only_one

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
                // SAFETY: the host passes null or a zeroed struct.
                unsafe { #private::init_plugin(info, &__TF_FS_PLUGIN_REGISTRATIONS) }
            }
            // The type in the header.
            const _: #private::TF_InitPluginFn = TF_InitPlugin;
            #kernel
        };
    }
}

/// Returns an item that a crate can have only once: a second is a second macro of this name, which
/// `cargo check` refuses in any module. Two functions with one symbol are refused by a build only.
pub(crate) fn only_one(name: &TokenStream) -> TokenStream {
    // The module is for code in a function, such as the `main` of an example: there the compiler warns of a macro of
    // the crate, and an `#[allow]` would be an error in a crate that forbids the lint.
    quote! {
        const _: () = {
            mod __only_one {
                #[doc(hidden)]
                #[macro_export]
                macro_rules! #name {
                    () => {};
                }
            }
        };
    }
}

/// Returns a note in the library about a scheme or a device type, the `text`, with the value `note`.
pub(crate) fn note(private: &TokenStream, text: &TokenStream, note: &TokenStream) -> TokenStream {
    quote! {
        const _: () = {
            // A linker keeps notes that nobody refers to. Systems without ELF have none.
            #[cfg(all(unix, not(target_vendor = "apple")))]
            #[used]
            #[unsafe(link_section = ".note.tf_plugin")]
            static __TF_PLUGIN_NOTE: #private::elf_note::ElfNote<{ #private::elf_note::size(#text) }> = #note;
        };
    }
}

pub(crate) fn panic_abort(options: &Options) -> Option<TokenStream> {
    (!options.allow_panic_abort).then(|| {
        quote! {
                #[cfg(not(panic = "unwind"))]
            ::core::compile_error!(
                "with `panic = \"abort\"` a panic in this plugin would kill the Python process \
                 instead of becoming an error; remove `panic = \"abort\"` from the profile in \
                 Cargo.toml, or write `allow_panic_abort`"
            );
        }
    })
}

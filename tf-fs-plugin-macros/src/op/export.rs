//! `op_plugin!`.

use crate::args::{self, Macro};
use crate::errors::Errors;
use crate::export::{only_one, panic_abort};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the output of `op_plugin!`.
pub(crate) fn op_plugin(options: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::parse(options, Macro::OpPlugin, &mut errors);
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let panic_abort = panic_abort(&options);
    let only_one = only_one(&quote!(a_crate_has_one_op_plugin));
    let kernel = options.autoload.then(|| {
        quote! {
            #[unsafe(no_mangle)]
            extern "C" fn TF_InitKernel() {
                #private::register_ops();
            }
            // The type in the header.
            const _: #private::TF_InitKernelFn = TF_InitKernel;
        }
    });
    errors.before(quote! {
        #panic_abort

        #only_one

        const _: () = {
            #kernel
            // For `cargo tf-plugin` and for Python: JSON, which lasts as long as the library.
            #[unsafe(no_mangle)]
            extern "C" fn tf_plugin_ops() -> *const ::core::ffi::c_char {
                #private::description()
            }
        };
    })
}

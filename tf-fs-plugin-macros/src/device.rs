//! `#[device_plugin]`.

use crate::args::{self, Macro, Options};
use crate::errors::Errors;
use crate::export::{note, only_one, panic_abort};
use crate::item::{self, text};
use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

/// Returns the output of `#[device_plugin]`.
pub(crate) fn device_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = args::parse(options, Macro::DevicePlugin, &mut errors);
    let output = match item::parse(item, "Platform", &mut errors) {
        Err(other) => other,
        Ok(item) => {
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
    errors.before(output)
}

/// Returns the exports of the library. A plugin without a graph pass or profiler exports
/// `TF_InitGraph` and `TF_InitProfiler`, too: the SDK has its own pass.
fn export(platform: &TokenStream, options: &Options) -> TokenStream {
    let krate = &options.krate;
    let private = quote!(#krate::__private);
    let panic_abort = panic_abort(options);
    let kind = quote!(<#platform as #krate::Platform>::TYPE);
    let made = quote!(#private::elf_note::ElfNote::device(#kind, ::core::cfg!(panic = "abort")));
    let note = note(&private, &kind, &made);
    let only_one = only_one(&quote!(a_crate_exports_only_one_platform));
    // A function for each, so that the compiler's errors are about the author's expression alone.
    let constructor = |name: TokenStream, bound: TokenStream, expression: &Option<TokenStream>| {
        let Some(expression) = expression else {
            return (TokenStream::new(), quote!(::core::option::Option::None));
        };
        let function = quote! {
            fn #name() -> ::std::boxed::Box<dyn #bound> {
                ::std::boxed::Box::new(#expression)
            }
        };
        (function, quote!(::core::option::Option::Some(#name)))
    };
    let (make_graph_pass, graph_pass) = constructor(
        quote!(__se_plugin_graph_pass),
        quote!(#krate::graph::GraphPass),
        &options.graph_pass,
    );
    let (make_profiler, profiler) = constructor(
        quote!(__se_plugin_profiler),
        quote!(#krate::profiler::Profiler),
        &options.profiler,
    );
    quote! {
        #panic_abort

        #only_one

        const _: () = #private::check::<#platform>();

        const _: () = {
            #make_graph_pass
            #make_profiler
            static __SE_PLUGIN_PLATFORM: #private::PlatformExport = #private::PlatformExport::new();
            static __SE_PLUGIN_GRAPH: #private::GraphExport = #private::GraphExport::new(#graph_pass);
            static __SE_PLUGIN_PROFILER: #private::ProfilerExport =
                #private::ProfilerExport::new(#profiler);
            impl #private::Exported for #platform {
                fn graph() -> &'static #private::GraphExport {
                    &__SE_PLUGIN_GRAPH
                }
                fn profiler() -> &'static #private::ProfilerExport {
                    &__SE_PLUGIN_PROFILER
                }
            }
            #[unsafe(no_mangle)]
            unsafe extern "C" fn SE_InitPlugin(
                params: *mut #private::SE_PlatformRegistrationParams,
                status: *mut #private::TF_Status,
            ) {
                // SAFETY: the host passes its own structs, each with its size, and a status.
                unsafe { #private::init_plugin::<#platform>(params, status, &__SE_PLUGIN_PLATFORM) }
            }
            #[unsafe(no_mangle)]
            unsafe extern "C" fn TF_InitGraph(
                params: *mut #private::TP_OptimizerRegistrationParams,
                status: *mut #private::TF_Status,
            ) {
                // SAFETY: the host passes its own structs, each with its size, and a status.
                unsafe { #private::init_graph::<#platform>(params, status, ::core::option::Option::None) }
            }
            #[unsafe(no_mangle)]
            unsafe extern "C" fn TF_InitProfiler(
                params: *mut #private::TF_ProfilerRegistrationParams,
                status: *mut #private::TF_Status,
            ) {
                // SAFETY: the host passes its own struct, with its size, and a status.
                unsafe { #private::init_profiler::<#platform>(params, status, ::core::option::Option::None) }
            }
            // The types in the headers.
            const _: #private::SE_InitPluginFn = SE_InitPlugin;
            const _: #private::TF_InitGraphFn = TF_InitGraph;
            const _: #private::TF_InitProfilerFn = TF_InitProfiler;
            // For Python: the type that a setting may have chosen, until the library is unloaded; null before TensorFlow
            // has loaded it.
            #[unsafe(no_mangle)]
            extern "C" fn tf_plugin_device_type() -> *const ::core::ffi::c_char {
                __SE_PLUGIN_PLATFORM
                    .device_type()
                    .map_or(::core::ptr::null(), ::core::ffi::CStr::as_ptr)
            }
        };

        #note
    }
}

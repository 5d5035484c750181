//! The attributes of `tf-fs-plugin`, which re-exports them.

use proc_macro::TokenStream;

mod args;
mod attributes;
mod conditions;
mod errors;
mod export;
mod item;
mod operations;
mod plugins;
mod schemes;
mod table;

/// x
#[proc_macro_attribute]
pub fn filesystem_plugin(options: TokenStream, item: TokenStream) -> TokenStream {
    attributes::filesystem_plugin(options.into(), item.into()).into()
}

/// x
#[proc_macro_attribute]
pub fn filesystem(options: TokenStream, item: TokenStream) -> TokenStream {
    attributes::filesystem(options.into(), item.into()).into()
}

/// x
#[proc_macro]
pub fn filesystem_plugins(input: TokenStream) -> TokenStream {
    plugins::expand(input.into()).into()
}

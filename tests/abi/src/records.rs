//! The declarations of `records!` and `opaque!` of `tf-fs-sys`, as the compiler and the build script see them.

use syn::parse::{ParseStream, Parser as _};
use syn::{
    Attribute, Field, File, ForeignItemFn, Ident, Item, ItemMacro, Token, Visibility, braced,
    parse_quote,
};

/// The items with those that `records!` and `opaque!` declare in their place.
pub(crate) fn expanded(items: Vec<Item>) -> syn::Result<Vec<Item>> {
    let mut all = Vec::new();
    for item in items {
        match item {
            Item::Macro(item) if invokes(&item, "records") => {
                all.extend(records.parse2(item.mac.tokens)?);
            }
            Item::Macro(item) if invokes(&item, "opaque") => {
                let types: File = item.mac.parse_body()?;
                all.extend(
                    types.items.iter().map(|item| -> Item { parse_quote!(#[repr(C)] #item) }),
                );
            }
            item => all.push(item),
        }
    }
    Ok(all)
}

/// Whether a macro of this name is invoked, by whatever path.
pub(crate) fn invokes(item: &ItemMacro, name: &str) -> bool {
    item.mac.path.segments.iter().any(|segment| segment.ident == name)
}

fn records(input: ParseStream<'_>) -> syn::Result<Vec<Item>> {
    let mut items = Vec::new();
    while !input.is_empty() {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility: Visibility = input.parse()?;
        input.parse::<Token![struct]>()?;
        let name: Ident = input.parse()?;
        let mut fields: Vec<Field> = Vec::new();
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let size: Ident = input.parse()?;
            fields.push(parse_quote!(pub struct_size: usize));
            if input.parse::<Option<Token![,]>>()?.is_some() {
                let reserved: Ident = input.parse()?;
                fields.push(parse_quote!(pub #reserved: *mut c_void));
            }
            items.push(parse_quote!(pub const #size: usize = #name::STRUCT_SIZE;));
        }
        let content;
        braced!(content in input);
        while !content.is_empty() {
            content.call(Attribute::parse_outer)?;
            if content.peek(Token![fn]) {
                let ForeignItemFn { sig, .. } = content.parse()?;
                let (name, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
                let function =
                    parse_quote!(pub #name: Option<unsafe extern "C" fn(#inputs) #output>);
                fields.push(function);
            } else {
                fields.push(content.call(Field::parse_named)?);
                content.parse::<Token![,]>()?;
            }
        }
        items.push(parse_quote! {
            #(#attributes)*
            #[repr(C)]
            #visibility struct #name { #(#fields),* }
        });
    }
    Ok(items)
}

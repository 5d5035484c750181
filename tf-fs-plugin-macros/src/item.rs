//! Reads `impl Filesystem for T { ... }` without parsing the bodies of its methods.
//!
//! Editors call the attributes on half-typed code. So the header is parsed, and of each item only
//! as much as is needed to know its name; everything else reaches the compiler as it was written.
//!
//! An `impl` for a type that borrows is reported and left out. Code that needs it then reports that it is missing.

use crate::conditions;
use crate::errors::Errors;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Generics, Path, Token, Type};

/// An `impl` of the trait `Filesystem`.
pub(crate) struct FilesystemImpl {
    pub(crate) header: Header,
    pub(crate) methods: Vec<Member>,
    pub(crate) types: Vec<Member>,
    /// Macros between the methods, which hide the names of what they expand to.
    pub(crate) macros: Vec<TokenStream>,
    body: Group,
}

/// Everything before the braces.
pub(crate) struct Header {
    pub(crate) attributes: Vec<Attribute>,
    qualifiers: TokenStream,
    pub(crate) generics: Generics,
    pub(crate) negative: Option<Token![!]>,
    pub(crate) trait_path: Path,
    pub(crate) self_type: Type,
}

/// A method or an associated type that the `impl` contains.
pub(crate) struct Member {
    pub(crate) name: Ident,
    /// What follows the name.
    pub(crate) signature: TokenStream,
    /// The `cfg` predicate.
    pub(crate) condition: Option<TokenStream>,
}

/// Reads an `impl` of the trait `wanted`. If the attribute is on another item, that is reported,
/// and the error is what to emit in its place.
pub(crate) fn parse(
    item: TokenStream,
    wanted: &str,
    errors: &mut Errors,
) -> Result<FilesystemImpl, TokenStream> {
    let mut tokens = flatten(item.clone());
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => Some(body),
        last => {
            tokens.extend(last);
            None
        }
    };
    let (span, kind) = item_kind(&tokens);
    let (Some(body), "an `impl`") = (body, kind) else {
        errors.at(
            span,
            format!(
                "expected `impl {wanted} for ...`, found {kind}; put the attribute on the `impl` \
                 of the trait"
            ),
        );
        return Err(item);
    };
    let header = |input: ParseStream<'_>| read_header(input, wanted);
    let Some(header) = errors.ok(header.parse2(tokens.into_iter().collect())) else {
        return Err(item);
    };
    let last = header.trait_path.segments.last();
    let last = last.map(|last| last.ident.to_string()).unwrap_or_default();
    if last != wanted {
        let is_slip = last.eq_ignore_ascii_case(wanted);
        let fix = if is_slip {
            format!("write `{wanted}`")
        } else {
            "put the attribute on the `impl` of that trait, under its own name".to_owned()
        };
        errors.over(
            &header.trait_path,
            format!(
                "expected `impl {wanted} for {}`, found `impl {} for ...`; {fix}",
                text(&header.self_type),
                text(&header.trait_path),
            ),
        );
        return Err(item);
    }
    if let Some(negative) = header.negative {
        errors.at(
            negative.span(),
            format!(
                "`impl !{wanted}` says that the type does not implement `{wanted}`; remove the `!`"
            ),
        );
        return Err(TokenStream::new());
    }
    if let Some(span) = borrows(&header) {
        let what = match wanted {
            "Filesystem" => "a filesystem",
            "Platform" => "a platform",
            _ => "a kernel",
        };
        errors.at(
            span,
            format!(
                "{what} lives as long as the process, so `{}` cannot borrow; own the data, such as by \
                 an `Arc`",
                text(&header.self_type)
            ),
        );
        // With the `impl` the compiler would report the lifetimes in many places. Without it, later
        // uses report a missing `impl`.
        return Err(TokenStream::new());
    }
    let (methods, types, macros) = Default::default();
    let mut read = FilesystemImpl { header, methods, types, macros, body };
    read.read_items();
    Ok(read)
}

impl FilesystemImpl {
    /// Returns the `impl` as it was written, with `items` added to its end.
    pub(crate) fn with_items(&self, items: TokenStream) -> TokenStream {
        let Header { attributes, qualifiers, generics, trait_path, self_type, .. } = &self.header;
        let (generics, _, where_clause) = generics.split_for_impl();
        let mut content = self.body.stream();
        content.extend(items);
        let mut body = Group::new(Delimiter::Brace, content);
        body.set_span(self.body.span());
        quote! {
            #(#attributes)*
            #qualifiers #generics #trait_path for #self_type #where_clause
            #body
        }
    }

    fn read_items(&mut self) {
        let mut tokens = flatten(self.body.stream()).into_iter().peekable();
        loop {
            let attributes = take_attributes(&mut tokens);
            let mut head = Vec::new();
            while let Some(token) = tokens.next() {
                let ends = match &token {
                    TokenTree::Punct(punct) => punct.as_char() == ';',
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        // Braces inside of generics, as in `Bytes<{ N }>`, do not end an item.
                        let next = tokens.peek();
                        !next.is_some_and(|next| is_punct(next, '>') || is_punct(next, ','))
                            && !matches!(kind(&head), Kind::Type(_) | Kind::Const)
                    }
                    _ => false,
                };
                if ends {
                    break;
                }
                head.push(token);
            }
            if head.is_empty() && tokens.peek().is_none() {
                break;
            }
            let member = |keyword: usize| match &head[keyword + 1..] {
                [TokenTree::Ident(name), signature @ ..] => Some(Member {
                    name: name.clone(),
                    signature: signature.iter().cloned().collect(),
                    condition: conditions::of(&attributes),
                }),
                _ => None,
            };
            match kind(&head) {
                Kind::Method(at) => self.methods.extend(member(at)),
                Kind::Type(at) => self.types.extend(member(at)),
                Kind::Macro(at) => self.macros.push(head[..=at].iter().cloned().collect()),
                Kind::Const | Kind::Unknown => {}
            }
        }
    }
}

/// What an item is, with the position of the keyword or of a macro's `!`.
enum Kind {
    Method(usize),
    Type(usize),
    Macro(usize),
    Const,
    Unknown,
}

/// Returns the kind of the item that begins with `head`.
fn kind(head: &[TokenTree]) -> Kind {
    for (index, token) in head.iter().enumerate() {
        if is_punct(token, '!') {
            return Kind::Macro(index);
        }
        if is_ident(token, "fn") {
            return Kind::Method(index);
        }
        if is_ident(token, "type") {
            return Kind::Type(index);
        }
        if is_ident(token, "const") && is_constant(head, index) {
            return Kind::Const;
        }
    }
    Kind::Unknown
}

/// Takes the next attributes; returns what is between the brackets of each.
fn take_attributes(
    tokens: &mut std::iter::Peekable<std::vec::IntoIter<TokenTree>>,
) -> Vec<TokenStream> {
    let mut attributes = Vec::new();
    while tokens.next_if(|token| is_punct(token, '#')).is_some() {
        // An inner attribute belongs to the `impl`.
        let inner = tokens.next_if(|token| is_punct(token, '!')).is_some();
        if let Some(TokenTree::Group(group)) =
            tokens.next_if(|token| matches!(token, TokenTree::Group(_)))
            && !inner
        {
            attributes.push(group.stream());
        }
    }
    attributes
}

/// Removes the invisible groups in which fragments of a `macro_rules!` macro arrive.
pub(crate) fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let flat = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flatten(group.stream()),
        token => vec![token],
    });
    flat.collect()
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, text: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == text)
}

/// Reads everything before the braces.
fn read_header(input: ParseStream<'_>, wanted: &str) -> syn::Result<Header> {
    let attributes = input.call(Attribute::parse_outer)?;
    let mut qualifiers = TokenStream::new();
    while !input.peek(Token![impl]) {
        input.parse::<TokenTree>()?.to_tokens(&mut qualifiers);
    }
    input.parse::<Token![impl]>()?.to_tokens(&mut qualifiers);
    let mut generics: Generics = input.parse()?;
    let negative: Option<Token![!]> = input.parse()?;
    let first: Type = input.parse()?;
    if !input.peek(Token![for]) {
        let message = format!(
            "expected `impl {wanted} for {0}`, found an inherent `impl`; put the attribute on \
             `impl {wanted} for {0}`",
            text(&first),
        );
        return Err(syn::Error::new_spanned(first, message));
    }
    input.parse::<Token![for]>()?;
    let self_type = input.parse()?;
    generics.where_clause = input.parse()?;
    let trait_path = match first {
        Type::Path(path) if path.qself.is_none() => path.path,
        other => return Err(syn::Error::new(other.span(), "expected a trait")),
    };
    Ok(Header { attributes, qualifiers, generics, negative, trait_path, self_type })
}

/// Returns the place of an item's keyword, and what the item is.
fn item_kind(tokens: &[TokenTree]) -> (Span, &'static str) {
    const KINDS: &str = "impl an `impl`,fn a function,struct a struct,enum an enum,union a union,trait a trait,\
        mod a module,type a type alias,use a `use`,static a static,const a constant";
    for (index, token) in tokens.iter().enumerate() {
        if is_ident(token, "const") && !is_constant(tokens, index) {
            continue;
        }
        let mut kinds = KINDS.split(',').filter_map(|kind| kind.split_once(' '));
        if let Some((_, kind)) = kinds.find(|(keyword, _)| is_ident(token, keyword)) {
            return (token.span(), kind);
        }
    }
    (Span::call_site(), "something else")
}

/// Whether the `const` at `index` declares a constant, not a property of a function.
fn is_constant(tokens: &[TokenTree], index: usize) -> bool {
    let of_function = ["fn", "async", "unsafe", "extern"];
    let next = tokens.get(index + 1);
    next.is_some_and(|next| !of_function.iter().any(|keyword| is_ident(next, keyword)))
}

/// Returns where the `impl` has a lifetime parameter, or the type `'_`.
fn borrows(header: &Header) -> Option<Span> {
    let named = header.generics.lifetimes().next().map(|named| named.lifetime.span());
    let self_type = &header.self_type;
    named.or_else(|| has_elided(self_type.to_token_stream()).then(|| self_type.span()))
}

/// Whether one of the lifetimes is `'_`.
fn has_elided(tokens: TokenStream) -> bool {
    let mut after_quote = false;
    tokens.into_iter().any(|token| {
        let is_lifetime = std::mem::replace(&mut after_quote, is_punct(&token, '\''));
        match token {
            TokenTree::Group(group) => has_elided(group.stream()),
            token => is_lifetime && is_ident(&token, "_"),
        }
    })
}

/// Returns whether an attribute is this crate's `name`, by any path.
pub(crate) fn names_macro(attribute: &Attribute, name: &str) -> bool {
    let path = attribute.path();
    path.segments.last().is_some_and(|last| last.ident == name)
}

/// Returns tokens as source text for a message.
pub(crate) fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for spaced in [" :: ", ":: ", " < ", " <", "< ", " >", " ,", "& "] {
        text = text.replace(spaced, spaced.trim());
    }
    text
}

#[cfg(test)]
mod tests;

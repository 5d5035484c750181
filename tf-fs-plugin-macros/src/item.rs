//! Reads `impl Filesystem for T { ... }` without parsing the bodies of its methods.
//!
//! Editors call the attributes on half-typed code. So the header is parsed, and of each item only as
//! much as is needed to know its name; whatever else is there reaches the compiler as it was written.

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
    pub(crate) methods: Vec<Method>,
    pub(crate) types: Vec<AssociatedType>,
    /// Macros between the methods, which hide the names of what they expand to.
    pub(crate) macros: Vec<TokenStream>,
    body: Group,
}

/// All that stands before the braces.
pub(crate) struct Header {
    pub(crate) attributes: Vec<Attribute>,
    qualifiers: TokenStream,
    pub(crate) generics: Generics,
    pub(crate) negative: Option<Token![!]>,
    pub(crate) trait_path: Path,
    pub(crate) self_type: Type,
}

/// A method that the `impl` contains.
pub(crate) struct Method {
    pub(crate) name: Ident,
    /// From the name to the body.
    pub(crate) signature: TokenStream,
    /// The `cfg` predicate.
    pub(crate) condition: Option<TokenStream>,
}

/// An associated type that the `impl` contains.
pub(crate) struct AssociatedType {
    pub(crate) name: Ident,
    /// The `cfg` predicate.
    pub(crate) condition: Option<TokenStream>,
}

/// Reads an `impl` of the trait `wanted`. If an attribute stands on something else, that is reported; the answer is what to
/// emit in its place.
pub(crate) fn parse(
    item: TokenStream,
    wanted: &str,
    errors: &mut Errors,
) -> Result<FilesystemImpl, TokenStream> {
    let mut tokens = Vec::new();
    flatten(item.clone(), &mut tokens);
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
    let mut header = match errors.ok(read_header.parse2(tokens.into_iter().collect())) {
        Some(Ok(header)) => header,
        Some(Err(self_type)) => {
            errors.over(
                &self_type,
                format!(
                    "expected `impl {wanted} for {0}`, found an inherent `impl`; put the attribute \
                     on `impl {wanted} for {0}`",
                    text(&self_type),
                ),
            );
            return Err(item);
        }
        None => return Err(item),
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
    let body = own_what_is_borrowed(&mut header, body, wanted, errors);
    let (methods, types, macros) = Default::default();
    let mut read = FilesystemImpl { header, methods, types, macros, body };
    read.read_items();
    Ok(read)
}

impl FilesystemImpl {
    /// The `impl` as it was written, with `items` added to its end.
    pub(crate) fn with_items(&self, items: TokenStream) -> TokenStream {
        let Header { attributes, qualifiers, generics, trait_path, self_type, .. } = &self.header;
        let (generics, _, where_clause) = generics.split_for_impl();
        let mut content = self.body.stream();
        content.extend(items);
        let body = with_content(&self.body, content);
        quote! {
            #(#attributes)*
            #qualifiers #generics #trait_path for #self_type #where_clause
            #body
        }
    }

    fn read_items(&mut self) {
        let mut tokens = Vec::new();
        flatten(self.body.stream(), &mut tokens);
        let mut tokens = tokens.into_iter().peekable();
        loop {
            let attributes = take_attributes(&mut tokens);
            let mut head = Vec::new();
            while let Some(token) = tokens.next() {
                let ends = match &token {
                    TokenTree::Punct(punct) => punct.as_char() == ';',
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        // Braces inside of generics, `Bytes<{ N }>`, go on.
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
            let condition = conditions::of(&attributes);
            match kind(&head) {
                Kind::Method(at) => {
                    if let Some(TokenTree::Ident(name)) = head.get(at + 1) {
                        self.methods.push(Method {
                            name: name.clone(),
                            signature: head[at + 2..].iter().cloned().collect(),
                            condition,
                        });
                    }
                }
                Kind::Type(at) => {
                    if let Some(TokenTree::Ident(name)) = head.get(at + 1) {
                        let name = name.clone();
                        self.types.push(AssociatedType { name, condition });
                    }
                }
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

/// Kind of the item that begins with `head`.
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

/// What stands between the brackets of the next attributes.
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

/// Undoes the invisible groups in which fragments of a `macro_rules!` macro arrive.
pub(crate) fn flatten(tokens: TokenStream, into: &mut Vec<TokenTree>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                flatten(group.stream(), into);
            }
            token => into.push(token),
        }
    }
}

/// A group with another content, in the same place.
pub(crate) fn with_content(group: &Group, content: TokenStream) -> Group {
    let mut changed = Group::new(group.delimiter(), content);
    changed.set_span(group.span());
    changed
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, text: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == text)
}

/// Reads what stands before the braces; of an inherent `impl` its type.
fn read_header(input: ParseStream<'_>) -> syn::Result<Result<Header, Box<Type>>> {
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
        input.parse::<TokenStream>()?;
        return Ok(Err(Box::new(first)));
    }
    input.parse::<Token![for]>()?;
    let self_type = input.parse()?;
    generics.where_clause = input.parse()?;
    let trait_path = match first {
        Type::Path(path) if path.qself.is_none() => path.path,
        other => return Err(syn::Error::new(other.span(), "expected a trait")),
    };
    Ok(Ok(Header { attributes, qualifiers, generics, negative, trait_path, self_type }))
}

/// What an item is, and its keyword.
fn item_kind(tokens: &[TokenTree]) -> (Span, &'static str) {
    const KINDS: [(&str, &str); 11] = [
        ("impl", "an `impl`"),
        ("fn", "a function"),
        ("struct", "a struct"),
        ("enum", "an enum"),
        ("union", "a union"),
        ("trait", "a trait"),
        ("mod", "a module"),
        ("type", "a type alias"),
        ("use", "a `use`"),
        ("static", "a static"),
        ("const", "a constant"),
    ];
    for (index, token) in tokens.iter().enumerate() {
        if is_ident(token, "const") && !is_constant(tokens, index) {
            continue;
        }
        if let Some((_, kind)) = KINDS.iter().find(|(keyword, _)| is_ident(token, keyword)) {
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

/// Reports lifetimes of the `impl`, and puts `'static` in their place, so that they are the only
/// error: the compiler's own are many and hard to read.
fn own_what_is_borrowed(
    header: &mut Header,
    body: Group,
    wanted: &str,
    errors: &mut Errors,
) -> Group {
    let self_type = header.self_type.to_token_stream();
    let mut lifetimes: Vec<_> =
        header.generics.lifetimes().map(|one| one.lifetime.clone()).collect();
    if replace_lifetimes(self_type.clone(), &|name| name == "_").to_string()
        != self_type.to_string()
    {
        lifetimes.push(syn::Lifetime::new("'_", self_type.span()));
    }
    let Some(first) = lifetimes.first() else { return body };
    let what = match wanted {
        "Filesystem" => "a filesystem",
        "Platform" => "a platform",
        _ => "a kernel",
    };
    errors.at(
        first.span(),
        format!(
            "{what} lives as long as the process, so `{}` cannot borrow; own the data, such \
             as by an `Arc`",
            text(&self_type)
        ),
    );
    let is_static = |name: &Ident| lifetimes.iter().any(|lifetime| lifetime.ident == *name);
    header.generics.params = std::mem::take(&mut header.generics.params)
        .into_iter()
        .filter(|param| !matches!(param, syn::GenericParam::Lifetime(_)))
        .collect();
    if header.generics.params.is_empty() {
        header.generics.lt_token = None;
        header.generics.gt_token = None;
    }
    if let Ok(ty) = syn::parse2(replace_lifetimes(self_type, &is_static)) {
        header.self_type = ty;
    }
    // `'_` in a signature is another one.
    let is_static = |name: &Ident| name != "_" && is_static(name);
    with_content(&body, replace_lifetimes(body.stream(), &is_static))
}

/// `tokens` with `'static` in place of the lifetimes that `is_static` picks.
fn replace_lifetimes(tokens: TokenStream, is_static: &dyn Fn(&Ident) -> bool) -> TokenStream {
    let mut after_quote = false;
    let replace = |token| {
        let is_lifetime = after_quote;
        after_quote = is_punct(&token, '\'');
        match token {
            TokenTree::Ident(name) if is_lifetime && is_static(&name) => {
                Ident::new("static", name.span()).into()
            }
            TokenTree::Group(group) => {
                let stream = replace_lifetimes(group.stream(), is_static);
                with_content(&group, stream).into()
            }
            token => token,
        }
    };
    tokens.into_iter().map(replace).collect()
}

/// Whether an attribute is one of this crate's, whatever path leads to it.
pub(crate) fn names_macro(attribute: &Attribute, name: &str) -> bool {
    let path = attribute.path();
    path.segments.last().is_some_and(|last| last.ident == name)
}

/// Source text for a message.
pub(crate) fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

#[cfg(test)]
mod tests;

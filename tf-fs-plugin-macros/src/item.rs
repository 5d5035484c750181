//! Reads `impl Filesystem for T { ... }` without parsing the bodies of its methods.
//!
//! Editors call the attributes on half-typed code. So the header is parsed, and of each item only as
//! much as is needed to know its name; whatever else is there reaches the compiler as it was written.

use crate::conditions;
use crate::errors::Errors;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Attribute, Generics, Meta, Path, Token, Type};

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

/// What an attribute stands on.
pub(crate) enum Item {
    Filesystem(Box<FilesystemImpl>),
    /// Something else, which was reported, and what to emit in its place.
    Other(TokenStream),
}

/// Reads what an attribute stands on.
pub(crate) fn parse(item: TokenStream, krate: &Path, errors: &mut Errors) -> Item {
    let mut tokens: Vec<_> = item.clone().into_iter().collect();
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        last => {
            tokens.extend(last);
            report_wrong_item(tokens, errors);
            return Item::Other(item);
        }
    };
    let is_impl = tokens.iter().any(|token| is_ident(token, "impl"));
    let header = match syn::parse2::<AnyHeader>(tokens.iter().cloned().collect()) {
        _ if !is_impl => {
            report_wrong_item(tokens, errors);
            return Item::Other(item);
        }
        Ok(header) => header,
        Err(error) => {
            errors.push(error);
            return Item::Other(item);
        }
    };
    let mut header = match header {
        AnyHeader::Trait(header) => header,
        AnyHeader::Inherent(self_type) => {
            errors.over(
                &self_type,
                format!(
                    "expected `impl Filesystem for {0}`, found an inherent `impl`; put the attribute \
                     on `impl Filesystem for {0}`",
                    text(&self_type),
                ),
            );
            return Item::Other(item);
        }
    };
    let last = header.trait_path.segments.last().map(|segment| segment.ident.clone());
    if last.as_ref().is_none_or(|last| last != "Filesystem") {
        errors.over(
            &header.trait_path,
            format!(
                "expected `impl Filesystem for {}`, found `impl {} for ...`; this attribute is for \
                 the trait `Filesystem` only, under its own name",
                text(&header.self_type),
                text(&header.trait_path),
            ),
        );
        if !last.is_some_and(|last| last.to_string().eq_ignore_ascii_case("filesystem")) {
            return Item::Other(item);
        }
        // A slip: go on with what was meant, so that it is the only error.
        header.trait_path = syn::parse_quote!(#krate::Filesystem);
    }
    if let Some(negative) = header.negative {
        errors.at(
            negative.span(),
            "`impl !Filesystem` says that the type is no filesystem; remove the `!`",
        );
        return Item::Other(TokenStream::new());
    }
    let mut read = FilesystemImpl {
        header: *header,
        methods: Vec::new(),
        types: Vec::new(),
        macros: Vec::new(),
        body,
    };
    read.read_items();
    Item::Filesystem(Box::new(read))
}

impl FilesystemImpl {
    /// The `cfg` predicate of the `impl` itself.
    pub(crate) fn condition(&self) -> Option<TokenStream> {
        let attributes: Vec<_> = self
            .header
            .attributes
            .iter()
            .map(|attribute| attribute.meta.to_token_stream())
            .collect();
        conditions::of(&attributes)
    }

    /// The `impl` as it was written, with `items` added to its end.
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
        let is_named = |next: &TokenTree| {
            let TokenTree::Ident(next) = next else { return false };
            !["fn", "async", "unsafe", "extern"].iter().any(|keyword| next == keyword)
        };
        if is_ident(token, "const") && head.get(index + 1).is_some_and(is_named) {
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
fn flatten(tokens: TokenStream, into: &mut Vec<TokenTree>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                flatten(group.stream(), into);
            }
            token => into.push(token),
        }
    }
}

fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == text)
}

fn is_punct(token: &TokenTree, text: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == text)
}

enum AnyHeader {
    Trait(Box<Header>),
    Inherent(Type),
}

impl Parse for AnyHeader {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
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
            return Ok(Self::Inherent(first));
        }
        input.parse::<Token![for]>()?;
        let self_type = input.parse()?;
        generics.where_clause = input.parse()?;
        let trait_path = match ungroup(first) {
            Type::Path(path) if path.qself.is_none() => path.path,
            other => return Err(syn::Error::new(other.span(), "expected a trait")),
        };
        Ok(Self::Trait(Box::new(Header {
            attributes,
            qualifiers,
            generics,
            negative,
            trait_path,
            self_type,
        })))
    }
}

fn ungroup(mut ty: Type) -> Type {
    while let Type::Group(group) = ty {
        ty = *group.elem;
    }
    ty
}

fn report_wrong_item(tokens: Vec<TokenTree>, errors: &mut Errors) {
    const KINDS: [(&str, &str); 10] = [
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
    let mut tokens = tokens.into_iter().peekable();
    take_attributes_of_any(&mut tokens);
    let found = tokens.find_map(|token| {
        let (_, name) = KINDS.iter().find(|(keyword, _)| is_ident(&token, keyword))?;
        Some((token.span(), *name))
    });
    let (span, found) = found.unwrap_or((Span::call_site(), "something else"));
    errors.at(
        span,
        format!(
            "expected `impl Filesystem for ...`, found {found}; put the attribute on the `impl` of \
             the trait"
        ),
    );
}

fn take_attributes_of_any(tokens: &mut std::iter::Peekable<std::vec::IntoIter<TokenTree>>) {
    let _ = take_attributes(tokens);
}

/// Whether an attribute is one of this crate's, whatever path leads to it.
pub(crate) fn names_macro(attribute: &Attribute, name: &str) -> bool {
    let path = match &attribute.meta {
        Meta::Path(path) => path,
        Meta::List(list) => &list.path,
        Meta::NameValue(pair) => &pair.path,
    };
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

//! The options of the macros.

use crate::conditions::split;
use crate::errors::Errors;
use crate::item::flatten;
use crate::schemes::{self, Schemes};
use proc_macro2::{Delimiter, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{LitBool, LitStr, Path, Token};

/// Which macro the options belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Macro {
    /// `#[filesystem_plugin]`
    FilesystemPlugin,
    /// `#[filesystem]`
    Filesystem,
    /// `filesystem_plugins!`
    FilesystemPlugins,
    /// `#[device_plugin]`
    DevicePlugin,
    /// `#[kernel]`
    Kernel,
    /// `#[op]`
    Op,
    /// `op_plugin!`
    OpPlugin,
}

/// The options of all macros except `#[kernel]` and `#[op]`.
pub(crate) struct Options {
    /// Valid and without duplicates.
    pub(crate) schemes: Vec<Literal>,
    /// Whether `TF_InitKernel` is exported.
    pub(crate) autoload: bool,
    /// Whether the crate may be built with `panic = "abort"`.
    pub(crate) allow_panic_abort: bool,
    /// The expression that makes the graph pass.
    pub(crate) graph_pass: Option<TokenStream>,
    /// The expression that makes the profiler.
    pub(crate) profiler: Option<TokenStream>,
    /// The path of the SDK.
    pub(crate) krate: Path,
}

const SCHEME: &str = "`scheme = \"mem\"`";
const SCHEMES: &str = "`schemes(\"s3\", \"s3a\")`";

impl Macro {
    fn has(self, option: &str) -> bool {
        let mut usages = self.usage().split('`').skip(1).step_by(2);
        usages.any(|usage| usage.split([' ', '(']).next() == Some(option))
    }

    /// Returns the options in backticks, as they are written.
    fn usage(self) -> &'static str {
        match self {
            Self::FilesystemPlugin => {
                "one of `scheme = \"...\"`, `schemes(\"...\", \"...\")`, `autoload = false`, \
                 `allow_panic_abort`, `crate = path`"
            }
            Self::Filesystem => "`crate = path` or nothing",
            Self::FilesystemPlugins | Self::OpPlugin => {
                "one of `autoload = false`, `allow_panic_abort`, `crate = path`"
            }
            Self::DevicePlugin => {
                "`graph_pass = MyPass`, `profiler = &TIMELINE`, `allow_panic_abort`, `crate = path` or \
                 nothing"
            }
            Self::Kernel => {
                "one of `op = \"...\"`, `types(T = [f32, f64])`, `host_memory(\"...\")`, `label = \"...\"`, \
                 `priority = 1`, `variables`, `variants`, `crate = path`"
            }
            Self::Op => {
                "one of `name = \"...\"`, `inputs(...)`, `outputs(...)`, `types(T = [f32, f64])`, `stateful`, \
                 `gradient = \"...\"`, `crate = path`"
            }
        }
    }

    /// Returns the name of the SDK that the output refers to.
    fn sdk(self) -> &'static str {
        match self {
            Self::DevicePlugin | Self::Kernel => "se-plugin",
            Self::Op | Self::OpPlugin => "tf-op-plugin",
            _ => "tf-fs-plugin",
        }
    }

    /// Returns the path of the SDK, unless the option `crate` sets another.
    pub(crate) fn default_crate(self) -> Path {
        let name = format_ident!("{}", self.sdk().replace('-', "_"));
        syn::parse_quote!(::#name)
    }
}

/// Lets `read` read the value of each option, and continues after a mistake. Returns the names of
/// the options; `None` if a mistake may have hidden an option: do not report missing ones then.
pub(crate) fn each(
    tokens: TokenStream,
    of: Macro,
    errors: &mut Errors,
    mut read: impl FnMut(&Ident, &str, TokenStream, &mut Errors),
) -> Option<Vec<String>> {
    let mut seen: Vec<String> = Vec::new();
    let mut is_clear = true;
    for tokens in split(tokens) {
        // `$option:meta` of a `macro_rules!` macro arrives in an invisible group, whose commas separate nothing.
        let mut value = flatten(tokens.clone()).into_iter();
        let name = match value.next() {
            Some(TokenTree::Ident(name)) => name,
            Some(TokenTree::Literal(_)) if of == Macro::FilesystemPlugin => {
                is_clear = false;
                let message =
                    format!("expected an option, found a literal; write `scheme = {tokens}`");
                errors.over(&tokens, message);
                continue;
            }
            first => {
                is_clear = false;
                let span = first.map_or_else(Span::call_site, |first| first.span());
                errors.at(span, format!("expected an option: {}", of.usage()));
                continue;
            }
        };
        let option = name.unraw().to_string();
        if !of.has(&option) {
            is_clear = false;
            errors.at(name.span(), unknown(&option, of));
        } else if let Some(message) = repeated(&option, &seen) {
            errors.at(name.span(), message);
        } else {
            read(&name, &option, value.collect(), errors);
            seen.push(option);
        }
    }
    is_clear.then_some(seen)
}

/// Reads the options of all macros except `#[kernel]` and `#[op]`.
pub(crate) fn parse(tokens: TokenStream, of: Macro, errors: &mut Errors) -> Options {
    let mut options = Options {
        schemes: Vec::new(),
        autoload: true,
        allow_panic_abort: false,
        graph_pass: None,
        profiler: None,
        krate: of.default_crate(),
    };
    let mut schemes = Schemes::default();
    let given = each(tokens, of, errors, |name, option, value, errors| match option {
        "scheme" => {
            let parser = |input: ParseStream<'_>| parse_scheme(input, name);
            let literal = errors.ok(parser.parse2(value));
            options.schemes.extend(literal.and_then(|literal| schemes.add(&literal, errors)));
        }
        "schemes" => {
            let read = |input: ParseStream<'_>| schemes::literal(input, SCHEMES);
            for literal in literals(value, name, SCHEMES, errors, read) {
                options.schemes.extend(schemes.add(&literal, errors));
            }
        }
        "autoload" => options.autoload = switch(value, name, errors).unwrap_or(true),
        "allow_panic_abort" => options.allow_panic_abort = flag(value, option, errors),
        "graph_pass" => options.graph_pass = expression(value, name, "MyPass", errors),
        "profiler" => options.profiler = expression(value, name, "&TIMELINE", errors),
        _ => options.krate = krate(value, name, of, errors),
    });
    let has_scheme = |given: Vec<String>| given.iter().any(|name| name.starts_with("scheme"));
    if of == Macro::FilesystemPlugin && !given.is_none_or(has_scheme) {
        errors.at(
            Span::call_site(),
            "which scheme does this plugin serve? write `#[filesystem_plugin(scheme = \"mem\")]`",
        );
    }
    options
}

fn unknown(option: &str, of: Macro) -> String {
    match (of, option) {
        (Macro::DevicePlugin, "name" | "type") => format!(
            "name and type are constants of the trait; write `const {}: &'static str = \"MY_DEVICE\";` in \
             the `impl`",
            option.to_ascii_uppercase()
        ),
        (Macro::Filesystem, "scheme" | "schemes") => {
            "`#[filesystem]` exports nothing, so it takes no scheme; write \
             `#[filesystem_plugin(scheme = \"mem\")]`, or list the type in \
             `filesystem_plugins! { \"mem\" => ... }`"
                .to_owned()
        }
        (Macro::FilesystemPlugins, "scheme" | "schemes") => {
            "schemes are listed with their types; write `\"mem\" => MemFs`".to_owned()
        }
        _ => format!("unknown option `{option}`; expected {}", of.usage()),
    }
}

fn repeated(option: &str, seen: &[String]) -> Option<String> {
    let has = |name: &str| seen.iter().any(|seen| seen == name);
    match option {
        "scheme" if has("scheme") => {
            Some(format!("`scheme` is given twice; list them all in {SCHEMES}"))
        }
        "scheme" | "schemes" if has("scheme") || has("schemes") && option == "scheme" => {
            Some(format!("`scheme` and `schemes` are both given; list them all in {SCHEMES}"))
        }
        _ if has(option) => Some(format!("`{option}` is given twice; remove one of the two")),
        _ => None,
    }
}

fn parse_scheme(input: ParseStream<'_>, name: &Ident) -> syn::Result<LitStr> {
    if input.parse::<Token![=]>().is_err() {
        return Err(syn::Error::new(name.span(), format!("expected a value; write {SCHEME}")));
    }
    let literal = schemes::literal(input, SCHEME)?;
    end(input)?;
    Ok(literal)
}

/// Returns the literals in the parentheses after a name, each of which `read` reads.
pub(crate) fn literals(
    value: TokenStream,
    name: &Ident,
    example: &str,
    errors: &mut Errors,
    read: impl Fn(ParseStream<'_>) -> syn::Result<LitStr>,
) -> Vec<LitStr> {
    let parser = |input: ParseStream<'_>| {
        let literal = read(input)?;
        end(input)?;
        Ok(literal)
    };
    let elements = list(value, name, example, errors);
    elements.into_iter().filter_map(|element| errors.ok(parser.parse2(element))).collect()
}

/// Returns the elements of the list in the parentheses after a name.
pub(crate) fn list(
    value: TokenStream,
    name: &Ident,
    example: &str,
    errors: &mut Errors,
) -> Vec<TokenStream> {
    match &*flatten(value) {
        [TokenTree::Group(list)] if list.delimiter() == Delimiter::Parenthesis => {
            let list = split(list.stream());
            if list.is_empty() {
                errors.at(name.span(), format!("the list is empty; write {example}"));
            }
            list
        }
        _ => {
            errors.at(name.span(), format!("expected a list; write {example}"));
            Vec::new()
        }
    }
}

fn switch(tokens: TokenStream, name: &Ident, errors: &mut Errors) -> Option<bool> {
    let message = format!("expected `{name} = true` or `{name} = false`");
    value(tokens, name, &message, errors, |input| Ok(input.parse::<LitBool>()?.value))
}

/// Returns true for an option that is set by its name alone; a value is a mistake.
pub(crate) fn flag(value: TokenStream, option: &str, errors: &mut Errors) -> bool {
    if !value.is_empty() {
        errors.over(value, format!("`{option}` takes no value; write `{option}`"));
    }
    true
}

/// Returns the expression after a name; the compiler reports what is wrong with it.
fn expression(
    tokens: TokenStream,
    name: &Ident,
    example: &str,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let message = format!("expected an expression; write `{name} = {example}`");
    value(tokens, name, &message, errors, |input| {
        if input.is_empty() { Err(input.error("nothing")) } else { input.parse() }
    })
}

pub(crate) fn krate(tokens: TokenStream, name: &Ident, of: Macro, errors: &mut Errors) -> Path {
    let message =
        format!("expected the path of the crate `{}`; write `crate = ::renamed`", of.sdk());
    let path = value(tokens, name, &message, errors, |input| input.call(Path::parse_mod_style));
    path.unwrap_or_else(|| of.default_crate())
}

/// Returns what follows the `=` after a name, if `parse` reads all of it; otherwise `message` is
/// the mistake.
pub(crate) fn value<T>(
    tokens: TokenStream,
    name: &Ident,
    message: &str,
    errors: &mut Errors,
    parse: impl FnOnce(ParseStream<'_>) -> syn::Result<T>,
) -> Option<T> {
    let parser = |input: ParseStream<'_>| {
        if input.parse::<Token![=]>().is_err() {
            return Err(syn::Error::new(name.span(), message));
        }
        let span = if input.is_empty() { name.span() } else { input.span() };
        let value = parse(input).map_err(|_| syn::Error::new(span, message))?;
        end(input)?;
        Ok(value)
    };
    errors.ok(parser.parse2(tokens))
}

fn end(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    let span = input.span();
    let rest: TokenStream = input.parse()?;
    let rest = quote!(#rest).to_string();
    let message = format!("expected a `,` here, found `{rest}`; separate options with `,`");
    Err(syn::Error::new(span, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Group;

    #[test]
    fn options_may_be_fragments_of_macro_rules() {
        let [one, two] = [quote!(profiler = T::<A, B>::new()), quote!(crate = ::renamed)]
            .map(|option| Group::new(Delimiter::None, option));
        let mut errors = Errors::default();
        let options = parse(quote!(#one, #two), Macro::DevicePlugin, &mut errors);
        assert_eq!(errors.messages(), [""; 0]);
        assert!(options.profiler.is_some());
        assert_eq!(options.krate.segments[0].ident, "renamed");
    }

    #[test]
    fn a_list_is_in_parentheses() {
        for options in ["schemes[\"aa\"]", "schemes{\"aa\"}", "schemes(\"aa\") \"bb\""] {
            let mut errors = Errors::default();
            let tokens = options.parse().unwrap();
            assert!(parse(tokens, Macro::FilesystemPlugin, &mut errors).schemes.is_empty());
            assert_eq!(errors.messages(), [format!("expected a list; write {SCHEMES}")]);
        }
    }
}

//! What is read of an `impl`, and what is emitted.

use super::*;

fn parse_text(text: &str) -> (Result<FilesystemImpl, TokenStream>, Vec<String>) {
    let mut errors = Errors::default();
    let item = parse(text.parse().unwrap(), "Filesystem", &mut errors);
    (item, errors.messages())
}

fn read(text: &str) -> FilesystemImpl {
    match parse_text(text) {
        (Ok(item), errors) if errors.is_empty() => item,
        (_, errors) => panic!("{text}: {errors:?}"),
    }
}

fn methods(body: &str) -> Vec<String> {
    let item = read(&format!("impl Filesystem for T {{ {body} }}"));
    item.methods.iter().map(|method| method.name.to_string()).collect()
}

fn error(text: &str) -> String {
    match parse_text(text) {
        (Err(output), errors) if errors.len() == 1 => {
            assert_eq!(output.to_string(), text.parse::<TokenStream>().unwrap().to_string());
            errors[0].clone()
        }
        (_, errors) => panic!("{text}: {errors:?}"),
    }
}

#[test]
fn the_names_of_methods_are_read() {
    let body = "
        #![allow(x)]
        /// Text
        #[inline] fn a(&self) -> Bytes<{ N }> where X<{ N }>: Y { { } }
        pub(crate) const unsafe extern \"C\" fn b() {}
        default async fn r#c<T: Fn(fn(u8)) -> u8>(x: [u8; { 3 }]) -> impl Fn() -> T {}
        const N: usize = { 3 };
        const F: fn() = d;
        type Reader = fn() -> Bytes<{ 3 }>;
        fn e();
        fn f() {}";
    assert_eq!(methods(body), ["a", "b", "r#c", "e", "f"]);
}

#[test]
fn bodies_may_be_anything() {
    let body = "fn a(&self) { let x = ; self. } fn b(&self) -> { fn inner() {} } fn c(";
    assert_eq!(methods(&format!("{body})")), ["a", "b", "c"]);
    assert_eq!(methods("fn"), [""; 0]);
    assert_eq!(methods("fn a() {} fn"), ["a"]);
    assert_eq!(methods("; ; #[x]"), [""; 0]);
}

#[test]
fn fragments_of_macro_rules_are_read() {
    let method = "fn a() {}".parse().unwrap();
    let method = TokenTree::Group(Group::new(Delimiter::None, method));
    let ty = TokenTree::Group(Group::new(Delimiter::None, quote!(T)));
    let mut errors = Errors::default();
    let item = quote!(impl Filesystem for #ty { #method fn b() {} });
    let Ok(item) = parse(item, "Filesystem", &mut errors) else {
        panic!("{:?}", errors.messages());
    };
    let names: Vec<_> = item.methods.iter().map(|method| method.name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn types_and_macros_are_read() {
    let item = read(
        "impl Filesystem for T { #[cfg(x)] type Reader = R; a::b! { } c!(d); type Writer = W; }",
    );
    let types: Vec<_> = item
        .types
        .iter()
        .map(|ty| (ty.name.to_string(), ty.condition.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(types, [("Reader".into(), Some("x".into())), ("Writer".into(), None)]);
    let macros: Vec<_> = item.macros.iter().map(text).collect();
    assert_eq!(macros, ["a::b !", "c !"]);
}

#[test]
fn the_impl_is_emitted_as_it_was() {
    for header in [
        "impl Filesystem for T",
        "# [doc = \"x\"] unsafe impl tf_fs_plugin :: Filesystem for a :: T < u8 >",
        "impl < T : Send , const N : usize > Filesystem for S < T , { N } > where T : Sync",
        "impl Filesystem for A < 'static >",
    ] {
        let item = format!("{header} {{ fn a () {{ }} }}");
        let output = read(&item)
            .with_items(quote!(
                type X = Y;
            ))
            .to_string();
        assert_eq!(output, format!("{header} {{ fn a () {{ }} type X = Y ; }}"));
    }
}

#[test]
fn wrong_items_are_named() {
    for (item, name) in [
        ("struct A;", "a struct"),
        ("pub struct A<const N: usize> {}", "a struct"),
        ("fn f() -> impl X {}", "a function"),
        ("pub const unsafe fn f() {}", "a function"),
        ("const X: fn() = f;", "a constant"),
        ("type F = fn();", "a type alias"),
        ("#[x(fn)] pub enum E {}", "an enum"),
        ("unsafe trait T {}", "a trait"),
        ("mod m {}", "a module"),
        ("use a::b;", "a `use`"),
        ("x! {}", "something else"),
        ("", "something else"),
    ] {
        let error = error(item);
        assert!(error.contains(&format!("found {name};")), "{item}: {error}");
    }
}

use super::op;
use quote::quote;

fn expanded(options: proc_macro2::TokenStream, item: proc_macro2::TokenStream) -> String {
    op(options, item).to_string().replace(' ', "")
}

#[test]
fn an_op_is_registered_with_its_arguments_and_attributes() {
    let output = expanded(
        quote!(name = "TextWords", inputs(text: [..s], xs: N * [3, k, _]), outputs(words)),
        quote! {
            /// Splits texts.
            struct Words {
                /// Whether to lower.
                #[attr(default = false)]
                lower: bool,
                #[attr(default = "x", allowed("x", "y"))]
                mode: String,
                #[attr(default = Shape::new([Some(2), None]))]
                shape: Shape,
                #[state(usize::from(lower))]
                made: usize,
            }
        },
    );
    for part in [
        r#"name:"TextWords""#,
        r#"doc:"Splitstexts.""#,
        r#"ArgSpec{name:"text",count:"",shape:::core::option::Option::Some(&[::tf_op_plugin::__private::Dim::Rest("s")])}"#,
        r#"ArgSpec{name:"xs",count:"N""#,
        r#"AttributeSpec::new::<bool>("lower","Whethertolower.",::core::option::Option::Some(false)"#,
        r#"Some(::std::string::String::from("x"))"#,
        r#"Some(Shape::new([Some(2),None]))"#,
        r#"letmade:usize=usize::from(lower);"#,
        r#"Instance::new::<Words<>>(&[])"#,
        // An attribute that only a state uses is not dead code.
        r#"fnuse_attributes(&self){let_=&self.lower;let_=&self.mode;let_=&self.shape;}"#,
        r#"fnfrom_attributes(lower:bool,mode:String,shape:Shape)"#,
    ] {
        assert!(output.contains(part), "{part} is not in {output}");
    }
    assert!(!output.contains("#[attr"), "{output}");
}

#[test]
fn each_combination_of_types_is_an_instance() {
    let output = expanded(
        quote!(name = "Scale", inputs(x), outputs(y), types(T = [f32, f64])),
        quote!(
            struct Scale<T> {
                kind: PhantomData<T>,
            }
        ),
    );
    assert!(output.contains("[::tf_op_plugin::__private::Instance;2usize]"), "{output}");
    assert!(output.contains(r#"Instance::new::<Scale<f64>>(&[("T","#), "{output}");
    assert!(output.contains("OpEntry::new::<Scale<f32>>"), "{output}");
}

#[test]
fn mistakes_say_what_to_write() {
    let unit = || {
        quote!(
            struct Unit;
        )
    };
    for (options, item, message) in [
        (quote!(), unit(), "what is the op's name?"),
        (quote!(name = "my op"), unit(), r#"\"my op\" is not a name of an op"#),
        (quote!(name = "Text_Words"), unit(), "followed by letters and digits"),
        (quote!(name = "_Words"), unit(), "followed by letters and digits"),
        (
            quote!(name = "Op"),
            quote!(
                struct Op {
                    #[cfg(feature = "x")]
                    #[attr]
                    a: i64,
                }
            ),
            "TensorFlow has one definition of an op",
        ),
        (
            quote!(name = "Op"),
            quote!(
                #[cfg(feature = "x")]
                struct Op;
            ),
            "above `#[op(...)]`",
        ),
        (
            quote!(name = "Op"),
            quote!(
                struct Op {
                    #[attr]
                    _a: i64,
                }
            ),
            "ASCII names that begin with a letter; rename `_a`",
        ),
        (quote!(name = "Op", inputs(X)), unit(), "lower-case names; rename `X`"),
        (quote!(name = "Op", inputs(x), outputs(x)), unit(), "`x` is there twice"),
        (quote!(name = "Op", inputs(x: [..a, ..b])), unit(), "one `..` at most"),
        (quote!(name = "Op", inputs(x: [?])), unit(), "a dimension is a name, a number"),
        (
            quote!(name = "Op"),
            quote!(
                struct Op<T>(T);
            ),
            "an op's attributes have names",
        ),
        (
            quote!(name = "Op"),
            quote!(
                struct Op<T> {
                    a: PhantomData<T>,
                }
            ),
            "which types can `T` be?",
        ),
        (quote!(name = "Op", types(T = [f32])), unit(), "`Unit` has no parameter `T`"),
        (
            quote!(name = "Op"),
            quote!(
                struct Op {
                    a: i64,
                }
            ),
            "neither an attribute nor made of them",
        ),
        (
            quote!(name = "Op"),
            quote!(
                struct Op {
                    #[attr(max = 1)]
                    a: i64,
                }
            ),
            "unknown option `max`",
        ),
        (
            quote!(name = "Op"),
            quote!(
                enum Op {}
            ),
            "an op is a struct",
        ),
        (
            quote!(name = "Op"),
            quote!(
                fn op() {}
            ),
            "put `#[op(...)]` on the struct",
        ),
    ] {
        let output = op(options, item).to_string();
        assert!(output.contains(message), "{message} is not in {output}");
        // The author's `impl Op` causes no second error, and nothing is registered.
        assert!(!output.contains("Instance"), "{output}");
    }
}

#[test]
fn documentation_may_be_a_file() {
    let item = quote!(
        /// Splits texts.
        #[doc = include_str!("words.md")]
        ///
        /// At white space.
        struct Words;
    );
    let output = expanded(quote!(name = "TextWords"), item);
    let doc =
        r#"doc:::core::concat!("Splitstexts.\n",include_str!("words.md"),"\n\nAtwhitespace.")"#;
    assert!(output.contains(doc), "{output}");
}

#[test]
fn an_op_with_a_mistake_keeps_its_definition() {
    let item = quote!(
        struct Op {
            a: i64,
        }
    );
    let output = expanded(quote!(name = "Op"), item);
    assert!(output.contains("OpSpecforOp"), "{output}");
}

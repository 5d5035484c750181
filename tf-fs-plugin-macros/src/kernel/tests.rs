//! Kernels that are registered, and mistakes in their options.

use super::*;

fn output(options: &str, item: &str) -> String {
    let output = kernel(options.parse().unwrap(), item.parse().unwrap());
    output.to_string().replace([' ', '\n'], "")
}

const ITEM: &str = "impl<T: Element> Kernel for Relu<T> { fn new() {} }";
const PLAIN: &str = "impl Kernel for Relu { fn new() {} }";

#[test]
fn each_type_is_registered() {
    let output = output("op = \"Relu\", types(T = [f32, half::f16])", ITEM);
    assert!(
        output.starts_with("impl<T:Element>KernelforRelu<T>{fnnew(){}}const_:()={"),
        "{output}"
    );
    assert!(output.contains("type__SeKernel<T>=Relu<T>;"), "{output}");
    for ty in ["f32", "half::f16"] {
        let expected = format!(
            "::se_plugin::__private::collect!{{::se_plugin::__private::Registration,\
             ::se_plugin::__private::Registration::new::\
             <__SeKernel<{ty}>>(\"Relu\",::core::concat!(::core::file!(),\":\",::core::line!()),)\
             .types(&[(\"T\",<{ty}as::se_plugin::__private::Element>::DTYPE)])}}"
        );
        assert!(output.contains(&expected), "{output}");
    }
    assert_eq!(output.matches("collect!").count(), 2, "{output}");
}

#[test]
fn several_attributes_make_a_product() {
    let output = output("op = \"Sum\", types(T = [f32, f64], Tidx = [i32, i64, i8])", ITEM);
    assert_eq!(output.matches("collect!").count(), 6, "{output}");
    assert!(output.contains("<__SeKernel<f64>>"), "{output}");
    assert!(output.contains("(\"Tidx\",<i8as"), "{output}");
    let one = "(\"T\",<f64as::se_plugin::__private::Element>::DTYPE),(\"Tidx\",<i64as";
    assert_eq!(output.matches(one).count(), 1, "{output}");
}

#[test]
fn types_that_rust_does_not_have_are_constants() {
    let output = output("op = \"X\", types(T = [DType::Variant, f32])", PLAIN);
    assert!(output.contains("(\"T\",DType::Variant)"), "{output}");
    assert!(output.contains("<__SeKernel>"), "{output}");
}

#[test]
fn all_options_are_heeded() {
    let options = "op = \"X\", host_memory(\"a\", \"b\"), label = \"l\", priority = -2, variables, \
                   crate = a::b";
    let all = output(options, PLAIN);
    let expected = ".host_memory(&[\"a\",\"b\"]).label(\"l\").priority(-2).variables()}";
    assert!(all.contains(expected), "{all}");
    assert!(!all.contains("::se_plugin"), "{all}");
    let plain = output("op = \"X\"", "impl a::Kernel for X {}");
    assert!(plain.contains("Registration::new::<__SeKernel>"), "{plain}");
    let conditional = output("op = \"X\"", "#[cfg(unix)] impl Kernel for X {}");
    assert!(conditional.contains("#[cfg(unix)]const_"), "{conditional}");
}

#[test]
fn other_attributes_stay() {
    let output = output("op = \"X\"", "#[kernel(op = \"Y\")] impl Kernel for X {}");
    assert!(output.starts_with("#[kernel(op=\"Y\")]implKernelforX{}"), "{output}");
}

#[test]
fn fragments_of_macro_rules_are_read() {
    let hidden = |text: &str| Group::new(Delimiter::None, text.parse().unwrap());
    let (op, ty) = (hidden("\"Relu\""), hidden("f32"));
    let output = kernel(quote!(op = #op, types(T = [#ty])), ITEM.parse().unwrap());
    let output = output.to_string();
    assert!(!output.contains("compile_error"), "{output}");
}

#[test]
fn mistakes_say_what_to_write() {
    for (options, item, expected) in [
        ("", PLAIN, "whichopisthisakernelfor?write`#[kernel(op=\\\"Relu\\\")]`"),
        ("op", PLAIN, "expectedavalue;write`op="),
        ("op = relu", PLAIN, "expectedastringliteral"),
        ("op = \"relu\"", PLAIN, "noophasthename"),
        ("op = \"A\" \"B\"", PLAIN, "separateoptionswith`,`"),
        ("op = \"A\", op = \"B\"", PLAIN, "`op`isgiventwice"),
        ("op = \"A\", on = 1", PLAIN, "unknownoption`on`"),
        ("\"A\"", PLAIN, "expectedanoption:oneof`op"),
        ("op = \"A\"", ITEM, "whichtypescan`T`be?"),
        ("op = \"A\", types(T = [])", ITEM, "`T`hasnotypes"),
        ("op = \"A\", types()", ITEM, "thelistisempty"),
        ("op = \"A\", types", ITEM, "expectedalist;write`types(T"),
        ("op = \"A\", types(T)", ITEM, "expectedavalue;write`types(T"),
        ("op = \"A\", types(T = [f32], T = [f64])", ITEM, "`T`isgiventwice"),
        ("op = \"A\", types(T = [DType::Variant])", ITEM, "shouldbeaRusttype"),
        ("op = \"A\", host_memory(x)", PLAIN, "thenameofaninputoroutput"),
        ("op = \"A\", priority = high", PLAIN, "expectedawholenumber"),
        ("op = \"A\", variables = true", PLAIN, "`variables`takesnovalue"),
        ("op = \"A\"", "struct A;", "expected`implKernelfor...`,foundastruct"),
        ("op = \"A\"", "impl<const N: u8> Kernel for A<N> {}", "`N`cannotbeaparameter"),
        ("op = \"A\"", "impl Kernel for A<'_> {}", "akernellivesaslongas"),
    ] {
        let output = output(options, item);
        assert!(output.contains(expected), "{options} {item}: {output}");
    }
}

//! Kernels that are registered, and mistakes in their options.

use super::*;

fn output(options: &str, item: &str) -> String {
    let output = kernel(options.parse().unwrap(), item.parse().unwrap());
    output.to_string().replace([' ', '\n'], "")
}

const ITEM: &str = "impl<T: Element> Kernel for Relu<T> { fn new() {} }";
const PLAIN: &str = "impl Kernel for Relu { fn new() {} }";

#[test]
fn all_options_are_heeded() {
    let options = "op = \"X\", types(T = [a::DType::Variant]), host_memory(\"a\", \"b\"), label = \"l\", \
                   priority = 2, variables, variants, crate = a::b";
    let all = output(options, PLAIN);
    let expected = "types:&[(\"T\",a::DType::Variant)],host_memory:&[\"a\",\"b\"],label:\"l\",priority:2,\
                    variables:true,variants:true";
    assert!(all.contains(expected), "{all}");
    assert!(!all.contains("::se_plugin"), "{all}");
    let plain = output("op = \"_X\"", "impl a::Kernel for X {}");
    assert!(plain.contains("registration::<__SeKernel<>>"), "{plain}");
}

#[test]
fn kernels_of_a_library_are_listed_for_any_platform() {
    let item = "#[doc = \"d\"] #[allow(x)] #[se_plugin::kernel(op = \"B\", types(T = u8))] \
                impl<P: Gpu, T: Element> Kernel for Relu<P, T> where P: Own { type Platform = P; fn new() {} }";
    let output = output("op = \"A\", types(T = [f32, f64])", item);
    let listed = "#[allow(x)]impl<P:Gpu,T:Element>::se_plugin::__private::LibraryKernelforRelu<P,T>whereP:Own{";
    assert!(output.contains(listed), "{output}");
    for expected in ["<P,f32>>(\"A\"", "<P,f64>>(\"A\"", "<P,u8>>(\"B\""] {
        assert!(
            output.contains(&format!(
                "list.push(::se_plugin::__private::registration::<__SeKernel{expected}"
            )),
            "{output}"
        );
    }
    // Nothing is collected, and the attribute below is used up.
    assert!(!output.contains("collect!") && !output.contains("#[se_plugin::kernel"), "{output}");
    assert!(output.starts_with("#[doc=\"d\"]#[allow(x)]impl<"), "{output}");
}

#[test]
fn mistakes_say_what_to_write() {
    for (options, item, expected) in [
        ("", PLAIN, "whichopisthisakernelfor?write`#[kernel(op=\\\"Relu\\\")]`"),
        ("op", PLAIN, "expectedastringliteral;write`op="),
        ("op = relu", PLAIN, "expectedastringliteral"),
        ("op = \"relu\"", PLAIN, "noophasthename"),
        ("op = \"A\" \"B\"", PLAIN, "separateoptionswith`,`"),
        ("op = \"A\", op = \"B\"", PLAIN, "`op`isgiventwice"),
        ("op = \"A\", on = 1", PLAIN, "unknownoption`on`"),
        ("\"A\"", PLAIN, "expectedanoption:oneof`op"),
        ("op = \"A\"", ITEM, "whichtypescan`T`be?"),
        ("op = \"A\"", ITEM, "ifitistheplatform,write`typePlatform=T;`"),
        ("op = \"A\", types(T = [])", ITEM, "`T`hasnotypes"),
        ("op = \"A\", types()", ITEM, "thelistisempty"),
        ("op = \"A\", types", ITEM, "expectedalist;write`types(T"),
        ("op = \"A\", types(T)", ITEM, "expectedavalue;write`types(T"),
        ("op = \"A\", types(T = [f32], T = [f64])", ITEM, "`T`isgiventwice"),
        ("op = \"A\", types(T = [DType::Variant])", ITEM, "shouldbeaRusttype"),
        ("op = \"A\", host_memory(x)", PLAIN, "thenameofaninputoroutput"),
        ("op = \"A\", priority = high", PLAIN, "expectedawholenumber"),
        ("op = \"A\", priority = -1", PLAIN, "theSDK'sownkernelshavenegativepriorities"),
        ("op = \"A\", variables = true", PLAIN, "`variables`takesnovalue"),
        ("op = \"A\", variants(x)", PLAIN, "`variants`takesnovalue"),
        ("op = \"A\"", "struct A;", "expected`implKernelfor...`,foundastruct"),
        ("op = \"A\"", "impl<const N: u8> Kernel for A<N> {}", "`N`cannotbeaparameter"),
        ("op = \"A\"", "impl Kernel for A<'_> {}", "akernellivesaslongas"),
    ] {
        let output = output(options, item);
        assert!(output.contains(expected), "{options} {item}: {output}");
    }
}

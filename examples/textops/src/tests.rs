//! Tests without TensorFlow: a host in this process calls the ops by TensorFlow's C functions.

use super::*;
use tf_plugin_testing::ops::{Call, Host, Tensor};

fn call(op: &str) -> Call {
    Host::new().call(op)
}

#[test]
fn words_are_split_and_lowered() -> Result<()> {
    let words = call("TextWords").input(["To  be", "", "Ähre"]).attr("lower", true).run()?;
    assert_eq!(words.strings(0)?, ["to", "be", "ähre"]);
    assert_eq!(words.numbers::<i64>(1)?, [0, 2, 2, 3]);
    // By default they stay as they are.
    assert_eq!(call("TextWords").input(["To"]).run()?.strings(0)?, ["To"]);
    Ok(())
}

#[test]
fn words_have_shapes_in_a_graph() -> Result<()> {
    let shapes = Host::new().shapes("TextWords").input_shape([None]).infer()?;
    assert_eq!(shapes[0].dims(), Some(&[None][..]));
    let error = Host::new().shapes("TextWords").input_shape([2, 3]).infer().unwrap_err();
    assert_eq!(error.message(), "input `text` has the shape [2, 3]; it should be [n]");
    Ok(())
}

#[test]
fn words_of_bytes_that_are_not_text_are_an_error() {
    let error = call("TextWords").input([b"a \xff"]).run().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.message(), "string 0 of input `text` is not UTF-8 at byte 2");
}

#[test]
fn counts_are_dampened_in_place_and_in_their_type() -> Result<()> {
    let dampened = call("TextDampen").input([[0.0_f32, 1.0], [3.0, 7.0]]).run()?;
    assert_eq!((dampened.shape(0)?, dampened.reused_input(0)), (&[2, 2][..], Some(0)));
    assert_eq!(dampened.numbers::<f32>(0)?, [0.0, 1.0, 3.0, 7.0].map(f32::ln_1p));
    let error = call("TextDampen").input([1_i32]).run().unwrap_err();
    assert_eq!(
        error.message(),
        "Value for attr 'T' of int32 is not in the list of allowed values: float, double"
    );
    Ok(())
}

#[test]
fn the_gradient_is_the_slope() -> Result<()> {
    let counts = [0.0, 1.0, 7.0];
    let dampened = |by| -> Result<Vec<f64>> {
        let counts = counts.map(|count| count + by);
        call("TextDampen").input(counts).attr("scale", 2.0).run()?.numbers(0)
    };
    let gradient = call("TextDampenGrad").input(counts).input([1.0; 3]).attr("scale", 2.0).run()?;
    assert_eq!(gradient.reused_input(0), Some(1));
    let slopes = dampened(1e-6)?.into_iter().zip(dampened(-1e-6)?);
    let slopes = slopes.map(|(above, below)| (above - below) / 2e-6);
    for (slope, gradient) in slopes.zip(gradient.numbers::<f64>(0)?) {
        assert!((slope - gradient).abs() < 1e-6, "{slope} {gradient}");
    }
    Ok(())
}

fn extract(pattern: &str) -> Call {
    call("TextExtract").attr("pattern", pattern).attr("case", "ignore")
}

#[test]
fn each_column_is_extracted() -> Result<()> {
    let columns = [Tensor::from(["n=1", "x N=22"]), Tensor::from(["-", "n=\u{663}, n=4"])];
    let extracted = extract("n=([0-9]+)").inputs(columns).inputs(Some("0")).run()?;
    assert_eq!(extracted.names(), ["matches[0]", "matches[1]"]);
    assert_eq!(extracted.strings(0)?, ["1", "22"]);
    assert_eq!(extracted.strings(1)?, ["0", "4"]);
    // Bytes that are not text, and no columns at all.
    let extracted = extract(".*").inputs([[b"a\xff"]]).inputs(None::<Tensor>).run()?;
    assert_eq!(extracted.byte_strings(0)?, [b"a"]);
    assert!(extract("a").inputs(None::<Tensor>).inputs(Some("0")).run()?.is_empty());
    Ok(())
}

#[test]
fn errors_of_extract_say_what_to_do() {
    let text = |call: Call| call.run().unwrap_err().message().to_owned();
    let error = |pattern| text(extract(pattern).inputs([["abc"]]).inputs(None::<Tensor>));
    assert_eq!(
        error("[0-9]"),
        "columns[0]: text 0, \"abc\", does not match \"[0-9]\"; pass a `fallback`"
    );
    assert!(error("(").starts_with("attribute `pattern`: regex parse error"), "{}", error("("));
    let call = || extract("a").inputs([["abc"]]);
    assert_eq!(
        text(call().inputs(["b", "c"])),
        "input `fallback`: expected none or one tensor, got 2"
    );
    assert_eq!(
        text(call().inputs(None::<Tensor>).attr("case", "any")),
        "Value for attr 'case' of \"any\" is not in the list of allowed values: \"exact\", \"ignore\""
    );
}

#[test]
fn distances_are_those_of_the_textbook() -> Result<()> {
    let distances = || call("TextDistance").input(["kitten", "", "über"]);
    let computed = distances().input(["sitting", "abc", "uber"]).threads(4).run()?;
    assert_eq!(computed.numbers::<i64>(0)?, [3, 3, 1]);
    let error = distances().input(["a"]).run().unwrap_err();
    assert_eq!(
        error.message(),
        "input `b` has the shape [1]; it should be [..s], where `s` is [3] in `a`"
    );
    Ok(())
}

#[test]
fn distances_of_a_large_batch_are_in_order() -> Result<()> {
    let a: Vec<String> = (0..10_000).map(|at| "a".repeat(at % 7)).collect();
    let b = vec![""; a.len()];
    let host = Host::new().intra_op_threads(4);
    let distances = host.call("TextDistance").input(a).input(b).run()?.numbers::<i64>(0)?;
    assert!(distances.into_iter().zip(0..).all(|(distance, at)| distance == at % 7));
    Ok(())
}

//! Ops through TensorFlow's C functions, in the in-process host.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, Ordering};
use tf_op_plugin::kernel::{PartialShape, ShapeInferenceContext};
use tf_op_plugin::prelude::*;
use tf_op_plugin::sync::Mutex;
use tf_plugin_testing::ops::{Call, Host, Tensor as Value};

tf_op_plugin::op_plugin!();

fn call(op: &str) -> Call {
    Host::new().call(op)
}

#[track_caller]
fn error(call: Call) -> String {
    let error = call.run().expect_err("the call fails");
    format!("{:?}: {error}", error.code())
}

/// Sums up whatever it gets.
#[op(
    name = "HostAllKinds",
    inputs(x: [..s], texts: N * [], others: N, rows, maybe, flag),
    outputs(y: [..s], lengths, count, total: num_maybe),
    types(T = [f32, i64], Tidx = [i32, i64])
)]
struct AllKinds<T: Element, Tidx: Element> {
    kind: PhantomData<(T, Tidx)>,
}

impl<T: Element, Tidx: Element> Op for AllKinds<T, Tidx> {
    type Inputs =
        (Tensor<T>, Vec<Strings>, Vec<Tensor<f64>>, Ragged<Tensor<Tidx>>, Option<Tensor<u8>>, bool);
    type Outputs = (Tensor<T>, Ragged<Tensor<i64>>, i64, Option<i64>);

    fn compute(&self, inputs: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let (x, texts, others, rows, maybe, flag) = inputs;
        let mut lengths = RaggedBuf::<TensorBuf<i64>>::new();
        for row in rows.rows() {
            lengths.values.push(row.len() as i64);
            lengths.end_row();
        }
        let count = texts.len() + others.len() + maybe.as_ref().map_or(0, |bytes| bytes.len());
        let total = maybe.map(|bytes| bytes.iter().map(|&byte| i64::from(byte)).sum());
        Ok((x, lengths.finish(), count as i64 * if flag { 1 } else { -1 }, total))
    }
}

fn all_kinds() -> Call {
    call("HostAllKinds")
        .input([1.5_f32])
        .inputs(["a", "b"])
        .inputs([[0.5], [1.5]])
        .input([7_i32, 8, 9])
        .input([0_i64, 1, 3])
}

#[test]
fn types_and_lengths_are_inferred() -> Result<()> {
    let out = all_kinds().inputs(Some([1_u8, 2, 3])).input(false).run()?;
    assert_eq!(out.names(), ["y", "lengths_values", "lengths_row_splits", "count", "total[0]"]);
    assert_eq!(out.numbers::<f32>(0)?, [1.5]);
    assert_eq!((out.numbers::<i64>(1)?, out.numbers::<i64>(2)?), (vec![1, 2], vec![0, 1, 2]));
    assert_eq!((out.numbers::<i64>(3)?, out.shape(3)?), (vec![-7], &[][..]));
    assert_eq!(out.numbers::<i64>(4)?, [6]);
    // An input that is an output keeps its memory.
    assert_eq!(out.reused_input(0), Some(0));
    let out = all_kinds().inputs(None::<Value>).input(true).run()?;
    assert_eq!((out.numbers::<i64>(3)?, out.names().len()), (vec![4], 4));
    Ok(())
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    assert_eq!(
        error(all_kinds().input(true).input(true)),
        "InvalidArgument: cannot compute HostAllKinds as input #7(zero-based) was expected to be a uint8 tensor but is a bool \
         tensor; it is the input `maybe`"
    );
    let lists = call("HostAllKinds").input([1_i64]).inputs(["a"]).inputs([[0.5], [1.5]]);
    assert_eq!(
        error(lists.input([7_i32]).input([0_i64, 1]).inputs(None::<Value>).input(true)),
        "InvalidArgument: input `others` makes the attribute 'N' 2, and it is 1 by another input or by `attr`; change one of \
         them"
    );
    let splits = call("HostAllKinds").input([1_i64]).inputs(["a"]).inputs([[0.5]]).input([7_i32]);
    assert!(
        error(splits.input([0_i64, 2]).inputs(None::<Value>).input(true))
            .starts_with("InvalidArgument: input `rows`: "),
    );
}

/// Describes its attributes.
#[op(name = "HostAttributes", outputs(described: []))]
struct Attributes {
    #[attr]
    text: String,
    #[attr(default = -7, min = -7)]
    int: i64,
    #[attr(default = 1.5, min = -0.5)]
    ratio: f32,
    #[attr(default = true)]
    flag: bool,
    #[attr(default = DType::Float16)]
    dtype: DType,
    #[attr(default = PartialShape::new([Some(2), None]))]
    shape: PartialShape,
    #[attr(default = vec![1, 2], min = 1)]
    ints: Vec<i64>,
    #[attr(default = vec![String::from("it's"), String::from("ü\n")], allowed("it's", "ü\n", "b"))]
    texts: Vec<String>,
    #[attr(default = vec![DType::Bool])]
    dtypes: Vec<DType>,
}

impl Op for Attributes {
    type Inputs = ();
    type Outputs = String;

    fn compute(&self, (): (), context: &OpContext<'_>) -> Result<String> {
        let Self { text, int, ratio, flag, dtype, shape, ints, texts, dtypes } = self;
        let (shape, node) = (shape.dims(), context.node_name());
        Ok(format!(
            "{node}: {text:?} {int} {ratio} {flag} {dtype} {shape:?} {ints:?} {texts:?} {dtypes:?}"
        ))
    }
}

#[test]
fn attributes_have_defaults_and_limits() -> Result<()> {
    let attributes = || call("HostAttributes").attr("text", "é");
    let defaults = attributes().node_name("a/b").run()?.strings(0)?;
    assert_eq!(
        defaults,
        ["a/b: \"é\" -7 1.5 true float16 Some([Some(2), None]) [1, 2] [\"it's\", \"ü\\n\"] [Bool]"]
    );
    let others = attributes()
        .attr("int", i64::MAX)
        .attr("ratio", -0.5)
        .attr("flag", false)
        .attr("dtype", DType::String)
        .attr("shape", PartialShape::unknown())
        .attr("ints", [3_i64])
        .attr("texts", Vec::<String>::new())
        .attr("dtypes", Vec::<DType>::new());
    assert_eq!(
        others.run()?.strings(0)?,
        ["HostAttributes: \"é\" 9223372036854775807 -0.5 false string None [3] [] []"]
    );
    for (call, text) in [
        (call("HostAttributes"), "NodeDef missing attr 'text' from Op<HostAttributes>"),
        (attributes().attr("int", -8), "Value for attr 'int' of -8 must be at least minimum -7"),
        (
            attributes().attr("ints", Vec::<i64>::new()),
            "Length for attr 'ints' of 0 must be at least minimum 1",
        ),
        (
            attributes().attr("flag", 1),
            "AttrValue had value with type 'int' when 'bool' expected for attr 'flag'",
        ),
        (
            attributes().attr("ratio", -0.75),
            "attribute `ratio` is -0.75; it should be at least -0.5",
        ),
        (attributes().attr("ratio", f32::NAN), "attribute `ratio` is NaN; it should be"),
        (attributes().attr("texts", ["c"]), "attribute `texts` is \"c\"; it can be it's, ü\n, b"),
    ] {
        let error = error(call);
        assert!(error.starts_with(&format!("InvalidArgument: {text}")), "{error}");
    }
    Ok(())
}

/// Appends a byte to each string.
#[op(name = "HostAppend", inputs(text: [..s]), outputs(longer: [..s], same: [..s]))]
struct Append;

impl Op for Append {
    type Inputs = Strings;
    type Outputs = (Strings, Strings);

    fn compute(&self, text: Strings, _: &OpContext<'_>) -> Result<(Strings, Strings)> {
        let longer = text.iter().map(|text| [text, b"\xff"].concat());
        Ok((Strings::new(text.shape(), longer)?, text))
    }
}

#[test]
fn strings_of_any_bytes_and_lengths_cross_the_boundary() -> Result<()> {
    let texts: Vec<Vec<u8>> =
        (0..60).map(|len| (0..len).map(|at| (at * 37) as u8).collect()).collect();
    let out = call("HostAppend").input(Value::texts([2, 30], &texts)?).threads(2).run()?;
    assert_eq!((out.shape(0)?, out.byte_strings(1)?), (&[2, 30][..], texts.clone()));
    for (longer, text) in out.byte_strings(0)?.iter().zip(&texts) {
        assert_eq!(longer.strip_suffix(b"\xff"), Some(&text[..]));
    }
    for shape in [&[0][..], &[2, 0, 3]] {
        let empty = call("HostAppend").input(Value::texts(shape, [""; 0])?).run()?;
        assert_eq!((empty.shape(0)?, empty.shape(1)?), (shape, shape));
    }
    Ok(())
}

/// Counts its runs.
#[op(name = "HostCounter", inputs(by), outputs(sum: []), stateful)]
struct Counter {
    #[state(AtomicI64::new(0))]
    sum: AtomicI64,
}

impl Op for Counter {
    type Inputs = i64;
    type Outputs = i64;

    fn compute(&self, by: i64, _: &OpContext<'_>) -> Result<i64> {
        Ok(self.sum.fetch_add(by, Ordering::Relaxed) + by)
    }
}

#[test]
fn a_stateful_op_keeps_its_state_per_node() -> Result<()> {
    let [a, b] =
        [call("HostCounter").input(2_i64).node()?, call("HostCounter").input(5_i64).node()?];
    a.run()?;
    a.run_on([10_i64])?;
    assert_eq!((a.run()?.numbers::<i64>(0)?, b.run()?.numbers::<i64>(0)?), (vec![14], vec![5]));
    let error = a.run_on([1_i32]).unwrap_err();
    assert_eq!(error.message(), "the node has inputs of [Int64], got [Int32]");
    Ok(())
}

/// Says whether it has met its input before.
#[op(name = "HostKeeps", inputs(x), outputs(is_known: []), stateful)]
struct Keeps {
    #[state(Mutex::new(None))]
    last: Mutex<Option<Strings>>,
}

impl Op for Keeps {
    type Inputs = Strings;
    type Outputs = bool;

    fn compute(&self, x: Strings, _: &OpContext<'_>) -> Result<bool> {
        let mut last = self.last.lock()?;
        let is_known = last.as_ref().is_some_and(|last| last.is_same_memory(&x));
        *last = Some(x);
        Ok(is_known)
    }
}

#[test]
fn a_kernel_that_keeps_an_input_frees_it_at_the_end() -> Result<()> {
    let node = call("HostKeeps").input(["a"]).node()?;
    let known = || node.run()?.numbers::<bool>(0);
    // A constant of a graph has the same memory in each run.
    assert_eq!((known()?, known()?), (vec![false], vec![true]));
    assert_eq!(node.run_on([["b"]])?.numbers::<bool>(0)?, [false]);
    Ok(())
}

thread_local! {
    static HIDDEN: RefCell<Option<Tensor<f32>>> = const { RefCell::new(None) };
}

/// Keeps its input where the compiler does not see it.
#[op(name = "HostHides", inputs(x: [..s]), outputs(y), stateful)]
struct Hides;

impl Op for Hides {
    type Inputs = Tensor<f32>;
    type Outputs = bool;

    fn compute(&self, x: Tensor<f32>, _: &OpContext<'_>) -> Result<bool> {
        HIDDEN.set(Some(x));
        Ok(true)
    }
}

#[test]
fn a_tensor_in_a_thread_local_is_reported() -> Result<()> {
    let (out, violations) = call("HostHides").input([1.5_f32]).run_with_violations();
    assert_eq!(out?.numbers::<bool>(0)?, [true]);
    let [violation] = &*violations else { panic!("{violations:?}") };
    let text = "1 tensor(s) that the plugin got are not freed after its kernel is deleted";
    assert!(violation.to_string().contains(text), "{violation}");
    HIDDEN.take();
    Ok(())
}

/// Fails in all ways.
#[op(name = "HostFails", inputs(how), outputs(y: []))]
struct Fails;

impl Op for Fails {
    type Inputs = String;
    type Outputs = i64;

    fn infer_shapes(shapes: &mut ShapeInferenceContext<'_>) -> Result<()> {
        let how = shapes.with_rank(&shapes.input(0)?, 0)?;
        shapes.set_output(0, &how)
    }

    fn compute(&self, how: String, _: &OpContext<'_>) -> Result<i64> {
        match &*how {
            "panic" => panic!("no {how}"),
            "not found" => Err(Error::not_found("no such thing\0, says the op")),
            _ => Ok(1),
        }
    }
}

#[test]
fn errors_and_panics_have_code_and_message() {
    let fails = |how: &str| error(call("HostFails").input(how));
    assert_eq!(
        fails("not found").replace('\0', "?").split(',').next(),
        Some("NotFound: no such thing\\0")
    );
    let panic = fails("panic");
    assert!(panic.starts_with("Internal: ") && panic.contains("no panic"), "{panic}");
    assert!(panic.contains("tests/host.rs:"), "{panic}");
    assert_eq!(
        error(call("HostFails").input(["ok"])),
        "InvalidArgument: input `how`: expected a scalar, got the shape [1]"
    );
    // A node goes on after an error.
    let node = call("HostFails").input("fine").node().unwrap();
    assert!(node.run_on(["panic"]).is_err() && node.run().is_ok());
}

#[test]
fn shape_functions_run_alone() -> Result<()> {
    let shapes = |op: &str| Host::new().shapes(op);
    assert_eq!(shapes("HostFails").input_shape(()).infer()?, [PartialShape::new([])]);
    assert_eq!(
        shapes("HostFails").input_shape(PartialShape::unknown()).infer()?,
        [PartialShape::new([])]
    );
    let error = shapes("HostFails").input_shape([None, None]).infer().unwrap_err();
    assert_eq!(error.message(), "Shape must be rank 0 but is rank 2");
    let all = shapes("HostAllKinds")
        .input_shape([Some(2), None])
        .input_shapes([(), ()])
        .input_shapes([[3], [4]])
        .input_shape([5])
        .input_shape([6])
        .input_shapes(None::<()>)
        .input_shape(())
        .infer()?;
    let vector = PartialShape::new([None]);
    assert_eq!(
        all,
        [
            PartialShape::new([Some(2), None]),
            PartialShape::unknown(),
            vector,
            // A number has no dimensions, without a declaration.
            PartialShape::new([])
        ]
    );
    Ok(())
}

/// Adds up matrices by rows.
#[op(
    name = "HostLists",
    inputs(vectors: N * [n], matrices: N * [n, m], bias, last: [m]),
    outputs(sums: N * [n], same: [m], lens)
)]
struct Lists;

impl Op for Lists {
    type Inputs = (Vec<Tensor<f32>>, Vec<Tensor<f32>>, Option<f32>, Tensor<f32>);
    type Outputs = (Vec<Tensor<f32>>, Tensor<f32>, TensorBuf<i64>);

    fn compute(&self, inputs: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let (vectors, matrices, bias, last) = inputs;
        let sum = |(vector, matrix): (&Tensor<f32>, &Tensor<f32>)| {
            let rows = matrix.rows().zip(vector.iter());
            rows.map(|(row, one)| row.iter().sum::<f32>() + one + bias.unwrap_or(0.0)).collect()
        };
        let sums: Vec<_> = vectors.iter().zip(&matrices).map(sum).collect();
        let lens = [sums.len() as i64].into_iter().collect();
        Ok((sums, last, lens))
    }
}

#[test]
fn lists_of_one_length_have_shapes_in_graphs() -> Result<()> {
    let call = || {
        let lists = call("HostLists").inputs([[1.0_f32, 2.0], [3.0, 4.0]]);
        lists.inputs([[[1.0_f32], [2.0]], [[3.0], [4.0]]])
    };
    let out = call().inputs(Some(0.5_f32)).input([9.0_f32]).run()?;
    assert_eq!((out.numbers::<f32>(0)?, out.numbers::<f32>(1)?), (vec![2.5, 4.5], vec![6.5, 8.5]));
    assert_eq!(out.numbers::<i64>(3)?, [2]);
    let shapes = |vector: i64, last: i64| {
        let shapes = Host::new().shapes("HostLists").input_shapes([[vector], [2]]);
        let shapes = shapes.input_shapes([[2, 3], [2, 3]]).input_shapes(Some(()));
        shapes.input_shape([last]).infer()
    };
    let of = |dims: &[Option<i64>]| PartialShape::new(dims.to_vec());
    assert_eq!(shapes(2, 3)?, [of(&[Some(2)]), of(&[Some(2)]), of(&[Some(3)]), of(&[None])]);
    for (error, text) in [
        (shapes(1, 3), "input `vectors` has the shape [2]; it should be [n], where `n` is 1 in"),
        (shapes(2, 4), "input `last` has the shape [4]; it should be [m], where `m` is 3 in"),
    ] {
        let error = error.unwrap_err();
        assert!(error.message().contains(text), "{error}");
    }
    Ok(())
}

/// Has lists of two lengths.
#[op(name = "HostTwoLists", inputs(first: [n], xs: [], ys: [], last: [n]), outputs(y: [n]))]
struct TwoLists;

impl Op for TwoLists {
    type Inputs = (Tensor<f32>, Vec<Tensor<f32>>, Vec<Tensor<f32>>, Tensor<f32>);
    type Outputs = Tensor<f32>;

    fn compute(&self, (first, ..): Self::Inputs, _: &OpContext<'_>) -> Result<Tensor<f32>> {
        Ok(first)
    }
}

#[test]
fn inputs_around_two_lists_are_compared_in_graphs() -> Result<()> {
    let shapes = |last: Option<i64>| {
        let shapes = Host::new().shapes("HostTwoLists").input_shape([2]);
        shapes.input_shapes([(), ()]).input_shapes([()]).input_shape([last]).infer()
    };
    assert_eq!(shapes(None)?, [PartialShape::new([Some(2)])]);
    let error = shapes(Some(3)).unwrap_err();
    let text = "input `last` has the shape [3]; it should be [n], where `n` is 2 in `first`";
    assert!(error.message().contains(text), "{error}");
    Ok(())
}

/// Has a default that its limit excludes.
#[op(name = "HostWrongDefault", outputs(y: []))]
struct WrongDefault {
    #[attr(default = 0, min = 1)]
    n: i64,
}

impl Op for WrongDefault {
    type Inputs = ();
    type Outputs = i64;

    fn compute(&self, (): (), _: &OpContext<'_>) -> Result<i64> {
        Ok(self.n)
    }
}

#[test]
fn an_op_that_is_not_registered_says_why() {
    assert_eq!(
        error(call("HostWrongDefault")),
        "NotFound: the op HostWrongDefault is not registered: attribute `n` cannot have its default, 0; change `default`, \
         `min` or `allowed`"
    );
    assert!(!Host::new().ops().contains(&String::from("HostWrongDefault")));
}

/// Multiplies by two, in place.
#[cfg(feature = "half")]
#[op(name = "HostDouble", inputs(x: [..s]), outputs(y: [..s]), types(T = [half::f16, half::bf16, f32]))]
struct Double<T: tf_op_plugin::toolkit::Real> {
    kind: PhantomData<T>,
}

#[cfg(feature = "half")]
impl<T: tf_op_plugin::toolkit::Real> Op for Double<T> {
    type Inputs = Tensor<T>;
    type Outputs = Tensor<T>;

    fn compute(&self, x: Tensor<T>, context: &OpContext<'_>) -> Result<Tensor<T>> {
        context.reuse(x, 0, |x| {
            x.iter_mut().for_each(|x| *x = T::from_f64(2.0 * x.to_f64()));
            Ok(())
        })
    }
}

#[cfg(feature = "half")]
#[test]
fn sixteen_bit_floats_are_computed_in_place() -> Result<()> {
    let x = [half::bf16::from_f32(1.5), half::bf16::from_f32(-3.0)];
    let out = call("HostDouble").input(Value::numbers([1, 2], x)?).run()?;
    assert_eq!(out.numbers::<half::bf16>(0)?, x.map(|x| x + x));
    assert_eq!(out.reused_input(0), Some(0));
    assert_eq!(call("HostDouble").input(3.0_f32).run()?.numbers::<f32>(0)?, [6.0]);
    Ok(())
}

//! Libraries of ops: the Python package in their wheels, and what the commands say about them.

use std::fs;

use crate::crates::{Fresh, Site, cargo, fails, install, succeeds, tool};
use crate::output::{assert_all, assert_says, json, root};
use crate::program;
use cargo_tf_plugin::{NEWEST, TensorFlow};

const SCRIPT: &str = include_str!("scripts/ops.py");

/// Ops with what `examples/textops` has not: several outputs, a ragged input and its gradient, types that no input decides,
/// an optional input with a gradient, an optional output, words of Python as names, the largest float, and a name that another library has.
const ODD: &str = r#"
//! Ops for tests.
use std::marker::PhantomData;
use tf_op_plugin::prelude::*;

tf_op_plugin::op_plugin!();

/// Sums rows: "quoted", and with a \ in it.
#[op(name = "OddRowSums", inputs(rows), outputs(sums: [n], lengths: [n]), gradient = "OddRowSumsGrad")]
struct RowSums;

impl Op for RowSums {
    type Inputs = Ragged<Tensor<f32>>;
    type Outputs = (TensorBuf<f32>, TensorBuf<i64>);

    fn compute(&self, rows: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let (mut sums, mut lengths) = (TensorBuf::new(), TensorBuf::new());
        for ends in rows.row_splits().windows(2) {
            let (start, end) = (ends[0] as usize, ends[1] as usize);
            sums.push(rows.values()[start..end].iter().sum());
            lengths.push((end - start) as i64);
        }
        Ok((sums, lengths))
    }
}

/// The gradient of `OddRowSums`.
#[op(name = "OddRowSumsGrad", inputs(rows, grad_sums), outputs(grad_rows))]
struct RowSumsGrad;

impl Op for RowSumsGrad {
    type Inputs = (Ragged<Tensor<f32>>, Tensor<f32>);
    type Outputs = Ragged<Tensor<f32>>;

    fn compute(&self, (rows, grad): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let mut result = RaggedBuf::<TensorBuf<f32>>::new();
        for (ends, grad) in rows.row_splits().windows(2).zip(grad.iter()) {
            (ends[0]..ends[1]).for_each(|_| result.values.push(*grad));
            result.end_row();
        }
        Ok(result.finish())
    }
}

/// Squares; its gradient is a function in Python.
#[op(name = "OddSquare", inputs(lambda: [..s]), outputs(square: [..s]), gradient = ".gradients:of_square")]
struct Square;

impl Op for Square {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Self::Inputs, context: &OpContext<'_>) -> Result<Self::Outputs> {
        context.reuse(x, 0, |elements| {
            elements.iter_mut().for_each(|x| *x *= *x);
            Ok(())
        })
    }
}

/// Counts.
#[op(name = "OddZeros", inputs(like: [n]), outputs(zeros: [n]), types(T = [f32, i64]))]
struct Zeros<T: Element + Default> {
    element: PhantomData<T>,
}

impl<T: Element + Default> Op for Zeros<T> {
    type Inputs = Strings;
    type Outputs = TensorBuf<T>;

    fn compute(&self, like: Strings, _: &OpContext<'_>) -> Result<TensorBuf<T>> {
        let mut zeros = TensorBuf::new();
        (0..like.len()).for_each(|_| zeros.push(T::default()));
        Ok(zeros)
    }
}

/// Counts the tensors of a list.
#[op(name = "OddCount", inputs(xs, rows), outputs(counts), types(T = [f32, i64], R = [i64, f64]))]
struct Count<T: Element, R: Element> {
    kind: PhantomData<(T, R)>,
}

impl<T: Element, R: Element> Op for Count<T, R> {
    type Inputs = (Vec<Tensor<T>>, Ragged<Tensor<R>>);
    type Outputs = TensorBuf<i64>;

    fn compute(&self, (xs, rows): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        Ok([xs.len() as i64, rows.row_count() as i64].into_iter().collect())
    }
}

/// Adds a bias.
#[op(name = "OddBias", inputs(x: [n], bias: []), outputs(y: [n]), gradient = "OddBiasGrad")]
struct Bias;

impl Op for Bias {
    type Inputs = (Tensor<f32>, Option<f32>);
    type Outputs = Tensor<f32>;

    fn compute(&self, (x, bias): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        Ok(x.map(|x| x + bias.unwrap_or(0.0)))
    }
}

/// The gradient of `OddBias`.
#[op(name = "OddBiasGrad", inputs(bias: [], grad_y: [n]), outputs(grad_x: [n], grad_bias: num_bias * []))]
struct BiasGrad;

impl Op for BiasGrad {
    type Inputs = (Option<f32>, Tensor<f32>);
    type Outputs = (Tensor<f32>, Option<f32>);

    fn compute(&self, (bias, grad): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let grad_bias = bias.map(|_| grad.iter().sum());
        Ok((grad, grad_bias))
    }
}

/// Finds the largest number.
#[op(name = "OddLargest", inputs(x: [n]), outputs(largest: []), gradient = "OddLargestGrad")]
struct Largest;

impl Op for Largest {
    type Inputs = Tensor<f32>;
    type Outputs = Option<f32>;

    fn compute(&self, x: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        Ok(x.iter().copied().reduce(f32::max))
    }
}

/// The gradient of `OddLargest`.
#[op(name = "OddLargestGrad", inputs(x: [n], grad_largest: []), outputs(grad_x: [n]))]
struct LargestGrad;

impl Op for LargestGrad {
    type Inputs = (Tensor<f32>, Option<f32>);
    type Outputs = Tensor<f32>;

    fn compute(&self, (x, grad): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        let largest = x.iter().copied().fold(f32::MIN, f32::max);
        let grad = grad.unwrap_or(0.0);
        Ok(x.map(|x| if x == largest { grad } else { 0.0 }))
    }
}

/// Adds a number, up to a limit.
#[op(name = "OddAdd", inputs(x: [..s]), outputs(y: [..s]))]
struct Added {
    #[attr(default = 1)]
    step: i64,
    #[attr(default = f32::MAX)]
    limit: f32,
}

impl Op for Added {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        Ok(x.map(|x| (x + self.step as f32).min(self.limit)))
    }
}
"#;

/// An op that `examples/textops` has, too.
const CLASH: &str = r#"
/// Clashes.
#[op(name = "TextWords", inputs(x: [..s]), outputs(y: [..s]), gradient = ".gradients:of_square")]
struct Clash;

impl Op for Clash {
    type Inputs = Tensor<f32>;
    type Outputs = Tensor<f32>;

    fn compute(&self, x: Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
        Ok(x)
    }
}
"#;

/// Uses the package with the ops in `ODD`.
const USE_ODD: &str = include_str!("scripts/odd_ops.py");

#[test]
fn the_wheel_of_ops_works_in_python_and_without_an_import() {
    let site = Site::new();
    let before = site.files();
    install(&site, "textops");
    assert_eq!(site.files().len(), before.len() + 3, "a package, a library, a record");
    let scratch = tempfile::tempdir().expect("a directory");
    let place = scratch.path().to_str().expect("UTF-8");
    let printed = succeeds(&mut site.python(&["-c", SCRIPT, place]));
    assert!(printed.contains("all of it works in"), "{printed}");

    let doctor = || site.python(&["-m", "textops", "doctor"]);
    let printed = succeeds(&mut doctor());
    assert_all(&printed, &["5 of 5 are registered: TextDampen, ", "has the plugin."]);

    // Another library with an op of the same name: TensorFlow keeps the first, and Python says so when the second is called.
    let odd = odd("odd-clash");
    odd.append("src/lib.rs", CLASH);
    let wheels = tempfile::tempdir().expect("a directory");
    let wheel = odd.wheel(wheels.path());
    site.pip(&["install", "--no-deps", &wheel.to_string_lossy()]);
    let both = "
import tensorflow as tf
import textops
assert textops.text_words(['a b']).to_list() == [[b'a', b'b']]
import odd_clash
assert odd_clash.odd_square([3.0]).numpy().tolist() == [9]
from tensorflow.python.framework import ops
try:
    ops.gradient_registry.lookup('TextWords')
except LookupError:
    print('without a gradient')
odd_clash.text_words([1.0])";
    let printed = fails(&mut site.python(&["-c", both]));
    assert_all(
        &printed,
        &[
            "without a gradient",
            "ImportError: ",
            "the op TextWords",
            "libtextops.so",
            "libodd_clash.so",
        ],
    );
    let printed = fails(&mut site.python(&["-m", "odd_clash", "doctor"]));
    assert_all(&printed, &["PROBLEM  TextWords    is not registered", "libtextops.so"]);

    site.pip(&["uninstall", "--yes", "textops", "odd-clash"]);
    assert_eq!(site.files(), before, "something is left");
}

/// One file for all releases. Without the feature `matrix` it is used in the newest, above.
#[cfg(feature = "matrix")]
#[test]
fn one_wheel_of_ops_works_in_each_release() {
    for version in cargo_tf_plugin::MATRIX.iter().chain(cargo_tf_plugin::CANDIDATES) {
        let tensorflow = TensorFlow::pinned(version).expect("TensorFlow is provided");
        let site = Site::of(crate::overlay::Overlay::new(&tensorflow));
        install(&site, "textops");
        let scratch = tempfile::tempdir().expect("a directory");
        let place = scratch.path().to_str().expect("UTF-8");
        let printed = succeeds(&mut site.python(&["-c", SCRIPT, place]));
        // TensorFlow calls 2.22.0rc0 2.22.0-rc0.
        let own = version.replace("rc", "-rc");
        assert!(printed.contains(&format!("all of it works in {own}")), "{printed}");
    }
}

/// Returns a crate with the ops in `ODD`, and modules that are written by hand.
fn odd(name: &str) -> Fresh {
    let fresh = Fresh::make(name, &["--ops"]);
    fresh.shares_dependencies(&[]);
    fs::write(fresh.directory.join("src/lib.rs"), ODD).expect("written");
    let more = "[package.metadata.tf-plugin]\npython = \"python\"\n\n[dependencies]\n";
    fresh.edit("Cargo.toml", "[dependencies]\n", more);
    let modules = fresh.directory.join("python");
    fs::create_dir(&modules).expect("made");
    for (name, text) in [
        ("__init__.py", "from . import ops\nfrom .ops import *\nBY_HAND = 'by hand'\n"),
        ("gradients.py", "def of_square(op, gradient):\n    return 2 * op.inputs[0] * gradient\n"),
    ] {
        fs::write(modules.join(name), text).expect("written");
    }
    fresh
}

/// Needs the newest TensorFlow, in which the plugin is loaded as `run` does it: not from `tensorflow-plugins`.
#[test]
fn the_package_is_there_while_the_library_is_developed() {
    let odd = odd("odd-ops");
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let run = |arguments: &[&str]| {
        let mut run = tool(&odd.directory, &["run", "--python"]);
        run.arg(tensorflow.python()).args(arguments);
        run.env_remove("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
        run
    };
    let printed = succeeds(&mut run(&["--", "python", "-c", USE_ODD]));
    assert!(printed.contains("the odd ones work in"), "{printed}");
    let traced = "import odd_ops; odd_ops.odd_square([1.0])";
    let printed = succeeds(&mut run(&["--trace", "--", "python", "-c", traced]));
    assert_all(&printed, &["CPU OddSquare create", "CPU OddSquare compute"]);
    let printed = fails(
        tool(&odd.directory, &["coverage", "--python"]).arg(tensorflow.python()).arg("Cargo.toml"),
    );
    assert!(printed.contains("has ops for the CPU and no device"), "{printed}");
}

#[test]
fn a_new_library_of_ops_is_tested_in_tensorflow() {
    let fresh = Fresh::make("my-ops", &["--ops"]);
    fresh.is_formatted();
    fresh.shares_dependencies(&[]);
    cargo(&fresh.directory, &["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"]);
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let venv = tensorflow.python().parent().and_then(|bin| bin.parent()).expect("an environment");
    let printed = succeeds(tool(&fresh.directory, &["test", "--tf"]).arg(venv));
    assert_all(
        &printed,
        &[
            "test tests::texts_are_shortened_to_characters ... ok",
            "cargo test                 ok          -\n",
            "import tensorflow          -           ok\n",
            "ops, such as MyOpsShorten  -           ok\n",
            "tests/python/ops.py        -           ok\n",
            "conformance in Python      -           ok\n",
        ],
    );
}

/// The cases get TensorFlow, the library, and the package, without which the one of gradients is skipped.
#[test]
fn the_tutorial_s_ops_pass_the_conformance_cases() {
    let mut test = program::tool();
    test.current_dir(root()).args(["tf-plugin", "test", "--package", "textops", "--tf", NEWEST]);
    let printed = succeeds(&mut test);
    let cases = format!("TensorFlow {NEWEST}: conformance in Python: ok, 25 passed, 0 skipped");
    assert!(printed.contains(&cases), "{printed}");
}

#[test]
fn check_lists_ops_and_finds_what_is_wrong_with_them() {
    let mut check = program::tool();
    let printed = succeeds(check.current_dir(root()).args(["tf-plugin", "check", "textops"]));
    for line in [
        "TextWords Splits texts at white space. python text_words() input text: string [n]",
        "output words: ragged string",
        "attribute lower: bool = False",
        "input columns: N * string [..s] input fallback: optional string []",
        "attribute case: string = \"exact\", one of exact, ignore",
        "type T: float32, float64",
        "gradient TextDampenGrad",
        "no errors, no warnings",
    ] {
        assert_says(&printed, line);
    }

    let odd = odd("odd-wrong");
    let check = || tool(&odd.directory, &["check"]);
    odd.edit("src/lib.rs", "/// Counts.\n", "");
    odd.edit("src/lib.rs", "\"OddZeros\"", "\"AddV2\"");
    odd.edit("src/lib.rs", "\".gradients:of_square\"", "\"OddNone\"");
    odd.edit("src/lib.rs", "inputs(rows, grad_sums)", "inputs(rows, grad_sum)");
    let printed = fails(&mut check());
    for line in [
        "AddV2 (src/lib.rs:",
        "is the name of an op of TensorFlow's, which stays",
        "has no documentation",
        "the gradient of OddSquare (src/lib.rs:",
        "is OddNone, which the library does not have",
        "its input `grad_sum` is neither an input nor an output of OddRowSums, nor `grad_` and an output",
        "3 errors, 1 warning",
    ] {
        assert_says(&printed, line);
    }
    odd.edit("src/lib.rs", "tf_op_plugin::op_plugin!();", "");
    let printed = fails(&mut check());
    assert_says(&printed, "has 10 ops, such as");
    assert_says(&printed, "write `tf_op_plugin::op_plugin!();` once in the crate");
}

/// A device has ops that it does not describe: they work, and there are no Python functions for them.
#[test]
fn a_device_with_ops_has_a_wheel_without_their_functions() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut wheel = program::tool();
    wheel.current_dir(root()).args(["tf-plugin", "wheel", "--json", "--package", "bothfs"]);
    let known = json(wheel.arg("--out-dir").arg(scratch.path()));
    let site = Site::new();
    site.pip(&["install", "--no-deps", known["path"].as_str().expect("a path")]);
    let packages = site.0.plugins().with_file_name("bothfs");
    assert!(packages.join("_plugin.py").is_file() && !packages.join("ops.py").exists());
}

#[test]
fn bench_compares_ops_with_a_function_in_python_and_an_op_in_cpp() {
    let mut bench = program::with_tensorflow(NEWEST, "bench");
    bench.args(["textops", "--seconds", "0.002"]);
    let printed = succeeds(&mut bench);
    assert_all(
        &printed,
        &[
            "5 ops through TensorFlow",
            "tf.py_function",
            "tf.identity_n",
            "TextWords, a row of 1",
            "TextWords in a tf.function, rows of 1000",
            "`pattern` has no default, and cannot be made up",
        ],
    );
    let mut bench = program::tool();
    let printed =
        fails(bench.current_dir(root()).args(["tf-plugin", "bench", "textops", "--no-tf"]));
    assert!(printed.contains("ops are measured in TensorFlow only"), "{printed}");
}

/// Prints the names of TensorFlow's ops, except those that only its graphs use.
const LIST_OPS: &str = "
import tensorflow
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session as session

ops = op_def_pb2.OpList()
ops.ParseFromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
print('ops', *(op.name for op in ops.op if not op.name.startswith('_')))";

/// `check` finds ops that have the name of one of TensorFlow's.
#[test]
fn the_list_of_tensorflow_s_ops_has_those_of_the_newest() {
    let listed = include_str!("../../src/ops/tensorflow_ops.txt");
    let tensorflow = TensorFlow::pinned(NEWEST).expect("TensorFlow is provided");
    let printed = succeeds(tensorflow.python_command().args(["-c", LIST_OPS]));
    let names = printed.lines().find_map(|line| line.strip_prefix("ops ")).expect("the ops");
    assert!(names.split(' ').count() > 1000, "{names}");
    let is_missing = |name: &&str| !listed.split_whitespace().any(|other| other == *name);
    let missing: Vec<_> = names.split(' ').filter(is_missing).collect();
    assert!(missing.is_empty(), "add to src/ops/tensorflow_ops.txt: {}", missing.join(" "));
}

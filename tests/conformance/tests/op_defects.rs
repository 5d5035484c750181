//! Ops with one defect each, as authors write them: the in-process host finds every one, and names the output. Defects that
//! the SDK does not let anybody write are in the unit tests of the host.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use tf_op_plugin::kernel::ShapeInferenceContext;
use tf_op_plugin::prelude::*;
use tf_plugin_testing::ops::{Call, Host, Violation};

/// Declares ops that add something to each element of a vector.
macro_rules! ops {
    ($($op:ident $name:literal: |$x:ident| $compute:expr, |$shapes:ident| $infer:expr;)*) => {$(
        #[op(name = $name, inputs(x: [n]), outputs(y))]
        struct $op;

        impl Op for $op {
            type Inputs = Tensor<i64>;
            type Outputs = Tensor<i64>;

            fn infer_shapes($shapes: &mut ShapeInferenceContext<'_>) -> Result<()> {
                $infer
            }

            fn compute(&self, $x: Tensor<i64>, _: &OpContext<'_>) -> Result<Tensor<i64>> {
                Ok($compute)
            }
        }
    )*};
}

static RUNS: AtomicI64 = AtomicI64::new(0);

ops! {
    WrongShape "DefectWrongShape": |x| x.map(|x| x + 1), |shapes| {
        let one = shapes.vector(1)?;
        shapes.set_output(0, &one)
    };
    NeedsRank "DefectNeedsRank": |x| x.map(|x| x + 1), |shapes| {
        let x = shapes.input(0)?;
        shapes.rank(&x).ok_or_else(|| Error::invalid_argument("the rank is missing"))?;
        shapes.set_output(0, &x)
    };
    NotSet "DefectNotSet": |x| x.map(|x| x + 1), |shapes| shapes.input(0).map(drop);
    NotStateful "DefectNotStateful": |x| x.map(|x| x + RUNS.fetch_add(1, Ordering::Relaxed)), |shapes| shapes.set_unknown();
}

static KEPT: Mutex<Vec<Strings>> = Mutex::new(Vec::new());

#[op(name = "DefectKeeps", inputs(x: [..s]), outputs(y: []))]
struct Keeps;

impl Op for Keeps {
    type Inputs = Strings;
    type Outputs = i64;

    fn compute(&self, x: Strings, _: &OpContext<'_>) -> Result<i64> {
        let len = x.len();
        KEPT.lock().expect("nothing panics").push(x);
        Ok(len as i64)
    }
}

fn violations(call: Call) -> Vec<Violation> {
    let (result, violations) = call.run_with_violations();
    assert_eq!(result.expect("the op succeeds").len(), 1);
    violations
}

#[track_caller]
fn one(call: Call, text: &str) {
    let found: Vec<_> = violations(call).iter().map(ToString::to_string).collect();
    assert!(matches!(&found[..], [only] if only.contains(text)), "{text}: {found:#?}");
}

#[test]
fn wrong_shape_functions_are_found() {
    let call = |op: &str| Host::new().call(op).input([1_i64, 2]);
    one(
        call("DefectWrongShape"),
        "`infer_shapes` on \"DefectWrongShape\": output 0, `y`, has the shape [2], and the shape function says [1] (inputs of \
         the shapes [2])",
    );
    one(
        call("DefectNeedsRank"),
        "fails, and `compute` succeeds: the rank is missing; no graph can have the node (inputs of the shapes <unknown>)",
    );
    one(call("DefectNotSet"), "the shape of output `y` is not set; call `set_unknown` first");
}

#[test]
fn an_op_that_should_be_stateful_is_found() {
    one(
        Host::new().call("DefectNotStateful").input([1_i64, 2]),
        "output 0, `y`, is another one with inputs that others use: TensorFlow merges equal nodes",
    );
}

#[test]
fn tensors_that_are_kept_for_good_are_found() {
    let call = || Host::new().call("DefectKeeps").input(["a", "b"]);
    one(call(), "2 tensor(s) that the plugin got are not freed after its kernel is deleted");
    assert_eq!(violations(call().keeps_tensors()), []);
}

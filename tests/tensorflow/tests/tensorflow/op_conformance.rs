//! The cases for ops, on the tutorial's, the tokenizers', and on ops that are broken on purpose.

use cargo_tf_plugin::{NEWEST, TensorFlow};
use std::env;
use std::ffi::OsStr;
use std::time::Duration;
use tf_plugin_conformance_tests::effort::is_whole;
use tf_plugin_tensorflow_tests::{Plugin, each_tensorflow, script, tensorflow};
use tf_plugin_testing::ops::{CaseResult, InTensorFlow, Outcome, Sample, TensorFlowCase};

#[path = "../../../../examples/textops/tests/calls/mod.rs"]
mod textops_calls;
#[path = "../../../../plugins/tokenizers/tests/calls/mod.rs"]
mod tokenizers_calls;

each_tensorflow!(textops, tokenizers);

/// The cases on a plugin, whose gradients a module of `tests/tensorflow/python` registers.
fn cases(
    tensorflow: &TensorFlow,
    plugin: &'static str,
    calls: impl IntoIterator<Item = Sample>,
) -> InTensorFlow {
    let library = Plugin::of(plugin).path();
    let cases = InTensorFlow::from_python(tensorflow.python(), library).calls(calls);
    let text = |text: &OsStr| text.to_str().expect("UTF-8").to_owned();
    let settings = tensorflow.python_command();
    let cases = settings.get_envs().fold(cases, |cases, (name, value)| match value {
        Some(value) => cases.env(text(name), text(value)),
        None => cases,
    });
    let modules = ["tensorflow/python", "python/few_collections"].map(script);
    let modules = text(&env::join_paths(modules).expect("paths"));
    cases
        .env("PYTHONPATH", modules)
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .env("OP_LIBRARY", text(library.as_os_str()))
        .package("op_gradients")
        // Of 10,000,000 strings Python makes as many objects.
        .limit(Duration::from_secs(if is_whole() { 3600 } else { 120 }))
}

fn textops(tensorflow: &TensorFlow) {
    let cases = cases(tensorflow, "textops", textops_calls::calls());
    pass(cases.cases(), &cases.run("textops"), &[]);
}

fn tokenizers(tensorflow: &TensorFlow) {
    let cases = cases(tensorflow, "tensorflow-tokenizers", tokenizers_calls::calls());
    // A pair whose text has 10 MB goes through the crate's tables of offsets.
    let cases = if is_whole() { cases } else { cases.limit(Duration::from_secs(600)) };
    // No op has a gradient, and none takes several tokenizers.
    let skipped = ["python_gradient", "python_data_batches"];
    pass(cases.cases(), &cases.run("the tokenizers"), &skipped);
}

/// Judges that nothing failed, and that only these cases were skipped.
#[track_caller]
fn pass(cases: &[&TensorFlowCase], results: &[CaseResult], skipped: &[&str]) {
    assert_eq!(results.len(), cases.len());
    let mut found = Vec::new();
    for result in results {
        match &result.outcome {
            Outcome::Passed => {}
            Outcome::Skipped(_) => found.push(result.case.name),
            Outcome::Failed(deviations) => panic!("{}: {deviations:#?}", result.case.name),
        }
    }
    assert_eq!(found, skipped);
}

fn brokenops() -> InTensorFlow {
    let calls = [
        Sample::new("BrokenScale")
            .input("x", [[1.0, -2.0], [0.5, 4.0]])
            .output("y", [[2.0, -4.0], [1.0, 8.0]]),
        Sample::new("BrokenUpper").input("text", ["ab", "Cd"]).output("upper", ["AB", "CD"]),
        Sample::new("BrokenHash").input("text", ["ab", "cd"]),
        Sample::new("BrokenRowSums")
            .input("rows_values", [1.0, 2.0, 4.0])
            .input("rows_row_splits", [0, 2, 2, 3])
            .output("sums", [3.0, 0.0, 4.0]),
        Sample::new("BrokenZeros").input("like", ["a", "b"]).output("zeros", [0, 0]),
    ];
    cases(&tensorflow(NEWEST), "brokenops", calls)
}

macro_rules! defects {
    ($($name:ident $what:literal => $($case:ident)+;)*) => {
        &[$((stringify!($name), &[$(stringify!($case),)+]),)*]
    };
}

/// Each defect, and the cases that find it.
const DEFECTS: &[(&str, &[&str])] = tf_plugin_conformance_tests::op_defects!(defects);

/// What these cases find is in TensorFlow and in the SDK, so that no op can have it; the first reports what nothing calls.
const FIND_NOTHING: [&str; 3] = ["python_every_op", "python_wrong_types", "python_loaded_twice"];

#[test]
fn each_case_finds_a_defect() {
    let cases = brokenops();
    let names: Vec<_> = cases.cases().iter().map(|case| case.name).collect();
    let silent = |name: &&str| !DEFECTS.iter().any(|(_, cases)| cases.contains(name));
    let silent: Vec<_> = names.iter().copied().filter(silent).collect();
    assert_eq!(silent, FIND_NOTHING);
    // Before a release all cases run on each defect. The others must not end the process.
    let jobs = DEFECTS.iter().map(|(defect, finders)| {
        let environment = vec![("BROKENOPS_DEFECT".to_owned(), (*defect).to_owned())];
        let is_run = |case: &&&TensorFlowCase| is_whole() || finders.contains(&case.name);
        (environment, cases.cases().iter().filter(is_run).copied().collect())
    });
    let jobs: Vec<_> = jobs.chain([(Vec::new(), cases.cases().to_vec())]).collect();
    let mut results = cases.run_each("brokenops", &jobs);
    let whole = results.pop().expect("the job without a defect");
    pass(cases.cases(), &whole, &["python_every_op"]);
    let Outcome::Skipped(reason) = &whole[0].outcome else { panic!("{:?}", whole[0]) };
    assert_eq!(reason, "never called: BrokenUncalled; add sample calls");
    for ((defect, finders), results) in DEFECTS.iter().zip(results) {
        for finder in *finders {
            let result = results.iter().find(|result| result.case.name == *finder);
            let outcome = result.map(|result| &result.outcome);
            let found = matches!(outcome, Some(Outcome::Failed(_)));
            assert!(found, "{finder} does not find {defect}: {outcome:?}");
        }
    }
}

//! `coverage`: which ops of a script ran on the reference device in real TensorFlow releases, which did not, why, and
//! what was copied for them.

use crate::output::{Ran, assert_all, ran, root};
use crate::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_tf_plugin::NEWEST;
use serde_json::Value;
use tempfile::TempDir;

fn command(version: &str) -> Command {
    let mut command = program::with_tensorflow(version, "coverage");
    command.args(["--package", "refdevice"]);
    command
}

/// A script in a new directory.
struct Script(TempDir);

impl Script {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("train.py"), text).expect("written");
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("train.py")
    }

    /// Runs the script with the reference device, which has to succeed.
    #[track_caller]
    fn covered(&self, version: &str, options: &[&str]) -> Ran {
        let ran = ran(command(version).args(options).arg(self.path()));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran
    }

    #[track_caller]
    fn json(&self, version: &str) -> (Value, Ran) {
        let ran = self.covered(version, &["--json"]);
        let report = serde_json::from_str(&ran.out);
        (report.unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.out, ran.err)), ran)
    }
}

/// Returns runs, whether they are exact, and copies and bytes to and from the device.
fn cost(row: &Value) -> (u64, bool, [u64; 2], [u64; 2]) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no number in {row}"));
    let copies = |way: &str| {
        assert_eq!(row[way]["unknown"], 0, "{row}");
        [number(&row[way]["copies"]), number(&row[way]["bytes"])]
    };
    (number(&row["runs"]), row["exact"] == true, copies("to_device"), copies("from_device"))
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap_or_else(|| panic!("no rows in {report}"))
}

fn row<'a>(report: &'a Value, place: &str, op: &str, types: &str) -> &'a Value {
    let mut found = rows(report)
        .iter()
        .filter(|row| row["where"] == place && row["op"] == op && row["types"] == types);
    let row = found.next().unwrap_or_else(|| panic!("no {op} {types} on {place} in {report:#}"));
    assert!(found.next().is_none(), "{op} {types} on {place} twice");
    row
}

/// Ops of each class, in functions and outside of them. `Lgamma` has no kernel, `MatMul` none for complex128.
const EACH_CLASS: &str = include_str!("scripts/each_class.py");

fn each_class(version: &str) -> Value {
    let script = Script::new(EACH_CLASS);
    let (report, ran) = script.json(version);
    assert!(ran.err.contains("the script says this"), "{}", ran.err);
    assert_eq!((&report["tensorflow"], &report["device"]), (&version.into(), &"RUST_REF".into()));
    assert_eq!((&report["error"], &report["unseen"]), (&Value::Null, &Value::Array(vec![])));

    // Three times in the function.
    let none = [0, 0];
    assert_eq!(cost(row(&report, "device", "MatMul", "float32")), (3, true, none, none));
    assert_eq!(cost(row(&report, "device", "Mul", "float32")), (3, true, none, none));
    // Outside of it.
    assert_eq!(cost(row(&report, "device", "AddV2", "float32")), (2, true, none, none));
    // In the function three times 8 × 2 numbers of 4 bytes, outside 8 × 4; the result is copied back once, though two
    // ops read it.
    let lgamma = row(&report, "cpu", "Lgamma", "float32");
    let bytes = 3 * 8 * 2 * 4 + 8 * 4 * 4;
    assert_eq!(cost(lgamma), (4, true, [4, bytes], [4, bytes]));
    assert_eq!((&lgamma["why"], &lgamma["detail"]), (&"no kernel".into(), &"".into()));
    // One tensor for both inputs, of 2 × 3 × 3 numbers of 16 bytes.
    let product = report["rows"].as_array().expect("rows");
    let product = product.iter().find(|row| {
        row["types"] == "complex128" && row["op"].as_str().is_some_and(|op| op.contains("MatMul"))
    });
    let product = product.unwrap_or_else(|| panic!("no product in {report:#}"));
    assert_eq!(cost(product), (1, true, none, [1, 2 * 3 * 3 * 16]));
    assert_eq!(product["why"], "no kernel for this type", "{product}");
    let detail = product["detail"].as_str().unwrap_or_default();
    assert!(detail.starts_with("there is one for ") && detail.contains("float32"), "{detail}");
    // `Maximum` of int32 is TensorFlow's own kernel, which takes and gives host memory.
    let maximum = row(&report, "host", "Maximum", "int32");
    assert_eq!(maximum["why"], "host memory");
    assert_eq!(cost(maximum), (1, true, none, [1, 8 * 4 * 4]));

    // The missing kernel was reported before.
    let printed = "coverage: `step` needs kernels that RUST_REF does not have:\n  Lgamma float32: no kernel\n";
    assert!(ran.err.contains(printed), "{}", ran.err);
    let missing = report["missing"].as_array().expect("a list");
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!((&missing[0]["op"], &missing[0]["function"]), (&"Lgamma".into(), &"step".into()));
    report
}

#[cfg(feature = "matrix")]
#[test]
fn coverage_in_an_old_tensorflow_equals_the_newest() {
    let oldest = cargo_tf_plugin::MATRIX[0];
    each_class(oldest);
    training(oldest);
    updates(oldest);
}

/// Compares the numbers with the trace, which counts the calls to the plugin itself.
#[test]
fn ops_of_each_class_are_counted_as_the_plugin_is_called() {
    let report = each_class(NEWEST);
    let script = Script::new(EACH_CLASS);
    let mut traced = program::with_tensorflow(NEWEST, "run");
    traced.args(["--package", "refdevice", "--trace=totals", "--", "python"]).arg(script.path());
    let traced = ran(&mut traced);
    assert_eq!(traced.code, Some(0), "{}", traced.err);
    let of = |call: &str| -> Vec<u64> {
        let prefix = format!("RUST_REF {call} ");
        let line = traced.err.lines().find(|line| line.starts_with(&prefix));
        let line = line.unwrap_or_else(|| panic!("no {call} in:\n{}", traced.err));
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let on_device = rows(&report).iter().filter(|row| row["where"] == "device");
    let mut ops = std::collections::BTreeMap::<&str, u64>::new();
    for row in on_device {
        *ops.entry(row["op"].as_str().expect("a name")).or_default() += cost(row).0;
    }
    assert!(ops.len() >= 4, "{ops:?}");
    for (op, runs) in ops {
        assert_eq!(of(&format!("{op} compute"))[0], runs, "{op}: {}", traced.err);
    }
    let from_device: [u64; 2] = rows(&report)
        .iter()
        .map(cost)
        .fold([0, 0], |sum, (.., from)| [sum[0] + from[0], sum[1] + from[1]]);
    let copied = of("memcpy_dtoh");
    assert_eq!([copied[0], copied[copied.len() - 1]], from_device, "{}", traced.err);
}

/// The kernels of `Lgamma` and of its gradient `Digamma` are missing.
const TRAINING: &str = include_str!("scripts/training.py");

fn training(version: &str) {
    let script = Script::new(TRAINING);
    let (report, ran) = script.json(version);
    assert_eq!((&report["error"], &report["unseen"]), (&Value::Null, &Value::Array(vec![])));
    // Two forward, three backward, in each of six steps.
    assert_eq!(cost(row(&report, "device", "MatMul", "float32")), (30, true, [0, 0], [0, 0]));
    let (lgamma, digamma) = (
        cost(row(&report, "cpu", "Lgamma", "float32")),
        cost(row(&report, "cpu", "Digamma", "float32")),
    );
    assert_eq!((lgamma.0, lgamma.1, digamma.0, digamma.1), (6, true, 6, true));
    // The input of both is copied once a step, the output of each is copied back: 16 × 4 numbers of 4 bytes.
    let bytes = 6 * 16 * 4 * 4;
    assert_eq!((lgamma.2, digamma.2), ([6, bytes], [6, bytes]));
    assert_eq!(lgamma.3[1] + digamma.3[1], bytes, "{lgamma:?} {digamma:?}");

    let (before, _) = ran.err.split_once("step 0\n").expect("a step");
    for op in ["Lgamma", "Digamma"] {
        assert!(before.contains(&format!("  {op} float32: no kernel\n")), "{}", ran.err);
    }
}

#[test]
fn a_training_step_is_counted() {
    training(NEWEST);
}

#[test]
fn a_dry_run_names_what_is_missing_and_stops_before_training() {
    let ran = Script::new(TRAINING).covered(NEWEST, &["--dry-run"]);
    assert!(!ran.out.contains("step 0"), "{}", ran.out);
    assert_all(&ran.out, &["stopped before `", "Lgamma float32 in `", "Digamma float32 in `"]);
}

/// Checks updates for which the SDK's own kernels only fail. There is no `Sub` of complex64 that the graph pass could
/// use, nothing that replaces `ResourceScatterDiv`, and arithmetic for an optimizer of float32.
fn updates(version: &str) {
    let script = Script::new(
        "
import tensorflow as tf
with tf.device('/device:RUST_REF:0'):
    v = tf.Variable(tf.complex([1.0], [1.0]))
    w = tf.Variable([1.0])

@tf.function
def update():
    w.assign_sub([1.0])
    v.assign_sub(v)
    w.scatter_div(tf.IndexedSlices([2.0], [0]))
    tf.raw_ops.ResourceApplyGradientDescent(var=w.handle, alpha=0.5, delta=[1.0])

update()
print(v.numpy())
",
    );
    let ran = script.covered(version, &[]);
    assert!(ran.out.contains("[0.+0.j]"), "{}", ran.out);
    let missing =
        ran.err.split_once("coverage: `update` needs kernels that RUST_REF does not have:\n");
    let (_, missing) = missing.unwrap_or_else(|| panic!("nothing is missing:\n{}", ran.err));
    let missing: Vec<_> = missing.lines().take_while(|line| line.starts_with("  ")).collect();
    let printed = [
        "  Sub complex64: no kernel for this type; for `v.assign_sub`, which the CPU computes",
        "  ResourceScatterDiv dtype=float32 Tindices=int32: no kernel; the CPU computes it",
    ];
    assert_eq!(missing, printed, "{}", ran.err);
    let row = ran.out.lines().rfind(|line| line.contains("ResourceScatterDiv"));
    assert!(row.is_some_and(|row| row.contains("no kernel; the CPU computes it")), "{}", ran.out);
}

#[test]
fn kernels_for_rewritten_updates_are_named() {
    updates(NEWEST);
}

#[test]
fn loops_branches_and_threads_are_told() {
    let script = Script::new(
        "
import threading
import tensorflow as tf

@tf.function
def looped(x, n):
    for _ in tf.range(n):
        x = tf.math.lgamma(x + 3.0)
    if tf.reduce_sum(x) > 0.0:
        x = tf.math.digamma(x)
    return tf.math.ndtri(tf.sigmoid(x))

looped(tf.ones([5]), tf.constant(3))
ones = tf.ones([6])
other = threading.Thread(target=lambda: tf.math.erfinv(ones))
other.start()
other.join()
",
    );
    let (report, ran) = script.json(NEWEST);
    assert_eq!(report["error"], Value::Null, "{}", ran.err);
    for op in ["Lgamma", "Digamma"] {
        let (runs, exact, to, from) = cost(row(&report, "cpu", op, "float32"));
        assert_eq!((runs, exact, to[1], from[1]), (1, false, 20, 20), "{op}");
    }
    let behind = cost(row(&report, "cpu", "Ndtri", "float32"));
    assert_eq!((behind.0, behind.1), (1, true));
    assert_eq!(cost(row(&report, "cpu", "Erfinv", "float32")), (1, true, [0, 0], [1, 24]));
}

#[test]
fn the_report_is_printed_however_the_script_ends() {
    let ends = |end: &str| {
        let script = Script::new(&format!("import os, sys\n{end}\n"));
        ran(command(NEWEST).arg(script.path()).args(["--epochs", "3"]))
    };
    let work = "import tensorflow as tf\ntf.math.lgamma(tf.ones([2]) + 1.0)\nprint(sys.argv[1:])";
    let mut errors = Vec::new();
    for (end, code) in [("sys.exit(7)", 7), ("raise ValueError('of the script')", 1)] {
        let ran = ends(&format!("{work}\n{end}"));
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        assert!(ran.out.starts_with("['--epochs', '3']\n"), "{}", ran.out);
        let title = format!("librefdevice.so: what ran on RUST_REF, TensorFlow {NEWEST}");
        assert!(ran.out.contains(&title), "{}", ran.out);
        let line = ran.out.lines().find(|line| line.starts_with("  Lgamma float32 "));
        let words: Vec<_> = line.expect("a row").split_whitespace().collect();
        assert_eq!(words, ["Lgamma", "float32", "1", "8", "bytes", "no", "kernel"]);
        let printed =
            format!("train.py failed: exit status {code}; the report is of what ran before");
        assert!(ran.err.contains(&printed), "{}", ran.err);
        errors.push(ran.err);
    }
    let error = &errors[1];
    assert!(
        error.contains("train.py\", line 5") && error.contains("ValueError: of the script"),
        "{error}"
    );

    let ran = ends("os._exit(3)");
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("train.py ended without a report: exit status 3"), "{}", ran.err);
    let ran = ends("os.kill(os.getpid(), 9)");
    assert_eq!(ran.code, Some(137), "{}", ran.err);
    assert!(ran.err.contains("train.py ended without a report: signal 9"), "{}", ran.err);
}

#[test]
fn scripts_that_cannot_be_covered_are_reported() {
    let refused = |ran: Ran, printed: &str| {
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains(printed), "no `{printed}` in:\n{}", ran.err);
        assert!(!ran.out.contains("what ran on"), "{}", ran.out);
    };
    let with = |package: &str, script: &Path| {
        let mut command = program::with_tensorflow(NEWEST, "coverage");
        ran(command.args(["--package", package]).arg(script))
    };
    refused(
        with("refdevice", Path::new("/nowhere/train.py")),
        "error: cannot find /nowhere/train.py; name a Python script",
    );
    let imports = Script::new("import tensorflow as tf\n");
    refused(with("memfs", &imports.path()), "libmemfs.so has no device: it exports ");
    refused(
        with("refdevice", &Script::new("print('hello')\n").path()),
        "error: the script did not import TensorFlow",
    );
    let mut hidden = command(NEWEST);
    hidden.arg(imports.path()).env("TF_SE_PLUGIN_DEVICES", "0");
    refused(ran(&mut hidden), "error: the plugin added no device");
    refused(
        ran(command(NEWEST).args(["--device", "MY_NPU"]).arg(imports.path())),
        "error: there is no device of the type MY_NPU; plugins added RUST_REF",
    );
}

/// Runs the script of the book's page, and compares the output that the page shows.
#[test]
fn the_book_shows_what_is_covered() {
    let page = fs::read_to_string(root().join("docs/coverage.md")).expect("the page");
    let block = |after: &str| -> String {
        let (_, rest) = page.split_once(after).unwrap_or_else(|| panic!("no {after}"));
        let (_, rest) = rest.split_once('\n').expect("a line");
        rest.split_once("```").expect("an end").0.to_owned()
    };
    let script = Script::new(&block("```python"));
    let ran = script.covered(NEWEST, &[]);
    let shown: Vec<_> = page.split("```text\n").skip(1).collect();
    let [before, report] = shown.as_slice() else { panic!("{} texts", shown.len()) };
    let shown = |text: &str| text.split_once("```").expect("an end").0.to_owned();
    assert!(ran.err.contains(&shown(before)), "{}", ran.err);
    assert_eq!(ran.out.trim_start(), shown(report));
}

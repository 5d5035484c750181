//! A device whose methods fail, panic or take their time, in real TensorFlow: what a user sees of it, and that the
//! process goes on wherever TensorFlow lets it.
//!
//! `tests/tensorflow/python/device_faults.py` runs each case in its own process.

use cargo_tf_plugin::{MATRIX, NEWEST, TensorFlow};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tf_plugin_conformance_tests::effort::one_in;
use tf_plugin_tensorflow_tests::overlay::Overlay;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, each_tensorflow, script};

each_tensorflow!(
    faults_end_in_errors,
    a_directory_with_two_names_has_one_device;
    oldest and newest:
    a_platform_that_fails_leaves_the_rest_alone,
);

const SCRIPT: &str = "tensorflow/python/device_faults.py";
const STEPS: &str = "tensorflow/python/devices.py";

/// How long a case may take, in seconds: the longest waits twice the ten seconds that TensorFlow waits for memory.
const LIMIT: &str = "120";

/// The outcome of a case.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// No step fails, because nothing calls what is faulty.
    Unreached,
    /// No step fails.
    Harmless,
    /// The device is not there, and the log says why.
    NoDevice,
    /// These steps fail and no others: `step` alone with the fault's own error, `step=word` with the error that
    /// [`known`] knows.
    Fail(&'static str),
    /// The process ends with SIGABRT in this step.
    Abort(&'static str),
}

use Effect::{Abort, Fail, Harmless, NoDevice, Unreached};

/// Errors that are not the fault's own: type, and a part of the text.
fn known(word: &str) -> (&'static str, &'static str) {
    match word {
        "absent" => ("wrong", "0 devices"),
        "dropped" => ("InternalError", "was dropped before it was completed"),
        "elsewhere" => ("InvalidArgumentError", "Could not satisfy device specification"),
        "no-target" => ("InternalError", "Dst tensor is not initialized"),
        "oom" => ("ResourceExhaustedError", "OOM when allocating tensor"),
        "sync" => ("InternalError", "PluggableDevice SyncAll failed."),
        "used-up" => ("ResourceExhaustedError", "the memory of the device is used up"),
        other => panic!("{other} is not an error"),
    }
}

/// Calls that are impossible without a device.
const WITHOUT: &str = "devices=absent copy_in=elsewhere copy_out=elsewhere kernel=elsewhere \
    function=elsewhere lists=elsewhere again=elsewhere";
/// All steps with a copy to the device.
const ALL: &str = "copy_in copy_out kernel function lists again";
/// All but the first.
const LATER: &str = "copy_out kernel function lists again";
/// A copy to the device that fails ends the process up to TensorFlow 2.16. So it is kernels that tell of failures,
/// and whatever fetches a value.
const STICKY: &str = "copy_out=sync kernel function lists=sync again";

/// TensorFlow up to 2.16.
fn is_old(release: (u32, u32)) -> bool {
    release < (2, 17)
}

/// Returns the outcome of a method that always fails, and of one that always panics.
fn methods(release: (u32, u32)) -> Vec<(&'static str, [Effect; 2])> {
    let old = is_old(release);
    let either = |then, now| if old { then } else { now };
    let unseen = [Fail(either(STICKY, ALL)); 2];
    let behind = [Fail(either(STICKY, LATER)); 2];
    let fetch = if old { Abort("copy_out") } else { Fail(LATER) };
    // A description cannot fail; it can only return nothing.
    let description = [Harmless, NoDevice];
    vec![
        // The device then has its constant type.
        ("Platform::device_type", [Harmless; 2]),
        ("Platform::new", [NoDevice; 2]),
        ("Platform::device_count", [NoDevice; 2]),
        // A kernel is then registered at another time, and no kernel of this device is optional.
        ("Platform::is_optional", [Harmless; 2]),
        ("Platform::has_optional_kernels", [Harmless; 2]),
        ("Platform::open", [NoDevice; 2]),
        ("Device::memory_usage", [NoDevice; 2]),
        ("Device::host_allocator", description),
        ("Device::hardware_name", description),
        ("Device::vendor", description),
        ("Device::pci_bus_id", description),
        ("Device::numa_node", [Harmless; 2]),
        ("Device::memory_bandwidth", [Harmless; 2]),
        ("Device::create_event", [Harmless; 2]),
        ("Device::create_stream", unseen),
        (WITH_OPTIONS, if release < (2, 22) { [Unreached; 2] } else { unseen }),
        ("Device::allocate", unseen),
        ("Stream::copy_to_device", unseen),
        ("Stream::wait_stream", unseen),
        ("Stream::record_event", behind),
        ("Event::status", behind),
        ("Stream::copy_to_host", [fetch; 2]),
        ("Stream::copy_on_device", [Fail(either("lists=sync again", "lists")); 2]),
        // TensorFlow does not look at its status, so the copies behind it fail.
        ("Stream::fill", [Fail(either("lists=sync again", "lists again")); 2]),
        (
            "Device::synchronize",
            [Fail("copy_out=sync kernel=sync function=sync lists=sync again=sync"); 2],
        ),
        ("Stream::status", [Fail("kernel function again"); 2]),
        ("Kernel::new", [Fail("kernel function again"); 2]),
        ("Kernel::compute", [Fail("kernel function again"); 2]),
        // Nothing in Python leads to these; those that TensorFlow's own code may call are tested in the host of
        // `se-plugin`.
        ("Device::copy_on_device", [Unreached; 2]),
        ("Device::copy_to_device", [Unreached; 2]),
        ("Device::copy_to_host", [Unreached; 2]),
        ("Device::allocator_stats", [Unreached; 2]),
        ("Device::create_timer", [Unreached; 2]),
        ("Device::gflops", [Unreached; 2]),
        ("Event::wait", [Unreached; 2]),
        ("Stream::host_callback", [Unreached; 2]),
        ("Stream::synchronize", [Unreached; 2]),
        ("Stream::wait_event", [Unreached; 2]),
    ]
}

/// The method that TensorFlow calls since 2.22.
const WITH_OPTIONS: &str = "Device::create_stream_with_options";

/// Other cases: the plan with its steps and variables.
fn others(old: bool) -> Vec<(&'static str, Effect)> {
    let either = |then, now| Fail(if old { then } else { now });
    let dropped = either(
        "copy_out=sync kernel=dropped function=dropped lists=sync again=dropped",
        "copy_out=dropped kernel=dropped function=dropped lists=dropped again=dropped",
    );
    let used_up = either(
        "copy_out=sync kernel=used-up function=used-up lists=sync again=used-up",
        "copy_in=used-up copy_out=used-up kernel=used-up function=used-up \
         lists=used-up again=used-up",
    );
    // On new releases the copies to a device whose stream has failed still work.
    let fails_later =
        either("kernel=sync function lists=sync again", "kernel=sync function lists again");
    vec![
        // Work that was enqueued: a copy's, then a kernel's.
        ("work fail", dropped),
        ("work panic", dropped),
        ("work fail@5", fails_later),
        ("work panic@5", fails_later),
        // Once.
        ("Device::create_event fail@1", Harmless),
        ("Device::create_stream fail@2", either(STICKY, ALL)),
        ("Device::create_stream panic@4", either(STICKY, ALL)),
        ("Device::memory_usage fail@2", Harmless),
        ("Device::synchronize fail@1", Fail("copy_out=sync")),
        ("Kernel::compute fail@1", Fail("kernel")),
        ("Kernel::new panic@1", Fail("kernel")),
        ("Stream::copy_to_device fail@1", either(STICKY, "copy_in")),
        ("Stream::copy_to_host fail@1", if old { Abort("copy_out") } else { Fail("copy_out") }),
        ("Stream::wait_stream fail@1", either(STICKY, "copy_in")),
        // A wrong value does not reach the CPU either.
        ("Stream::record_event fail@1;load copy_in across cpu", either("across=sync", "across")),
        (
            "Stream::record_event fail@1;load copy_in across_in_graph",
            if old { Abort("across_in_graph") } else { Fail("across_in_graph") },
        ),
        ("Stream::record_event fail@2;load keep copy_in kernel_on_kept", Fail("kernel_on_kept")),
        ("Kernel::compute fail;load kernel across across_in_graph", Fail("kernel")),
        // Slow.
        ("* slow", Harmless),
        ("* slow;load threads across across_in_graph", Harmless),
        // Memory that is used up; TensorFlow then waits for ten seconds.
        ("Device::allocate refuse", used_up),
        (
            // The first request is the SDK's own, for small tensors; the second a region.
            "Device::allocate refuse@3+;load no_room_for_an_output cpu",
            // Up to 2.16 TensorFlow requests less only the first time that it is refused.
            either("no_room_for_an_output=oom", "no_room_for_an_output=used-up"),
        ),
        ("Device::allocate refuse@3+;load room_for_small_ones again cpu", Harmless),
        (";load copy_in too_large again", Fail("too_large=no-target")),
        // It gives regions back for the larger one.
        ("Device::deallocate slow;load too_much let_go larger again", Fail("too_much=oom")),
        (
            "Device::deallocate fail;load too_much let_go larger cpu",
            Fail("too_much=oom larger=no-target"),
        ),
        (
            "Device::deallocate panic;load too_much let_go larger cpu",
            Fail("too_much=oom larger=no-target"),
        ),
        // Whether and when it is loaded.
        (";load load devices copy_out kernel", Harmless),
        (";load copy_out load_copy", Abort("load_copy")),
        (";cpu load devices copy_in cpu", Fail("copy_in=elsewhere")),
        (
            ";load devices copy_in cpu;TF_SE_PLUGIN_DEVICES=0",
            Fail("devices=absent copy_in=elsewhere"),
        ),
        (";load devices copy_out;TF_SE_PLUGIN_DEVICES=1", Harmless),
        (";load devices copy_out;TF_SE_PLUGIN_DEVICES=junk", Harmless),
        (
            ";load devices copy_in cpu;TF_ENABLED_DEVICE_TYPES=CPU",
            Fail("devices=absent copy_in=elsewhere"),
        ),
    ]
}

/// The cases that also run in releases that behave as their neighbours do.
const SAMPLE: &[&str] = &[
    "* slow",
    "* slow;load threads across across_in_graph",
    "Device::create_event fail",
    "Device::create_stream fail",
    "Device::synchronize fail@1",
    "Kernel::compute fail@1",
    "Stream::copy_to_host fail@1",
    "Stream::fill fail",
    "Stream::record_event fail",
];

/// The cases for a release: all of them in the newest. In others those on which releases differ, and of those that
/// panic none, since a panic is an error from where it is caught on.
fn cases(tensorflow: &TensorFlow) -> BTreeMap<String, Effect> {
    let release = tensorflow.major_minor();
    let newest = tensorflow.version() == NEWEST;
    let sample = !newest && MATRIX.first() != Some(&tensorflow.version());
    let mut cases = BTreeMap::new();
    for (place, [fails, panics]) in methods(release) {
        // Where nothing calls the method, one kind tells it.
        if !matches!(fails, Unreached) && (newest || !matches!(fails, NoDevice)) {
            cases.insert(format!("{place} fail"), fails);
        }
        if newest {
            cases.insert(format!("{place} panic"), panics);
        }
    }
    for (case, effect) in others(is_old(release)) {
        if newest || !case.contains(" panic") {
            cases.insert(case.to_owned(), effect);
        }
    }
    if release >= (2, 22) {
        // No step makes it call `synchronize_all_activity`.
        cases.insert("Device::synchronize fail@1".to_owned(), Unreached);
    }
    if sample {
        assert!(SAMPLE.iter().all(|case| cases.contains_key(*case)), "each of them is a case");
        cases.retain(|case, _| SAMPLE.contains(&case.as_str()) || case.starts_with(WITH_OPTIONS));
    }
    cases
}

/// Checks that a case ended as expected.
fn judge(case: &str, effect: Effect, ended: &Value) -> Result<(), String> {
    let plan = case.split(';').next().unwrap_or_default();
    let (place, kind) = plan.split_once(' ').unwrap_or_default();
    let kind = kind.split('@').next().unwrap_or_default();
    let stderr = ended["stderr"].as_str().unwrap_or_default();
    let own = format!("`{place}` was to {kind}");

    let reached = stderr.contains("fault in ");
    if reached == (plan.is_empty() || matches!(effect, Unreached)) {
        return Err(format!("that the fault was reached is {reached}"));
    }
    let status = ended["status"].as_i64();
    let steps: Vec<[&str; 2]> = ended["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| [0, 1].map(|index| step[index].as_str().unwrap_or_default()))
        .collect();
    let failed = steps.iter().filter(|[_, result]| *result != "ok");
    if let Abort(step) = effect {
        let failed: Vec<_> = failed.collect();
        return match (status, &failed[..]) {
            (Some(-6), [[at, "ended"]]) if *at == step => Ok(()),
            _ => Err(format!("the process was to end in `{step}`")),
        };
    }
    if status != Some(0) {
        return Err(String::from("the process was to go on"));
    }
    let expected = match effect {
        NoDevice => WITHOUT,
        Fail(steps) => steps,
        _ => "",
    };
    let mut expected: BTreeMap<&str, Option<&str>> = expected
        .split_whitespace()
        .map(|step| step.split_once('=').map_or((step, None), |(step, word)| (step, Some(word))))
        .collect();
    for [step, result] in failed {
        let word =
            expected.remove(step).ok_or_else(|| format!("`{step}` was to succeed: {result}"))?;
        let (kind, text) = match word {
            Some(word) => known(word),
            None if kind == "panic" => ("InternalError", own.as_str()),
            None => ("DataLossError", own.as_str()),
        };
        if !(result.starts_with(&format!("{kind}: ")) && result.contains(text)) {
            return Err(format!("`{step}` was to fail with {kind}: {text}, not with {result}"));
        }
    }
    if let Some((step, _)) = expected.first_key_value() {
        return Err(format!("`{step}` was to fail"));
    }
    // Nothing is lost: where no error says what has happened, the log does.
    let told = steps.iter().any(|[_, result]| result.contains(&own)) || stderr.contains(&own);
    let silent = matches!(effect, Unreached | Harmless) && place != "Device::create_event";
    if kind == "fail" && place != "work" && !silent && !told {
        return Err(format!("nobody says that {own}"));
    }
    let declined = stderr.contains("RUST_TEST has no devices: ");
    if matches!(effect, NoDevice) != declined {
        return Err(format!("that the log says why there is no device is {declined}"));
    }
    let junk = case.contains("=junk");
    if junk != stderr.contains("TF_SE_PLUGIN_DEVICES=junk has no effect; set it to a number") {
        return Err(format!("a useless variable is mentioned: {}", !junk));
    }
    Ok(())
}

fn faults_end_in_errors(tensorflow: &TensorFlow) {
    // In a sample, a method fails or panics, in turns.
    let is_chosen = |at: usize| (at / 2 + at).is_multiple_of(one_in(2));
    let all = cases(tensorflow).into_iter().enumerate();
    let cases: BTreeMap<_, _> =
        all.filter(|(at, _)| is_chosen(*at)).map(|(_, case)| case).collect();
    let plugin = Plugin::of("hostdevice");
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let finished = Python::new(tensorflow, SCRIPT)
        .arg(plugin.path())
        .arg(plugin.copy_to(scratch.path()))
        .arg(LIMIT)
        .args(cases.keys())
        .in_a_fork()
        .run()
        .success();
    let mut left = cases.clone();
    let mut failures = Vec::new();
    for line in finished.stdout.lines() {
        let ended: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| finished.fail(&format!("{error}: {line}")));
        let case = ended["case"].as_str().unwrap_or_default();
        let effect =
            left.remove(case).unwrap_or_else(|| finished.fail(&format!("what is {case}?")));
        if let Err(why) = judge(case, effect, &ended) {
            let (steps, stderr) = (&ended["steps"], ended["stderr"].as_str().unwrap_or_default());
            let status = &ended["status"];
            failures.push(format!("{case:?}: {why}\nstatus {status}, steps {steps:#}\n{stderr}"));
        }
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), [""; 0], "cases that did not run");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// No method of the traits that authors write is forgotten above.
#[test]
fn each_method_has_its_faults() {
    let mut in_source = BTreeSet::new();
    for file in ["platform", "device", "stream", "kernel/interface"] {
        let file = script(&format!("../se-plugin/src/{file}.rs"));
        let source = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        let mut current = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("pub trait ") {
                current = name.split([':', '<', ' ']).next();
            } else if line == "}" {
                current = None;
            } else if let (Some(name), Some(method)) = (current, line.strip_prefix("    fn ")) {
                let method = method.split(['(', '<']).next().unwrap_or_default();
                in_source.insert(format!("{name}::{method}"));
            }
        }
    }
    let mut tried: BTreeSet<String> =
        methods((2, 22)).into_iter().map(|(place, _)| place.to_owned()).collect();
    // Has separate cases, because TensorFlow frees memory only when none is left.
    tried.insert(String::from("Device::deallocate"));
    assert_eq!(tried, in_source);
}

/// TensorFlow then loads everything twice.
fn a_directory_with_two_names_has_one_device(tensorflow: &TensorFlow) {
    let overlay = Overlay::new(tensorflow);
    let library = Plugin::of("hostdevice").copy_to(&overlay.plugins());
    let finished = Python::with_interpreter(overlay.python(), STEPS)
        .env("PYTHONPATH", overlay.second_name())
        .args(["listed=1", "copies"])
        .arg(format!("load={}", library.display()))
        .args(["listed=1", "computes"])
        .run()
        .success();
    assert_eq!(finished.stdout.lines().count(), 5, "{}", finished.stdout);
}

/// With a filesystem in the same library.
fn a_platform_that_fails_leaves_the_rest_alone(tensorflow: &TensorFlow) {
    for kind in ["fail", "panic"] {
        let fault = format!("Platform::new {kind}");
        let steps = ["listed=0", "exists=both://here"];
        let python = Python::new(tensorflow, STEPS).env(LIBRARY, Plugin::of("bothfs").path());
        let python = python.env("HOSTDEVICE_FAULT", &fault);
        // One at the import and in a process that ends as usual.
        let python = if kind == "panic" { python } else { python.in_a_fork() };
        let finished = python.args(steps).run().success();
        finished.must_have_done(&steps);
        let line = finished.stderr.lines().find(|line| line.contains("RUST_TEST has no devices: "));
        let line = line.unwrap_or_else(|| finished.fail("the log does not say why"));
        assert!(line.contains(&format!("`Platform::new` was to {kind}")), "{line}");
    }
}

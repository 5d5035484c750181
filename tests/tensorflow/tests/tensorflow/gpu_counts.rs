//! What a training step of Keras sends to a GPU: launches, bytes, copies to the host. They are counted on a device that computes
//! nothing, so they are exact, and no measure of time.

use super::gpu::{COUNTERS, file};
use cargo_tf_plugin::NEWEST;
use std::collections::BTreeMap;
use tf_plugin_tensorflow_tests::child::Finished;
use tf_plugin_tensorflow_tests::python::Python;
use tf_plugin_tensorflow_tests::{LIBRARY, Plugin, tensorflow};

/// Runs a script on the device that computes nothing.
fn dry(script: &str, steps: &[&str], settings: &[(&str, &str)]) -> Finished {
    let python = Python::new(&tensorflow(NEWEST), &file(script)).in_a_fork();
    let finished = python
        .env(LIBRARY, Plugin::of("dry-gpu").path())
        .env("TF_PLUGIN_DEVICE_TYPE", "GPU")
        .envs(settings.iter().copied())
        .args(steps)
        .run()
        .success();
    finished.must_have_done(steps);
    finished
}

/// No operation of a training step of these models is on the CPU.
#[test]
fn families_of_keras_applications_train_on_the_device_alone() {
    dry("families", &["MobileNetV3Small", "VGG16"], &[]);
}

/// One model of each family.
#[cfg(feature = "matrix")]
#[test]
fn all_families_of_keras_applications_train_on_the_device_alone() {
    let models = "ConvNeXtTiny DenseNet121 EfficientNetB0 EfficientNetV2B0 InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 \
                  NASNetMobile ResNet50 ResNet50V2 VGG19 Xception";
    let models: Vec<_> = models.split_whitespace().collect();
    dry("families", &models, &[]);
}

/// The counts of a step.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    launches: u64,
    /// The bytes of the tensors of all launches, in tenths of a GB.
    tenths: u64,
    /// Copies to the host.
    copies: usize,
    /// Gradients of 1 x 1 filters with stride 1 that are not a matrix product.
    pointwise: usize,
}

/// Compares a step with the ceilings in its row of the table. A change that sends less also lowers the row, which the output shows.
#[track_caller]
fn sends(model: &str, expected: Counts) {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let counters = scratch.path().join("counters");
    let finished = dry("gpu_counts", &[model], &[(COUNTERS, counters.to_str().expect("UTF-8"))]);
    let counted = finished.stdout.lines().find_map(|line| line.strip_prefix("counts "));
    let counted: BTreeMap<String, BTreeMap<String, u64>> =
        serde_json::from_str(counted.expect("a line of counts")).expect("JSON");
    let step = finished.stderr.split("--- a step").nth(1).and_then(|rest| rest.split("---").next());
    let step = step.expect("a step");
    let found = Counts {
        launches: counted["launches"].values().sum(),
        tenths: (counted["bytes"].values().sum::<u64>() + 50_000_000) / 100_000_000,
        copies: step.matches("bytes to the host").count(),
        pointwise: step.matches("the gradient of a 1 x 1 filter is a convolution").count(),
    };
    let by_op = &counted["launches"];
    let is_more = found.launches > expected.launches
        || found.tenths > expected.tenths
        || found.copies > expected.copies
        || found.pointwise > expected.pointwise;
    assert!(!is_more, "{model} sends more than {expected:?}: {found:?}, by op {by_op:?}");
    if found != expected {
        eprintln!("{model} sends less: lower its row in this file to {found:?}");
    }
}

/// Tests of models, each with its row.
macro_rules! table {
    ($($test:ident: $model:literal, $launches:literal, $tenths:literal, $copies:literal, $pointwise:literal;)*) => {$(
        #[test]
        fn $test() {
            let (launches, tenths, copies, pointwise) = ($launches, $tenths, $copies, $pointwise);
            sends($model, Counts { launches, tenths, copies, pointwise });
        }
    )*};
}

// The model, launches, tenths of a GB, copies to the host, pointwise gradients.
table! {
    a_transformer: "transformer", 112, 1, 4, 0;
    attention: "attention", 39, 6, 2, 0;
    attention_in_mixed_precision: "attention,mixed_float16", 67, 4, 4, 0;
    blocks_of_a_diffusion_model: "unet", 107, 11, 2, 0;
    blocks_of_a_diffusion_model_in_mixed_precision: "unet,mixed_float16", 143, 8, 4, 0;
    efficient_net: "EfficientNetB0", 1149, 266, 2, 0;
    mobile_net: "MobileNetV2", 599, 176, 2, 0;
    res_net: "ResNet50", 634, 278, 2, 0;
    res_net_in_mixed_precision: "ResNet50,mixed_float16", 791, 146, 4, 0;
}

//! The device through TensorFlow's C tables, in this process and without TensorFlow.

use template_plugin::{TemplatePluginPlatform, add};

// A test for each of some 100 questions that TensorFlow asks of a device: memory, copies, order, events, threads.
// And some 60 more in TensorFlow, from Python and in C, which `cargo tf-plugin test` runs.
se_plugin::conformance! {
    TemplatePluginPlatform,
    without: [
        python_kernels_that_broadcast => "the one kernel adds equal shapes only",
        c_kernels_that_broadcast => "the one kernel adds equal shapes only",
    ],
}

#[test]
fn numbers_are_added() {
    let mut sum = [0.0; 3];
    add(&[1.0, 2.0, 3.0], &[0.5, 0.25, -3.0], &mut sum);
    assert_eq!(sum, [1.5, 2.25, 0.0]);
}

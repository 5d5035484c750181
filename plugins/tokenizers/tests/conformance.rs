//! The conformance cases in real TensorFlow: `cargo tf-plugin test --package tensorflow-tokenizers`.

mod calls;

tf_plugin_testing::ops::conformance! {
    calls::calls(),
    // A pair whose text has 10 MB goes through the crate's tables of offsets.
    limit: std::time::Duration::from_secs(600),
}

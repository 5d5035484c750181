//! The conformance cases in real TensorFlow: `cargo tf-plugin test --package textops`.

mod calls;

tf_plugin_testing::ops::conformance!(calls::calls());

//! The conformance cases in real TensorFlow: `cargo tf-plugin test`. Plain `cargo test` skips them.

use tf_plugin_testing::ops::Sample;

// From a sample call of each op, 25 cases make more: in functions, datasets, SavedModels, threads and forks, with other sizes and
// odd strings. `without: [case => "reason"]` excludes one.
tf_plugin_testing::ops::conformance!([Sample::new("TemplatePluginShorten")
    .input("text", ["résumé", "one", ""])
    .attribute("length", 4)
    .output("short", ["résu", "one", ""])]);

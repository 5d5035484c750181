//! Tests the filesystem through TensorFlow's C tables, in process and without TensorFlow.

use template_plugin::TemplatePluginFs;

use tf_fs_plugin::Code;
use tf_plugin_testing::filesystem::Host;

const ROOT: &str = "templateplugin://box";

// More than 350 tests: each operation under each condition, with the code that TensorFlow's header requires, and what
// TensorFlow does with files. `without: [case => "reason"]` excludes one.
tf_plugin_testing::filesystem::conformance! {
    TemplatePluginFs,
    root: "templateplugin://box/",
    other_host: "templateplugin://other/",
}

#[test]
fn a_written_file_is_read() {
    let host = Host::load::<TemplatePluginFs>().expect("the plugin loads");
    let file = format!("{ROOT}/hello.txt");
    host.write_file(&file, "hello").expect("it is written");
    assert_eq!(host.read_file(&file).expect("it is read"), b"hello");
    host.delete_file(&file).expect("it is deleted");
    let error = host.read_file(&file).expect_err("it is gone");
    assert_eq!(error.code(), Code::NotFound);
}

//! `memstore://` in TensorFlow's conformance cases.

use tf_plugin_testing::filesystem::Host;

tf_plugin_testing::filesystem::conformance! {
    memstore::FilesystemPlugins,
    root: "memstore://bucket/",
    other_host: "memstore://other/",
    visible: flush,
    directories: implied,
    without: [
        translate_name_cleans => "keys are exact: none is cleaned",
        untidy_names => "keys are exact: none is cleaned",
    ],
}

#[test]
fn a_large_file_is_sent_in_parts_and_goes_on_after_a_flush() {
    let fs = Host::load::<memstore::FilesystemPlugins>().unwrap().filesystem("memstore").unwrap();
    let mut file = fs.new_writable_file("memstore://large/file").unwrap();
    for (more, len) in [(20_000_000, 20_000_000), (10, 20_000_010)] {
        file.append(&vec![1; more]).unwrap();
        file.flush().unwrap();
        assert_eq!(fs.get_file_size("memstore://large/file").unwrap(), len);
    }
}

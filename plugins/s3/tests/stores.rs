//! `s3://` with its default settings on a real store: the one that `AWS_ENDPOINT_URL` names, with the buckets
//! `tf-s3-stores` and `tf-s3-stores-other`. `stores/ceph.sh` and `stores/swift.sh` start such stores, and
//! `.ci/release check stores` runs this on both.

use s3::S3;
use tf_plugin_s3_tests::{fs, guarantees, table};
use tf_plugin_testing::filesystem::TestRoot;

/// The bucket that the scripts make, and with `-other` at its end another.
const BUCKET: &str = "tf-s3-stores";

/// Names that no other run and no other test uses.
fn unique(topic: &str) -> String {
    assert!(
        std::env::var_os("AWS_ENDPOINT_URL").is_some(),
        "AWS_ENDPOINT_URL is not set; start a store with `plugins/s3/tests/stores/ceph.sh up` and set what it prints"
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("a clock that goes").as_nanos();
    format!("s3://{BUCKET}/{topic}-{now}/")
}

struct Prefix(String);

impl TestRoot for Prefix {
    fn uri(&self) -> String {
        self.0.clone()
    }

    fn environment(&self) -> Vec<(String, String)> {
        std::env::vars().filter(|(name, _)| name.starts_with("AWS_")).collect()
    }
}

tf_plugin_testing::filesystem::conformance! {
    S3,
    root: once(|| Prefix(unique("conformance"))),
    malformed: "s3://user:pw@bucket/key",
    other_host: format!("s3://{BUCKET}-other/"),
    visible: flush,
    directories: implied,
    without: [
        translate_name_cleans => "keys are exact: none is cleaned",
        untidy_names => "keys are exact: none is cleaned",
    ],
}

#[test]
fn flushes_publish() {
    guarantees::flushes_publish(&unique("flushes"));
}

#[test]
fn appends_go_on() {
    guarantees::appends_go_on(&unique("appends"));
}

#[test]
fn theirs_stays() {
    guarantees::theirs_stays(&unique("theirs"));
}

#[test]
fn copies_are_whole() {
    guarantees::copies_are_whole(&unique("copies"));
}

/// What SEMANTICS.md says of the store, whose name there the scripts tell.
#[test]
fn the_table_is_right() {
    let probed = s3::probe(&unique("probed")).expect("it can be probed");
    let store =
        std::env::var("S3_TEST_STORE").expect("S3_TEST_STORE: the store's name in SEMANTICS.md");
    table::check(&store, &probed);
}

/// What the answers have shown is there to be read.
#[test]
fn the_report_tells_of_the_store() {
    guarantees::flushes_publish(&unique("report"));
    let report = fs().read_file("s3:///stores.json").expect("a report");
    let report = String::from_utf8(report).expect("text");
    let endpoint = std::env::var("AWS_ENDPOINT_URL").expect("checked above");
    assert!(report.contains(&endpoint) && report.contains("put_if_match"), "{report}");
    println!("{report}");
}

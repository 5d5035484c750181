//! What the profile of the AWS tools says besides credentials, endpoint and region.

use s3_server::Options;
use tf_plugin_s3_tests::Store;
use tf_plugin_s3_tests::fake::Fake;
use tf_plugin_s3_tests::probe::{is_child, probe};
use tf_plugin_s3_tests::this_test;

#[test]
fn the_profile_says_how_buckets_are_addressed_and_what_is_sent() {
    if is_child() {
        return;
    }
    let store = Store::hidden("profile", Options::default());
    let file = std::env::temp_dir().join(format!("s3-profile-{}", std::process::id()));
    // A gateway that accepts neither.
    let fake = Fake::start(|asked| {
        // A write looks first.
        let status = if asked.line.starts_with("HEAD") { 404 } else { 403 };
        Some((status, "<Error><Code>SecondLevelDomainForbidden</Code></Error>".into()))
    });
    let endpoint = fake.url().replace("127.0.0.1", "localhost");
    let of = |lines: &str| {
        let text = format!("[default]\nregion = r\nendpoint_url = {endpoint}\n{lines}");
        std::fs::write(&file, text).unwrap();
        let change =
            [("AWS_ENDPOINT_URL", None), ("AWS_REGION", None), ("AWS_CONFIG_FILE", file.to_str())];
        let names = "s3://bkt/k put:s3://bkt/k";
        let probe = probe(this_test!(), names, &store, &change);
        let text = probe.error("FailedPrecondition");
        assert!(text.contains("set TF_S3_ADDRESSING_STYLE=virtual"), "{text}");
        let asked = fake.asked();
        let last =
            |method| asked.iter().rev().find(|asked| asked.line.starts_with(method)).unwrap();
        let (get, put) = (last("GET"), last("PUT"));
        assert_eq!(get.header("host"), put.header("host"), "both clients");
        (get.header("host").unwrap().to_owned(), put.header("x-amz-checksum-crc32").is_some())
    };
    let host = endpoint.strip_prefix("http://").unwrap();
    assert_eq!(of(""), (host.to_owned(), true));
    assert_eq!(of("s3 =\n  addressing_style = path\n"), (host.to_owned(), true));
    let virtually =
        "request_checksum_calculation = when_required\ns3 =\n  addressing_style = virtual\n";
    assert_eq!(of(virtually), (format!("bkt.{host}"), false));
    std::fs::remove_file(&file).unwrap();
}

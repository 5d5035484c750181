//! The operations of S3, requested by a client that signs with the official code.

mod common;

use std::time::Duration;

use base64_simd::STANDARD;
use common::{Client, server};
use s3_server::{Credentials, Options, Server};

const MIB: usize = 1 << 20;

#[test]
fn names_are_exact_and_in_byte_order() {
    let server = server();
    let mut client = Client::new(&server);
    let names = [
        "a",
        "a/b",
        "a//b",
        "d/",
        "./x",
        "..",
        "/lead",
        "é/ü",
        "sp ace+plus",
        "q?#%",
        "new\nline",
        "日本",
    ];
    for name in names {
        let target = format!("/bucket/{}", percent(name));
        client.put(&target, name.as_bytes()).ok();
        assert_eq!(client.get(&target).ok().body, name.as_bytes());
    }
    let mut sorted = names.map(str::to_owned);
    sorted.sort();
    assert_eq!(server.keys("bucket"), sorted);
    let listed = client.get("/bucket?encoding-type=url&list-type=2").ok().all("Key");
    let decoded = |text: &String| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8().expect("UTF-8").into_owned()
    };
    assert_eq!(listed.iter().map(decoded).collect::<Vec<_>>(), sorted);
    assert_eq!(server.log().iter().filter(|r| r.operation == "PutObject").count(), names.len());
    client.get("/bucket/a/").fails(404, "NoSuchKey");
    assert_eq!(client.call("HEAD", "/bucket/d", &[], b"").status, 404);
}

/// Encodes a key for a path.
fn percent(key: &str) -> String {
    key.split('/')
        .map(|part| {
            percent_encoding::utf8_percent_encode(part, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        })
        .collect::<Vec<_>>()
        .join("/")
        // The signature requires these unescaped.
        .replace("%2E", ".")
        .replace("%2D", "-")
}

#[test]
fn listings_page_by_page() {
    let server = server();
    for i in 0..1005 {
        server.put("bucket", &format!("many/{i:04}"), "");
    }
    server.put("bucket", "other/x", "");
    server.put("bucket", "top", "");
    let mut client = Client::new(&server);
    let first = client.get("/bucket?list-type=2&prefix=many%2F").ok();
    assert_eq!((first.all("Key").len(), first.xml("IsTruncated").as_str()), (1000, "true"));
    let token = percent(&first.xml("NextContinuationToken"));
    let rest =
        client.get(&format!("/bucket?continuation-token={token}&list-type=2&prefix=many%2F")).ok();
    assert_eq!((rest.all("Key").len(), rest.xml("IsTruncated").as_str()), (5, "false"));
    let tops = client.get("/bucket?delimiter=%2F&list-type=2").ok();
    assert_eq!((tops.all("Key"), tops.xml("KeyCount").as_str()), (vec!["top".to_owned()], "3"));
    assert_eq!(tops.all("Prefix"), ["", "many/", "other/"]);
    let after = client.get("/bucket?list-type=2&start-after=many%2F1003").ok();
    assert_eq!(after.all("Key"), ["many/1004", "other/x", "top"]);
    let old = client.get("/bucket?delimiter=%2F&max-keys=1").ok();
    assert_eq!(old.xml("NextMarker"), "many/");
    assert_eq!(
        client.get("/bucket?delimiter=%2F&marker=many%2F&max-keys=1").ok().xml("NextMarker"),
        "other/"
    );
    client.get("/nobody?list-type=2").fails(404, "NoSuchBucket");
    client.get("/bucket?continuation-token=%21&list-type=2").fails(400, "InvalidArgument");
}

#[test]
fn ranges() {
    let server = server();
    server.put("bucket", "k", "0123456789");
    server.put("bucket", "empty", "");
    let mut client = Client::new(&server);
    for (range, status, body, told) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=8-99", 206, "89", Some("bytes 8-9/10")),
        ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-2", 206, "89", Some("bytes 8-9/10")),
    ] {
        let answer = client.call("GET", "/bucket/k", &[("range", range)], b"");
        assert_eq!(
            (answer.status, answer.text().as_str(), answer.header("content-range")),
            (status, body, told)
        );
        let head = client.call("HEAD", "/bucket/k", &[("range", range)], b"");
        assert_eq!((head.status, head.header("content-range")), (status, told));
    }
    let answer = client.call("GET", "/bucket/k", &[("range", "bytes=10-")], b"");
    answer.fails(416, "InvalidRange");
    assert_eq!(answer.header("content-range"), Some("bytes */10"));
    client.call("GET", "/bucket/empty", &[("range", "bytes=0-0")], b"").fails(416, "InvalidRange");
    assert_eq!(client.get("/bucket/empty").ok().body, b"");
}

#[test]
fn conditions() {
    let server = server();
    let etag = format!("\"{}\"", server.put("bucket", "k", "1"));
    let mut client = Client::new(&server);
    let (hit, miss): ([_; 1], [_; 1]) = ([("if-match", etag.as_str())], [("if-match", "\"no\"")]);
    client.call("GET", "/bucket/k", &hit, b"").ok();
    client.call("GET", "/bucket/k", &miss, b"").fails(412, "PreconditionFailed");
    let none = [("if-none-match", etag.as_str())];
    assert_eq!(client.call("GET", "/bucket/k", &none, b"").status, 304);
    client
        .call("PUT", "/bucket/k", &[("if-none-match", "*")], b"2")
        .fails(412, "PreconditionFailed");
    client.call("PUT", "/bucket/k", &miss, b"2").fails(412, "PreconditionFailed");
    client.call("PUT", "/bucket/absent", &hit, b"2").fails(404, "NoSuchKey");
    assert_eq!(server.get("bucket", "k").expect("there").bytes, "1");
    client.call("PUT", "/bucket/k", &hit, b"2").ok();
    client.call("PUT", "/bucket/k", &hit, b"3").fails(412, "PreconditionFailed");
    client.call("PUT", "/bucket/new", &[("if-none-match", "*")], b"2").ok();
    let copy = [("x-amz-copy-source", "bucket/k"), ("x-amz-copy-source-if-match", etag.as_str())];
    client.call("PUT", "/bucket/copy", &copy, b"").fails(412, "PreconditionFailed");
    assert_eq!(server.keys("bucket"), ["k", "new"]);
    client.call("DELETE", "/bucket/k", &hit, b"").fails(412, "PreconditionFailed");
}

#[test]
fn headers_are_kept_and_copied() {
    let server = server();
    let mut client = Client::new(&server);
    let headers = [
        ("content-type", "text/x"),
        ("x-amz-meta-a", "1"),
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-server-side-encryption-aws-kms-key-id", "key"),
        ("x-amz-storage-class", "STANDARD_IA"),
    ];
    client.call("PUT", "/bucket/k", &headers, b"x").ok();
    let info = server.stat("bucket", "k").expect("there");
    assert_eq!(
        (info.sse.as_deref(), info.sse_kms_key_id.as_deref()),
        (Some("aws:kms"), Some("key"))
    );
    assert_eq!(
        (info.storage_class.as_deref(), info.metadata["a"].as_str()),
        (Some("STANDARD_IA"), "1")
    );
    let head = client.call("HEAD", "/bucket/k", &[], b"").ok();
    for (name, value) in headers {
        assert_eq!(head.header(name), Some(value));
    }
    client.call("PUT", "/bucket/c", &[("x-amz-copy-source", "/bucket/k")], b"").ok().xml("ETag");
    let copied = client.call("HEAD", "/bucket/c", &[], b"").ok();
    assert_eq!(
        (copied.header("x-amz-meta-a"), copied.header("x-amz-storage-class")),
        (Some("1"), None)
    );
    let itself = [("x-amz-copy-source", "bucket/k")];
    client.call("PUT", "/bucket/k", &itself, b"").fails(400, "InvalidRequest");
    let replaced = [itself[0], ("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-b", "2")];
    client.call("PUT", "/bucket/k", &replaced, b"").ok();
    let head = client.call("HEAD", "/bucket/k", &[], b"").ok();
    assert_eq!((head.header("x-amz-meta-a"), head.header("x-amz-meta-b")), (None, Some("2")));
}

#[test]
fn checksums() {
    let server = server();
    let mut client = Client::new(&server);
    let crc = |body: &[u8]| {
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, body);
        STANDARD.encode_to_string(crc.to_be_bytes())
    };
    let right = crc(b"hello");
    client
        .call("PUT", "/bucket/k", &[("x-amz-checksum-crc64nvme", &right)], b"hellp")
        .fails(400, "BadDigest");
    client
        .call("PUT", "/bucket/k", &[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")], b"hello")
        .fails(400, "BadDigest");
    assert!(server.keys("bucket").is_empty());
    let put =
        client.call("PUT", "/bucket/k", &[("x-amz-checksum-crc64nvme", &right)], b"hello").ok();
    assert_eq!(put.header("x-amz-checksum-crc64nvme"), Some(right.as_str()));
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let get = client.call("GET", "/bucket/k", &mode, b"").ok();
    assert_eq!(get.header("x-amz-checksum-crc64nvme"), Some(right.as_str()));
    assert_eq!(get.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
    let ranged = client.call("GET", "/bucket/k", &[mode[0], ("range", "bytes=0-1")], b"").ok();
    assert_eq!(ranged.header("x-amz-checksum-crc64nvme"), None);

    // Parts: the whole object's sum from those of the parts.
    let create = [("x-amz-checksum-algorithm", "CRC64NVME")];
    let id = client.call("POST", "/bucket/m?uploads=", &create, b"").ok().xml("UploadId");
    let (first, second) = (vec![1; 5 * MIB], b"tail");
    let etags = [(1, &first[..]), (2, &second[..])]
        .map(|(number, body)| client.part("m", &id, number, body));
    let whole = crc(&[&first[..], second].concat());
    let wrong = [("x-amz-checksum-crc64nvme", right.as_str())];
    let parts = [(1, etags[0].as_str()), (2, etags[1].as_str())];
    client.complete("m", &id, &parts, &wrong).fails(400, "BadDigest");
    let done = client.complete("m", &id, &parts, &[("x-amz-checksum-crc64nvme", &whole)]).ok();
    assert_eq!(done.xml("ChecksumCRC64NVME"), whole);
    assert_eq!(server.stat("bucket", "m").expect("there").checksums["CRC64NVME"], whole);
}

/// The body of a PUT in `aws-chunked` with a checksum in the trailer.
#[test]
fn trailers() {
    let server = server();
    let mut client = Client::new(&server);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, b"hello world") as u32;
    let right = STANDARD.encode_to_string(crc.to_be_bytes());
    for (sum, status) in [(right.as_str(), 200), ("AAAAAA==", 400)] {
        let body = format!("6\r\nhello \r\n5\r\nworld\r\n0\r\nx-amz-checksum-crc32c:{sum}\r\n\r\n");
        let headers = [
            ("content-encoding", "aws-chunked"),
            ("content-length", &body.len().to_string()),
            ("x-amz-decoded-content-length", "11"),
            ("x-amz-trailer", "x-amz-checksum-crc32c"),
        ];
        let head = client.head(
            "PUT",
            "/bucket/k",
            &headers,
            &aws_sigv4::http_request::SignableBody::StreamingUnsignedPayloadTrailer,
        );
        client.write(head.as_bytes()).expect("sent");
        client.write(body.as_bytes()).expect("sent");
        assert_eq!(client.receive("PUT").expect("an answer").status, status);
        let object = server.get("bucket", "k").expect("from the first");
        assert_eq!((object.bytes.as_ref(), &object.content_encoding), (&b"hello world"[..], &None));
        assert_eq!(object.checksums["CRC32C"], right);
    }
}

#[test]
fn multipart_uploads() {
    let server = server();
    let mut client = Client::new(&server);
    let id = client.begin("m");
    let big = vec![7; 5 * MIB];
    let one = client.part("m", &id, 1, &big);
    let three = client.part("m", &id, 3, b"end");
    let small = client.part("m", &id, 2, b"small");
    let listed = client.get(&format!("/bucket/m?uploadId={id}")).ok();
    assert_eq!(listed.all("PartNumber"), ["1", "2", "3"]);
    assert_eq!(client.get("/bucket?uploads=").ok().all("Key"), ["m"]);
    let uploads = server.uploads("bucket");
    assert_eq!(uploads[0].parts.values().copied().collect::<Vec<_>>(), [5 * MIB as u64, 5, 3]);
    client.complete("m", &id, &[(3, &three), (1, &one)], &[]).fails(400, "InvalidPartOrder");
    client.complete("m", &id, &[(1, &three)], &[]).fails(400, "InvalidPart");
    client.complete("m", &id, &[(1, &one), (4, &three)], &[]).fails(400, "InvalidPart");
    client.complete("m", &id, &[(2, &small), (3, &three)], &[]).fails(400, "EntityTooSmall");
    let size = [("x-amz-mp-object-size", "1")];
    client.complete("m", &id, &[(1, &one), (3, &three)], &size).fails(400, "InvalidRequest");
    client
        .put(&format!("/bucket/m?partNumber=10001&uploadId={id}"), b"")
        .fails(400, "InvalidArgument");
    assert!(server.keys("bucket").is_empty());
    let total = (5 * MIB + 3).to_string();
    let exists = [("if-none-match", "*"), ("x-amz-mp-object-size", total.as_str())];
    let done = client.complete("m", &id, &[(1, &one), (3, &three)], &exists).ok();
    let object = server.get("bucket", "m").expect("complete");
    assert!(
        done.xml("ETag").contains(&object.etag) && object.etag.ends_with("-2"),
        "{}",
        object.etag
    );
    assert_eq!((object.len, &object.bytes[5 * MIB..]), (5 * MIB as u64 + 3, &b"end"[..]));
    assert_eq!(object.parts, [5 * MIB as u64, 3]);
    client.complete("m", &id, &[(1, &one)], &[]).fails(404, "NoSuchUpload");

    let id = client.begin("gone");
    let aborted = client.call("DELETE", &format!("/bucket/gone?uploadId={id}"), &[], b"");
    assert_eq!((aborted.status, server.uploads("bucket").len()), (204, 0));
    client.put(&format!("/bucket/gone?partNumber=1&uploadId={id}"), b"").fails(404, "NoSuchUpload");
}

#[test]
fn copies_of_what_is_larger_than_memory() {
    const GIB: u64 = 1 << 30;
    let server = server();
    server.put_sparse("bucket", "six", 6 * GIB);
    server.put_sparse("bucket", "five", 5 * GIB);
    let mut client = Client::new(&server);
    let head = client.call("HEAD", "/bucket/six", &[], b"").ok();
    assert_eq!(head.header("content-length"), Some((6 * GIB).to_string().as_str()));
    let range = format!("bytes={}-", 6 * GIB - 3);
    assert_eq!(client.call("GET", "/bucket/six", &[("range", &range)], b"").ok().body, [0; 3]);
    let six = ("x-amz-copy-source", "bucket/six");
    client.call("PUT", "/bucket/c", &[six], b"").fails(400, "InvalidRequest");
    client.call("PUT", "/bucket/c", &[("x-amz-copy-source", "bucket/five")], b"").ok();
    assert_eq!(server.stat("bucket", "c").expect("copied").len, 5 * GIB);

    let id = client.begin("six2");
    let mut etags = Vec::new();
    let ranges = [(0, 5 * GIB), (5 * GIB, 6 * GIB)];
    for (number, (from, to)) in (1..).zip(ranges) {
        let target = format!("/bucket/six2?partNumber={number}&uploadId={id}");
        let range = format!("bytes={from}-{}", to - 1);
        let part =
            client.call("PUT", &target, &[six, ("x-amz-copy-source-range", &range)], b"").ok();
        etags.push(part.xml("ETag").replace("&quot;", ""));
    }
    let too_far = format!("bytes=0-{}", 6 * GIB);
    let target = format!("/bucket/six2?partNumber=1&uploadId={id}");
    client
        .call("PUT", &target, &[six, ("x-amz-copy-source-range", &too_far)], b"")
        .fails(400, "InvalidArgument");
    client.call("PUT", &target, &[six], b"").fails(400, "InvalidRequest");
    client.complete("six2", &id, &[(1, &etags[0]), (2, &etags[1])], &[]).ok();
    assert_eq!(server.stat("bucket", "six2").expect("copied").len, 6 * GIB);
    assert_eq!(
        server.read("bucket", "six2", 6 * GIB - 1..7 * GIB).expect("there"),
        [0_u8].as_slice()
    );
}

#[test]
fn deletes() {
    let server = server();
    for key in ["a", "a/b", "ab", "é"] {
        server.put("bucket", key, "");
    }
    let mut client = Client::new(&server);
    let body = "<Delete><Object><Key>a</Key></Object><Object><Key>é</Key></Object><Object><Key>no</Key></Object></Delete>";
    let answer = client.call("POST", "/bucket?delete=", &[], body.as_bytes()).ok();
    assert_eq!(answer.all("Key"), ["a", "é", "no"]);
    assert_eq!(server.keys("bucket"), ["a/b", "ab"]);
    assert_eq!(client.call("DELETE", "/bucket/ab", &[], b"").status, 204);
    assert_eq!(client.call("DELETE", "/bucket/ab", &[], b"").status, 204);
    assert_eq!(server.keys("bucket"), ["a/b"]);
}

#[test]
fn buckets() {
    let server = server();
    server.create_bucket_in("far", "eu-west-1");
    server.put("far", "k", "x");
    let mut client = Client::new(&server);
    client.put("/made", b"").ok();
    assert_eq!(client.get("/").ok().all("Name"), ["bucket", "far", "made"]);
    client.put("/made", b"").fails(409, "BucketAlreadyOwnedByYou");
    assert_eq!(
        client.call("HEAD", "/bucket", &[], b"").ok().header("x-amz-bucket-region"),
        Some("us-east-1")
    );
    assert_eq!(client.call("HEAD", "/nobody", &[], b"").status, 404);
    let answer = client.get("/far/k");
    answer.fails(400, "AuthorizationHeaderMalformed");
    assert_eq!(answer.header("x-amz-bucket-region"), Some("eu-west-1"));
    client.region = "eu-west-1".to_owned();
    client.get("/far/k").ok();
    let location = client.get("/far?location=").ok().text();
    assert!(location.contains(">eu-west-1</LocationConstraint>"), "{location}");
    // The same bucket by its host.
    server.put("bucket", "a/b", "virtual");
    client.host = format!("bucket.localhost:{}", server.address().port());
    assert_eq!(client.get("/a/b").ok().text(), "virtual");
    assert_eq!(client.get("/?list-type=2").ok().all("Key"), ["a/b"]);
    assert_eq!(server.log().last().expect("one").bucket.as_deref(), Some("bucket"));
}

#[test]
fn who_may() {
    let server = server();
    server.put("bucket", "k", "x");
    let mut client = Client::new(&server);
    let (access, secret) = client.credentials.clone().expect("keys");
    client.credentials = Some(("nobody".to_owned(), secret.clone()));
    client.get("/bucket/k").fails(403, "InvalidAccessKeyId");
    client.credentials = Some((access.clone(), "wrong".to_owned()));
    client.get("/bucket/k").fails(403, "SignatureDoesNotMatch");
    client.credentials = Some((access.clone(), secret.clone()));
    client.time -= Duration::from_secs(20 * 60);
    client.get("/bucket/k").fails(403, "RequestTimeTooSkewed");
    client.time += Duration::from_secs(20 * 60);
    client.token = Some("token".to_owned());
    client.get("/bucket/k").fails(400, "InvalidToken");
    server.set_credentials([Credentials::new(&access, &secret).session_token("token")]);
    client.get("/bucket/k").ok();
    client.token = None;
    client.get("/bucket/k").fails(400, "InvalidToken");
    server.set_credentials([
        Credentials::new(&access, &secret).expired(),
        Credentials::new("second", "s2"),
    ]);
    client.get("/bucket/k").fails(400, "ExpiredToken");
    client.credentials = Some(("second".to_owned(), "s2".to_owned()));
    client.get("/bucket/k").ok();

    client.credentials = None;
    client.get("/bucket/k").fails(403, "AccessDenied");
    server.set_public("bucket", true);
    assert_eq!(client.get("/bucket/k").ok().text(), "x");
    client.get("/bucket?list-type=2").ok();
    client.put("/bucket/k", b"y").fails(403, "AccessDenied");
    assert!(!server.log().last().expect("one").signed);

    // A body that is not the one that was signed.
    let server = common::server();
    let mut client = Client::new(&server);
    let head = client.head(
        "PUT",
        "/bucket/k",
        &[("content-length", "2")],
        &aws_sigv4::http_request::SignableBody::Bytes(b"ab"),
    );
    client.write(head.as_bytes()).expect("sent");
    client.write(b"ac").expect("sent");
    client.receive("PUT").expect("an answer").fails(400, "XAmzContentSHA256Mismatch");
    assert!(server.keys("bucket").is_empty());
}

#[test]
fn fast_etags_differ_for_equal_content() {
    let options = Options { buckets: vec!["bucket".into()], fast: true, ..Options::default() };
    let server = Server::start(options).expect("a server");
    let mut client = Client::new(&server);
    let etags = ["a", "b"].map(|key| {
        let answer = client.put(&format!("/bucket/{key}"), b"same").ok();
        answer.header("etag").expect("one").to_owned()
    });
    assert_ne!(etags[0], etags[1]);
    assert!(etags.iter().all(|etag| etag.len() == 34));
    let plain = common::server();
    assert_eq!(plain.put("bucket", "k", ""), "d41d8cd98f00b204e9800998ecf8427e");
}

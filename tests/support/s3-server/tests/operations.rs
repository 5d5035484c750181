//! Requests that the server refuses, as S3 does: the tests of `s3://` rely on it. They prove its other behaviour.

mod common;

use base64_simd::STANDARD;
use common::{Client, server};

const MIB: usize = 1 << 20;

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

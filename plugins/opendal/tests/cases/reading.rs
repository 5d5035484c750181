//! `github://` and `ipfs://` on servers that respond as the API of GitHub and a gateway of IPFS: neither can run here.

use crate::common::{children, error, plugin, read, uri, write};
use crate::hostile::{response, serve};
use tf_fs_plugin::prelude::*;

/// Returns a response with the bytes that the request asks for.
fn part_of(head: &str, headers: &str, body: &str) -> String {
    let range = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": bytes=")?;
        name.eq_ignore_ascii_case("range").then(|| value.split_once('-')).flatten()
    });
    let Some((start, last)) = range else { return response(200, headers, body) };
    let (start, last): (usize, usize) = (start.parse().unwrap(), last.parse().unwrap());
    if start >= body.len() {
        return response(416, &format!("Content-Range: bytes */{}\r\n", body.len()), "");
    }
    let last = last.min(body.len() - 1);
    let headers = format!("{headers}Content-Range: bytes {start}-{last}/{}\r\n", body.len());
    response(206, &headers, &body[start..=last])
}

fn is_raw(head: &str) -> bool {
    head.to_ascii_lowercase().contains("accept: application/vnd.github.raw")
}

#[test]
fn a_repository_is_read() {
    let entry = |path: &str, kind: &str, size: usize| {
        format!(
            "{{\"path\": \"{path}\", \"sha\": \"5{size}\", \"size\": {size}, \"type\": \"{kind}\"}}"
        )
    };
    let host = serve(move |head| {
        let path = head.split(' ').nth(1).unwrap();
        let is_ours = head.contains("Bearer planted");
        match path.strip_prefix("/api/v3/repos/o/n/contents/") {
            Some("README.md") if is_raw(head) => part_of(head, "ETag: \"raw\"\r\n", "read me"),
            Some("README.md") => response(200, "", &entry("README.md", "file", 7)),
            Some("d/" | "d") => response(
                200,
                "",
                &format!(
                    "{{\"path\": \"d\", \"sha\": \"1\", \"size\": 0, \"type\": \"dir\", \"git_url\": \"\", \"entries\": [{}, {}]}}",
                    entry("d/x y", "file", 3),
                    entry("d/e", "dir", 0)
                ),
            ),
            Some("d/x%20y") if is_raw(head) => part_of(head, "", "xyz"),
            Some("d/x%20y") => response(200, "", &entry("d/x y", "file", 3)),
            Some("private") if is_ours && is_raw(head) => part_of(head, "", "p"),
            Some("private") if is_ours => response(200, "", &entry("private", "file", 1)),
            Some("denied") => response(403, "", "{\"message\": \"planted-body\"}"),
            _ => response(404, "", "{\"message\": \"Not Found\"}"),
        }
    });
    let endpoint = format!("http://{host}/api/v3");
    let all = [("github_endpoint", &*endpoint), ("retry_timeout_ms", "0")];
    let fs = plugin(&all);
    assert_eq!(read(&fs, "github://o/n/README.md").unwrap(), b"read me");
    assert_eq!(fs.get_file_size(uri("github://o/n/d/x y")).unwrap(), 3);
    assert_eq!(read(&fs, "github://o/n/d/x y").unwrap(), b"xyz");
    assert_eq!(children(&fs, "github://o/n/d").unwrap(), ["e", "x y"]);
    assert!(fs.is_directory(uri("github://o/n/d")).unwrap());
    for (name, code) in [
        ("github://o/n/none", Code::NotFound),
        ("github://o/n/private", Code::NotFound),
        ("github://o/n/denied", Code::PermissionDenied),
        ("github://o", Code::InvalidArgument),
        ("github://o/n@v1/x", Code::InvalidArgument),
    ] {
        let (found, text) = error(read(&fs, name));
        assert_eq!(found, code, "{text}");
        assert!(!text.contains("planted-body"), "{text}");
    }
    let own = plugin(&[&all[..], &[("github_token", "planted")]].concat());
    assert_eq!(read(&own, "github://o/n/private").unwrap(), b"p");
    for outcome in [
        write(&fs, "github://o/n/new", b"x"),
        fs.delete_file(uri("github://o/n/README.md")),
        fs.create_dir(uri("github://o/n/new")),
    ] {
        let (code, text) = error(outcome);
        assert_eq!(code, Code::Unimplemented, "{text}");
    }
}

#[test]
fn a_directory_of_ipfs_is_read() {
    // A node of DAG-PB with two links: tags, lengths and names.
    let link = |name: &str| {
        format!("\u{12}{}\u{12}{}{name}", (name.len() as u8 + 2) as char, name.len() as u8 as char)
    };
    let listing = format!("{}{}", link("f 1"), link("sub"));
    let host = serve(move |head| {
        let path = head.split(' ').nth(1).unwrap();
        let is_raw = head.to_ascii_lowercase().contains("application/vnd.ipld.raw");
        match path.strip_prefix("/ipfs/bafyroot/") {
            Some("") if is_raw => response(200, "", &listing),
            Some("f%201") if head.starts_with("HEAD") => {
                "HTTP/1.1 200 X\r\nConnection: close\r\nETag: \"bafyf\"\r\nContent-Length: 5\r\n\r\n".to_owned()
            }
            Some("f%201") => part_of(head, "ETag: \"bafyf\"\r\n", "bytes"),
            Some("sub" | "sub/") => response(302, "Location: /ipfs/bafyroot/sub/\r\n", ""),
            _ => response(404, "", "planted-body"),
        }
    });
    let fs = plugin(&[("ipfs_gateway", &*format!("http://{host}")), ("retry_timeout_ms", "0")]);
    assert_eq!(children(&fs, "ipfs://bafyroot").unwrap(), ["f 1", "sub"]);
    assert_eq!(read(&fs, "ipfs://bafyroot/f 1").unwrap(), b"bytes");
    assert!(fs.is_directory(uri("ipfs://bafyroot/sub")).unwrap());
    assert_eq!(error(read(&fs, "ipfs://bafyroot/none")).0, Code::NotFound);
    let (code, text) = error(write(&fs, "ipfs://bafyroot/new", b"x"));
    assert_eq!(code, Code::Unimplemented, "{text}");
}

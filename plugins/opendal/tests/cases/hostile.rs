//! Servers that do what a test says: wrong lengths, listings of what is elsewhere, refusals of all kinds.

use crate::common::{children, error, plugin, read, uri, write};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use tf_fs_plugin::prelude::*;

/// Settings without patience: these servers never get better.
const NO_PATIENCE: (&str, &str) = ("retry_timeout_ms", "0");

/// Starts a server that sends what `answer` returns for the head of a request, then closes the connection. It ends with the
/// process. Returns its host.
pub(crate) fn serve(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may give up.
            let _ = exchange(stream, &answer);
        }
    });
    host
}

fn exchange(mut stream: TcpStream, answer: &impl Fn(&str) -> String) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let lines: Vec<_> = reader
        .by_ref()
        .lines()
        .map_while(|line| line.ok().filter(|line| !line.is_empty()))
        .collect();
    let len = lines
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    reader.read_exact(&mut vec![0; len.unwrap_or(0)])?;
    stream.write_all(answer(&lines.join("\n")).as_bytes())
}

pub(crate) fn response(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a listing of these names; those that end in `/` are directories.
fn listing(hrefs: &[&str]) -> String {
    let entry = |href: &&str| {
        let kind = if href.ends_with('/') { "<D:collection/>" } else { "" };
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype>{kind}</D:resourcetype>\
             <D:getcontentlength>1</D:getcontentlength><D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>\
             </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let entries: String = hrefs.iter().map(entry).collect();
    let body =
        format!("<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{entries}</D:multistatus>");
    response(207, "", &body)
}

fn children_of(hrefs: &'static [&'static str]) -> Result<Vec<String>> {
    let host = serve(move |_| listing(hrefs));
    let url = format!("http://{host}/dav/");
    let fs = plugin(&[NO_PATIENCE, ("remote.nas.url", &url)]);
    children(&fs, "webdav://nas/d")
}

#[test]
fn a_listing_of_what_is_elsewhere_is_no_way_out() {
    assert_eq!(children_of(&["/dav/d/", "/dav/d/a", "/dav/d/b/"]).unwrap(), ["a", "b"]);
    // The directory itself, its parent, what is deeper, and a neighbour.
    let odd = &["/dav/d/", "/dav/", "/dav/d/a/b", "/dav/e", "/dav/dd", "/dav/d//", "/dav/d/a"];
    assert_eq!(children_of(odd).unwrap(), ["a"]);
    for hrefs in
        [&["/"][..], &["/d/"], &["/dav/d/", "/etc/passwd"], &["é"], &["http://elsewhere/dav/d/a"]]
    {
        let (code, text) = error(children_of(hrefs));
        assert_eq!(code, Code::Unavailable, "{text}");
        assert!(text.contains("cannot be right"), "{text}");
    }
}

#[test]
fn a_listing_that_is_none_is_an_error() {
    for body in ["", "no XML", "<D:multistatus xmlns:D=\"DAV:\"><D:response>", "{\"a\": 1}"] {
        let host = serve(move |_| response(207, "", body));
        let outcome = children(&plugin(&[NO_PATIENCE]), &format!("webdav://{host}/d"));
        assert_eq!(error(outcome).0, Code::Unavailable, "{body}");
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let file = "Content-Range: bytes 0-9/10\r\nETag: \"e\"\r\n";
    for (status, headers, body) in [
        // The connection ends too early.
        (206, format!("{file}Content-Length: 10\r\n"), "12345"),
        // Other bytes than those that were requested.
        (206, "Content-Range: bytes 5-9/10\r\n".to_owned(), "12345"),
        (206, "Content-Range: bytes 0-9/5\r\n".to_owned(), "1234567890"),
        (206, String::new(), "12345"),
    ] {
        let host = serve(move |head| match head.starts_with("GET") {
            true if headers.contains("Content-Length") => {
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}\r\n{body}")
            }
            true => response(status, &headers, body),
            false => listing(&["/f"]),
        });
        let outcome = read(&plugin(&[NO_PATIENCE]), &format!("webdav://{host}/f"));
        let (code, text) = error(outcome);
        assert_eq!(code, Code::Unavailable, "{text}");
    }
    // A server without ranges sends all of a file.
    let host = serve(|_| response(200, "ETag: \"e\"\r\n", "1234567890"));
    assert_eq!(read(&plugin(&[]), &format!("webdav://{host}/f")).unwrap(), b"1234567890");
}

#[test]
fn a_refusal_says_what_to_do() {
    for (status, code, part) in [
        (301, Code::FailedPrecondition, "set url to that place"),
        (403, Code::PermissionDenied, "rights of the user"),
        (405, Code::Unimplemented, "no WebDAV there"),
        (413, Code::ResourceExhausted, "limit for the size"),
        (423, Code::FailedPrecondition, "has locked it"),
        (500, Code::Unavailable, "the server is at fault"),
        (507, Code::ResourceExhausted, "is full"),
    ] {
        let host =
            serve(move |_| response(status, "Location: /elsewhere\r\n", "<html>planted</html>"));
        let fs = plugin(&[NO_PATIENCE]);
        for outcome in [
            write(&fs, &format!("webdav://{host}/f"), b"x"),
            children(&fs, &format!("webdav://{host}/d")).map(drop),
            fs.delete_file(uri(&format!("webdav://{host}/f"))),
        ] {
            let (found, text) = error(outcome);
            assert_eq!(found, code, "{text}");
            assert!(
                text.contains(part) && text.contains(&host) && !text.contains("planted"),
                "{text}"
            );
        }
    }
}

#[test]
fn no_text_shows_what_was_sent_as_a_secret() {
    let host = serve(|head| response(207, "", &format!("<x>{head}</x>")));
    let url = format!("http://{host}");
    let basic = "d2FsbnV0OnBsYW50ZWQtb25l";
    for options in
        [&[("user", "walnut"), ("password", "planted-one")][..], &[("bearer_token", "planted-two")]]
    {
        let fs = plugin(&[&[NO_PATIENCE, ("url", &*url)], options].concat());
        let name = format!("webdav://{host}/f");
        for outcome in
            [children(&fs, &name).map(drop), read(&fs, &name).map(drop), write(&fs, &name, b"x")]
        {
            let text = format!("{:?} {fs:?}", error(outcome));
            assert!(!text.contains("planted") && !text.contains(basic), "{text}");
        }
        let all = format!("{:?}", fs.get_filesystem_configuration().unwrap());
        assert!(!all.contains("planted"), "{all}");
        assert!(
            !String::from_utf8_lossy(&read(&fs, "webdav:///config.json").unwrap())
                .contains("planted")
        );
    }
}

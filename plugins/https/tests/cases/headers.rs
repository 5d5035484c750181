//! Headers that a server wants: tokens, cookies, names of programs.

use crate::server::{Content, Reply, Server};
use crate::{error, fs, open, read, read_in, settings};
use https::{Https, Secret, Settings};
use tf_fs_plugin::prelude::*;

fn to(location: impl ToString) -> Reply {
    Reply::new(302).header("Location", location)
}

#[test]
fn headers_are_sent_to_their_host_alone() {
    let content = Content::new(5 << 20, 0);
    let there = content.serve();
    let url = there.url("g");
    let here = Server::new(move |request, _| match request.header("private-token") {
        Some("sesame") if request.target == "/f" => to("/e"),
        Some("sesame") => to(&url),
        // As GitLab does.
        _ => Reply::new(404),
    });
    assert_eq!(error(open(&fs(), &here.url("f"))).0, Code::NotFound);
    here.take_log();
    let headers = format!("http://127.0.0.1:{}=PRIVATE-TOKEN: sesame", here.port);
    let fs = Https::with(Settings { headers: Some(Secret::new(headers)), ..settings() });
    assert!(read(&fs, &here.url("f")).unwrap() == *content.bytes);
    assert_eq!(fs.get_file_size(Uri::new(here.url("f").as_bytes())).unwrap(), 5 << 20);
    let log = here.take_log();
    assert!(log.iter().all(|request| request.header("private-token") == Some("sesame")), "{log:?}");
    let log = there.take_log();
    assert!(!log.is_empty());
    for (name, value) in log.iter().flat_map(|request| &request.headers) {
        assert!(!value.contains("sesame") && name != "private-token", "{name}: {value}");
    }
}

#[test]
fn a_header_replaces_a_token() {
    let server = Server::new(|request, _| {
        Reply::new(200).body(request.header("authorization").unwrap_or("none"))
    });
    let host = format!("http://127.0.0.1:{}", server.port);
    let settings = Settings {
        bearer_tokens: Some(Secret::new(format!("{host}=one"))),
        headers: Some(Secret::new(format!("{host}=Authorization: token two"))),
        ..settings()
    };
    assert_eq!(read(&Https::with(settings), &server.url("f")).unwrap(), b"token two");
}

#[test]
fn a_program_is_named_as_the_user_wants() {
    let server = Server::new(|request, _| {
        let agent = request.header("user-agent").unwrap_or("none").to_owned();
        let is_welcome = request.target == "/any" || agent.starts_with("Mozilla");
        if is_welcome { Reply::new(200).body(agent) } else { Reply::new(403) }
    });
    let usual = read(&fs(), &server.url("any")).unwrap();
    assert!(usual.starts_with(b"tensorflow-https/"), "{usual:?}");
    let agent = "Mozilla/5.0 (X11; Linux x86_64)";
    let of_all = Settings { user_agent: Some(agent.to_owned()), ..settings() };
    let line = format!("http://127.0.0.1:{}=User-Agent: {agent}", server.port);
    let of_host = Settings { headers: Some(Secret::new(line)), ..settings() };
    for settings in [of_all, of_host] {
        let fs = Https::with(settings);
        assert_eq!(read(&fs, &server.url("f")).unwrap(), agent.as_bytes());
        assert!(fs.path_exists(Uri::new(server.url("f").as_bytes())).unwrap());
    }
    let (code, text) = error(open(&fs(), &server.url("f")));
    assert_eq!(code, Code::PermissionDenied);
    assert!(text.contains("TF_HTTPS_USER_AGENT") && !text.contains("signed"), "{text}");
    let (_, text) = error(open(&fs(), &server.url("f?X-Amz-Signature=sesame")));
    assert!(text.contains("signed") && !text.contains("TF_HTTPS_USER_AGENT"), "{text}");
}

#[test]
fn cookies_go_along_within_a_chain_of_redirects() {
    let content = Content::new(20 << 20, 0);
    let copy = content.clone();
    // To the same URL, as some sign-ins do, or to another one.
    for target in ["/f", "/g?x=1"] {
        let copy = copy.clone();
        let server = Server::new(move |request, _| {
            let is_in = request.header("cookie") == Some("session=sesame; theme=dark");
            match (is_in, request.header("cookie"), request.target == target) {
                (true, _, true) => copy.reply(request),
                (_, None, _) => Reply {
                    headers: vec![
                        ("Set-Cookie".into(), "session=sesame; HttpOnly; Path=/".into()),
                        ("Set-Cookie".into(), "theme=dark".into()),
                        ("Set-Cookie".into(), "other=1; Domain=elsewhere.example".into()),
                        ("Set-Cookie".into(), "secure=1; Secure".into()),
                        ("Location".into(), target.into()),
                    ],
                    ..Reply::new(302)
                },
                _ => Reply::new(400),
            }
        });
        let fs = fs();
        let file = open(&fs, &server.url("f")).unwrap();
        assert!(read_in(&file, 1 << 20).unwrap() == *content.bytes);
        let log = server.take_log();
        let without = log.iter().filter(|request| request.header("cookie").is_none()).count();
        assert_eq!(without, 1, "an open file keeps its cookies");
        // Another file begins without.
        let _ = open(&fs, &server.url("other"));
        assert!(server.take_log()[0].header("cookie").is_none());
    }
}

#[test]
fn cookies_stay_with_their_server() {
    let there = Server::new(|_, _| Reply::new(200).body("bytes"));
    let url = there.url("g");
    let here = Server::new(move |_, _| to(&url).header("Set-Cookie", "session=sesame; Path=/"));
    assert_eq!(read(&fs(), &here.url("f")).unwrap(), b"bytes");
    for request in there.take_log() {
        assert_eq!(request.header("cookie"), None);
    }
}

#[test]
fn secret_headers_show_nowhere() {
    let server = Server::new(|request, _| {
        let token = request.header("x-api-key").unwrap_or_default().to_owned();
        Reply::new(401).header("X-Echo", &token).body(token)
    });
    let fs = Https::new("http").unwrap();
    let option = |key: &str, value: String| {
        FilesystemOption::new(key, OptionValues::Buffer(vec![value.into_bytes()]))
    };
    let line = format!("http://127.0.0.1:{}=X-Api-Key: sesame", server.port);
    fs.set_filesystem_configuration_option(&option("headers", line)).unwrap();
    let file = open(&fs, &server.url("f"));
    let shown = format!("{:?} {fs:?} {:?}", file, fs.get_filesystem_configuration().unwrap());
    let (code, text) = error(file);
    assert_eq!(server.take_log()[0].header("x-api-key"), Some("sesame"));
    assert!(code == Code::Unauthenticated && text.contains("not accepted"), "{text}");
    assert!(!text.contains("sesame") && !shown.contains("sesame"), "{text} {shown}");
    fs.set_filesystem_configuration_option(&option("headers", "h=Host: sesame".into())).unwrap();
    let (code, text) = error(open(&fs, &server.url("f")));
    assert_eq!(code, Code::InvalidArgument);
    assert!(text.contains("TF_HTTPS_HEADERS: entry 1") && !text.contains("sesame"), "{text}");
    let none = FilesystemOption::new("headers", OptionValues::Buffer(Vec::new()));
    fs.set_filesystem_configuration_option(&none).unwrap();
}

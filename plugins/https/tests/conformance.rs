//! `http://` in the conformance cases that change nothing, with the samples on a server.

#[path = "cases/server.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod server;

use https::{Https, Settings};
use server::{Content, Reply, Request, Server};
use std::collections::HashMap;
use std::sync::Arc;
use tf_fs_object_store::DiskCache;
use tf_plugin_testing::filesystem::{Case, Conformance, Files, Host, Outcome, samples};

/// Cases in which a URL differs from a path on a disk.
const LACKING: [(&str, &[&str]); 3] = [
    (
        "there are no directories: none exists, none is listed, and no name has a parent",
        &[
            "_of_missing",
            "_of_missing_parent",
            "_of_empty_dir",
            "_of_full_dir",
            "_of_below_file",
            "_of_far_below_file",
            "_of_malformed",
            "is_directory_of_file",
            "get_children_of_file",
            "root_is_a_directory",
            "paths_exist",
            "paths_exist_without_statuses",
            "glob_plain_directory",
            "translate_name_of_roots",
            "changes_are_refused",
        ],
    ),
    (
        "names are URLs, which are sent as they are written",
        &[
            "translate_name_cleans",
            "untidy_names",
            "name_with_percent",
            "name_with_hash",
            "names_by_encoding",
            "slash_at_the_end",
        ],
    ),
    ("a `?` begins a query", &["glob_question_mark"]),
];

#[test]
fn cases_about_files_pass() {
    pass(&serve(), Settings::default());
}

#[test]
fn cases_about_files_pass_with_the_disk_cache() {
    let disk = tempfile::tempdir().unwrap();
    let cache: DiskCache = format!("{}:64MiB", disk.path().display()).parse().unwrap();
    let server = serve();
    // The second time all bytes are on the disk.
    for _ in 0..2 {
        pass(&server, Settings { disk_cache: Some(cache.clone()), ..Settings::default() });
    }
}

fn pass(server: &Server, settings: Settings) {
    let host = Host::new();
    host.serve("http", Https::with(settings)).unwrap();
    let (mut passed, mut wrong) = (0, Vec::new());
    for case in Case::all() {
        let all = Conformance::new(&host, server.url("")).files(Files::Provided);
        let lacks = LACKING.iter().flat_map(|(_, names)| *names).any(|name| {
            if name.starts_with('_') { case.name().ends_with(name) } else { case.name() == *name }
        });
        match all.malformed("http://user:pw@host/x").run(case) {
            Outcome::Passed => passed += 1,
            Outcome::Skipped(_) => {}
            Outcome::Failed(_) if lacks => {}
            Outcome::Failed(deviations) => wrong.push(format!("{case:?}: {deviations:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed >= 42, "only {passed} cases passed");
}

fn serve() -> Server {
    let files: HashMap<String, Content> = samples()
        .iter()
        .filter_map(|sample| {
            let content = Content {
                bytes: Arc::new(sample.content.clone()?),
                etag: format!("\"{}\"", sample.path.len()),
            };
            Some((sample.path.clone(), content))
        })
        .collect();
    Server::new(move |request: &Request, _| {
        let path = percent_encoding::percent_decode_str(&request.target[1..]).decode_utf8_lossy();
        files.get(&*path).map_or_else(|| Reply::new(404), |content| content.reply(request))
    })
}

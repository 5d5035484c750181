//! Random operations on the store, and on a model of a bucket: objects with exact keys, and directories that they imply.

use crate::content;
use crate::store::{Fault, Memory, Plugin, Versions, atomic, name, parts, with_settings};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tf_fs_object_store::{Connection, ErrorKind, Reader, Settings, Writer};
use tf_fs_plugin::prelude::*;

type Objects = BTreeMap<String, Bytes>;

const PATHS: [&str; 10] = ["a", "b", "ab", "a/b", "a/c", "a/b/c", "b/a", "b/d/e", "é", "ab/é"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Write { len: usize, flushes: bool },
    Append(usize),
    CreateDir,
    RecursivelyCreateDir,
    DeleteFile,
    DeleteDir,
    DeleteRecursively,
    Rename(&'static str),
    Copy(&'static str),
}

/// The kind of a path: nothing, a file, a directory, or an object `a` next to one that begins with `a/`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    Nothing,
    File,
    Directory,
    Both,
}

fn find(objects: &Objects, path: &str) -> Found {
    let is_directory = objects.keys().any(|key| below(path, key).is_some());
    match (objects.contains_key(path), is_directory) {
        (false, false) => Found::Nothing,
        (true, false) => Found::File,
        (false, true) => Found::Directory,
        (true, true) => Found::Both,
    }
}

/// Returns the rest of a key below a directory.
fn below<'a>(directory: &str, key: &'a str) -> Option<&'a str> {
    match directory {
        "" => Some(key),
        _ => key.strip_prefix(directory)?.strip_prefix('/'),
    }
}

fn children(objects: &Objects, directory: &str) -> BTreeSet<String> {
    let rests = objects.keys().filter_map(|key| below(directory, key));
    rests
        .filter_map(|rest| rest.split('/').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Results that an operation may have.
type Allowed = Vec<Result<(), Code>>;

/// Returns what an operation may return, and the objects after it is done.
fn expect(objects: &Objects, path: &str, op: Op) -> (Allowed, Objects) {
    const REFUSED: Result<(), Code> = Err(Code::FailedPrecondition);
    const MISSING: Result<(), Code> = Err(Code::NotFound);
    let mut after = objects.clone();
    let found = find(objects, path);
    let marker = format!("{path}/");
    let allowed = match op {
        Op::Write { len, .. } => {
            after.insert(path.into(), content(len).into());
            vec![Ok(())]
        }
        Op::Append(len) => {
            let old = objects.get(path).cloned().unwrap_or_default();
            after.insert(path.into(), [&old[..], &content(len)].concat().into());
            vec![Ok(())]
        }
        Op::CreateDir | Op::RecursivelyCreateDir if found == Found::Nothing => {
            after.insert(marker, Bytes::new());
            vec![Ok(())]
        }
        Op::CreateDir => vec![Err(Code::AlreadyExists)],
        Op::RecursivelyCreateDir => match found {
            Found::File => vec![REFUSED],
            Found::Both => vec![Ok(()), REFUSED],
            _ => vec![Ok(())],
        },
        Op::DeleteFile => match found {
            Found::Nothing => vec![MISSING],
            Found::Directory => vec![REFUSED],
            _ => {
                after.remove(path);
                vec![Ok(())]
            }
        },
        Op::DeleteDir => match found {
            // OK once, if this process has emptied it.
            Found::Nothing => vec![MISSING, Ok(())],
            Found::Directory | Found::Both if children(objects, path).is_empty() => {
                after.remove(&marker);
                if found == Found::Both { vec![Ok(()), REFUSED] } else { vec![Ok(())] }
            }
            _ => vec![REFUSED],
        },
        Op::DeleteRecursively => {
            after.retain(|key, _| below(path, key).is_none());
            if found == Found::File {
                after.remove(path);
            }
            if found == Found::Nothing { vec![MISSING, Ok(())] } else { vec![Ok(())] }
        }
        Op::Rename(to) if found == Found::Directory => {
            for (key, bytes) in objects {
                if let Some(rest) = below(path, key) {
                    after.remove(key);
                    after.insert(format!("{to}/{rest}"), bytes.clone());
                }
            }
            let is_inside = below(path, to).is_some() || below(to, path).is_some();
            match find(objects, to) {
                _ if to == path => {
                    after = objects.clone();
                    vec![Ok(())]
                }
                _ if is_inside => vec![REFUSED],
                Found::Nothing => vec![Ok(())],
                // Merged, unless a file is in both.
                Found::Directory => vec![Ok(()), REFUSED],
                Found::File | Found::Both => vec![REFUSED],
            }
        }
        Op::Rename(to) | Op::Copy(to) => match (found, find(objects, to)) {
            (Found::Nothing, Found::Directory) => vec![MISSING, REFUSED],
            (Found::Nothing, _) => vec![MISSING],
            (Found::Directory, _) | (_, Found::Directory) => vec![REFUSED],
            _ => {
                if to != path {
                    after.insert(to.into(), objects[path].clone());
                    if matches!(op, Op::Rename(_)) {
                        after.remove(path);
                    }
                }
                vec![Ok(())]
            }
        },
    };
    (allowed, after)
}

fn run(plugin: &Plugin, path: &str, op: Op) -> Result<()> {
    let (connection, of): (&Connection<Memory>, _) = (&plugin.0, name(path));
    match op {
        Op::Write { len, flushes } => {
            let mut writer = Writer::create(plugin, of)?;
            crate::append(&mut writer, &content(len)[..len / 2])?;
            if flushes {
                writer.flush()?;
            }
            crate::append(&mut writer, &content(len)[len / 2..])?;
            writer.close()
        }
        Op::Append(len) => {
            let mut writer = Writer::append_to(plugin, of)?;
            crate::append(&mut writer, &content(len))?;
            writer.close()
        }
        Op::CreateDir => connection.create_dir(&of),
        Op::RecursivelyCreateDir => connection.recursively_create_dir(&of),
        Op::DeleteFile => connection.delete_file(&of),
        Op::DeleteDir => connection.delete_dir(&of),
        Op::DeleteRecursively => connection.delete_recursively(&of).map_err(|left| left.error),
        Op::Rename(to) => connection.rename_file(&of, &name(to)),
        Op::Copy(to) => connection.copy_file(&of, &name(to)),
    }
}

/// Compares the answers about a path with the model.
fn query(plugin: &Plugin, objects: &Objects, path: &str) {
    let (connection, of) = (&plugin.0, name(path));
    let found = find(objects, path);
    let is_file = matches!(found, Found::File | Found::Both);
    assert_eq!(connection.path_exists(&of).unwrap(), found != Found::Nothing, "{path} exists");
    let stat = connection.stat(&of).map(|stat| (stat.is_directory, stat.length));
    let expected = match found {
        Found::Nothing => Err(Code::NotFound),
        Found::Directory => Ok((true, 0)),
        _ => Ok((false, objects[path].len() as u64)),
    };
    assert_eq!(stat.map_err(|error| error.code()), expected, "stat of {path}");
    let listed = connection.get_children(&of).map_err(|error| error.code());
    let listed =
        listed.map(|names| names.iter().map(|name| String::from_utf8_lossy(name).into()).collect());
    let expected: Result<BTreeSet<String>, Code> = match found {
        Found::Nothing => Err(Code::NotFound),
        Found::File => Err(Code::FailedPrecondition),
        _ => Ok(children(objects, path)),
    };
    assert_eq!(listed, expected, "children of {path}");
    let pattern = format!("mem://b/{path}/*");
    let matched = connection.get_matching_paths(Uri::new(pattern.as_bytes())).unwrap();
    let expected =
        children(objects, path).into_iter().map(|child| format!("mem://b/{path}/{child}"));
    assert!(matched.iter().map(String::from_utf8_lossy).eq(expected), "{pattern}");
    let bytes = Reader::open(plugin, of).and_then(|reader| {
        let mut bytes = vec![0; reader.size() as usize];
        reader.read_at(0, &mut ReadBuf::from_slice(&mut bytes)).map(|()| bytes)
    });
    match is_file {
        true => assert!(bytes.unwrap() == objects[path], "bytes of {path}"),
        false => assert!(bytes.is_err(), "bytes of {path}"),
    }
}

/// How the store of a sequence differs.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    ttl: Duration,
    /// Another process writes and deletes.
    others: bool,
    /// Requests fail.
    faults: bool,
    versions: Versions,
}

/// Runs a random sequence. A root is a directory that no other sequence uses.
fn sequence(way: Way, seed: u64) {
    let settings = Settings::default().with(|settings| settings.listing_ttl = way.ttl);
    let plugin = with_settings(atomic().with_parts(parts()), settings);
    plugin.contents().versions = way.versions;
    let mut state = seed;
    let mut next = |most: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let mut objects = Objects::new();
    let mut done = Vec::new();
    for _ in 0..30 {
        let (path, to) = (PATHS[next(PATHS.len())], PATHS[next(PATHS.len())]);
        if way.others && next(3) == 0 {
            let theirs = content(next(50));
            match next(3) {
                0 => _ = plugin.contents().objects.remove(to),
                _ => plugin.put(to, theirs),
            }
            objects = plugin.objects();
            done.push(format!("another process changes {to}"));
        }
        let op = match next(12) {
            0..3 => Op::Write {
                len: [0, 10, 1000, 1_200_000][next(4)],
                flushes: !way.faults && next(2) == 0,
            },
            3 => Op::Append([0, 10, 1_200_000][next(3)]),
            4 => Op::CreateDir,
            5 => Op::RecursivelyCreateDir,
            6 => Op::DeleteFile,
            7 => Op::DeleteDir,
            8 => Op::DeleteRecursively,
            9 | 10 => Op::Rename(to),
            _ => Op::Copy(to),
        };
        if way.faults {
            let kinds = [
                "get", "list", "put", "head", "create", "part", "complete", "copy", "delete",
                "marker",
            ];
            for _ in 0..1 + next(6) {
                let fault = [
                    Fault::Lost,
                    Fault::Fails(ErrorKind::Transient),
                    Fault::Fails(ErrorKind::Denied),
                ][next(3)]
                .clone();
                plugin.fails(kinds[next(kinds.len())], fault);
            }
        }
        done.push(format!("{op:?} of {path}"));
        let (allowed, after) = expect(&objects, path, op);
        let outcome = run(&plugin, path, op).map_err(|error| error.code());
        plugin.contents().faults.clear();
        let is = plugin.objects();
        let history = || {
            let lens: Vec<_> = is.iter().map(|(key, bytes)| (key, bytes.len())).collect();
            format!("{way:?} {seed}: {outcome:?}, {lens:?} after {done:#?}")
        };
        if way.faults && !allowed.contains(&outcome) {
            // Each object is as it was or as it was to be.
            let keys: BTreeSet<_> = is.keys().chain(objects.keys()).chain(after.keys()).collect();
            for key in keys {
                let found = is.get(key);
                assert!(
                    found == objects.get(key) || found == after.get(key),
                    "{key}: {}",
                    history()
                );
            }
            // One deletion may be of a name that was given up.
            assert!(outcome.is_err() || is == after, "{}", history());
        } else {
            assert!(allowed.contains(&outcome), "is not one of {allowed:?}: {}", history());
            let expected = if outcome.is_ok() { &after } else { &objects };
            assert!(is == *expected, "not {:?}: {}", expected.keys(), history());
        }
        objects = is.clone();
        for path in [PATHS[next(PATHS.len())], to] {
            query(&plugin, &objects, path);
        }
        assert!(plugin.contents().uploads.is_empty(), "{}", history());
    }
    PATHS.iter().for_each(|path| query(&plugin, &objects, path));
}

/// Runs sequences of each way.
fn sequences(way: Way) {
    let count = if tf_plugin_fuzz::is_whole() { 1000 } else { 12 };
    (0..count).for_each(|seed| sequence(way, seed));
}

#[test]
fn operations_do_what_the_model_does() {
    sequences(Way::default());
    sequences(Way { versions: Versions::Times, ..Way::default() });
}

#[test]
fn cached_names_change_no_result() {
    sequences(Way { ttl: Duration::from_secs(60), ..Way::default() });
}

#[test]
fn another_process_changes_the_bucket_too() {
    sequences(Way { others: true, ..Way::default() });
}

#[test]
fn requests_that_fail_leave_each_object_as_it_was_or_as_it_was_to_be() {
    sequences(Way { faults: true, ..Way::default() });
    sequences(Way { faults: true, ttl: Duration::from_secs(60), ..Way::default() });
}

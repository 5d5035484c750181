//! Each fault at each request of an operation that changes something; and a process that ends at each request, as one that
//! is killed: what it leaves is as it was or as it was to be, key by key, and the next process can do it again.

use crate::content;
use crate::store::{Memory, atomic, name, parts, store};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use tf_fs_object_store::testing::{Session, sweep};
use tf_fs_object_store::{Connect as _, Publication, WriteLimits, Writer};
use tf_fs_plugin::prelude::*;

type Objects = BTreeMap<String, Bytes>;

/// Sweeps an operation of a store with these objects. `change` makes of each state of the store the next one, until the
/// operation is done; `moves` are sources and targets. Returns how many requests the operation makes.
fn swept(
    limits: WriteLimits,
    before: &[(&str, usize)],
    operation: impl Fn(&Session<Memory>) -> Result<()>,
    changes: &[&dyn Fn(&mut Objects)],
    moves: &[(&str, &str)],
) -> u32 {
    let plugin = store(limits);
    let prepare = |_: &Session<Memory>| {
        plugin.contents().objects.clear();
        before.iter().for_each(|(key, len)| plugin.put(key, content(*len)));
        Ok(())
    };
    let mut states =
        vec![before.iter().map(|(key, len)| ((*key).into(), content(*len).into())).collect()];
    for change in changes {
        let mut next: Objects = states.last().cloned().unwrap();
        change(&mut next);
        states.push(next);
    }
    let last = states.last().unwrap();
    let check = |session: &Session<Memory>, is_done: bool| {
        let wrong = |what: &str| {
            Error::data_loss(format!("{what}: {:?}", plugin.contents().objects.keys()))
        };
        let mut found = plugin.objects();
        // What a killed writer leaves under a temporary name is hidden.
        found.retain(|key, _| !key.starts_with(".tf-"));
        ensure!(!is_done || found == *last, wrong("it is not what it was to be"));
        let keys = states.iter().flat_map(BTreeMap::keys).chain(found.keys());
        for key in keys {
            let is_seen = states.iter().any(|state| state.get(key) == found.get(key));
            ensure!(is_seen, wrong(&format!("{key} is neither as before nor as afterwards")));
        }
        for (from, to) in moves {
            let is_there = found.contains_key(*from) || found.get(*to) == last.get(*to);
            ensure!(is_there, wrong(&format!("{from} is gone, and {to} is not it")));
        }
        if !is_done {
            operation(session).context(wrong("the next process"))?;
            let mut found = plugin.objects();
            found.retain(|key, _| !key.starts_with(".tf-"));
            ensure!(found == *last, wrong("after the next process"));
        }
        Ok(())
    };
    sweep(&plugin.0.client, Duration::from_secs(30), prepare, &operation, check).unwrap()
}

/// Writes a file, and flushes it after each piece but the last.
fn write(session: &Session<Memory>, pieces: &[&[u8]]) -> Result<()> {
    let mut writer = Writer::create(session, name("f"))?;
    for (n, piece) in pieces.iter().enumerate() {
        piece.chunks(50_000).try_for_each(|bytes| writer.append(bytes))?;
        if n + 1 < pieces.len() {
            writer.flush()?;
        }
    }
    writer.close()
}

fn in_parts() -> WriteLimits {
    atomic().with_parts(parts())
}

#[test]
fn a_file_is_whole_or_as_it_was_whatever_request_fails() {
    let by_rename = WriteLimits::new(Publication::Rename);
    for (limits, len, requests) in [
        (atomic(), 1000, 1),
        (in_parts(), 2_500_000, 5),
        (by_rename, 1000, 2),
        (by_rename.with_parts(parts()), 2_500_000, 6),
    ] {
        let bytes = content(len);
        for old in [&[][..], &[("f", 3), ("f-1", 1), ("f/x", 2)]] {
            let change =
                |objects: &mut Objects| _ = objects.insert("f".into(), bytes.clone().into());
            let write = |session: &Session<Memory>| write(session, &[&bytes]);
            assert_eq!(swept(limits, old, write, &[&change], &[]), requests, "{old:?}");
        }
    }
}

#[test]
fn a_flushed_file_is_whole_whatever_request_fails() {
    let bytes = content(2_500_000);
    let flushed = |end: usize| {
        let bytes = bytes.clone();
        move |objects: &mut Objects| _ = objects.insert("f".into(), bytes[..end].to_vec().into())
    };
    let (first, second, third) = (flushed(500), flushed(1_200_000), flushed(2_500_000));
    let write = |session: &Session<Memory>| {
        write(session, &[&bytes[..500], &bytes[500..1_200_000], &bytes[1_200_000..]])
    };
    assert!(swept(in_parts(), &[], write, &[&first, &second, &third], &[]) > 6);
    // An append, in one request or by a copy of what is there.
    for len in [1000, 1_200_000] {
        let append = |session: &Session<Memory>| {
            let mut writer = Writer::append_to(session, name("f"))?;
            writer.append(b"more")?;
            writer.close()
        };
        let change = |objects: &mut Objects| {
            let whole = [&objects["f"][..], b"more"].concat();
            objects.insert("f".into(), whole.into());
        };
        swept(in_parts(), &[("f", len)], append, &[&change], &[]);
    }
}

/// Copies each key that begins with `from`.
fn copied(objects: &mut Objects, from: &str, to: &str) {
    for (key, bytes) in objects.clone() {
        if let Some(rest) = key.strip_prefix(from) {
            objects.insert(format!("{to}{rest}"), bytes);
        }
    }
}

#[test]
fn names_are_as_before_or_as_afterwards_whatever_request_fails() {
    let limits = atomic();
    let tree = [("t/", 0), ("t/a", 1), ("t/b/c", 2), ("t/d", 3), ("t-1", 4), ("u0", 5)];
    type Operation = fn(&Session<Memory>) -> Result<()>;
    let rename: Operation = |session| session.connection()?.rename_file(&name("t"), &name("u"));
    let moves = [("t/a", "u/a"), ("t/b/c", "u/b/c"), ("t/d", "u/d")];
    let copy = |objects: &mut Objects| copied(objects, "t/", "u/");
    let delete = |objects: &mut Objects| objects.retain(|key, _| !key.starts_with("t/"));
    swept(limits, &tree, done(rename), &[&copy, &delete], &moves);
    let remove: Operation =
        |session| session.connection()?.delete_recursively(&name("t")).map_err(|left| left.error);
    swept(limits, &tree, done(remove), &[&delete], &[]);
    let files = [("t", 1), ("u", 2), ("t.x", 3)];
    let copy = |objects: &mut Objects| _ = objects.insert("u".into(), objects["t"].clone());
    let delete = |objects: &mut Objects| _ = objects.remove("t");
    assert_eq!(swept(limits, &files, done(rename), &[&copy, &delete], &[("t", "u")]), 3);
    swept(
        limits,
        &files,
        |session| session.connection()?.copy_file(&name("t"), &name("u")),
        &[&copy],
        &[],
    );
    let make: Operation = |session| session.connection()?.recursively_create_dir(&name("d/e"));
    swept(limits, &files, make, &[&|objects| _ = objects.insert("d/e/".into(), Bytes::new())], &[]);
}

/// Returns the operation, which is done already if its source is gone.
fn done(operation: fn(&Session<Memory>) -> Result<()>) -> impl Fn(&Session<Memory>) -> Result<()> {
    move |session| match operation(session) {
        Err(error) if error.code() == Code::NotFound => Ok(()),
        outcome => outcome,
    }
}

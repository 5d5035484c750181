//! The operations: one of each kind of request, and of requests that follow one another.

use super::operation::{Answer, Case, Failure, HUGE, Objects, Op, QUERY, fails_with, right};
use tf_fs_plugin::Code;
use tf_plugin_s3_tests::content;

/// Several ranged GETs of the smallest size that can be set.
const LEN: usize = 200_000;

fn body() -> Vec<u8> {
    content(LEN, 1)
}

/// More than a page of a listing.
const MANY: usize = 1_001;

fn put_file(case: &Case<'_>) {
    case.put("f", content(1_000, 7));
    // Neighbours in byte order, before and after `f/`.
    case.put("f-1", "1");
    case.put("f.index", "2");
    case.put("f0", "3");
}

fn put_big(case: &Case<'_>) {
    case.put("f", body());
}

fn put_tree(case: &Case<'_>) {
    case.put("t-x", "beside");
    case.put("t.x", "beside");
    case.put("t/a", "1");
    case.put("t/b/c", "2");
    case.put("t/b/d", "3");
    case.put("t0", "beside");
}

fn put_many(case: &Case<'_>) {
    case.put("t-x", "beside");
    for index in 0..MANY {
        case.put(&format!("t/{index:04}"), "x");
    }
    case.put("t0", "beside");
}

fn remove_tree(objects: &mut Objects, dir: &str) {
    objects.retain(|key, _| !key.starts_with(&format!("{dir}t/")));
}

fn copy(objects: &mut Objects, dir: &str, src: &str, dst: &str) {
    let content = objects.get(&format!("{dir}{src}")).cloned().unwrap_or_default();
    objects.insert(format!("{dir}{dst}"), content);
}

fn names(mut names: Vec<Vec<u8>>) -> Vec<String> {
    names.sort();
    names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
}

fn is_tree(found: Vec<Vec<u8>>) -> Answer {
    let found = names(found);
    let wanted: Vec<String> = (0..MANY).map(|index| format!("{index:04}")).collect();
    right(found == wanted, || format!("{} of {MANY} entries", found.len()))
}

pub(super) fn operations() -> Vec<Op> {
    vec![
        Op {
            name: "read a small file",
            setup: put_file,
            run: |case| {
                let file = case.host().new_random_access_file(case.uri("f"))?;
                right(file.read(0, 2_000)? == content(1_000, 7), || "wrong bytes".into())
            },
            ..QUERY
        },
        Op {
            name: "read on and on",
            setup: put_big,
            run: |case| {
                let (file, body) = (case.host().new_random_access_file(case.uri("f"))?, body());
                for start in (0..LEN).step_by(48_000) {
                    let wanted = &body[start..LEN.min(start + 48_000)];
                    right(file.read(start as u64, 48_000)? == wanted, || {
                        format!("wrong bytes at {start}")
                    })?;
                }
                Ok(())
            },
            at: |k| k < 10,
            ..QUERY
        },
        Op {
            name: "read here and there",
            setup: put_big,
            run: |case| {
                let (file, body) = (case.host().new_random_access_file(case.uri("f"))?, body());
                for start in [150_000, 17, 130_001, 199_999, 70_000] {
                    let wanted = &body[start..LEN.min(start + 5_000)];
                    right(file.read(start as u64, 5_000)? == wanted, || {
                        format!("wrong bytes at {start}")
                    })?;
                }
                Ok(())
            },
            ..QUERY
        },
        Op {
            name: "read all at once",
            setup: put_big,
            run: |case| {
                let file = case.host().new_random_access_file(case.uri("f"))?;
                right(file.read(0, LEN + 1)? == body(), || "wrong bytes".into())
            },
            at: |k| k < 10,
            ..QUERY
        },
        Op {
            name: "open what is missing",
            setup: put_file,
            run: |case| {
                fails_with(case.host().new_random_access_file(case.uri("g")), Code::NotFound)
            },
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "stat of a file",
            setup: put_file,
            run: |case| {
                let found = case.host().stat(case.uri("f"))?;
                right(!found.is_directory && found.length == 1_000, || format!("{found:?}"))
            },
            ..QUERY
        },
        Op {
            name: "is a directory",
            setup: put_tree,
            run: |case| Ok(case.host().is_directory(case.uri("t"))?),
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "list",
            setup: put_many,
            run: |case| is_tree(case.host().get_children(case.uri("t"))?),
            sample: 2,
            ..QUERY
        },
        Op {
            name: "glob",
            setup: put_many,
            run: |case| {
                let prefix = case.uri("t/").into_bytes();
                let found = case.host().get_matching_paths(case.uri("t/*"))?;
                is_tree(
                    found
                        .into_iter()
                        .map(|uri| uri.strip_prefix(&prefix[..]).unwrap_or(&uri).to_vec())
                        .collect(),
                )
            },
            sample: 2,
            ..QUERY
        },
        Op {
            name: "glob in directories",
            setup: put_tree,
            run: |case| {
                let found = names(case.host().get_matching_paths(case.uri("t/*/*"))?);
                right(found == [case.uri("t/b/c"), case.uri("t/b/d")], || format!("{found:?}"))
            },
            ..QUERY
        },
        Op {
            name: "delete a file",
            setup: put_file,
            run: |case| Ok(case.host().delete_file(case.uri("f"))?),
            effect: |objects, dir| drop(objects.remove(&format!("{dir}f"))),
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "delete an empty directory",
            setup: |case| {
                put_file(case);
                case.put("t/", "");
            },
            run: |case| Ok(case.host().delete_dir(case.uri("t"))?),
            effect: |objects, dir| drop(objects.remove(&format!("{dir}t/"))),
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "delete a tree",
            setup: put_many,
            run: |case| {
                let deleted = case.host().delete_recursively(case.uri("t"));
                deleted.map_err(|left| Failure::Error(left.error))
            },
            effect: remove_tree,
            done_already: &[Code::NotFound],
            // One by one, if the store refuses to delete many.
            patience: 3,
            sample: 3,
            ..QUERY
        },
        Op {
            name: "copy",
            setup: put_file,
            run: |case| Ok(case.host().copy_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| copy(objects, dir, "f", "g"),
            ..QUERY
        },
        Op {
            name: "copy in parts",
            setup: |case| {
                let key = format!("{}f", case.dir);
                drop(case.store.put_sparse(case.store.bucket(), &key, HUGE + 1));
            },
            run: |case| Ok(case.host().copy_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| copy(objects, dir, "f", "g"),
            // 81 parts.
            patience: 3,
            sample: 7,
            // What S3 says of an object that is too long for one copy, where the fault hides why it says so, and of
            // parts and ranges that a fault has made wrong.
            also: &[Code::InvalidArgument],
            at: |k| k < 8,
            ..QUERY
        },
        Op {
            name: "copy what is missing",
            setup: put_file,
            run: |case| {
                fails_with(case.host().copy_file(case.uri("none"), case.uri("g")), Code::NotFound)
            },
            fails: Some(Code::NotFound),
            ..QUERY
        },
        Op {
            name: "rename",
            setup: put_file,
            run: |case| Ok(case.host().rename_file(case.uri("f"), case.uri("g"))?),
            effect: |objects, dir| {
                copy(objects, dir, "f", "g");
                objects.remove(&format!("{dir}f"));
            },
            moves: &[("f", "g")],
            done_already: &[Code::NotFound],
            ..QUERY
        },
        Op {
            name: "rename a directory",
            setup: put_tree,
            run: |case| Ok(case.host().rename_file(case.uri("t"), case.uri("u"))?),
            effect: |objects, dir| {
                for name in ["a", "b/c", "b/d"] {
                    copy(objects, dir, &format!("t/{name}"), &format!("u/{name}"));
                }
                remove_tree(objects, dir);
            },
            moves: &[("t/a", "u/a"), ("t/b/c", "u/b/c"), ("t/b/d", "u/b/d")],
            done_already: &[Code::NotFound],
            // Lists, copies, and takes the copies back.
            patience: 2,
            needs_listing: true,
            ..QUERY
        },
        Op {
            name: "make a directory",
            setup: put_file,
            run: |case| Ok(case.host().create_dir(case.uri("d"))?),
            effect: |objects, dir| drop(objects.insert(format!("{dir}d/"), Vec::new())),
            done_already: &[Code::AlreadyExists],
            ..QUERY
        },
    ]
}

const MIB: usize = 1 << 20;

/// What a close says if it comes too late to hear what became of it.
const LATE: &[Code] = &[Code::Unavailable];

/// Besides, what an append says of an object that the store knows better.
const LATE_OR_OTHER: &[Code] =
    &[Code::Unavailable, Code::FailedPrecondition, Code::InvalidArgument];

fn write(case: &Case<'_>, len: usize) -> Answer {
    let mut file = case.host().new_writable_file(case.uri("f"))?;
    file.append(&content(len, 1))?;
    Ok(file.close()?)
}

fn append(case: &Case<'_>) -> Answer {
    let mut file = case.host().new_appendable_file(case.uri("f"))?;
    file.append(b"more")?;
    Ok(file.close()?)
}

fn appended(objects: &mut Objects, dir: &str) {
    objects.entry(format!("{dir}f")).or_default().extend_from_slice(b"more");
}

/// Files open for writing.
pub(super) fn writes() -> Vec<Op> {
    let write_op = Op { setup: put_file, also: LATE, patience: 4, ..QUERY };
    let append_op = Op {
        run: append,
        effect: appended,
        also: LATE_OR_OTHER,
        appends: true,
        patience: 4,
        ..QUERY
    };
    vec![
        Op {
            name: "write a small file",
            run: |case| write(case, 1000),
            effect: |objects, dir| drop(objects.insert(format!("{dir}f"), content(1000, 1))),
            ..write_op
        },
        Op {
            name: "write in parts",
            run: |case| write(case, 11 * MIB),
            effect: |objects, dir| drop(objects.insert(format!("{dir}f"), content(11 * MIB, 1))),
            ..write_op
        },
        Op { name: "append to a small file", setup: put_file, ..append_op },
        Op {
            name: "append to a large file",
            setup: |case| case.put("f", content(6 * MIB, 7)),
            ..append_op
        },
    ]
}

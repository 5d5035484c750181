//! Written bytes are read back: pieces of all sizes, appending, closing, replacing.

use super::conditions::NOT_FOUND;
use super::run::{CONTENT, Run, Step, needs};
use super::steps::{append, begun, create, created, file, finish, pattern, place};
use crate::filesystem::semantics::Append;
use crate::threads::joined;
use std::thread;
use tf_plugin_core::Code;

/// Writes a new file in pieces, and reads it back.
pub(super) fn writes<'p>(run: &mut Run<'_>, pieces: impl Iterator<Item = &'p [u8]>) -> Step {
    let (path, mut writer) = created(run)?;
    let mut content = Vec::new();
    for piece in pieces {
        run.must(format_args!("append of {} bytes", piece.len()), writer.append(piece))?;
        content.extend_from_slice(piece);
    }
    run.gives("tell", writer.tell(), content.len() as u64);
    run.must("close", writer.close())?;
    drop(writer);
    run.holds("written in pieces", &path, &content);
    let length = run.fs.stat(&path).map(|found| found.length);
    run.gives("stat: the length", length, content.len() as u64);
    Ok(())
}

pub(super) fn appends_of_all_sizes(run: &mut Run<'_>) -> Step {
    let content = pattern(400_000);
    let sizes = [0, 1, 511, 512, 513, 4095, 4096, 4097, 0, 65_535, 65_536, 65_537, 131_072, 1];
    let mut rest = &content[..];
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, after) = rest.split_at(size);
        rest = after;
        pieces.push(piece);
    }
    writes(run, pieces.into_iter())
}

pub(super) fn a_shorter_file_replaces_a_longer_one(run: &mut Run<'_>) -> Step {
    let path = file(run, &pattern(10_000))?;
    run.write(&path, b"short")?;
    run.holds("replaced", &path, b"short");
    run.gives("get_file_size of the shorter file", run.fs.get_file_size(&path), 5);
    Ok(())
}

pub(super) fn an_empty_file_replaces_a_full_one(run: &mut Run<'_>) -> Step {
    let path = file(run, b"content")?;
    run.write(&path, b"")?;
    run.holds("replaced", &path, b"");
    Ok(())
}

pub(super) fn appending_keeps_what_is_there(run: &mut Run<'_>) -> Step {
    let content = pattern(70_000);
    let path = file(run, &content)?;
    let mut want = content;
    for index in 0..5_u8 {
        let writer = append(run, &path)?;
        finish(run, writer, &[index; 3])?;
        want.extend_from_slice(&[index; 3]);
    }
    run.holds("appended five times", &path, &want);
    Ok(())
}

pub(super) fn appending_nothing_keeps_the_file(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    let mut writer = append(run, &path)?;
    run.must("close", writer.close())?;
    run.holds("opened for appending and closed", &path, CONTENT);
    Ok(())
}

pub(super) fn appending_creates_a_missing_file(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/new");
    let opened = run.fs.new_appendable_file(&path);
    let writer = run.must("new_appendable_file of a missing file", opened)?;
    finish(run, writer, b"first")?;
    run.holds("created by new_appendable_file", &path, b"first");
    Ok(())
}

pub(super) fn appending_is_declared_right(run: &mut Run<'_>) -> Step {
    let appends = run.semantics.append == Append::Supported;
    needs(!appends, "appending is declared to be supported")?;
    let path = file(run, CONTENT)?;
    let opened = run.fs.new_appendable_file(&path).map(drop);
    let what = "new_appendable_file of a file, where appending is declared not to be supported";
    if opened.is_ok() {
        run.expect(what, &opened, Some(Code::Unimplemented));
    }
    run.holds("refused", &path, CONTENT);
    Ok(())
}

pub(super) fn close_makes_visible(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = begun(run, b"all of it")?;
    run.must("close", writer.close())?;
    // TensorFlow reads, lists and renames before it drops the writer.
    run.holds("closed, not dropped", &path, b"all of it");
    run.lists("closed, not dropped", path.trim_end_matches("/data"), &["data"]);
    drop(writer);
    run.holds("dropped after close", &path, b"all of it");
    Ok(())
}

pub(super) fn close_writes_what_was_not_flushed(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = begun(run, b"flushed")?;
    run.must("flush", writer.flush())?;
    run.must("append", writer.append(b", synced"))?;
    run.must("sync", writer.sync())?;
    finish(run, writer, b", and closed")?;
    run.holds("appended after flush and sync", &path, b"flushed, synced, and closed");
    Ok(())
}

pub(super) fn close_repeats_nothing(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = begun(run, b"once")?;
    for step in ["close", "flush after close", "a second close", "sync after close", "close"] {
        let done = match step {
            "flush after close" => writer.flush(),
            "sync after close" => writer.sync(),
            _ => writer.close(),
        };
        run.expect(step, &done, None);
        run.holds(step, &path, b"once");
    }
    Ok(())
}

pub(super) fn a_late_close_does_not_bring_a_file_back(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = begun(run, b"old")?;
    run.must("close", writer.close())?;
    run.must("delete_file", run.fs.delete_file(&path))?;
    run.expect("flush after close", &writer.flush(), None);
    run.expect("a second close", &writer.close(), None);
    drop(writer);
    run.is_gone("closed again after it was deleted", &path);
    Ok(())
}

pub(super) fn append_after_close_is_not_lost_silently(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = begun(run, b"one")?;
    run.must("close", writer.close())?;
    let late = writer.append(b"two");
    let want = if late.is_ok() { &b"onetwo"[..] } else { b"one" };
    let again = writer.close();
    if late.is_ok() {
        run.expect("close after a late append that was taken", &again, None);
    }
    drop(writer);
    run.holds("append after close", &path, want);
    Ok(())
}

pub(super) fn a_dropped_file_can_be_written_again(run: &mut Run<'_>) -> Step {
    let (path, writer) = begun(run, pattern(100_000))?;
    drop(writer);
    run.write(&path, b"anew")?;
    run.holds("written again after it was dropped without a close", &path, b"anew");
    run.lists("written again", path.trim_end_matches("/data"), &["data"]);
    Ok(())
}

pub(super) fn a_dropped_append_keeps_what_was_there(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    let mut writer = append(run, &path)?;
    run.must("append", writer.append(b" and more"))?;
    drop(writer);
    let read = run.fs.read_file(&path).unwrap_or_default();
    run.expect_that(
        "new_appendable_file, append, dropped without a close: what was there is there",
        read.starts_with(CONTENT) && b"content and more".starts_with(&read),
    );
    Ok(())
}

pub(super) fn two_writers_of_different_files(run: &mut Run<'_>) -> Step {
    let cell = run.bare_cell()?;
    let (one, other) = (format!("{cell}/one"), format!("{cell}/other"));
    let (mut first, mut second) = (create(run, &one)?, create(run, &other)?);
    for _ in 0..49 {
        let appended = first.append(b"aa").and_then(|()| second.append(b"b"));
        run.must("append", appended)?;
    }
    finish(run, second, b"b")?;
    finish(run, first, b"aa")?;
    run.holds("two writers at a time", &one, &b"aa".repeat(50));
    run.holds("two writers at a time", &other, &b"b".repeat(50));
    Ok(())
}

pub(super) fn a_writer_moves_between_threads(run: &mut Run<'_>) -> Step {
    let (path, mut writer) = created(run)?;
    for index in 0..4_u8 {
        let appended = thread::scope(|scope| joined(scope.spawn(|| writer.append(&[index]))));
        run.must("append on another thread", appended)?;
    }
    run.must("close", writer.close())?;
    run.holds("appended on four threads, one after the other", &path, &[0, 1, 2, 3]);
    Ok(())
}

pub(super) fn a_deleted_file_is_written_again(run: &mut Run<'_>) -> Step {
    let path = file(run, &pattern(5000))?;
    run.must("delete_file", run.fs.delete_file(&path))?;
    let gone = run.fs.new_random_access_file(&path);
    run.expect("new_random_access_file of a deleted file", &gone, NOT_FOUND);
    run.write(&path, b"new")?;
    run.holds("written again after delete_file", &path, b"new");
    Ok(())
}

pub(super) fn caches_can_be_flushed(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    run.fs.flush_caches();
    run.holds("flush_caches", &path, CONTENT);
    run.write(&path, b"other")?;
    run.fs.flush_caches();
    run.holds("flush_caches after a change", &path, b"other");
    Ok(())
}

pub(super) fn tell_begins_at_zero(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    let mut writer = create(run, &path)?;
    run.gives("tell of a file that replaces another", writer.tell(), 0);
    run.must("close", writer.close())
}

pub(super) fn tell_survives_flush(run: &mut Run<'_>) -> Step {
    let (_, mut writer) = created(run)?;
    for round in 1..=3_u64 {
        run.must("append", writer.append(b"abcd"))?;
        let flushed = if round == 2 { writer.sync() } else { writer.flush() };
        run.must("flush", flushed)?;
        run.gives("tell after flush", writer.tell(), round * 4);
    }
    run.must("close", writer.close())
}

pub(super) fn stat_follows_every_change(run: &mut Run<'_>) -> Step {
    let path = place(run)?;
    for len in [3_usize, 0, 70_000, 1] {
        run.write(&path, pattern(len))?;
        let found = run.fs.stat(&path).map(|found| (found.length, found.is_directory));
        run.gives("stat: length and kind", found, (len as u64, false));
        run.gives("get_file_size", run.fs.get_file_size(&path), len as u64);
    }
    Ok(())
}

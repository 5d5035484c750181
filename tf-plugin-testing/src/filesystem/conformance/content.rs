//! What is read is what was written.

use super::conditions::{FP, NOT_FOUND};
use super::declared::{Append, Visible};
use super::replaced;
use super::run::{CONTENT, Outcome, Run, Stop};
use crate::filesystem::TestWritableFile;
use tf_plugin_core::{Code, Result};

const END: Option<Code> = Some(Code::OutOfRange);

/// Bytes in which every position is recognisable.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

/// That nothing changes where files are provided.
pub(super) fn changes_are_refused(run: &mut Run<'_>) -> Outcome {
    if run.may_change() {
        return Err(Stop::Skip(String::from("files are not declared to be provided")));
    }
    let cell = run.cell()?;
    let (file, new) = (format!("{cell}/file"), format!("{cell}/new"));
    let fs = run.fs.clone();
    let left = |result: Result<(), tf_fs_plugin::Undeleted>| result.map_err(|left| left.error);
    for (op, answer) in [
        ("new_writable_file of a new name", fs.new_writable_file(&new).map(drop)),
        ("new_writable_file of a file", fs.new_writable_file(&file).map(drop)),
        ("new_appendable_file of a file", fs.new_appendable_file(&file).map(drop)),
        ("create_dir of a new name", fs.create_dir(&new)),
        ("recursively_create_dir of a new name", fs.recursively_create_dir(&new)),
        ("copy_file to a new name", fs.copy_file(&file, &new)),
        ("rename_file to a new name", fs.rename_file(&file, &new)),
        ("delete_file of a file", fs.delete_file(&file)),
        ("delete_recursively of a file", left(fs.delete_recursively(&file))),
        ("delete_recursively of a directory", left(fs.delete_recursively(format!("{cell}/full")))),
    ] {
        let refusals = [Code::Unimplemented, Code::PermissionDenied, Code::FailedPrecondition];
        if !answer.as_ref().is_err_and(|error| refusals.contains(&error.code())) {
            run.expect(op, &answer, Some(Code::PermissionDenied));
        }
        let found = run.fs.path_exists(&new);
        run.expect(format_args!("{op}: path_exists of it"), &found, NOT_FOUND);
        run.untouched(op, &cell);
    }
    Ok(())
}

/// One file in a directory of its own.
pub(super) fn file(run: &mut Run<'_>, content: &[u8]) -> Outcome<String> {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    run.write(&path, content)?;
    Ok(path)
}

/// Reads pieces of a file that holds `content`, and holds each against it.
fn reads(run: &mut Run<'_>, content: &[u8], pieces: &[(u64, usize)]) -> Outcome {
    let path = file(run, content)?;
    let opened = run.fs.new_random_access_file(&path);
    let reader = run.must("new_random_access_file", opened)?;
    for &(offset, n) in pieces {
        let (bytes, status) = reader.read_with_status(offset, n);
        let len = content.len();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(len);
        let want = &content[start..len.min(start.saturating_add(n))];
        let what = format!("read of {n} bytes at {offset} of {len}");
        run.expect(&what, &status, if want.len() < n { END } else { None });
        run.expect_bytes(format_args!("{what}: the bytes"), &bytes, want);
    }
    Ok(())
}

pub(super) fn read_an_empty_file(run: &mut Run<'_>) -> Outcome {
    reads(run, b"", &[(0, 0), (0, 1), (0, 1 << 20), (5, 1)])
}

pub(super) fn read_at_a_huge_offset(run: &mut Run<'_>) -> Outcome {
    let huge = i64::MAX.unsigned_abs();
    reads(run, CONTENT, &[(1 << 31, 1), (1 << 32, 7), (1 << 40, 1), (huge - 1, 1), (huge, 1)])
}

pub(super) fn read_backwards(run: &mut Run<'_>) -> Outcome {
    let pieces: Vec<_> = (0..50).rev().map(|index| (index * 1999, 1700)).collect();
    reads(run, &pattern(100_000), &pieces)
}

pub(super) fn read_here_and_there(run: &mut Run<'_>) -> Outcome {
    let mut state = 12_345_u64;
    let mut next = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let pieces: Vec<_> = (0..100).map(|_| (next(70_000), next(5_000) as usize)).collect();
    reads(run, &pattern(66_000), &pieces)
}

pub(super) fn read_byte_by_byte(run: &mut Run<'_>) -> Outcome {
    let pieces: Vec<_> = (0..=300).map(|offset| (offset, 1)).collect();
    reads(run, &pattern(300), &pieces)
}

pub(super) fn read_in_pieces_of_tensorflow(run: &mut Run<'_>) -> Outcome {
    let sizes = [1, 12, 48, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
    let pieces: Vec<_> = sizes.iter().flat_map(|&n| [(0, n), (300_000, n)]).collect();
    reads(run, &pattern(700_001), &pieces)
}

pub(super) fn read_around_the_end(run: &mut Run<'_>) -> Outcome {
    let mut pieces = Vec::new();
    for offset in 4090..4100 {
        for n in [1, 5, 6, 7, 4096] {
            pieces.push((offset, n));
        }
    }
    reads(run, &pattern(4096), &pieces)
}

pub(super) fn all_bytes_are_kept(run: &mut Run<'_>) -> Outcome {
    let content: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    reads(run, &content, &[(0, 512)])
}

pub(super) fn line_ends_are_kept(run: &mut Run<'_>) -> Outcome {
    reads(run, b"a\nb\r\nc\rd\x1a\0\n\n", &[(0, 100)])
}

pub(super) fn two_readers_of_one_file(run: &mut Run<'_>) -> Outcome {
    let path = file(run, b"0123456789")?;
    let (one, other) = (run.fs.new_random_access_file(&path), run.fs.new_random_access_file(&path));
    let one = run.must("new_random_access_file", one)?;
    let other = run.must("new_random_access_file of an open file", other)?;
    for (reader, offset, want) in [(&one, 0, b"012"), (&other, 5, b"567"), (&one, 3, b"345")] {
        let read = reader.read(offset, 3).unwrap_or_default();
        run.expect_bytes(format_args!("read of 3 bytes at {offset}"), &read, want);
    }
    drop(one);
    let read = other.read(8, 3).unwrap_or_default();
    run.expect_bytes("read after the other reader was closed", &read, b"89");
    Ok(())
}

/// Writes a new file in pieces, and reads it.
fn writes<'p>(run: &mut Run<'_>, pieces: impl Iterator<Item = &'p [u8]>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let mut content = Vec::new();
    for piece in pieces {
        let appended = writer.append(piece);
        run.must(format_args!("append of {} bytes", piece.len()), appended)?;
        content.extend_from_slice(piece);
    }
    let told = writer.tell();
    if run.expect("tell", &told, None) {
        run.expect_eq("tell", told.unwrap_or_default(), content.len() as u64);
    }
    let closed = writer.close();
    run.must("close", closed)?;
    drop(writer);
    run.holds("written in pieces", &path, &content);
    let found = run.fs.stat(&path);
    if run.expect("stat", &found, None) {
        let length = found.map(|found| found.length).unwrap_or_default();
        run.expect_eq("stat: the length", length, content.len() as u64);
    }
    Ok(())
}

pub(super) fn create(run: &mut Run<'_>, path: &str) -> Outcome<TestWritableFile> {
    let opened = run.fs.new_writable_file(path);
    run.must(format_args!("new_writable_file of {path}"), opened)
}

pub(super) fn many_small_appends(run: &mut Run<'_>) -> Outcome {
    let content = pattern(9000);
    writes(run, content.chunks(3))
}

pub(super) fn appends_of_all_sizes(run: &mut Run<'_>) -> Outcome {
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

pub(super) fn a_block_and_one_byte(run: &mut Run<'_>) -> Outcome {
    let content = pattern((1 << 16) + 1);
    writes(run, content.chunks(1 << 16))
}

pub(super) fn eight_mebibytes(run: &mut Run<'_>) -> Outcome {
    let content = pattern(8 << 20);
    writes(run, content.chunks(1 << 20))
}

pub(super) fn one_large_append(run: &mut Run<'_>) -> Outcome {
    let content = pattern((3 << 20) + 17);
    writes(run, std::iter::once(&content[..]))
}

pub(super) fn a_shorter_file_replaces_a_longer_one(run: &mut Run<'_>) -> Outcome {
    let path = file(run, &pattern(10_000))?;
    run.write(&path, b"short")?;
    run.holds("replaced", &path, b"short");
    let size = run.fs.get_file_size(&path);
    if run.expect("get_file_size", &size, None) {
        run.expect_eq("get_file_size of the shorter file", size.unwrap_or_default(), 5);
    }
    Ok(())
}

pub(super) fn an_empty_file_replaces_a_full_one(run: &mut Run<'_>) -> Outcome {
    let path = file(run, b"content")?;
    run.write(&path, b"")?;
    run.holds("replaced", &path, b"");
    Ok(())
}

/// Appends to a file that exists, or skips the case.
pub(super) fn append(run: &mut Run<'_>, path: &str) -> Outcome<TestWritableFile> {
    if run.declared.append == Append::Unsupported {
        return Err(Stop::Skip(String::from("appending is declared not to be supported")));
    }
    let opened = run.fs.new_appendable_file(path);
    run.must(format_args!("new_appendable_file of {path}"), opened)
}

pub(super) fn appending_keeps_what_is_there(run: &mut Run<'_>) -> Outcome {
    let content = pattern(70_000);
    let path = file(run, &content)?;
    let mut want = content;
    for index in 0..5_u8 {
        let mut writer = append(run, &path)?;
        let added = writer.append(&[index; 3]);
        run.must("append to an existing file", added)?;
        let closed = writer.close();
        run.must("close", closed)?;
        want.extend_from_slice(&[index; 3]);
    }
    run.holds("appended five times", &path, &want);
    Ok(())
}

pub(super) fn appending_nothing_keeps_the_file(run: &mut Run<'_>) -> Outcome {
    let path = file(run, CONTENT)?;
    let mut writer = append(run, &path)?;
    let closed = writer.close();
    run.must("close", closed)?;
    run.holds("opened for appending and closed", &path, CONTENT);
    Ok(())
}

pub(super) fn appending_creates_a_missing_file(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/new");
    let opened = run.fs.new_appendable_file(&path);
    let mut writer = run.must("new_appendable_file of a missing file", opened)?;
    let added = writer.append(b"first");
    run.must("append", added)?;
    let closed = writer.close();
    run.must("close", closed)?;
    run.holds("created by new_appendable_file", &path, b"first");
    Ok(())
}

pub(super) fn appending_is_declared_right(run: &mut Run<'_>) -> Outcome {
    if run.declared.append == Append::Supported {
        return Err(Stop::Skip(String::from("appending is declared to be supported")));
    }
    let path = file(run, CONTENT)?;
    let opened = run.fs.new_appendable_file(&path).map(drop);
    let what = "new_appendable_file of a file, where appending is declared not to be supported";
    if opened.is_ok() {
        run.expect(what, &opened, Some(Code::Unimplemented));
    }
    run.holds("refused", &path, CONTENT);
    Ok(())
}

/// Whether a reader sees what `publish` has made visible.
fn visible_after(
    run: &mut Run<'_>,
    what: &str,
    publish: fn(&mut TestWritableFile) -> Result<()>,
) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let mut content = Vec::new();
    for piece in [&b"one "[..], b"two "] {
        let added = writer.append(piece);
        run.must("append", added)?;
        content.extend_from_slice(piece);
        let published = publish(&mut writer);
        run.must(what, published)?;
        run.holds(what, &path, &content);
        let size = run.fs.get_file_size(&path);
        if run.expect("get_file_size", &size, None) {
            let what = format!("{what}: get_file_size");
            run.expect_eq(what, size.unwrap_or_default(), content.len() as u64);
        }
    }
    let closed = writer.close();
    run.must("close", closed)
}

pub(super) fn flush_makes_visible(run: &mut Run<'_>) -> Outcome {
    run.needs_visible_at_flush()?;
    visible_after(run, "flush", TestWritableFile::flush)
}

pub(super) fn sync_makes_visible(run: &mut Run<'_>) -> Outcome {
    run.needs_visible_at_flush()?;
    visible_after(run, "sync", TestWritableFile::sync)
}

pub(super) fn close_makes_visible(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let added = writer.append(b"all of it");
    run.must("append", added)?;
    let closed = writer.close();
    run.must("close", closed)?;
    // TensorFlow reads, lists and renames before it lets go of the writer.
    run.holds("closed, not dropped", &path, b"all of it");
    run.lists("closed, not dropped", &cell, &["data"]);
    drop(writer);
    run.holds("dropped after close", &path, b"all of it");
    Ok(())
}

pub(super) fn close_writes_what_was_not_flushed(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    for piece in [&b"flushed"[..], b", synced", b", and closed"] {
        let added = writer.append(piece);
        run.must("append", added)?;
        let done = match piece {
            b"flushed" => writer.flush(),
            b", synced" => writer.sync(),
            _ => writer.close(),
        };
        run.must("flush, sync or close", done)?;
    }
    drop(writer);
    run.holds("appended after flush and sync", &path, b"flushed, synced, and closed");
    Ok(())
}

pub(super) fn close_repeats_nothing(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let added = writer.append(b"once");
    run.must("append", added)?;
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

pub(super) fn a_late_close_does_not_bring_a_file_back(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let added = writer.append(b"old");
    run.must("append", added)?;
    let closed = writer.close();
    run.must("close", closed)?;
    let deleted = run.fs.delete_file(&path);
    run.must("delete_file", deleted)?;
    run.expect("flush after close", &writer.flush(), None);
    run.expect("a second close", &writer.close(), None);
    drop(writer);
    run.is_gone("closed again after it was deleted", &path);
    Ok(())
}

pub(super) fn append_after_close_is_not_lost_silently(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let added = writer.append(b"one");
    run.must("append", added)?;
    let closed = writer.close();
    run.must("close", closed)?;
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

pub(super) fn a_dropped_file_can_be_written_anew(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    let added = writer.append(&pattern(100_000));
    run.must("append", added)?;
    drop(writer);
    run.write(&path, b"anew")?;
    run.holds("written again after it was dropped without a close", &path, b"anew");
    run.lists("written again", &cell, &["data"]);
    Ok(())
}

pub(super) fn a_dropped_append_keeps_what_was_there(run: &mut Run<'_>) -> Outcome {
    let path = file(run, CONTENT)?;
    let mut writer = append(run, &path)?;
    let added = writer.append(b" and more");
    run.must("append", added)?;
    drop(writer);
    let read = run.fs.read_file(&path).unwrap_or_default();
    run.expect_that(
        "new_appendable_file, append, dropped without a close: what was there is there",
        read.starts_with(CONTENT) && b"content and more".starts_with(&read),
    );
    Ok(())
}

pub(super) fn two_writers_of_different_files(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let (one, other) = (format!("{cell}/one"), format!("{cell}/other"));
    let (mut first, mut second) = (create(run, &one)?, create(run, &other)?);
    for _ in 0..50 {
        let (a, b) = (first.append(b"aa"), second.append(b"b"));
        run.must("append", a)?;
        run.must("append", b)?;
    }
    let (a, b) = (second.close(), first.close());
    run.must("close", a)?;
    run.must("close", b)?;
    run.holds("two writers at a time", &one, &b"aa".repeat(50));
    run.holds("two writers at a time", &other, &b"b".repeat(50));
    Ok(())
}

pub(super) fn a_writer_moves_between_threads(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    let mut writer = create(run, &path)?;
    for index in 0..4_u8 {
        let (moved, added) = std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let added = writer.append(&[index]);
                (writer, added)
            });
            other.join().expect("appending does not panic")
        });
        writer = moved;
        run.must("append on another thread", added)?;
    }
    let closed = writer.close();
    run.must("close", closed)?;
    run.holds("appended on four threads, one after the other", &path, &[0, 1, 2, 3]);
    Ok(())
}

pub(super) fn a_deleted_file_is_written_anew(run: &mut Run<'_>) -> Outcome {
    let path = file(run, &pattern(5000))?;
    let deleted = run.fs.delete_file(&path);
    run.must("delete_file", deleted)?;
    let gone = run.fs.new_random_access_file(&path).map(drop);
    let want = [NOT_FOUND, FP];
    run.expect_any("new_random_access_file of a deleted file", &gone, &want[..1]);
    run.write(&path, b"new")?;
    run.holds("written again after delete_file", &path, b"new");
    Ok(())
}

pub(super) fn caches_can_be_flushed(run: &mut Run<'_>) -> Outcome {
    let path = file(run, CONTENT)?;
    run.fs.flush_caches();
    run.holds("flush_caches", &path, CONTENT);
    run.write(&path, b"other")?;
    run.fs.flush_caches();
    run.holds("flush_caches after a change", &path, b"other");
    Ok(())
}

pub(super) fn a_failed_open_leaves_no_name(run: &mut Run<'_>) -> Outcome {
    let cell = run.cell()?;
    let missing = format!("{cell}/missing");
    let _ = run.fs.new_random_access_file(&missing).map(drop);
    let _ = run.fs.new_read_only_memory_region_from_file(&missing).map(drop);
    let _ = run.fs.stat(&missing);
    let _ = run.fs.get_file_size(&missing);
    let found = run.fs.path_exists(&missing);
    run.expect("path_exists after a failed open", &found, NOT_FOUND);
    Ok(())
}

/// Maps a file that holds `content`.
fn maps(run: &mut Run<'_>, content: &[u8]) -> Outcome {
    let path = file(run, content)?;
    let mapped = run.fs.new_read_only_memory_region_from_file(&path);
    let region = run.must("new_read_only_memory_region_from_file", mapped)?;
    run.expect_bytes("the region", &region.to_vec(), content);
    Ok(())
}

pub(super) fn region_of_one_byte(run: &mut Run<'_>) -> Outcome {
    maps(run, b"x")
}

pub(super) fn region_of_a_large_file(run: &mut Run<'_>) -> Outcome {
    maps(run, &pattern((1 << 20) + 3))
}

pub(super) fn region_of_a_replaced_file(run: &mut Run<'_>) -> Outcome {
    let path = file(run, b"first")?;
    let mapped = run.fs.new_read_only_memory_region_from_file(&path).map(drop);
    run.must("new_read_only_memory_region_from_file", mapped)?;
    run.write(&path, b"the second")?;
    let mapped = run.fs.new_read_only_memory_region_from_file(&path);
    let region = run.must("new_read_only_memory_region_from_file", mapped)?;
    run.expect_bytes("the region of a file that was replaced", &region.to_vec(), b"the second");
    Ok(())
}

pub(super) fn region_outlives_its_name(run: &mut Run<'_>) -> Outcome {
    let path = file(run, CONTENT)?;
    let mapped = run.fs.new_read_only_memory_region_from_file(&path);
    let region = run.must("new_read_only_memory_region_from_file", mapped)?;
    let deleted = run.fs.delete_file(&path);
    run.must("delete_file", deleted)?;
    run.expect_bytes("the region of a file that was deleted", &region.to_vec(), CONTENT);
    Ok(())
}

pub(super) fn tell_begins_at_zero(run: &mut Run<'_>) -> Outcome {
    let path = file(run, CONTENT)?;
    let mut writer = create(run, &path)?;
    let told = writer.tell();
    if run.expect("tell", &told, None) {
        run.expect_eq("tell of a file that replaces another", told.unwrap_or(99), 0);
    }
    let closed = writer.close();
    run.must("close", closed)
}

pub(super) fn tell_survives_flush(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let mut writer = create(run, &format!("{cell}/data"))?;
    for round in 1..=3_u64 {
        let added = writer.append(b"abcd");
        run.must("append", added)?;
        let flushed = if round == 2 { writer.sync() } else { writer.flush() };
        run.must("flush", flushed)?;
        let told = writer.tell();
        if run.expect("tell", &told, None) {
            run.expect_eq("tell after flush", told.unwrap_or_default(), round * 4);
        }
    }
    let closed = writer.close();
    run.must("close", closed)
}

pub(super) fn stat_follows_every_change(run: &mut Run<'_>) -> Outcome {
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    for len in [3_usize, 0, 70_000, 1] {
        run.write(&path, pattern(len))?;
        let found = run.fs.stat(&path);
        if run.expect("stat", &found, None)
            && let Ok(found) = found
        {
            run.expect_eq("stat: the length", found.length, len as u64);
            run.expect_eq("stat: is_directory", found.is_directory, false);
        }
        let size = run.fs.get_file_size(&path);
        if run.expect("get_file_size", &size, None) {
            run.expect_eq("get_file_size", size.unwrap_or(u64::MAX), len as u64);
        }
    }
    Ok(())
}

pub(super) fn visibility_is_declared_right(run: &mut Run<'_>) -> Outcome {
    match run.declared.visible {
        Visible::Create => {
            return Err(Stop::Skip(String::from("files are declared to be visible at create")));
        }
        Visible::InPlace => return replaced::in_place_is_declared_right(run),
        Visible::Flush | Visible::Close => {}
    }
    let cell = run.bare_cell()?;
    let path = format!("{cell}/data");
    run.write(&path, b"old")?;
    let mut writer = create(run, &path)?;
    let added = writer.append(b"half of the");
    run.must("append", added)?;
    let mut when = "flush";
    if run.declared.visible == Visible::Close {
        // An error is fine: there is nothing that could be flushed to where others see it.
        let _ = writer.flush();
        when = "close";
    }
    let seen = run.fs.read_file(&path);
    let what = format!("before the {when} that files are declared to be visible at");
    // The process that writes it may be refused.
    if run.expect_any(&what, &seen, &[None, FP])
        && let Ok(seen) = seen
    {
        run.expect_bytes(what, &seen, b"old");
    }
    let closed = writer.close();
    run.must("close", closed)?;
    run.holds("closed", &path, b"half of the");
    Ok(())
}

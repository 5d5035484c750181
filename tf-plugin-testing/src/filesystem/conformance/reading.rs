//! Reading returns what was written.

use super::conditions::END;
use super::run::{CONTENT, Run, Step};
use super::steps::{file, open, pattern};
use crate::filesystem::TestReadOnlyMemoryRegion;

/// Reads pieces of a file that holds `content`, and compares them with it.
pub(super) fn reads(run: &mut Run<'_>, content: &[u8], pieces: &[(u64, usize)]) -> Step {
    let path = file(run, content)?;
    let reader = open(run, &path)?;
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

pub(super) fn read_at_a_huge_offset(run: &mut Run<'_>) -> Step {
    let huge = i64::MAX.unsigned_abs();
    reads(run, CONTENT, &[(1 << 31, 1), (1 << 32, 7), (1 << 40, 1), (huge - 1, 1), (huge, 1)])
}

pub(super) fn read_backwards(run: &mut Run<'_>) -> Step {
    let pieces: Vec<_> = (0..50).rev().map(|index| (index * 1999, 1700)).collect();
    reads(run, &pattern(100_000), &pieces)
}

pub(super) fn read_here_and_there(run: &mut Run<'_>) -> Step {
    let mut random = fastrand::Rng::with_seed(12_345);
    let pieces: Vec<_> = (0..100).map(|_| (random.u64(..70_000), random.usize(..5_000))).collect();
    reads(run, &pattern(66_000), &pieces)
}

pub(super) fn read_byte_by_byte(run: &mut Run<'_>) -> Step {
    let pieces: Vec<_> = (0..=300).map(|offset| (offset, 1)).collect();
    reads(run, &pattern(300), &pieces)
}

pub(super) fn read_in_pieces_of_tensorflow(run: &mut Run<'_>) -> Step {
    let sizes = [1, 12, 48, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
    let pieces: Vec<_> = sizes.iter().flat_map(|&n| [(0, n), (300_000, n)]).collect();
    reads(run, &pattern(700_001), &pieces)
}

pub(super) fn read_around_the_end(run: &mut Run<'_>) -> Step {
    let mut pieces = Vec::new();
    for offset in 4090..4100 {
        for n in [1, 5, 6, 7, 4096] {
            pieces.push((offset, n));
        }
    }
    reads(run, &pattern(4096), &pieces)
}

pub(super) fn all_bytes_are_kept(run: &mut Run<'_>) -> Step {
    let content: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    reads(run, &content, &[(0, 512)])
}

pub(super) fn two_readers_of_one_file(run: &mut Run<'_>) -> Step {
    let path = file(run, b"0123456789")?;
    let (one, other) = (open(run, &path)?, open(run, &path)?);
    for (reader, offset, want) in [(&one, 0, b"012"), (&other, 5, b"567"), (&one, 3, b"345")] {
        let read = reader.read(offset, 3).unwrap_or_default();
        run.expect_bytes(format_args!("read of 3 bytes at {offset}"), &read, want);
    }
    drop(one);
    let read = other.read(8, 3).unwrap_or_default();
    run.expect_bytes("read after the other reader was closed", &read, b"89");
    Ok(())
}

fn map(run: &mut Run<'_>, path: &str) -> Step<TestReadOnlyMemoryRegion> {
    let mapped = run.fs.new_read_only_memory_region_from_file(path);
    run.must("new_read_only_memory_region_from_file", mapped)
}

/// Maps a file that holds `content`.
pub(super) fn maps(run: &mut Run<'_>, content: &[u8]) -> Step {
    let path = file(run, content)?;
    let region = map(run, &path)?;
    run.expect_bytes("the region", &region.to_vec(), content);
    Ok(())
}

pub(super) fn region_of_a_replaced_file(run: &mut Run<'_>) -> Step {
    let path = file(run, b"first")?;
    drop(map(run, &path)?);
    run.write(&path, b"the second")?;
    let region = map(run, &path)?;
    run.expect_bytes("the region of a file that was replaced", &region.to_vec(), b"the second");
    Ok(())
}

pub(super) fn region_outlives_its_name(run: &mut Run<'_>) -> Step {
    let path = file(run, CONTENT)?;
    let region = map(run, &path)?;
    run.must("delete_file", run.fs.delete_file(&path))?;
    run.expect_bytes("the region of a file that was deleted", &region.to_vec(), CONTENT);
    Ok(())
}

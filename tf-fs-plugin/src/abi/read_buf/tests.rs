//! Buffers of hosts and of tests, filled in all ways.

use super::*;

fn fill_all(part: &mut [MaybeUninit<u8>], byte: u8) -> &mut [u8] {
    part.fill(MaybeUninit::new(byte));
    // SAFETY: initialised just now.
    unsafe { core::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), part.len()) }
}

/// Returns memory that is never freed, and that leak checkers can reach from here.
fn forever(len: usize) -> &'static mut [u8] {
    static KEPT: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    let memory = Box::leak(vec![9; len].into_boxed_slice());
    KEPT.lock().unwrap().push(memory.as_ptr().expose_provenance());
    memory
}

#[test]
fn nothing_is_written_past_the_end() {
    let mut memory = [7; 6];
    let mut buf = ReadBuf::from_slice(&mut memory[..4]);
    assert_eq!(buf.push_slice(b"ab"), 2);
    assert_eq!(buf.push_slice(b"cdef"), 2);
    assert_eq!(buf.push_slice(b"g"), 0);
    assert_eq!(buf.filled(), b"abcd");
    assert_eq!(memory, *b"abcd\x07\x07");
}

#[test]
fn filling_from_a_whole_file_knows_its_end() {
    let mut memory = [0; 4];
    for (offset, expected, at_end) in [
        (0, &b"abcd"[..], false),
        (2, b"cdef", false),
        (4, b"ef", true),
        (6, b"", true),
        (u64::MAX, b"", true),
    ] {
        let mut buf = ReadBuf::from_slice(&mut memory);
        buf.fill_from(b"abcdef", offset);
        assert_eq!((buf.filled(), buf.at_end), (expected, at_end), "{offset}");
    }
}

#[test]
fn a_claim_of_too_much_is_refused() {
    let mut memory = [0; 4];
    let mut buf = ReadBuf::from_slice(&mut memory);
    assert_eq!(buf.fill_with(|_| Ok::<_, Error>(5)).unwrap_err().code(), Code::Internal);
    assert!(buf.filled().is_empty());
    assert_eq!(buf.fill_with(|rest| Ok::<_, Error>(rest.len())).unwrap(), 4);
    assert_eq!(buf.filled(), [0; 4]);
}

#[test]
fn memory_from_elsewhere_is_refused() {
    let mut memory = [1; 4];
    let mut buf = ReadBuf::from_slice(&mut memory);
    let elsewhere = forever(4);
    let refused = buf.fill_uninit(|_| Ok::<_, Error>(elsewhere));
    assert_eq!(refused.unwrap_err().code(), Code::Internal);
    let later = buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[1..], 5)));
    assert_eq!(later.unwrap_err().code(), Code::Internal);
    assert!(buf.filled().is_empty());
    assert_eq!(memory, [0; 4], "memory that the owner takes for initialised is repaired");
}

#[test]
fn an_initialised_beginning_is_taken() {
    let mut memory = [1; 4];
    let mut buf = ReadBuf::from_slice(&mut memory);
    let n = buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..3], 5))).unwrap();
    assert_eq!((n, buf.filled()), (3, &[5, 5, 5][..]));
    assert_eq!(buf.remaining(), 1);
}

#[test]
fn host_buffers_may_be_null_only_when_empty() {
    // SAFETY: null pointers, which are checked for.
    unsafe {
        assert_eq!(ReadBuf::from_host(ptr::null_mut(), 0).unwrap().remaining(), 0);
        assert_eq!(
            ReadBuf::from_host(ptr::null_mut(), 1).unwrap_err().code(),
            Code::InvalidArgument
        );
        let huge = ReadBuf::from_host(ptr::dangling_mut(), usize::MAX);
        assert_eq!(huge.unwrap_err().code(), Code::InvalidArgument);
    }
}

/// Adds one byte per call, and none after its end.
struct Slow(Vec<u8>);
impl RandomAccessFile for Slow {
    fn read_at(&self, offset: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        match self.0.get(usize::try_from(offset).unwrap()) {
            Some(byte) => assert_eq!(buf.push_slice(&[*byte]), 1),
            None => buf.end_of_file(),
        }
        Ok(())
    }
}

/// Fills its own buffer and puts it in the place of the host's.
struct Swapper;
impl RandomAccessFile for Swapper {
    fn read_at(&self, _: u64, buf: &mut ReadBuf<'_>) -> Result<()> {
        let mut other = ReadBuf::from_slice(forever(64));
        assert_eq!(other.push_slice(&[7; 64]), 64);
        *buf = other;
        Ok(())
    }
}

/// Adds nothing, and fails with this code if there is one.
struct Silent(Option<Code>);
impl RandomAccessFile for Silent {
    fn read_at(&self, _: u64, _: &mut ReadBuf<'_>) -> Result<()> {
        self.0.map_or(Ok(()), |code| Err(Error::new(code, "past the end")))
    }
}

#[test]
fn only_a_noted_end_is_the_end_of_the_file() {
    for (code, text) in [(None, "added no byte at 3"), (Some(Code::OutOfRange), "past the end")] {
        let mut memory = [0; 4];
        let mut buf = ReadBuf::from_slice(&mut memory);
        let error = buf.read_exact_or_end(&Silent(code), 3).unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{error:#}");
        let shown = format!("{error:#}");
        assert!(shown.contains(text) && shown.contains("`ReadBuf::end_of_file`"), "{shown}");
    }
    let mut memory = [0; 4];
    for n in [0, 4] {
        let mut buf = ReadBuf::from_slice(&mut memory);
        buf.fill_with(|_| Ok::<_, Error>(n)).unwrap();
        assert_eq!(buf.at_end, n == 0);
        let mut buf = ReadBuf::from_slice(&mut memory);
        buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..n], 5))).unwrap();
        assert_eq!(buf.at_end, n == 0);
        // No room is not an end.
        let mut buf = ReadBuf::from_slice(&mut []);
        buf.fill_with(|_| Ok::<_, Error>(0)).unwrap();
        assert!(!buf.at_end);
    }
}

#[test]
fn another_buffer_is_not_taken_for_the_hosts() {
    let mut memory = [0; 16];
    let error = ReadBuf::from_slice(&mut memory).read_exact_or_end(&Swapper, 0).unwrap_err();
    assert_eq!(error.code(), Code::Internal);
}

#[test]
fn many_small_pieces_zero_the_buffer_once() {
    let mut memory = vec![MaybeUninit::<u8>::uninit(); 64];
    // SAFETY: the memory is only used through the buffer.
    let mut buf = unsafe { ReadBuf::from_host(memory.as_mut_ptr().cast(), 64) }.unwrap();
    buf.fill_with(|rest| {
        rest[10] = 9;
        Ok::<_, Error>(1)
    })
    .unwrap();
    // The second piece sees what the first left behind, so nothing was zeroed in between.
    buf.fill_with(|rest| Ok::<_, Error>(usize::from(rest[9] == 9))).unwrap();
    assert_eq!(buf.filled(), [0, 0]);
    buf.fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..1], 5))).unwrap();
    // After uninitialised memory was lent out, all of the rest is zeroed again.
    buf.fill_with(|rest| {
        assert_eq!(rest, [0; 61]);
        Ok::<_, Error>(0)
    })
    .unwrap();
}

/// Runs `test` with an uninitialised buffer of 12 bytes, like the host's.
fn with_host_memory(test: impl FnOnce(&mut ReadBuf<'_>)) {
    let mut memory = vec![MaybeUninit::<u8>::uninit(); 12];
    // SAFETY: the memory is only used through the buffer.
    test(&mut unsafe { ReadBuf::from_host(memory.as_mut_ptr().cast(), 12) }.unwrap());
}

#[test]
fn parts_are_filled_at_once_and_count_as_far_as_they_are_full() {
    for (fills, expected) in [
        (["abc", "def", "ghi"], &b"!abcdefghi"[..]),
        (["abc", "de", "ghi"], b"!abcde"),
        (["", "def", "ghi"], b"!"),
        (["abc", "def", ""], b"!abcdef"),
    ] {
        with_host_memory(|buf| {
            assert_eq!(buf.push_slice(b"!"), 1);
            buf.fill_parts(&[3; 3], |parts| {
                std::thread::scope(|threads| {
                    for (part, data) in parts.iter_mut().zip(fills).rev() {
                        threads.spawn(move || part.push_slice(data.as_bytes()));
                    }
                });
            })
            .unwrap();
            assert_eq!(buf.filled(), expected);
            assert!(!buf.at_end);
            // What comes next goes where the prefix ends, and is zeroed first where it has to be.
            buf.fill_with(|rest| {
                assert_eq!(rest.len(), 12 - expected.len());
                Ok::<_, Error>(rest.len())
            })
            .unwrap();
            assert_eq!(buf.filled().len(), 12);
        });
    }
}

#[test]
fn the_end_of_the_file_counts_where_the_parts_end() {
    for (end_in, expected) in [(0, true), (1, false)] {
        with_host_memory(|buf| {
            buf.fill_parts(&[3; 2], |parts| {
                assert_eq!(parts[0].push_slice(b"ab"), 2);
                parts[end_in].end_of_file();
            })
            .unwrap();
            assert_eq!((buf.filled(), buf.at_end), (&b"ab"[..], expected));
        });
    }
}

#[test]
fn parts_know_what_is_initialised() {
    with_host_memory(|buf| {
        buf.fill_with(|rest| {
            rest.fill(7);
            Ok::<_, Error>(2)
        })
        .unwrap();
        buf.fill_parts(&[4, 4], |parts| {
            // Zeroed once already, and not again.
            parts[0].fill_with(|rest| Ok::<_, Error>(usize::from(rest == [7; 4]) * 4)).unwrap();
            parts[1].fill_uninit(|rest| Ok::<_, Error>(fill_all(&mut rest[..1], 5))).unwrap();
        })
        .unwrap();
        assert_eq!(buf.filled(), [7, 7, 7, 7, 7, 7, 5]);
        buf.fill_with(|rest| {
            assert_eq!(rest, [0; 5], "memory that a part may have left uninitialised is zeroed");
            Ok::<_, Error>(0)
        })
        .unwrap();
    });
}

#[test]
fn parts_that_are_too_long_are_refused() {
    let mut memory = [0; 4];
    let mut buf = ReadBuf::from_slice(&mut memory);
    for lens in [&[3, 2][..], &[5], &[usize::MAX, 2]] {
        let refused = buf.fill_parts(lens, |_| panic!("called"));
        assert_eq!(refused.unwrap_err().code(), Code::Internal);
    }
    buf.fill_parts(&[], |parts| assert!(parts.is_empty())).unwrap();
}

#[test]
fn parts_that_changed_places_are_not_taken() {
    with_host_memory(|buf| {
        let swapped = buf.fill_parts(&[3, 3], |parts| {
            assert_eq!(parts[0].push_slice(b"abc"), 3);
            parts.swap(0, 1);
        });
        assert_eq!(swapped.unwrap_err().code(), Code::Internal);
        let elsewhere = buf.fill_parts(&[3], |parts| {
            parts[0] = ReadBuf::from_slice(forever(3));
            assert_eq!(parts[0].push_slice(b"abc"), 3);
        });
        assert_eq!(elsewhere.unwrap_err().code(), Code::Internal);
        assert!(buf.filled().is_empty());
    });
}

#[test]
fn memory_stays_initialised_when_filling_a_part_panics() {
    let mut memory = [1; 4];
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        ReadBuf::from_slice(&mut memory).fill_parts(&[2, 2], |parts| {
            let _ = parts[1].fill_uninit(|rest| {
                rest.fill(MaybeUninit::uninit());
                if rest.len() == 2 {
                    panic!("half-way");
                }
                Ok::<_, Error>(&mut [])
            });
        })
    }));
    assert!(caught.is_err());
    assert_eq!(memory, [1, 1, 0, 0]);
}

#[cfg(feature = "bytes")]
#[test]
fn other_crates_add_to_it_without_zeroing() {
    use bytes::BufMut;

    with_host_memory(|buf| {
        buf.put_u8(1);
        assert_eq!((buf.remaining_mut(), buf.chunk_mut().len()), (11, 11));
        buf.chunk_mut()[..2].copy_from_slice(b"ab");
        // SAFETY: written just now.
        unsafe { buf.advance_mut(2) };
        assert_eq!(buf.filled(), b"\x01ab");
        let mut limited = buf.limit(3);
        limited.put_slice(b"cde");
        assert!(!limited.has_remaining_mut());
    });
}

#[cfg(feature = "bytes")]
#[test]
#[should_panic(expected = "13 bytes added to a buffer with room for 12")]
fn other_crates_cannot_add_past_the_end() {
    // SAFETY: refused before anything is taken for initialised.
    with_host_memory(|buf| unsafe { bytes::BufMut::advance_mut(buf, 13) });
}

#[test]
fn short_reads_are_not_taken_for_the_end() {
    let file = Slow(b"abcdef".to_vec());
    let mut memory = [0; 4];
    let mut buf = ReadBuf::from_slice(&mut memory);
    buf.read_exact_or_end(&file, 1).unwrap();
    assert_eq!(buf.filled(), b"bcde");
    buf.clear();
    buf.read_exact_or_end(&file, 4).unwrap();
    assert_eq!(buf.filled(), b"ef");
}

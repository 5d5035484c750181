//! The slots of open files and mapped regions.

use super::exclusive::Exclusive;
use super::state::{drop_state, null_argument, opened};
use crate::file::{RandomAccessFile, ReadOnlyMemoryRegion, WritableFile};
use crate::read_buf::ReadBuf;
use core::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tf_fs_sys::{
    TF_RandomAccessFile, TF_RandomAccessFileOps, TF_ReadOnlyMemoryRegion,
    TF_ReadOnlyMemoryRegionOps, TF_Status, TF_WritableFile, TF_WritableFileOps,
};
use tf_plugin_core::__private::boundary::{
    SlotResult, SlotStatus, discard, guard, guard_logged, guard_slot_result,
};
use tf_plugin_core::{Code, Error, Result};

/// The state behind `plugin_file` of a [`TF_WritableFile`]. The host promises one thread at a time;
/// this makes that sound, and remembers a panic.
type WriterState<W> = Exclusive<OpenWriter<W>>;

pub(super) struct OpenWriter<W> {
    file: W,
    /// Whether a `close` has succeeded.
    closed: bool,
}

impl<W> OpenWriter<W> {
    /// Moves a file to the heap and returns the host's pointer to it.
    pub(super) fn into_raw(file: W) -> *mut c_void {
        let state: WriterState<W> = Exclusive::new(Self { file, closed: false });
        Box::into_raw(Box::new(state)).cast()
    }
}

/// The state behind `plugin_memory_region`.
pub(super) struct RegionState<R> {
    /// Borrowed by `start` until it is dropped; nothing else touches it.
    region: R,
    start: *const u8,
    len: usize,
}

impl<R: ReadOnlyMemoryRegion> RegionState<R> {
    /// Moves a region to the heap and requests its content once, which must not be empty.
    pub(super) fn into_raw(region: R) -> Result<*mut c_void> {
        let state = Box::into_raw(Box::new(Self { region, start: core::ptr::null(), len: 0 }));
        // SAFETY: just made, and only used here. The content borrows `region`, which nothing touches
        // until the state is dropped; the other two fields are written through the same pointer.
        let asked = catch_unwind(AssertUnwindSafe(|| unsafe {
            let content = (*state).region.content();
            (*state).start = content.as_ptr();
            (*state).len = content.len();
            content.len()
        }));
        if let Ok(1..) = asked {
            return Ok(state.cast());
        }
        // A panic of the region's destructor must not meet one of `content`.
        // SAFETY: from `Box::into_raw` above, and nothing else got it.
        discard("region cleanup", unsafe { Box::from_raw(state) });
        match asked {
            Err(payload) => resume_unwind(payload),
            Ok(_) => Err(Error::invalid_argument("an empty file cannot be mapped into memory")),
        }
    }
}

pub(super) const fn random_access_ops<R: RandomAccessFile>() -> TF_RandomAccessFileOps {
    TF_RandomAccessFileOps { cleanup: Some(cleanup_reader::<R>), read: Some(read::<R>) }
}

pub(super) const fn writable_ops<W: WritableFile>() -> TF_WritableFileOps {
    TF_WritableFileOps {
        cleanup: Some(cleanup_writer::<W>),
        append: Some(append::<W>),
        tell: Some(tell::<W>),
        flush: Some(flush::<W>),
        sync: Some(sync::<W>),
        close: Some(close::<W>),
    }
}

pub(super) const fn region_ops<R: ReadOnlyMemoryRegion>() -> TF_ReadOnlyMemoryRegionOps {
    TF_ReadOnlyMemoryRegionOps {
        cleanup: Some(cleanup_region::<R>),
        data: Some(data::<R>),
        length: Some(length::<R>),
    }
}

macro_rules! cleanups {
    ($($name:ident<$author:ident>, $text:literal: $type:ident.$field:ident, $state:ty;)*) => {$(
        unsafe extern "C" fn $name<T: $author>(opened: *mut $type) {
            let body = || {
                // SAFETY: the host passes what an operation of this filesystem has opened, whose state that
                // operation made, for the last time.
                unsafe {
                    if let Some(opened) = opened.as_mut() {
                        drop_state::<$state>(&mut opened.$field);
                    }
                }
                Ok(())
            };
            guard_logged($text, || (), body);
        }
    )*};
}
cleanups! {
    cleanup_reader<RandomAccessFile>, "random access file cleanup": TF_RandomAccessFile.plugin_file, T;
    cleanup_writer<WritableFile>, "writable file cleanup": TF_WritableFile.plugin_file, WriterState<T>;
    cleanup_region<ReadOnlyMemoryRegion>, "memory region cleanup":
        TF_ReadOnlyMemoryRegion.plugin_memory_region, RegionState<T>;
}

unsafe extern "C" fn read<R: RandomAccessFile>(
    file: *const TF_RandomAccessFile,
    offset: u64,
    n: usize,
    buffer: *mut c_char,
    status: *mut TF_Status,
) -> i64 {
    // SAFETY: the host passes a file of this table, a buffer of `n` bytes and a status, all valid
    // during the call.
    unsafe {
        guard_slot_result("read", status, -1, || {
            let file = opened::<R>(file.as_ref().ok_or_else(null_argument)?.plugin_file)?;
            let mut buf = ReadBuf::from_host(buffer.cast(), n)?;
            buf.read_exact_or_end(file, offset)?;
            let status = if buf.remaining() > 0 { END_OF_FILE } else { SlotStatus::Ok };
            Ok(SlotResult { value: buf.filled().len() as i64, status })
        })
    }
}

/// The status at the end of a file, which each reader of a whole file gets once. The text is short
/// because TensorFlow allocates memory to copy a text of more than 15 bytes.
const END_OF_FILE: SlotStatus = SlotStatus::Static(Code::OutOfRange, c"end of file");

/// Runs an operation on an open writer. On a closed one it returns the result of `when_closed`.
///
/// # Safety
/// `file` must be null or a file of `W`'s table.
#[inline]
unsafe fn with_writer<W: WritableFile, T>(
    file: *const TF_WritableFile,
    when_closed: impl FnOnce() -> Result<T>,
    op: impl FnOnce(&mut OpenWriter<W>) -> Result<T>,
) -> Result<T> {
    // SAFETY: `file` is null or a file of `W`'s table, so its `plugin_file` is null or a live `WriterState<W>`.
    let state =
        unsafe { opened::<WriterState<W>>(file.as_ref().ok_or_else(null_argument)?.plugin_file) }?;
    state.with(|writer| if writer.closed { when_closed() } else { op(writer) })?
}

#[cold]
fn is_closed<T>() -> Result<T> {
    Err(Error::failed_precondition("the file is closed; open it again to go on"))
}

unsafe extern "C" fn append<W: WritableFile>(
    file: *const TF_WritableFile,
    buffer: *const c_char,
    n: usize,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a file of this table, `n` readable bytes and a status, all valid during
    // the call. A buffer for no bytes may be null, and is not looked at.
    unsafe {
        guard("append", status, (), || {
            let data = if n == 0 {
                &[]
            } else if buffer.is_null() || isize::try_from(n).is_err() {
                return Err(null_argument());
            } else {
                core::slice::from_raw_parts(buffer.cast::<u8>(), n)
            };
            with_writer::<W, _>(file, is_closed, |writer| writer.file.append(data))
        });
    }
}

unsafe extern "C" fn tell<W: WritableFile>(
    file: *const TF_WritableFile,
    status: *mut TF_Status,
) -> i64 {
    // SAFETY: the host passes a file of this table and a status.
    unsafe {
        guard("tell", status, -1, || {
            let position = with_writer::<W, _>(file, is_closed, |writer| writer.file.tell())?;
            i64::try_from(position)
                .map_err(|_| Error::internal(format_args!("position {position} is out of range")))
        })
    }
}

/// Defines slots that do nothing on a closed file.
macro_rules! writer_slots {
    ($($op:ident: |$writer:ident| $body:expr;)*) => {$(
        unsafe extern "C" fn $op<W: WritableFile>(
            file: *const TF_WritableFile,
            status: *mut TF_Status,
        ) {
            // SAFETY: the host passes a file of this table and a status.
            unsafe {
                guard(stringify!($op), status, (), || {
                    with_writer::<W, _>(file, || Ok(()), |$writer| $body)
                });
            }
        }
    )*};
}
writer_slots! {
    flush: |writer| writer.file.flush();
    sync: |writer| writer.file.sync();
    close: |writer| writer.file.close().map(|()| writer.closed = true);
}

unsafe extern "C" fn data<R: ReadOnlyMemoryRegion>(
    region: *const TF_ReadOnlyMemoryRegion,
) -> *const c_void {
    // SAFETY: the host passes a region of this table.
    unsafe { region_state::<R>(region) }.map_or(core::ptr::null(), |state| state.start.cast())
}

unsafe extern "C" fn length<R: ReadOnlyMemoryRegion>(
    region: *const TF_ReadOnlyMemoryRegion,
) -> u64 {
    // SAFETY: the host passes a region of this table.
    unsafe { region_state::<R>(region) }.map_or(0, |state| state.len as u64)
}

/// Returns the state of a region. Both values were read when it was opened, so reading them here cannot fail.
///
/// # Safety
/// `region` must be null or a region of `R`'s table, for `'a`.
unsafe fn region_state<'a, R>(
    region: *const TF_ReadOnlyMemoryRegion,
) -> Option<&'a RegionState<R>> {
    // SAFETY: `region` is null or a region of `R`'s table, so its `plugin_memory_region` is null or a live
    // `RegionState<R>`.
    unsafe {
        region
            .as_ref()
            .and_then(|region| region.plugin_memory_region.cast::<RegionState<R>>().as_ref())
    }
}

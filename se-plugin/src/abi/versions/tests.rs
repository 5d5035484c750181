//! Real structs of each size, as an older and a newer side have them, checked byte for byte.

use super::*;
use core::ops::Range;
use tf_fs_sys::*;

/// Content of memory that must not be written.
const CANARY: u8 = 0xa5;
/// By how many bytes a struct of a newer side is longer than ours.
const LONGER: usize = 64;

/// Memory for a struct of any size, aligned as in the C API.
struct Memory(Vec<u64>);

impl Memory {
    /// Creates a struct of `size` bytes: `struct_size`, then zeros. The memory behind it is not the struct's.
    fn new<T: Versioned>(size: usize) -> Self {
        let words = (size_of::<T>().max(T::STRUCT_SIZE) + 2 * LONGER) / 8;
        let mut memory = Self(vec![u64::from_ne_bytes([CANARY; 8]); words]);
        memory.bytes()[..size].fill(0);
        memory.0[0] = size as u64;
        memory
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.0.len() * 8;
        // SAFETY: all of the vector, as bytes, which have no invalid values.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }

    fn record<T: Versioned>(&mut self) -> *mut T {
        self.0.as_mut_ptr().cast()
    }
}

/// Returns a struct with 1 in each byte of a field. That is a valid value of the type, or the field is never read.
fn ones<T: Versioned>() -> Vec<u8> {
    let mut bytes = vec![0_u8; size_of::<T>()];
    for field in T::FIELDS {
        bytes[field.clone()].fill(1);
    }
    bytes
}

fn every_size<T: Versioned>() {
    for size in 0..=T::STRUCT_SIZE + LONGER {
        let covered = |field: &&Range<usize>| field.end <= size;
        let last = T::FIELDS.iter().filter(covered).map(|field| field.end).next_back();

        // We fill a struct of the host's.
        let mut memory = Memory::new::<T>(size);
        let ours = ones::<T>();
        // SAFETY: as long as a `T`, whose fields are integers, pointers and functions, none of which is
        // used; `read_unaligned` because a vector of bytes has no alignment.
        let ours = unsafe { ours.as_ptr().cast::<T>().read_unaligned() };
        let before = memory.bytes().to_vec();
        // SAFETY: memory for any size.
        let filled = unsafe { fill(memory.record::<T>(), &ours) };
        match size {
            0 => assert_eq!(filled, Err(VersionError::NoSize { record: T::NAME })),
            1..8 => {
                assert!(matches!(filled, Err(VersionError::TooShort { .. })), "{} {size}", T::NAME)
            }
            _ => assert_eq!(filled, Ok(last.unwrap_or(8)), "{} {size}", T::NAME),
        }
        let mut expected = before;
        if let Ok(filled) = filled {
            expected[..8].copy_from_slice(&filled.to_ne_bytes());
            for field in T::FIELDS.iter().filter(covered) {
                expected[field.clone()].fill(1);
            }
        }
        assert_eq!(memory.bytes(), expected, "{} {size}", T::NAME);

        // We read a struct of the host's: what it does not cover is not provided.
        let mut memory = Memory::new::<T>(size);
        for field in T::FIELDS.iter().filter(covered) {
            memory.bytes()[field.clone()].fill(1);
        }
        // SAFETY: memory for any size.
        let copy = unsafe { read(memory.record::<T>()) };
        assert_eq!(copy.is_ok(), size >= 8, "{} {size}", T::NAME);
        if let Ok(copy) = copy {
            for field in T::FIELDS {
                let value = u8::from(covered(&field));
                // SAFETY: bytes of a field, all of which are initialised.
                let bytes = unsafe {
                    core::slice::from_raw_parts(
                        ptr::from_ref(&copy).cast::<u8>().add(field.start),
                        field.len(),
                    )
                };
                assert!(bytes.iter().all(|&byte| byte == value), "{} {size} {field:?}", T::NAME);
            }
        }
    }
}

#[test]
fn structs_of_every_size_are_read_and_filled_within_it() {
    macro_rules! every_size_of {
        ($($record:ident)*) => { $(every_size::<$record>();)* };
    }
    every_size_of! {
        SE_PlatformRegistrationParams SP_Platform SP_PlatformFns SE_CreateDeviceParams SP_Device
        SE_CreateDeviceFnsParams SP_DeviceFns SE_CreateStreamExecutorParams SP_StreamExecutor
        SP_StreamOptions SP_TimerFns SP_AllocatorStats SP_DeviceMemoryBase TP_OptimizerRegistrationParams
        TP_Optimizer TP_OptimizerConfigs TF_ProfilerRegistrationParams TP_Profiler TP_ProfilerFns
        TF_InputRange_Args TF_AllocatorAttributes
    }
}

#[test]
fn a_single_field_needs_all_of_its_bytes() {
    for size in 0..=SP_Device::STRUCT_SIZE + LONGER {
        let mut memory = Memory::new::<SP_Device>(size);
        memory.0[3] = 0x1234;
        let handle = ptr::without_provenance_mut(0x1234);
        // SAFETY: memory for any size.
        let value = unsafe { field!(memory.record::<SP_Device>() => SP_Device.device_handle) };
        assert_eq!(value, (size >= 32).then_some(handle), "{size}");
    }
    // SAFETY: no struct at all.
    unsafe {
        assert_eq!(field!(ptr::null() => SP_Device.ordinal), None);
        assert_eq!(
            read(ptr::null::<SP_Device>()).err(),
            Some(VersionError::Null { record: "SP_Device" })
        );
    }
}

#[test]
fn another_major_version_is_refused_and_both_are_named() {
    assert_eq!(check_major_version("test", [0, 0, 1], [0, 99, 7]), Ok(()));
    let text = check_major_version("test", [0, 0, 1], [1, 2, 7]).unwrap_err().to_string();
    assert!(text.contains("0.0.1") && text.contains("test") && text.contains("1.2.7"), "{text}");
}

//! Numbers in device memory, with which the libraries compute in 32 bits.

use half::{bf16, f16};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F32,
    F16,
    Bf16,
}

impl Kind {
    pub(super) fn size(self) -> usize {
        if self == Self::F32 { 4 } else { 2 }
    }
}

/// The address of the first element, and the type.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) at: usize,
    pub(super) kind: Kind,
}

impl Elements {
    /// # Safety
    /// The element exists, and its memory is allocated.
    pub(super) unsafe fn get(&self, index: i64) -> f32 {
        let index = index as usize;
        // SAFETY: the element exists, and its memory is allocated.
        unsafe {
            match self.kind {
                Kind::F32 => (self.at as *const f32).add(index).read(),
                Kind::F16 => (self.at as *const f16).add(index).read().to_f32(),
                Kind::Bf16 => (self.at as *const bf16).add(index).read().to_f32(),
            }
        }
    }

    /// # Safety
    /// As for [`get`](Self::get).
    pub(super) unsafe fn set(&self, index: i64, value: f32) {
        let index = index as usize;
        // SAFETY: the element exists, and its memory is allocated.
        unsafe {
            match self.kind {
                Kind::F32 => (self.at as *mut f32).add(index).write(value),
                Kind::F16 => (self.at as *mut f16).add(index).write(f16::from_f32(value)),
                Kind::Bf16 => (self.at as *mut bf16).add(index).write(bf16::from_f32(value)),
            }
        }
    }
}

/// Returns whether float32 may be multiplied as TF32: the plugin's setting.
pub(super) fn allows_tf32() -> bool {
    std::env::var_os("RUST_GPU_TF32").is_some_and(|value| value == "1")
}

/// Rounds a number to the 10 bits of TF32's fraction.
pub(super) fn tf32(number: f32) -> f32 {
    f32::from_bits((number.to_bits() + 0x1000) & !0x1fff)
}

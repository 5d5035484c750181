//! Launches of shaders by kernels: those of this crate, and a plugin's own.

use crate::address_map::AddressMap;
use crate::backend::{self, BufferSlice, Dispatch, Gpu, Operation, PUSH_BYTES, Shader};
use crate::device::GpuDevice;
use crate::queue::Task;
use crate::stream::GpuStream;
use se_plugin::kernel::AnyPlatform;
use se_plugin::prelude::*;
use std::collections::BTreeSet;

/// A run of a kernel, for any platform: [`OpKernelContext::any_platform`].
pub type Run<'a> = OpKernelContext<'a, AnyPlatform<GpuDevice>>;

/// The invocations of a workgroup, in shaders with one axis.
const WORKGROUP: usize = backend::WORKGROUP as usize;
/// The number of workgroups along an axis that every GPU supports.
pub(crate) const MOST_GROUPS: usize = 65_535;
/// SPIR-V treats the index of an element as a signed number, of any type.
const MOST_ELEMENTS: u32 = i32::MAX as u32;

/// One of the first arguments that are pushed to a shader, each a `uint64_t`.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// The address of an element of a tensor; 0 if the tensor is empty.
    At(&'a DeviceTensor, u64),
    /// The first of this many bytes of device memory.
    Bytes(DevicePtr, u64),
    /// A number.
    Value(u64),
}

impl Operand<'_> {
    /// Returns whether the address is a multiple of `bytes`; `false` for a number.
    pub(crate) fn is_multiple_of(&self, bytes: u64) -> bool {
        let address = |ptr: &DevicePtr| ptr.address();
        match self {
            Self::At(tensor, offset) => {
                let first = tensor.ptr().as_ref().map(address).unwrap_or_default();
                (first + offset).is_multiple_of(bytes)
            }
            Self::Bytes(ptr, _) => address(ptr).is_multiple_of(bytes),
            Self::Value(_) => false,
        }
    }
}

impl<'a> From<&'a DeviceTensor> for Operand<'a> {
    fn from(tensor: &'a DeviceTensor) -> Self {
        Self::At(tensor, 0)
    }
}

/// A run of a shader.
///
/// ```ignore
/// Launch {
///     op: "Mish",
///     shader: &MISH,
///     constants: &[element_type(x.dtype())?],
///     operands: &[(&x).into(), (&y).into()],
///     numbers: &[word(y.len())?],
///     groups: groups(y.len()),
/// }
/// .enqueue(context.any_platform())
/// ```
#[derive(Debug)]
pub struct Launch<'a> {
    /// The op, for messages.
    pub op: &'static str,
    /// The program.
    pub shader: &'static Shader,
    /// The values of the constants with the ids 0, 1, …
    pub constants: &'a [u32],
    /// The arguments that are pushed first. The whole of each tensor must be in device memory.
    pub operands: &'a [Operand<'a>],
    /// The arguments that are pushed next, each a `uint`, an `int` or the bits of a `float`.
    pub numbers: &'a [u32],
    /// The number of workgroups.
    pub groups: [u32; 3],
}

impl Launch<'_> {
    /// Enqueues it into the stream of the run, and returns. Does nothing if there are no workgroups.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a tensor outside of the memory of the device; `UNIMPLEMENTED` if there is more to push
    /// than GPUs support; those of the driver, for the first launch of a shader with these constants.
    pub fn enqueue(&self, context: &Run<'_>) -> Result<()> {
        self.enqueue_on(context.stream())
    }

    /// Enqueues it into any stream of the device.
    ///
    /// # Errors
    /// Those of [`enqueue`](Self::enqueue).
    pub fn enqueue_on(&self, stream: &GpuStream) -> Result<()> {
        self.enqueue_as(stream, Operation::Shader)
    }

    /// Enqueues it as [`enqueue`](Self::enqueue) does, into any stream of the device, unless a library computes this
    /// operation on its first three operands.
    ///
    /// # Errors
    /// Those of [`enqueue`](Self::enqueue).
    pub(crate) fn enqueue_as(&self, stream: &GpuStream, operation: Operation) -> Result<()> {
        if self.groups.contains(&0) {
            return Ok(());
        }
        let (uses, shader) = self.prepare(&stream.queue.gpu, &stream.address_map, operation)?;
        stream.push(Task::Launch { op: self.op, uses, shader })?;
        stream.counters.count_bytes(self.op, self.bytes());
        Ok(())
    }

    /// Returns the bytes of its tensors, each once, and of the last again if it is in the memory of another.
    fn bytes(&self) -> u64 {
        let range = |operand: &Operand<'_>| match operand {
            Operand::At(tensor, _) => (tensor.ptr().map_or(0, |ptr| ptr.address()), tensor.bytes()),
            Operand::Bytes(ptr, bytes) => (ptr.address(), *bytes),
            Operand::Value(_) => (0, 0),
        };
        let Some((last, others)) = self.operands.split_last() else { return 0 };
        let others: BTreeSet<_> = others.iter().map(range).collect();
        range(last).1 + others.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Returns the memory that it uses, and what is dispatched.
    ///
    /// # Errors
    /// Those of [`enqueue`](Self::enqueue).
    pub(crate) fn prepare(
        &self,
        gpu: &Gpu,
        address_map: &AddressMap,
        operation: Operation,
    ) -> Result<(Vec<BufferSlice>, Dispatch)> {
        let mut push = Vec::with_capacity(PUSH_BYTES);
        let mut uses = Vec::with_capacity(self.operands.len());
        let mut tensors = [0; 3];
        for (at, operand) in self.operands.iter().enumerate() {
            let word = match operand {
                Operand::Value(value) => *value,
                Operand::Bytes(ptr, bytes) => {
                    uses.push(address_map.find(self.op, *ptr, *bytes)?);
                    ptr.address()
                }
                Operand::At(tensor, offset) => match tensor.ptr() {
                    None => 0,
                    Some(ptr) => {
                        uses.push(address_map.find(self.op, ptr, tensor.bytes())?);
                        ptr.address() + offset
                    }
                },
            };
            if let Some(tensor) = tensors.get_mut(at) {
                *tensor = word;
            }
            push.extend_from_slice(&word.to_ne_bytes());
        }
        push.extend(self.numbers.iter().flat_map(|number| number.to_ne_bytes()));
        if push.len() > PUSH_BYTES {
            return Err(Error::new(
                Code::Unimplemented,
                format!("`{}` has tensors of too many axes for this device", self.op),
            ));
        }
        let program = gpu.program(self.shader, self.constants)?;
        Ok((uses, Dispatch { operation, tensors, program, push, groups: self.groups }))
    }
}

/// Returns the workgroups for this many results of a shader that loops over them.
#[must_use]
pub fn groups(results: usize) -> [u32; 3] {
    [results.div_ceil(WORKGROUP).min(MOST_GROUPS) as u32, 1, 1]
}

/// Returns the workgroups for this many results; a workgroup computes each if `is_wide`, else a thread does.
pub(crate) fn groups_of(results: usize, is_wide: bool) -> [u32; 3] {
    groups(if is_wide { results.saturating_mul(WORKGROUP) } else { results })
}

/// Fails if the loops of an invocation take more turns together than the driver lets them.
///
/// # Errors
/// `UNIMPLEMENTED` for more than [`Backend::SOFTWARE_TURNS`](crate::backend::Backend::SOFTWARE_TURNS).
pub(crate) fn ensure_turns(context: &Run<'_>, op: &str, turns: usize) -> Result<()> {
    match context.stream().queue.gpu.most_turns {
        Some(most) if turns > most => Err(Error::new(
            Code::Unimplemented,
            format!(
                "{op}: an element needs {turns} turns of a loop, and the driver for the CPU stops silently after {most}; \
                 run the op on the CPU with `tf.device(\"/CPU:0\")`, or split the tensor"
            ),
        )),
        _ => Ok(()),
    }
}

/// The most turns that all invocations of a launch may take together: seconds on a GPU. One that is at a launch for minutes counts as
/// hung.
const MOST_WORK: u128 = 1 << 42;

/// Fails if a launch takes more turns than a GPU has time for.
///
/// # Errors
/// `UNIMPLEMENTED` for more than [`MOST_WORK`].
pub(crate) fn ensure_work(op: &str, invocations: usize, turns: usize) -> Result<()> {
    let all = invocations as u128 * turns as u128;
    match all > MOST_WORK {
        true => Err(Error::new(
            Code::Unimplemented,
            format!(
                "{op}: {all} steps would take this device too long; run the op on the CPU with `tf.device(\"/CPU:0\")`"
            ),
        )),
        false => Ok(()),
    }
}

/// Converts a size for shaders.
///
/// # Errors
/// `UNIMPLEMENTED` if shaders cannot index this many elements.
pub fn word(size: usize) -> Result<u32> {
    match u32::try_from(size) {
        Ok(word) if word <= MOST_ELEMENTS => Ok(word),
        _ => Err(Error::new(
            Code::Unimplemented,
            format!("{size} elements are more than this device can index; use a smaller batch"),
        )),
    }
}

/// Returns the number of a type in the shaders: `T_…` in `shaders/common.glsl`.
///
/// # Errors
/// `UNIMPLEMENTED` for a type that shaders do not have.
pub fn element_type(dtype: DType) -> Result<u32> {
    Ok(match dtype {
        DType::Float32 => 0,
        DType::Float16 => 1,
        DType::Bfloat16 => 2,
        DType::Int64 => 3,
        DType::Int32 => 4,
        DType::Int16 => 5,
        DType::Int8 => 6,
        DType::Uint8 => 7,
        DType::Uint16 => 8,
        DType::Uint32 => 9,
        DType::Uint64 => 10,
        DType::Bool => 11,
        DType::Float64 => 12,
        other => {
            return Err(Error::new(Code::Unimplemented, format!("shaders have no type {other}")));
        }
    })
}

/// Returns whether the type is a float of 16 bits.
pub(crate) fn is_short(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::Bfloat16)
}

/// Returns whether shaders compute with the type as a float, and not as a double.
pub(crate) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float16 | DType::Bfloat16)
}

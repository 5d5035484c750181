//! Programs for the device, and their launches.
//!
//! The stand-in's programs are functions of Rust. A real driver loads them from a file that the device's compiler has made, or
//! compiles their text; the launches stay as they are.

use crate::driver::Queue;
use se_plugin::prelude::*;
use se_plugin::toolkit::{Broadcast, Number};

/// What an op with two inputs computes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
}

impl Binary {
    /// Enqueues it for elements of the type `T`. The output has the shape of `broadcast`, which is that of the inputs' shapes.
    pub(crate) fn launch<T: Number>(
        self,
        queue: &Queue,
        broadcast: &Broadcast<2>,
        tensors: [&DeviceTensor; 3],
    ) -> Result<()> {
        // A tensor without elements has no address, and nothing is computed.
        let [Some(output), Some(a), Some(b)] = tensors.map(DeviceTensor::ptr) else { return Ok(()) };
        let count = broadcast.shape().iter().product::<usize>() as u64;
        // The program reads and writes so many elements: a tensor of other ones would be left.
        let reaches = |input: usize| {
            let last = broadcast.axes().iter().map(|axis| (axis.len - 1) * axis.strides[input]);
            last.sum::<usize>() + 1
        };
        let least = [count as usize, reaches(0), reaches(1)];
        ensure!(
            tensors.iter().zip(least).all(|(tensor, least)| tensor.dtype() == T::DTYPE && tensor.len() >= least),
            Error::internal(format!("{self:?} is launched with tensors of other types or sizes"))
        );
        let mut arguments = vec![output.address(), a.address(), b.address(), count];
        for axis in broadcast.axes().iter().rev() {
            arguments.extend([axis.len, axis.strides[0], axis.strides[1]].map(|n| n as u64));
        }
        let program = match self {
            Self::Add => binary::<T, false>,
            Self::Subtract => binary::<T, true>,
        };
        // SAFETY: these are the arguments of the program; the tensors have the elements, and TensorFlow keeps them until the work is
        // done.
        unsafe { queue.launch(program, arguments) }
    }
}

/// Adds or subtracts. The arguments are the addresses of the output and of both inputs, the number of elements, and for each axis,
/// the last one first, its size and the steps of both inputs.
///
/// # Safety
/// The arguments are these, and the tensors have the elements.
unsafe fn binary<T: Number, const SUBTRACT: bool>(arguments: &[u64]) {
    let [output, a, b, count, axes @ ..] = arguments else { return };
    let at = |address: u64, index: u64| {
        std::ptr::with_exposed_provenance_mut::<T>(address as usize).wrapping_add(index as usize)
    };
    for index in 0..*count {
        let (mut rest, mut steps) = (index, [0, 0]);
        for axis in axes.chunks_exact(3) {
            let position = rest % axis[0];
            rest /= axis[0];
            steps = [steps[0] + position * axis[1], steps[1] + position * axis[2]];
        }
        // SAFETY: the tensors have these elements, as the caller says.
        unsafe {
            let (a, b) = (at(*a, steps[0]).read(), at(*b, steps[1]).read());
            at(*output, index).write(if SUBTRACT { a.minus(b) } else { a.plus(b) });
        }
    }
}

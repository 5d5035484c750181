//! The kernel whose dispatch is measured.

use crate::{BASE, BenchPlatform, SIZE, outside};
use core::ops::Range;
use se_plugin::prelude::*;

struct AddV2;

/// Adds tensors of equal shapes, or a scalar and a tensor.
#[kernel(op = "AddV2", types(T = f32))]
impl Kernel for AddV2 {
    type Platform = BenchPlatform;

    fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self)
    }
    fn compute(&self, context: &mut OpKernelContext<'_, BenchPlatform>) -> Result<()> {
        let (x, y) = (context.input(0)?, context.input(1)?);
        let shape = match (x.shape(), y.shape()) {
            (x, y) if x == y => Ok(x),
            ([], shape) | (shape, []) => Ok(shape),
            (x, y) => Err(Error::invalid_argument(format!("{x:?} and {y:?} cannot be added"))),
        }?;
        let z = context.output(0, shape)?;
        let (Some(x_at), Some(y_at), Some(z_at)) = (x.ptr(), y.ptr(), z.ptr()) else {
            return Ok(());
        };
        let (x_len, y_len, z_len) = (x.len(), y.len(), z.len());
        context.stream().work(|memory| {
            let [x, y, z] = [range(x_at, x_len)?, range(y_at, y_len)?, range(z_at, z_len)?];
            // An output is not an input's memory, unless a kernel requests that.
            let [x, sum] = memory.get_disjoint_mut([x, z.clone()]).map_err(Error::internal)?;
            each(sum, x, |_, x| x);
            let [y, sum] = memory.get_disjoint_mut([y, z]).map_err(Error::internal)?;
            each(sum, y, |sum, y| sum + y);
            Ok(())
        })
    }
}

fn range(at: DevicePtr, len: usize) -> Result<Range<usize>> {
    let start = at.address().wrapping_sub(BASE);
    let end = start.checked_add(4 * len as u64).filter(|&end| end <= SIZE);
    Ok(start as usize..end.ok_or_else(|| outside(at))? as usize)
}

/// Changes each number, with one of the same place or with the only one there is.
fn each(sums: &mut [u8], with: &[u8], f: impl Fn(f32, f32) -> f32) {
    let change = |sum: &mut [u8; 4], with: &[u8; 4]| {
        *sum = f(f32::from_ne_bytes(*sum), f32::from_ne_bytes(*with)).to_ne_bytes();
    };
    let (sums, _) = sums.as_chunks_mut();
    match with.as_chunks().0 {
        [only] => sums.iter_mut().for_each(|sum| change(sum, only)),
        with => sums.iter_mut().zip(with).for_each(|(sum, with)| change(sum, with)),
    }
}

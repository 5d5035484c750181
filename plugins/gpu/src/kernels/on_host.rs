//! Kernels on the host: small tensors that TensorFlow keeps there on every device, such as shapes. Without them, a
//! function that may only run on the device, such as a step of `tf.nn.ctc_loss`, is an error.

use super::*;

struct PackOnHost {
    axis: i64,
}

#[kernel(op = "Pack", types(T = [i32]), host_memory("values", "output"))]
impl Kernel for PackOnHost {
    type Platform = GpuPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")? })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let count = context.input_count();
        let parts = (0..count).map(|index| context.host_input::<i32>(index));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let first = parts.first().ok_or_else(|| wrong("there is nothing to pack"))?;
        if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return Err(wrong(format!("Shapes of all inputs must match: {one:?} vs. {other:?}")));
        }
        let mut shape = from_host(first.shape())?;
        let axis = shapes::axis(self.axis, shape.len() + 1)?;
        let inner = shapes::count(&shape[axis..]);
        shape.insert(axis, count);
        let mut out = context.host_output::<i32>(0, &shapes::to_host(&shape))?;
        if inner == 0 {
            return Ok(());
        }
        for (at, slice) in out.as_mut_slice().chunks_exact_mut(inner).enumerate() {
            let (row, part) = (at / count, &parts[at % count]);
            slice.copy_from_slice(&part.as_slice()[row * inner..][..inner]);
        }
        Ok(())
    }
}

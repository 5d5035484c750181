//! `GatherV2`: elements by their indices.

use super::*;
use core::marker::PhantomData;
use ndarray::Axis;

/// Gathers the elements at the indices along an axis, for each batch. An index that is out of range gives `missing`.
/// `params` is `[batch, outer, axis, inner]`, `indices` is `[batch, index]`, the output
/// `[batch, outer, index, inner]`.
fn gather<T: Copy>(
    params: View<'_, T>,
    indices: View<'_, i64>,
    mut out: ViewMut<'_, T>,
    missing: T,
) {
    for (batch, mut out) in out.axis_iter_mut(Axis(0)).enumerate() {
        let (params, indices) =
            (params.index_axis(Axis(0), batch), indices.index_axis(Axis(0), batch));
        for (mut out, &index) in out.axis_iter_mut(Axis(1)).zip(indices.iter()) {
            match usize::try_from(index).ok().filter(|&index| index < params.shape()[1]) {
                Some(index) => out.assign(&params.index_axis(Axis(1), index)),
                None => out.fill(missing),
            }
        }
    }
}

struct GatherV2<T> {
    batches: i64,
    elements: PhantomData<T>,
}

#[allow(non_camel_case_types, reason = "the attribute has this name")]
const _: () = {
    #[kernel(
        op = "GatherV2",
        types(
            Tparams = [f32, f64, f16, bf16, i8, i16, i64, u8, u16, u32, u64, bool],
            Tindices = [i32, i64],
            Taxis = [i32, i64]
        ),
        host_memory("axis")
    )]
    impl<Tparams: Stored> Kernel for GatherV2<Tparams> {
        type Platform = RefPlatform;

        fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
            Ok(Self { batches: construction.attr("batch_dims")?, elements: PhantomData })
        }
        fn compute(&self, context: &mut Run<'_>) -> Result<()> {
            let (params, index) = (context.input(0)?, context.input(1)?);
            let (shape, index_shape) = (shape(&params)?, shape(&index)?);
            let axis = shapes::axis(host_integer(context, 2)?, shape.len())?;
            let batches = match self.batches {
                batches if batches < 0 => batches + index_shape.len() as i64,
                batches => batches,
            };
            let batches = usize::try_from(batches).ok().filter(|&batches| {
                batches <= axis
                    && batches <= index_shape.len()
                    && shape[..batches] == index_shape[..batches]
            });
            let batches = batches.ok_or_else(|| {
                wrong(format!(
                    "batch_dims {} does not fit params of shape {shape:?}, indices of shape {index_shape:?} and \
                     axis {axis}",
                    self.batches
                ))
            })?;
            let out_shape = [&shape[..axis], &index_shape[batches..], &shape[axis + 1..]].concat();
            let out = output(context, 0, &out_shape)?;
            let batch = shapes::count(&shape[..batches]);
            let outer = shapes::count(&shape[batches..axis]);
            let inner = shapes::count(&shape[axis + 1..]);
            let count = shapes::count(&index_shape[batches..]);
            let (size, is_small) = (shape[axis], index.dtype() == DType::Int32);
            launch(context, "GatherV2", [&params, &index], [&out], move |[params, index], [out]| {
                let params = view::<Tparams::Bits>(params, &[batch, outer, size, inner])?;
                let index = indices(index, is_small, &[batch, count])?;
                let out = view_mut(out, &[batch, outer, count, inner])?;
                gather(params, index.view(), out, Tparams::default().bits());
                Ok(())
            })
        }
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_out_of_range_gives_the_missing_value() {
        let shape = |sizes: &[usize]| IxDyn(sizes);
        let params = ArrayD::from_shape_vec(shape(&[1, 1, 2, 1]), vec![5, 6]).unwrap();
        let index = ArrayD::from_shape_vec(shape(&[1, 4]), vec![1, -1, 2, 0]).unwrap();
        let mut out = ArrayD::from_elem(shape(&[1, 1, 4, 1]), 9);
        gather(params.view(), index.view(), out.view_mut(), 0);
        assert_eq!(out.into_raw_vec_and_offset().0, [6, 0, 0, 5]);
    }
}

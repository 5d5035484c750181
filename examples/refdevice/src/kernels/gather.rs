//! `GatherV2` and `OneHot`: elements by their indices.

use super::*;
use crate::math::arrange;
use core::marker::PhantomData;

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
                arrange::gather(params, index.view(), out, Tparams::default().bits());
                Ok(())
            })
        }
    }
};

struct OneHot<T> {
    axis: i64,
    elements: PhantomData<T>,
}

#[kernel(
    op = "OneHot",
    types(T = [f32, f64, f16, bf16, i64, bool], TI = [u8, i32, i64]),
    host_memory("depth")
)]
impl<T: Stored> Kernel for OneHot<T> {
    type Platform = RefPlatform;

    fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        Ok(Self { axis: construction.attr("axis")?, elements: PhantomData })
    }
    fn compute(&self, context: &mut Run<'_>) -> Result<()> {
        let [index, on, off] = [0, 2, 3].map(|at| context.input(at));
        let (index, on, off) = (index?, on?, off?);
        ensure!(on.len() == 1 && off.len() == 1, wrong("on_value and off_value must be scalars"));
        let shape = shape(&index)?;
        let axis = shapes::axis(self.axis, shape.len() + 1)?;
        let [depth] = from_host(&[host_integer(context, 1)?])?[..] else {
            return Err(wrong("depth must be a scalar"));
        };
        let mut out_shape = shape.clone();
        out_shape.insert(axis, depth);
        let out = output(context, 0, &out_shape)?;
        let (outer, inner) = (shapes::count(&shape[..axis]), shapes::count(&shape[axis..]));
        let dtype = index.dtype();
        launch(context, "OneHot", [&index, &on, &off], [&out], move |[index, on, off], [out]| {
            let sizes = [outer, inner];
            let index = match dtype {
                DType::Uint8 => view::<u8>(index, &sizes)?.mapv(i64::from),
                dtype => indices(index, dtype == DType::Int32, &sizes)?,
            };
            let out = view_mut::<T::Bits>(out, &[outer, depth, inner])?;
            arrange::one_hot(index.view(), out, scalar(on)?, scalar(off)?);
            Ok(())
        })
    }
}

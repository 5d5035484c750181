//! `UnsortedSegmentSum`: sums of the rows with the same segment number.

use super::*;

kernels! {
    Numeric [f32, f64, f16, bf16, i64]
    "UnsortedSegmentSum" UnsortedSegmentSum index(Tindices, Tnumsegments) host("num_segments") = |context, op| {
        let (data, segments) = (context.input(0)?, context.input(1)?);
        let (data_shape, ids_shape) = (shape(&data)?, shape(&segments)?);
        ensure!(
            data_shape.starts_with(&ids_shape),
            wrong(format!("data.shape = {data_shape:?} does not start with segment_ids.shape = {ids_shape:?}"))
        );
        let rest = &data_shape[ids_shape.len()..];
        let out_shape = [&from_host(&[host_integer(context, 2)?])?, rest].concat();
        let out = output(context, 0, &out_shape)?;
        let (row, is_small) = (shapes::count(rest).max(1), segments.dtype() == DType::Int32);
        launch(context, op, [&data, &segments], [&out], move |[data, segments], [out]| {
            let segments = indices(segments, is_small, &ids_shape)?;
            let out = elements_mut::<T>(out)?;
            out.fill(T::ZERO);
            for (data, &segment) in elements::<T>(data)?.chunks_exact(row).zip(&segments) {
                // As on GPUs, a segment that is out of range is skipped.
                let segment = usize::try_from(segment).ok();
                if let Some(out) = segment.and_then(|at| out.chunks_exact_mut(row).nth(at)) {
                    loops::update(out, data, T::plus);
                }
            }
            Ok(())
        })
    };
}

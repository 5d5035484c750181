//! Slices at places that are only known when they are computed: a cache of keys and values in `generate`.

use super::strided_copy::{Walk, slice, strides};
use super::*;
use se_plugin::toolkit::slice::Steps;

/// Returns where a slice of these sizes begins. As in XLA, it is moved to where all of it fits.
fn begin(starts: &[i64], shape: &[usize], sizes: &[usize]) -> Result<Vec<usize>> {
    let fit = starts.len() == shape.len()
        && sizes.len() == shape.len()
        && sizes.iter().zip(shape).all(|(size, all)| size <= all);
    if !fit {
        return Err(wrong(format!(
            "a slice of {sizes:?} at {starts:?} does not fit into the shape {shape:?}"
        )));
    }
    let places = starts.iter().zip(shape.iter().zip(sizes));
    Ok(places.map(|(&start, (all, size))| start.clamp(0, (all - size) as i64) as usize).collect())
}

kernels! {
    types (T = [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool], Tindices = [i32, i64])
    "XlaDynamicSlice" XlaDynamicSlice (host_memory("start_indices", "size_indices")) = |context, op| {
        let (input, sizes) = (context.input(0)?, host_shape(context, 2)?);
        let shape = shape(&input)?;
        let begin = begin(&context.host_integers(1)?, &shape, &sizes)?;
        let steps: Vec<_> =
            begin.iter().zip(&sizes).map(|(&start, &count)| Steps::range(start, count)).collect();
        let out = output(context, 0, &sizes)?;
        slice(&shape, &steps).enqueue(context, op, (&input).into(), &out)
    };
    "XlaDynamicUpdateSlice" XlaDynamicUpdateSlice (host_memory("indices")) = |context, op| {
        let dims = context.input(0)?.shape().to_vec();
        let update = context.input(1)?;
        let (shape, sizes) = (from_host(&dims)?, shape(&update)?);
        let begin = begin(&context.host_integers(2)?, &shape, &sizes)?;
        // The input is not held here, which would count as a use.
        let (out, forwarded) = context.forward_or_output(&[0], 0, &dims)?;
        if forwarded.is_none() {
            let all = Walk::new(&[out.len()], &[1], &[1]);
            all.enqueue(context, op, (&context.input(0)?).into(), &out)?;
        }
        let target = strides(&shape);
        let mut walk = Walk::new(&sizes, &strides(&sizes), &target);
        walk.from[1] = begin.iter().zip(&target).map(|(at, step)| at * *step as usize).sum();
        walk.enqueue(context, op, (&update).into(), &out)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_moved_to_where_it_fits() {
        assert_eq!(begin(&[-3, 9, 1], &[4, 4, 4], &[2, 2, 2]).unwrap(), [0, 2, 1]);
        assert_eq!(begin(&[i64::MAX, i64::MIN], &[3, 0], &[0, 0]).unwrap(), [3, 0]);
        assert!(begin(&[0], &[4], &[5]).is_err());
        assert!(begin(&[0, 0], &[4], &[1]).is_err());
        assert!(begin(&[0], &[4], &[1, 1]).is_err());
    }
}

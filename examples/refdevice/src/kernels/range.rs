//! `Range`: numbers in equal steps.

use super::*;
use core::marker::PhantomData;

struct Range<T>(PhantomData<T>);

macro_rules! ranges {
    ($($number:ty, $count:expr;)*) => {$(
        #[kernel(
            op = "Range",
            types(Tidx = [$number]),
            host_memory("start", "limit", "delta", "output")
        )]
        impl Kernel for Range<$number> {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let [start, limit, delta] = [0, 1, 2].map(|at| context.host_scalar::<$number>(at));
                let (start, limit, delta) = (start?, limit?, delta?);
                let zero = <$number>::default();
                ensure!(delta != zero, wrong("Requires delta != 0: 0"));
                ensure!(
                    if delta > zero { start <= limit } else { start >= limit },
                    wrong(format!("Requires start and limit on the sides of delta: {start}, {limit}, {delta}"))
                );
                let count: fn($number, $number, $number) -> i64 = $count;
                let mut out = context.host_output::<$number>(0, &[count(start, limit, delta)])?;
                let mut value = start;
                for out in out.as_mut_slice() {
                    *out = value;
                    value += delta;
                }
                Ok(())
            }
        }
    )*};
}

ranges! {
    f32, |start, limit, delta| ((limit - start) / delta).abs().ceil() as i64;
    f64, |start, limit, delta| ((limit - start) / delta).abs().ceil() as i64;
    i64, |start, limit, delta| {
        limit.abs_diff(start).div_ceil(delta.unsigned_abs()).try_into().unwrap_or(i64::MAX)
    };
}

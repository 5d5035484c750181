//! `Cast`: conversions between types of numbers, and of `bool`.

use super::*;
use core::marker::PhantomData;
use num_traits::AsPrimitive;
use se_plugin::toolkit::ops::map;

/// A number or `bool` that can be converted to a `T` as TensorFlow does it.
trait CastTo<T> {
    /// Converts the value. Floats are rounded towards 0 and clamped to the range of the integer type.
    fn cast(self) -> T;
}

struct Cast<S, D>(PhantomData<(S, D)>);

macro_rules! casts {
    ($($from:ty)*; $to:tt) => {$(casts!(@from $from, $to);)*};
    (@from $from:ty, ($($to:ty)*)) => {
        $(impl CastTo<$to> for $from {
            fn cast(self) -> $to {
                self.as_()
            }
        })*
        impl CastTo<bool> for $from {
            fn cast(self) -> bool {
                self != <$from as Number>::ZERO
            }
        }
        impl CastTo<$from> for bool {
            fn cast(self) -> $from {
                if self { <$from as Number>::ONE } else { <$from as Number>::ZERO }
            }
        }
    };
}
casts!(f32 f64 f16 bf16 i8 u8 i32 i64; (f32 f64 f16 bf16 i8 u8 i32 i64));

impl CastTo<bool> for bool {
    fn cast(self) -> bool {
        self
    }
}

macro_rules! kernels_from {
    ($($from:ty)*) => {$(
        #[kernel(op = "Cast", types(SrcT = [$from], DstT = [f32, f64, f16, bf16, i8, i32, i64, u8, bool]))]
        impl<DstT: Cell> Kernel for Cast<$from, DstT>
        where
            $from: CastTo<DstT>,
        {
            type Platform = RefPlatform;

            fn new(_: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(PhantomData))
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                map::<<$from as Cell>::Pod, DstT::Pod, _>(context, "Cast", |x| {
                    CastTo::<DstT>::cast(<$from>::load(x)).store()
                })
            }
        }
    )*};
}
kernels_from!(f32 f64 f16 bf16 i8 i32 i64 u8 bool);

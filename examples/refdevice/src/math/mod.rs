//! What the operations compute: functions on views of memory, that know nothing of devices.
//!
//! Shapes are checked before: the functions panic on shapes that do not fit together.

pub mod arrange;
pub mod cast;
pub mod convolve;
pub mod elementwise;
pub mod normalize;
pub mod number;
pub mod optimize;
pub mod pool;
pub mod product;
pub mod reduce;
pub mod scalar;
pub mod shape;
pub mod softmax;
pub mod strided;
#[cfg(test)]
mod testing;

/// A tensor that is read.
pub type View<'a, T> = ndarray::ArrayViewD<'a, T>;
/// A tensor that is written.
pub type ViewMut<'a, T> = ndarray::ArrayViewMutD<'a, T>;

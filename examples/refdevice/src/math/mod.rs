//! The arithmetic of the operations: functions on views of memory, which do not depend on devices.
//!
//! The kernels check shapes first: these functions panic on shapes that do not fit together.

pub mod convolve;
pub mod einsum;
pub mod optimize;
pub mod pool;
pub mod product;
pub mod scalar;
pub mod softmax;

use ndarray::LinalgScalar;
use num_traits::Float;
use se_plugin::toolkit;

/// A tensor that is read.
pub type View<'a, T> = ndarray::ArrayViewD<'a, T>;
/// A tensor that is written.
pub type ViewMut<'a, T> = ndarray::ArrayViewMutD<'a, T>;

/// A float, with the functions of `num-traits` and the products of `ndarray`.
pub trait Real: toolkit::Real<Wide: Float + LinalgScalar> {}
impl<T: toolkit::Real<Wide: Float + LinalgScalar>> Real for T {}

//! The code that most kernels share: shapes, broadcasting, strides, slices, reductions and type rules.
//!
//! | Module | Contents | Runs on |
//! |---|---|---|
//! | [`shape`], [`mod@slice`], [`window`], [`einsum`], [`Broadcast`], [`number`] | shape inference, strides and type rules | any device: no access to elements in memory |
//! | [`loops`] | loops over slices: [`loops::zip`], [`loops::reduce`] | host memory |

mod broadcast;
pub mod einsum;
pub mod loops;
pub mod number;
pub mod shape;
pub mod slice;
pub mod window;

pub use broadcast::{Broadcast, Strides};
pub use number::{Number, Real};
pub use shape::Shape;

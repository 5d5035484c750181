//! Kernels: they check shapes on the caller's thread, and enqueue a shader into the stream.

mod add_n;
pub(crate) mod all_finite;
pub(crate) mod attention;
mod band;
pub mod bench;
mod bias;
mod bincount;
mod bitcast;
mod colors;
mod complex;
mod concat;
mod convolve;
pub(crate) mod cooperative_selftest;
mod data_format;
mod depthwise;
mod diagonal;
mod dynamic_slice;
mod einsum;
pub(crate) mod elementwise;
mod fake_quant;
mod fft;
mod fill;
pub(crate) mod fused;
mod gamma;
mod gather;
mod gather_nd;
mod group_norm;
pub mod groups;
mod igamma;
mod image_transform;
mod layer_norm;
mod matrix;
mod mirror_pad;
pub(crate) mod moments;
pub(crate) mod multi_tensor;
mod multinomial;
mod normalize;
mod optimize;
mod pack;
mod pad;
mod patches;
mod poisson;
mod pool;
mod quantize_dequantize;
mod random;
mod range;
mod recurrent;
mod reduce;
mod resize;
mod reverse_sequence;
mod scan;
mod scatter;
mod select;
mod slice;
mod softmax;
mod space_to_batch;
mod sparse;
mod split;
mod strided_copy;
mod tile;
mod topk;
mod transpose;
mod variants;
mod window;

use crate::backend::{CooperativeMatrix, PUSH_BYTES, Shader};
use crate::gpus::GpuPlatform;
use crate::launch::{
    Launch, MOST_GROUPS, Operand, Run, element_type, ensure_turns, ensure_work, groups, groups_of,
    is_float, word,
};
use half::{bf16, f16};
use se_plugin::kernel::KernelList;
use se_plugin::prelude::*;
use se_plugin::toolkit::ops::{forward_one_of_two, inputs, output};
use se_plugin::toolkit::shape::{Shape, from_host, of as shape};
use se_plugin::toolkit::{Broadcast, Strides, shape as shapes};

/// Expands to the SPIR-V of `shaders/NAME.spv`.
macro_rules! shader {
    ($name:expr) => {{
        const SHADER: &crate::backend::Shader = &crate::backend::Shader::of_crate(
            $name,
            include_bytes!(concat!("../shaders/", $name, ".spv")),
        );
        SHADER
    }};
}
use shader;

/// Expands to the variant of `shaders/NAME.comp` that computes with floats, doubles or integers, as a type needs it.
macro_rules! variant {
    ($name:literal, $dtype:expr) => {
        match $dtype {
            DType::Float64 => shader!(concat!($name, ".double")),
            dtype if is_float(dtype) => shader!(concat!($name, ".float")),
            _ => shader!(concat!($name, ".int64")),
        }
    };
}
use variant;

/// The elements of `complex64`.
type C64 = num_complex::Complex<f32>;

#[cold]
fn wrong(text: impl Into<String>) -> Error {
    Error::invalid_argument(text.into())
}

/// Returns the bytes of an element, if shaders can move it.
fn bytes(tensor: &DeviceTensor) -> Result<u32> {
    let size = tensor.dtype().size().filter(|&size| size <= 8).map(|size| size as u32);
    size.ok_or_else(|| wrong("the elements are not plain bytes, or more than 8"))
}

/// Returns the only element of a host input.
fn host_integer(context: &Run<'_>, index: usize) -> Result<i64> {
    match context.host_integers(index)?[..] {
        [only] => Ok(only),
        _ => Err(wrong(format!("input {index} must be a scalar"))),
    }
}

/// Returns a host input as a shape.
fn host_shape(context: &Run<'_>, index: usize) -> Result<Shape> {
    from_host(&context.host_integers(index)?)
}

/// Returns rows and columns in a host input, which must be positive.
fn size(context: &Run<'_>, index: usize, what: &str) -> Result<[usize; 2]> {
    let size = context.host_integers(index)?;
    let [rows, columns] = size[..] else {
        return Err(wrong(format!("{what} must have two elements: {size:?}")));
    };
    match (usize::try_from(rows), usize::try_from(columns)) {
        (Ok(rows), Ok(columns)) if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(wrong(format!("{what} must be positive: {size:?}"))),
    }
}

/// Returns four sizes, as images have them.
fn four(shape: &[usize], what: &str) -> Result<[usize; 4]> {
    let four = <[usize; 4]>::try_from(shape);
    four.map_err(|_| wrong(format!("{what} must be 4-dimensional, and not {shape:?}")))
}

/// Defines kernels, a line each, below the types of their attributes: the op, `[$attributes = $new]` if it reads attributes,
/// and the other options of `#[kernel]`. `$body` gets the run, the name of the op and the attributes, if there are any.
///
/// They are kernels for any platform, which a function lists; `fn $list;` names it if a module has several. The bodies are compiled
/// once, in this crate, and not for each platform and type.
macro_rules! kernels {
    (types $($rest:tt)*) => {
        kernels! { fn kernels; types $($rest)* }
    };
    (fn $list:ident; $(
        types $types:tt
        $($op:literal $name:ident $([$attributes:ty = $new:expr])? ($($options:tt)*) = $body:expr;)*
    )*) => {
        /// Adds the kernels of this module to a list.
        pub(crate) fn $list<G: GpuPlatform>(list: &mut KernelList) {
            $($(
                kernels!(@one list $types $op $name [$($attributes = $new)?] ($($options)*) $body);
            )*)*
        }
    };
    (@one $list:ident $types:tt $op:literal $name:ident [] $options:tt $body:expr) => {
        kernels!(@one $list $types $op $name [() = |_| Ok(())] $options |run, op, ()| {
            let body: fn(&Run<'_>, &'static str) -> Result<()> = $body;
            body(run, op)
        });
    };
    (
        @one $list:ident ($($t:ident = $types:tt $(, $more:ident = $others:tt)*)?)
        $op:literal $name:ident [$attributes:ty = $new:expr] ($($options:tt)*) $body:expr
    ) => {{
        static NEW: fn(&OpKernelConstruction<'_>) -> Result<$attributes> = $new;
        static BODY: fn(&Run<'_>, &'static str, &$attributes) -> Result<()> = $body;

        #[allow(non_camel_case_types, reason = "attributes of ops have such names")]
        struct $name<G $(, $t)?>($attributes, core::marker::PhantomData<fn() -> (G, $($t)?)>);

        #[allow(non_camel_case_types, reason = "attributes of ops have such names")]
        #[kernel(op = $op, $(types($t = $types $(, $more = $others)*),)? $($options)*)]
        impl<G: GpuPlatform $(, $t: Element)?> Kernel for $name<G $(, $t)?> {
            type Platform = G;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self(NEW(construction)?, core::marker::PhantomData))
            }
            fn compute(&self, context: &mut OpKernelContext<'_, G>) -> Result<()> {
                BODY(context.any_platform(), $op, &self.0)
            }
        }

        // The list has a kernel for each type, whichever is named here.
        $list.add::<$name<G $(, kernels!(@any $t))?>>();
    }};
    (@any $t:ident) => { f32 };
}
use kernels;

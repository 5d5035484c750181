//! The launches of kernels without TensorFlow, only for `benches/device`. This may change at any time.

use super::convolve::Convolution;
use super::matrix::cooperative;
use super::normalize::{BatchNorm, Op};
use super::*;
use crate::backend::{ConvolutionKind, MatMul, Operation, WindowShape};
use crate::stream::GpuStream;
use se_plugin::toolkit::window::{Padding, Windows};

/// A launch without its tensors: the shader that the kernel of an op chooses, with its constants and numbers.
#[derive(Debug)]
pub struct Program {
    op: &'static str,
    shader: &'static Shader,
    operation: Operation,
    /// The values of its specialization constants.
    pub constants: Vec<u32>,
    /// The numbers that are pushed behind the addresses of the tensors.
    pub numbers: Vec<u32>,
    /// The number of workgroups.
    pub groups: [u32; 3],
}

impl Program {
    fn of(launch: &Launch<'_>) -> Result<Self> {
        Self::of_operation(launch, Operation::Shader)
    }

    fn of_operation(launch: &Launch<'_>, operation: Operation) -> Result<Self> {
        Ok(Self {
            op: launch.op,
            shader: launch.shader,
            operation,
            constants: launch.constants.to_vec(),
            numbers: launch.numbers.to_vec(),
            groups: launch.groups,
        })
    }

    /// Returns the name of the shader.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.shader.name()
    }

    /// Returns its SPIR-V, whose entry is `main`.
    #[must_use]
    pub fn spirv(&self) -> &'static [u8] {
        self.shader.spirv()
    }

    /// Returns the shader.
    #[must_use]
    pub fn shader(&self) -> &'static Shader {
        self.shader
    }

    /// Enqueues a launch on tensors of these addresses and sizes.
    ///
    /// # Errors
    /// Those of a kernel.
    pub fn enqueue(&self, stream: &GpuStream, tensors: &[(DevicePtr, u64)]) -> Result<()> {
        let operands: Vec<_> =
            tensors.iter().map(|&(ptr, bytes)| Operand::Bytes(ptr, bytes)).collect();
        Launch {
            op: self.op,
            shader: self.shader,
            constants: &self.constants,
            operands: &operands,
            numbers: &self.numbers,
            groups: self.groups,
        }
        .enqueue_as(stream, self.operation.clone())
    }
}

/// Returns the program of `op` for `len` elements, on two inputs like the result; an op of one input has it twice.
///
/// # Errors
/// `NOT_FOUND` for an op that is not elementwise; those of the kernel.
pub fn elementwise(op: &'static str, dtype: DType, len: usize) -> Result<Program> {
    let known = elementwise::FUSIBLE.iter().find(|(name, ..)| *name == op);
    let &(_, number, _) = known.ok_or_else(|| Error::not_found(format!("no op `{op}`")))?;
    let axes = [Strides { len, strides: [1, 1] }];
    elementwise::with(op, [number, 0], [dtype; 2], len, &axes, &[], Program::of)
}

/// Whether the addresses of a program's tensors are multiples of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// All of them are.
    Aligned,
    /// Some may not be.
    Any,
}

impl Addresses {
    /// Returns factors at such addresses.
    fn factors(self) -> Vec<Operand<'static>> {
        match self {
            Self::Aligned => Vec::new(),
            Self::Any => DevicePtr::new(1).map(|ptr| Operand::Bytes(ptr, 0)).into_iter().collect(),
        }
    }
}

/// Returns the program of `MatMul`, on the factors and the product: the plugin's on this stream, or one for any GPU.
///
/// # Errors
/// Those of the kernel.
pub fn matmul(
    stream: Option<&GpuStream>,
    dtype: DType,
    [rows, inner, columns]: [usize; 3],
    addresses: Addresses,
) -> Result<Program> {
    let (transpose, batch, strides) = ([false; 2], 1, [0; 2]);
    MatMul { dtype, transpose, rows, inner, columns, batch, strides }.with(
        stream.and_then(|stream| cooperative(stream, dtype, [rows, columns])),
        "MatMul",
        &addresses.factors(),
        Program::of_operation,
    )
}

/// A convolution of 32-bit floats, with the padding `SAME`.
#[derive(Debug)]
pub struct Convolve(Convolution, Addresses);

impl Convolve {
    /// Creates one for images [images, rows, columns, channels] and square filters.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn new(
        images: [usize; 4],
        size: usize,
        stride: usize,
        results: usize,
        addresses: Addresses,
    ) -> Result<Self> {
        let [count, rows, columns, channels] = images;
        let along = |input, size, stride| Windows::new(input, size, stride, 1, Padding::Same);
        let windows = [along(1, 1, 1)?, along(rows, size, stride)?, along(columns, size, stride)?];
        let images = [count, 1, rows, columns, channels];
        let plan = WindowShape { is_deep: false, images, windows, results, groups: 1 };
        Ok(Self(Convolution { plan, each: channels }, addresses))
    }

    /// Returns the shape of the result.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        self.0.plan.shape()
    }

    fn program(&self, op: &'static str, kind: ConvolutionKind, is_whole: bool) -> Result<Program> {
        let split = self.0.split(None, kind, is_whole);
        self.0.with(op, kind, &split, [DType::Float32; 2], &self.1.factors(), Program::of_operation)
    }

    /// Returns the program of `Conv2D`, on images, the filter and the result.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn results(&self) -> Result<Program> {
        self.program("Conv2D", ConvolutionKind::Forward, false)
    }

    /// Returns that of `Conv2DBackpropInput`, on the gradient of the result, the filter and the gradient of the images.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn images(&self) -> Result<Program> {
        self.program("Conv2DBackpropInput", ConvolutionKind::BackwardData, false)
    }

    /// Returns the program of `Conv2DBackpropFilter`, on images, the gradient of the result and the gradient of the
    /// filter or of its parts. For parts, also returns their number and the program that sums them to the gradient of
    /// the filter. It is the program that the plugin would use on this stream, or one for any GPU.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn filter(
        &self,
        stream: Option<&GpuStream>,
    ) -> Result<(Program, Option<(usize, Program)>)> {
        let op = "Conv2DBackpropFilter";
        let whole = self.program(op, ConvolutionKind::BackwardFilter, true)?;
        let (kind, dtype) = (ConvolutionKind::BackwardFilter, DType::Float32);
        let is_of_library = |stream: &GpuStream| {
            let gpu = &stream.queue.gpu;
            self.0.is_product(gpu, kind, dtype)
                || gpu.supports_convolution(&self.0.convolution(kind, dtype))
        };
        if stream.is_some_and(is_of_library) {
            return Ok((whole, None));
        }
        let parts = self.0.split(None, ConvolutionKind::BackwardFilter, false).parts;
        let first = self.program(op, ConvolutionKind::BackwardFilter, false)?;
        if parts == 1 {
            return Ok((first, None));
        }
        let len = self.0.plan.size() * self.0.each * self.0.plan.results;
        let types = [DType::Float32; 2];
        let sum = reduce::with(op, 0, &[parts, len], &[0], types, &[], Program::of)?;
        Ok((first, Some((parts, sum))))
    }
}

/// Returns the programs of `FusedBatchNormV3` in training on 32-bit floats, or of its gradient, on the shader's tensors, and the
/// number of sums in the last tensor.
///
/// # Errors
/// Those of the kernel.
pub fn normalize(is_gradient: bool, len: usize, channels: usize) -> Result<(Vec<Program>, usize)> {
    let (op, number) = match is_gradient {
        true => ("FusedBatchNormGradV3", Op::Gradient),
        false => ("FusedBatchNormV3", Op::Normalize),
    };
    let norm = BatchNorm { epsilon: 1e-3, ..BatchNorm::of_training() };
    let stages = norm.stages(number, DType::Float32, [len, channels], &[])?;
    let mut programs = Vec::new();
    stages.each(op, &[], |launch| {
        programs.push(Program::of(launch)?);
        Ok(())
    })?;
    Ok((programs, stages.sums()))
}

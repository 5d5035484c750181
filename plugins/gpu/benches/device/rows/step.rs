//! Measures a training step like that of ResNet50: its convolutions, normalizations, activations and sums, with the
//! gradients. The tensors of all layers share memory: only the time counts.

use super::{Backend, Bench};
use crate::contestant::{Contestant, Launch, signs};
use crate::plugin::text;
use crate::stats::{Spread, ratios, take_turns};
use crate::table::{Goal, Row};
use anyhow::{Context as _, Result, ensure};
use gpu::GpuStream;
use gpu::bench::{self, Addresses, Convolve, Program};
use se_plugin::kernel::DType;
use std::time::Instant;

/// A convolution with its normalization, and the ops that follow it.
struct Layer {
    images: [usize; 4],
    size: usize,
    stride: usize,
    results: usize,
    /// Whether it is the end of a block, where the shortcut is added.
    is_end: bool,
}

/// The stages of residual blocks: how many blocks, and the channels inside of one, a quarter of those outside.
const STAGES: [(usize, usize); 4] = [(3, 64), (4, 128), (6, 256), (3, 512)];

/// Returns the number of images, and the layers.
fn layers(is_whole: bool) -> (usize, Vec<Layer>) {
    let (batch, mut side, stages) = match is_whole {
        true => (32, 224, STAGES.to_vec()),
        false => (2, 32, vec![(1, 8), (1, 16)]),
    };
    let mut layers = Vec::new();
    let mut add = |side: usize, channels, size, stride, results, is_end| {
        layers.push(Layer { images: [batch, side, side, channels], size, stride, results, is_end });
        side.div_ceil(stride)
    };
    let mut channels = stages[0].1;
    // The pooling after it is left out.
    side = add(side, 3, 7, 2, channels, false).div_ceil(2);
    for (stage, &(blocks, inside)) in stages.iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            if block == 0 {
                add(side, channels, 1, stride, 4 * inside, false);
            }
            side = add(side, channels, 1, stride, inside, false);
            add(side, inside, 3, 1, inside, false);
            add(side, inside, 1, 1, 4 * inside, true);
            channels = 4 * inside;
        }
    }
    (batch, layers)
}

/// The tensors, which all layers share.
#[derive(Clone, Copy)]
enum Tensor {
    Images,
    Filter,
    Result,
    Normal,
    Active,
    Gradient,
    OfActive,
    OfResult,
    OfImages,
    OfFilter,
    Parts,
    /// One number for each channel: scale, offset, mean, variance, and four outputs.
    Channel(usize),
}

impl Tensor {
    const COUNT: usize = 11 + 8;

    fn number(self) -> usize {
        match self {
            Self::Images => 0,
            Self::Filter => 1,
            Self::Result => 2,
            Self::Normal => 3,
            Self::Active => 4,
            Self::Gradient => 5,
            Self::OfActive => 6,
            Self::OfResult => 7,
            Self::OfImages => 8,
            Self::OfFilter => 9,
            Self::Parts => 10,
            Self::Channel(number) => 11 + number,
        }
    }
}

/// The launches of a step, and the least number of elements of each tensor.
struct Step {
    launches: Vec<(Program, Vec<usize>)>,
    sizes: [usize; Tensor::COUNT],
}

impl Step {
    fn push(&mut self, program: se_plugin::Result<Program>, tensors: &[Tensor]) -> Result<()> {
        let tensors = tensors.iter().map(|tensor| tensor.number()).collect();
        self.launches.push((program.map_err(text)?, tensors));
        Ok(())
    }

    fn need(&mut self, tensors: &[Tensor], len: usize) {
        for tensor in tensors {
            let size = &mut self.sizes[tensor.number()];
            *size = len.max(*size);
        }
    }

    fn elementwise(&mut self, op: &'static str, len: usize, tensors: [Tensor; 3]) -> Result<()> {
        self.push(bench::elementwise(op, DType::Float32, len), &tensors)
    }

    fn normalize(
        &mut self,
        is_gradient: bool,
        len: usize,
        channels: usize,
        mut tensors: Vec<Tensor>,
    ) -> Result<()> {
        let (programs, sums) = bench::normalize(is_gradient, len, channels).map_err(text)?;
        self.need(&[Tensor::Parts], sums);
        tensors.push(Tensor::Parts);
        programs.into_iter().try_for_each(|program| self.push(Ok(program), &tensors))
    }

    fn layer(&mut self, layer: &Layer, is_first: bool, stream: Option<&GpuStream>) -> Result<()> {
        use Tensor::*;
        let Layer { images, size, stride, results, is_end } = *layer;
        let convolve =
            Convolve::new(images, size, stride, results, Addresses::Aligned).map_err(text)?;
        let len: usize = convolve.shape().iter().product();
        self.need(&[Images, OfImages], images.iter().product());
        self.need(&[Filter, OfFilter], size * size * images[3] * results);
        self.need(&[Result, Normal, Active, Gradient, OfActive, OfResult], len);
        self.need(&[0, 1, 2, 3, 4, 5, 6, 7].map(Channel), results);

        self.push(convolve.results(), &[Images, Filter, Result])?;
        let [scale, offset, mean, variance] = [0, 1, 2, 3].map(Channel);
        let written = [4, 5, 6, 7].map(Channel);
        let mut tensors = vec![Result, scale, offset, mean, variance, Normal];
        tensors.extend(written);
        self.normalize(false, len, results, tensors)?;
        if is_end {
            self.elementwise("AddV2", len, [Normal, Gradient, Active])?;
        }
        self.elementwise("Relu", len, [Normal, Normal, Active])?;

        self.elementwise("ReluGrad", len, [Gradient, Normal, OfActive])?;
        let [of_scale, of_offset, ..] = written;
        let tensors = vec![
            Result, scale, OfActive, mean, variance, OfResult, of_scale, of_offset, OfResult,
            OfResult,
        ];
        self.normalize(true, len, results, tensors)?;
        if !is_first {
            self.push(convolve.images(), &[OfResult, Filter, OfImages])?;
        }
        let (filter, sum) = convolve.filter(stream).map_err(text)?;
        match sum {
            None => self.push(Ok(filter), &[Images, OfResult, OfFilter])?,
            Some((parts, sum)) => {
                self.need(&[Parts], parts * size * size * images[3] * results);
                self.push(Ok(filter), &[Images, OfResult, Parts])?;
                self.push(Ok(sum), &[Parts, OfFilter])?;
            }
        }
        Ok(())
    }
}

/// Returns the number of images, and the launches for them: the plugin's on this stream, or those for any GPU.
fn plan(is_whole: bool, stream: Option<&GpuStream>) -> Result<(usize, Step)> {
    let (batch, layers) = layers(is_whole);
    let mut step = Step { launches: Vec::new(), sizes: [1; Tensor::COUNT] };
    for (number, layer) in layers.iter().enumerate() {
        step.layer(layer, number == 0, stream)?;
    }
    // The layer that computes the classes.
    let channels = layers.last().context("no layers")?.results;
    let (tensors, classes) = ([Tensor::Images, Tensor::Filter, Tensor::Result], 1000);
    step.need(&[Tensor::Filter], channels * classes);
    step.need(&[Tensor::Result], batch * classes);
    step.push(
        bench::matmul(None, DType::Float32, [batch, channels, classes], Addresses::Aligned),
        &tensors,
    )?;
    Ok((batch, step))
}

/// Returns whether tensors of 32-bit floats are equal, except for another order of sums in NVIDIA's libraries.
fn is_close(actual: &[u8], expected: &[u8]) -> bool {
    let numbers = |bytes: &[u8]| {
        let number = |four: &[u8]| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]);
        bytes.chunks_exact(4).map(number).collect::<Vec<_>>()
    };
    let is_same = actual == expected;
    let (actual, expected) = (numbers(actual), numbers(expected));
    let largest = expected.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    is_same || actual.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= largest * 1e-3)
}

pub(super) fn rows(bench: &mut Bench) -> Result<Vec<Row>> {
    // A dry run finds errors in the whole step.
    plan(true, None)?;
    let is_whole = bench.sizes.is_whole_step;
    let (_, chosen) = plan(is_whole, Some(&bench.plugin.stream))?;
    let (batch, plain) = plan(is_whole, None)?;
    let sizes = plain.sizes;
    let steps = [chosen, plain];
    for (number, len) in sizes.into_iter().enumerate() {
        let numbers = signs(len, number as u32 + 1).map(|sign| f32::from(sign) * 0.5 + 0.75);
        bench.tensor(&numbers.flat_map(f32::to_ne_bytes).collect::<Vec<u8>>())?;
    }
    let mut all = Vec::new();
    for (contestant, step) in bench.both().into_iter().zip(steps) {
        let launches = step.launches.into_iter().map(|(program, tensors)| {
            Ok(Launch { program: contestant.prepare(program)?, tensors })
        });
        all.push(launches.collect::<Result<Vec<_>>>()?);
    }
    let rounds = take_turns(2, bench.sizes.rounds, |index| {
        let start = Instant::now();
        bench.both()[index].run(&all[index])?;
        anyhow::Ok(start.elapsed().as_secs_f64())
    })?;
    let is_cuda = bench.backend == Backend::Cuda;
    let is_parts = |number: usize| number == Tensor::Parts.number();
    for (number, len) in sizes.into_iter().enumerate().filter(|(number, _)| !is_parts(*number)) {
        let mut actual = [vec![0; 4 * len], vec![0; 4 * len]];
        let [plugin, bare] = &mut actual;
        bench.plugin.read(plugin, number)?;
        bench.bare.read(bare, number)?;
        let is_right = if is_cuda { is_close(plugin, bare) } else { plugin == bare };
        ensure!(is_right, "tensor {number} is not the same without the plugin");
    }
    let speed = |index: usize| batch as f64 / Spread::of(&rounds[index]).median;
    let what = if is_whole { "ResNet50" } else { "a small ResNet" };
    Ok(vec![Row {
        what: format!("step like that of {what}, {} launches", all[0].len()),
        reference: String::from("the plugin's shaders, launched without the plugin"),
        plugin: speed(0),
        bare: Some(speed(1)),
        unit: "images/s",
        ratio: Some(ratios(&rounds[0], &rounds[1])),
        goal: Some(Goal::AtMost(1.1)),
        is_everywhere: true,
    }])
}

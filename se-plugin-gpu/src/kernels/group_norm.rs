//! Group normalization: `shaders/group_norm.comp`. The ops are in [`moments`](super::moments). The first axis is that of images, the last two
//! are groups and the channels of each. Neighbouring threads read neighbouring channels, whatever the size of a group.

use super::moments::{Attributes, unfit};
use super::normalize::{BatchNorm, Groups, Op};
use super::*;
use crate::backend;

/// What the shader computes.
#[derive(Clone, Copy)]
enum Stage {
    Moments,
    Groups,
    Channels,
    Elements,
}

/// The axes of a tensor.
struct Axes {
    images: usize,
    /// The elements of a channel of an image.
    count: usize,
    groups: usize,
    /// The channels of a group.
    width: usize,
}

impl Axes {
    fn of(shape: &[usize]) -> Result<Self> {
        match *shape {
            [images, ref places @ .., groups, width] if width > 0 => {
                Ok(Self { images, count: places.iter().product(), groups, width })
            }
            _ => Err(wrong(format!(
                "x must have images, groups and their channels, and not {shape:?}"
            ))),
        }
    }

    fn channels(&self) -> usize {
        self.groups * self.width
    }

    /// Returns the number of means.
    fn rows(&self) -> usize {
        self.images * self.groups
    }

    /// Returns the attributes of the sums.
    fn norm(&self) -> BatchNorm {
        let groups = Groups { images: self.images, width: self.width };
        BatchNorm { has_scale: false, groups: Some(groups), ..BatchNorm::of_training() }
    }
}

/// What all launches are told.
struct Launches<'a> {
    context: &'a Run<'a>,
    op: &'static str,
    axes: &'a Axes,
    dtype: DType,
    epsilon: f32,
    /// The elements of a part of a channel, and the parts.
    parts: [u32; 2],
    operands: [Operand<'a>; 12],
}

impl Launches<'_> {
    fn enqueue(&self, stage: Stage) -> Result<()> {
        let (axes, workgroup) = (self.axes, backend::WORKGROUP as usize);
        let [part, parts] = self.parts;
        let channels = axes.channels();
        let across = |of_group: usize| of_group.div_ceil(4).next_power_of_two().min(workgroup);
        let rows_of = |across: usize| axes.rows().div_ceil(workgroup / across);
        // Images that are not neighbours are in other rows of threads: 32 of them read neighbours.
        let (across, groups, turns) = match stage {
            Stage::Moments => {
                let of_group = parts as usize * axes.width;
                let across = across(of_group);
                (across, rows_of(across), 2 * of_group.div_ceil(across))
            }
            Stage::Groups => {
                let across = across(axes.width);
                (across, rows_of(across), axes.width.div_ceil(across) * (parts as usize + 4))
            }
            Stage::Channels => {
                (32, channels.div_ceil(32), axes.images.div_ceil(workgroup / 32) + 8)
            }
            Stage::Elements => (1, 0, 0),
        };
        let is_elements = matches!(stage, Stage::Elements);
        let [x, dy, scale, _, _, dx, ..] = &self.operands;
        let is_wide = is_elements
            && channels.is_multiple_of(4)
            && [x, dy, scale, dx].iter().all(|operand| operand.is_multiple_of(16));
        let len = word(axes.images * axes.count * channels)? as usize;
        let groups = match is_elements {
            true => self::groups(if is_wide { len / 4 } else { len }),
            false => [groups.min(MOST_GROUPS) as u32, 1, 1],
        };
        ensure_turns(self.context, self.op, turns + 24)?;
        Launch {
            op: self.op,
            shader: shader!("group_norm"),
            constants: &[stage as u32, element_type(self.dtype)?, is_wide.into()],
            operands: &self.operands,
            numbers: &[
                word(axes.images)?,
                word(axes.count)?,
                word(channels)?,
                word(axes.width)?,
                across as u32,
                part,
                parts,
                self.epsilon.to_bits(),
            ],
            groups,
        }
        .enqueue(self.context)
    }
}

/// Computes mean and variance of each group of each image of input 0.
pub(super) fn moments(context: &Run<'_>, op: &'static str) -> Result<()> {
    let x = context.input(0)?;
    let shape = shape(&x)?;
    let axes = Axes::of(&shape)?;
    let mut kept = vec![1; shape.len()];
    (kept[0], kept[shape.len() - 2]) = (axes.images, axes.groups);
    let (mean, variance) = (output(context, 0, &kept)?, output(context, 1, &kept)?);
    if mean.is_empty() {
        return Ok(());
    }
    let all = [&x, &x, &x, &mean, &variance, &x, &mean, &variance, &x, &x].map(Operand::from);
    let (sums, parts) =
        axes.norm().sums_of_images(context, op, Op::Moments, &x, axes.channels(), &all)?;
    let none = Operand::Value(0);
    let mut operands = [none; 12];
    operands[3] = (&mean).into();
    operands[4] = (&variance).into();
    operands[8] = (&sums).into();
    Launches { context, op, axes: &axes, dtype: x.dtype(), epsilon: 0.0, parts, operands }
        .enqueue(Stage::Moments)
}

/// Computes the gradients of group normalization.
pub(super) fn gradient(context: &Run<'_>, op: &'static str, attributes: &Attributes) -> Result<()> {
    let [x, dy, mean, variance] = [0, 1, 2, 3].map(|at| context.input(at));
    let (x, dy, mean, variance) = (x?, dy?, mean?, variance?);
    let scale = context.input(4)?;
    let shape = shape(&x)?;
    let axes = Axes::of(&shape)?;
    let channels = axes.channels();
    ensure!(
        shape.len() == attributes.axes + 3
            && dy.len() == x.len()
            && [mean.len(), variance.len()] == [axes.rows(); 2]
            && scale.len() == channels,
        unfit(
            op,
            &[
                ("x", &x),
                ("y_backprop", &dy),
                ("mean", &mean),
                ("variance", &variance),
                ("scale", &scale)
            ],
            format!("{} axes between images and groups", attributes.axes)
        )
    );
    let dx = context.output(0, x.shape())?;
    let sums = [(1, attributes.keep_dims[0]), (2, attributes.keep_dims[1])].map(|(at, keeps)| {
        let mut kept = vec![1; shape.len()];
        kept[shape.len() - 2..].copy_from_slice(&[axes.groups, axes.width]);
        output(context, at, &kept[usize::from(!keeps)..])
    });
    let [dscale, doffset] = sums;
    let (dscale, doffset) = (dscale?, doffset?);
    if channels == 0 {
        return Ok(());
    }
    let new = |len: usize| context.temporary(DType::Float32, &[len as i64]);
    let totals = new(2 * axes.images * channels)?;
    let (dy_means, product_means) = (new(axes.rows())?, new(axes.rows())?);
    let all = [&x, &x, &dy, &mean, &variance, &x, &x, &x, &x, &x].map(Operand::from);
    // Without images the gradients of scale and offset are 0.
    let (sums, parts) = match axes.images {
        0 => (None, [1, 1]),
        _ => {
            let norm = axes.norm();
            let found = norm.sums_of_images(context, op, Op::GroupGradient, &x, channels, &all)?;
            (Some(found.0), found.1)
        }
    };
    let sums = sums.as_ref().map_or(Operand::Value(0), Operand::from);
    let operands = [
        (&x).into(),
        (&dy).into(),
        (&scale).into(),
        (&mean).into(),
        (&variance).into(),
        (&dx).into(),
        (&dscale).into(),
        (&doffset).into(),
        sums,
        (&totals).into(),
        (&dy_means).into(),
        (&product_means).into(),
    ];
    let epsilon = attributes.epsilon;
    let launches =
        Launches { context, op, axes: &axes, dtype: x.dtype(), epsilon, parts, operands };
    let mut stages = [Stage::Groups, Stage::Channels, Stage::Elements].into_iter();
    stages.try_for_each(|stage| launches.enqueue(stage))
}

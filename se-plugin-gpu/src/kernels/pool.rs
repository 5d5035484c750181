//! Pooling.

use super::window::{FIRST_GRADIENT, Geometry};
use super::*;

fn pool(run: &Run<'_>, op: &'static str, geometry: &Geometry, number: u32) -> Result<()> {
    let images = geometry.layout.input(run, op, 0)?;
    let plan = geometry.pools(&shape(&images)?)?;
    let out = geometry.layout.output(run, 0, &plan.shape())?;
    plan.enqueue(run, op, number, [&images; 3], &out.tensor)?;
    out.finish(run, op)
}

fn mean_gradient(run: &Run<'_>, op: &'static str, geometry: &Geometry) -> Result<()> {
    let layout = geometry.layout;
    let (image_shape, gradient) = (layout.last(host_shape(run, 0)?), layout.input(run, op, 1)?);
    let plan = geometry.pools(&image_shape)?;
    plan.check(&gradient, "grad")?;
    let out = layout.output(run, 0, &image_shape)?;
    plan.enqueue(run, op, 3, [&gradient; 3], &out.tensor)?;
    out.finish(run, op)
}

fn max_gradient_3d(run: &Run<'_>, op: &'static str, geometry: &Geometry) -> Result<()> {
    let layout = geometry.layout;
    let [images, results, gradient] = [0, 1, 2].map(|index| layout.input(run, op, index));
    let (images, results, gradient) = (images?, results?, gradient?);
    let image_shape = shape(&images)?;
    let plan = geometry.pools(&image_shape)?;
    plan.check(&results, "orig_output")?;
    plan.check(&gradient, "grad")?;
    let out = layout.output(run, 0, &image_shape)?;
    plan.enqueue(run, op, 4, [&images, &gradient, &results], &out.tensor)?;
    out.finish(run, op)
}

kernels! {
    types (T = [f32, f16, bf16])
    "MaxPool" MaxPool [Geometry = |op| Geometry::of_pools(op, 2)] () =
        |run, op, geometry| pool(run, op, geometry, 0);
    "AvgPool" AvgPool [Geometry = |op| Geometry::of_pools(op, 2)] () =
        |run, op, geometry| pool(run, op, geometry, 1);
    "MaxPool3D" MaxPool3d [Geometry = |op| Geometry::of_pools(op, 3)] () =
        |run, op, geometry| pool(run, op, geometry, 0);
    "AvgPool3D" AvgPool3d [Geometry = |op| Geometry::of_pools(op, 3)] () =
        |run, op, geometry| pool(run, op, geometry, 1);
    "MaxPoolGrad" MaxPoolGrad [Geometry = |op| Geometry::of_pools(op, 2)] () = |run, op, geometry| {
        let layout = geometry.layout;
        let (images, gradient) = (layout.input(run, op, 0)?, layout.input(run, op, 2)?);
        let image_shape = shape(&images)?;
        let plan = geometry.pools(&image_shape)?;
        plan.check(&gradient, "grad")?;
        let out = layout.output(run, 0, &image_shape)?;
        plan.enqueue(run, op, FIRST_GRADIENT, [&images, &gradient, &gradient], &out.tensor)?;
        out.finish(run, op)
    };
    "AvgPoolGrad" AvgPoolGrad [Geometry = |op| Geometry::of_pools(op, 2)] (host_memory("orig_input_shape")) =
        mean_gradient;
    "AvgPool3DGrad" AvgPool3dGrad [Geometry = |op| Geometry::of_pools(op, 3)] (host_memory("orig_input_shape")) =
        mean_gradient;
    // The images may have another type than the gradient; TensorFlow has no kernels for that.
    types (T = [f32], TInput = [f32])
    "MaxPool3DGrad" MaxPool3dGrad [Geometry = |op| Geometry::of_pools(op, 3)] () = max_gradient_3d;
    types (T = [f16], TInput = [f16])
    "MaxPool3DGrad" MaxPool3dGrad [Geometry = |op| Geometry::of_pools(op, 3)] () = max_gradient_3d;
    types (T = [bf16], TInput = [bf16])
    "MaxPool3DGrad" MaxPool3dGrad [Geometry = |op| Geometry::of_pools(op, 3)] () = max_gradient_3d;
}

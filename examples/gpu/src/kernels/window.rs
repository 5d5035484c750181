//! Convolutions and pooling. The numbers are those of the ops in `shaders/window.comp`.

use super::matrix::check_format;
use super::*;
use core::marker::PhantomData;
use se_plugin::toolkit::window::{Padding, Windows};

/// How windows go over images: down and right.
struct Geometry {
    sizes: Option<[usize; 2]>,
    strides: [usize; 2],
    dilations: [usize; 2],
    padding: [Padding; 2],
}

/// The numbers of an attribute for rows and columns.
fn pair(construction: &OpKernelConstruction<'_>, name: &str) -> Result<[usize; 2]> {
    let numbers: Vec<i64> = construction.attr(name)?;
    let [1, rows, columns, 1] = numbers[..] else {
        return Err(Error::new(
            Code::Unimplemented,
            format!("`{name}` is {numbers:?}, and the device can do it for rows and columns only"),
        ));
    };
    match (usize::try_from(rows), usize::try_from(columns)) {
        (Ok(rows), Ok(columns)) if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(wrong(format!("`{name}` is {numbers:?}, and has to be of positive numbers"))),
    }
}

/// The padding of an operation.
fn padding(construction: &OpKernelConstruction<'_>) -> Result<[Padding; 2]> {
    let padding: String = construction.attr("padding")?;
    Ok(match padding.as_str() {
        "VALID" => [Padding::Valid; 2],
        "SAME" => [Padding::Same; 2],
        _ => {
            let sizes: Vec<i64> = construction.attr("explicit_paddings")?;
            let wrong = || wrong(format!("explicit_paddings {sizes:?} are not understood"));
            let sizes = from_host(&sizes).map_err(|_| wrong())?;
            let [0, 0, top, bottom, left, right, 0, 0] = sizes[..] else { return Err(wrong()) };
            [Padding::Explicit(top, bottom), Padding::Explicit(left, right)]
        }
    })
}

/// Four sizes, as those of images and filters.
fn four(shape: &[usize], what: &str) -> Result<[usize; 4]> {
    let four = <[usize; 4]>::try_from(shape);
    four.map_err(|_| wrong(format!("{what} must be 4-dimensional, and not {shape:?}")))
}

/// Windows over images, and the shape of what comes of them.
struct Plan {
    images: [usize; 4],
    windows: [Windows; 2],
    results: usize,
}

impl Geometry {
    fn of_filters(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            sizes: None,
            strides: pair(construction, "strides")?,
            dilations: pair(construction, "dilations")?,
            padding: padding(construction)?,
        })
    }

    fn of_pools(construction: &OpKernelConstruction<'_>) -> Result<Self> {
        check_format(construction)?;
        Ok(Self {
            sizes: Some(pair(construction, "ksize")?),
            strides: pair(construction, "strides")?,
            dilations: [1, 1],
            padding: padding(construction)?,
        })
    }

    fn plan(&self, images: &[usize], filter: Option<&[usize]>, each: bool) -> Result<Plan> {
        let images = four(images, "images")?;
        let (sizes, results) = match (filter, self.sizes) {
            (Some(filter), _) => {
                let [height, width, own, results] = four(filter, "filters")?;
                if own != images[3] {
                    return Err(Error::new(
                        Code::Unimplemented,
                        format!(
                            "the images have {} channels and the filter is for {own}; the device cannot convolve \
                             groups of channels",
                            images[3]
                        ),
                    ));
                }
                ([height, width], if each { own * results } else { results })
            }
            (None, Some(sizes)) => (sizes, images[3]),
            (None, None) => return Err(Error::internal("a window without a size")),
        };
        let along = |at: usize| {
            let (stride, dilation) = (self.strides[at], self.dilations[at]);
            Windows::new(images[at + 1], sizes[at], stride, dilation, self.padding[at])
        };
        Ok(Plan { images, windows: [along(0)?, along(1)?], results })
    }
}

impl Plan {
    fn shape(&self) -> Shape {
        vec![self.images[0], self.windows[0].count, self.windows[1].count, self.results]
    }

    fn check_gradient(&self, gradient: &DeviceTensor) -> Result<()> {
        let (found, expected) = (shape(gradient)?, self.shape());
        if found == expected {
            return Ok(());
        }
        Err(wrong(format!("the gradient has the shape {found:?} and not {expected:?}")))
    }

    fn enqueue(
        &self,
        context: &Run<'_>,
        op: &'static str,
        number: u32,
        [a, b]: [&DeviceTensor; 2],
        out: &DeviceTensor,
    ) -> Result<()> {
        let mut numbers = vec![word(out.len())?];
        numbers.extend(self.images.map(|size| size as u32));
        numbers.push(self.results as u32);
        let [down, right] = &self.windows;
        for of in [
            |windows: &Windows| windows.size,
            |windows: &Windows| windows.stride,
            |windows: &Windows| windows.dilation,
            |windows: &Windows| windows.before,
            |windows: &Windows| windows.count,
        ] {
            numbers.extend([word(of(down))?, word(of(right))?]);
        }
        for tensor in [a, b] {
            word(tensor.len())?;
        }
        Launch {
            op,
            shader: shader!("window"),
            constants: &[number, element_type(out.dtype())?],
            operands: &[a.into(), b.into(), out.into()],
            numbers: &numbers,
            groups: groups(out.len()),
        }
        .enqueue(context)
    }
}

/// Kernels with a geometry: `$body` gets the run, the name of the op and the geometry.
macro_rules! windows {
    ($($op:literal $name:ident $new:ident ($($host:literal)?) = $body:expr;)*) => {$(
        struct $name<T> {
            geometry: Geometry,
            elements: PhantomData<T>,
        }

        #[kernel(op = $op, types(T = [f32, f16, bf16]) $(, host_memory($host))?)]
        impl<T: Element> Kernel for $name<T> {
            type Platform = GpuPlatform;

            fn new(construction: &OpKernelConstruction<'_>) -> Result<Self> {
                Ok(Self { geometry: Geometry::$new(construction)?, elements: PhantomData })
            }
            fn compute(&self, context: &mut Run<'_>) -> Result<()> {
                let body: fn(&Run<'_>, &'static str, &Geometry) -> Result<()> = $body;
                body(context, $op, &self.geometry)
            }
        }
    )*};
}

fn convolve(run: &Run<'_>, op: &'static str, geometry: &Geometry, each: bool) -> Result<()> {
    let (images, filter) = (run.input(0)?, run.input(1)?);
    let plan = geometry.plan(&shape(&images)?, Some(&shape(&filter)?), each)?;
    let out = output(run, 0, &plan.shape())?;
    plan.enqueue(run, op, if each { 7 } else { 0 }, [&images, &filter], &out)
}

fn pool(run: &Run<'_>, op: &'static str, geometry: &Geometry, number: u32) -> Result<()> {
    let images = run.input(0)?;
    let plan = geometry.plan(&shape(&images)?, None, false)?;
    plan.enqueue(run, op, number, [&images, &images], &output(run, 0, &plan.shape())?)
}

windows! {
    "Conv2D" Conv2D of_filters () = |run, op, geometry| convolve(run, op, geometry, false);
    "DepthwiseConv2dNative" DepthwiseConv2d of_filters () =
        |run, op, geometry| convolve(run, op, geometry, true);
    "Conv2DBackpropInput" InputGradient of_filters ("input_sizes") = |run, op, geometry| {
        let mut image_shape = host_shape(run, 0)?;
        let (filter, gradient) = (run.input(1)?, run.input(2)?);
        let (filter_shape, gradient_shape) = (shape(&filter)?, shape(&gradient)?);
        // The sizes may be those of rows and columns alone.
        if let ([rows, columns], [images, ..], [.., channels, _]) =
            (&image_shape[..], &gradient_shape[..], &filter_shape[..])
        {
            image_shape = vec![*images, *rows, *columns, *channels];
        }
        let plan = geometry.plan(&image_shape, Some(&filter_shape), false)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 1, [&gradient, &filter], &output(run, 0, &image_shape)?)
    };
    "Conv2DBackpropFilter" FilterGradient of_filters ("filter_sizes") = |run, op, geometry| {
        let filter_shape = host_shape(run, 1)?;
        let (images, gradient) = (run.input(0)?, run.input(2)?);
        let plan = geometry.plan(&shape(&images)?, Some(&filter_shape), false)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 2, [&images, &gradient], &output(run, 0, &filter_shape)?)
    };
    "MaxPool" MaxPool of_pools () = |run, op, geometry| pool(run, op, geometry, 3);
    "AvgPool" AvgPool of_pools () = |run, op, geometry| pool(run, op, geometry, 4);
    "MaxPoolGrad" MaxPoolGrad of_pools () = |run, op, geometry| {
        let (images, gradient) = (run.input(0)?, run.input(2)?);
        let image_shape = shape(&images)?;
        let plan = geometry.plan(&image_shape, None, false)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 5, [&images, &gradient], &output(run, 0, &image_shape)?)
    };
    "AvgPoolGrad" AvgPoolGrad of_pools ("orig_input_shape") = |run, op, geometry| {
        let (image_shape, gradient) = (host_shape(run, 0)?, run.input(1)?);
        let plan = geometry.plan(&image_shape, None, false)?;
        plan.check_gradient(&gradient)?;
        plan.enqueue(run, op, 6, [&gradient, &gradient], &output(run, 0, &image_shape)?)
    };
}

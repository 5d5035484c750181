//! A device on the host, to begin with: its memory is the host's, at addresses that the host cannot follow,
//! and its streams are threads that work later, as those of a real device.
//!
//! For a real one implement `Device`, `Stream` and `Event` on its driver, in place of `HostDevice`.

use bytemuck::{cast_slice, cast_slice_mut};
use se_plugin::graph::{Graph, GraphPass, OptimizerConfigs, Switch};
use se_plugin::parts::{DeviceRange, HostDevice, HostMemory};
use se_plugin::prelude::*;

/// Bytes of memory that the device has.
const MEMORY: u64 = 1 << 30;

/// What there is before the first device is opened.
pub struct TemplatePluginPlatform;

#[device_plugin(graph_pass = AsWritten)]
impl Platform for TemplatePluginPlatform {
    const NAME: &'static str = "TEMPLATE_PLUGIN";
    const TYPE: &'static str = "TEMPLATE_PLUGIN";
    type Device = HostDevice;

    fn new() -> Result<Self> {
        Ok(Self)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn open(&self, _ordinal: usize) -> Result<HostDevice> {
        Ok(HostDevice::new(HostMemory::new(MEMORY)?))
    }
}

/// Keeps TensorFlow from writing other ops than the user: it would make `a + a` a `Mul` and `a + b + c` an `AddN`,
/// for which there is no kernel here. With kernels for them, take this away: all graphs are a little faster then.
struct AsWritten;

impl GraphPass for AsWritten {
    fn configs(&self) -> OptimizerConfigs {
        let mut configs = OptimizerConfigs::default();
        configs.arithmetic_optimization = Switch::Off;
        configs
    }

    fn optimize(&self, _graph: &mut Graph<'_>) -> Result<()> {
        Ok(())
    }
}

/// `tf.add` of two tensors of one shape. What has no kernel here runs on the CPU.
struct Add;

#[kernel(op = "AddV2", types(T = [f32]))]
impl Kernel for Add {
    type Platform = TemplatePluginPlatform;

    fn new(_node: &Construction<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, context: &mut Context<'_, Self::Platform>) -> Result<()> {
        let (a, b) = (context.input(0)?, context.input(1)?);
        // Before the work is enqueued: only then is an error the op's.
        ensure!(
            a.shape() == b.shape(),
            Error::invalid_argument(format!("{:?} and {:?} differ", a.shape(), b.shape()))
        );
        let sum = context.output(0, a.shape())?;
        // The stream's thread does the work later, with the memory that is named here.
        let (reads, writes) = ([&a, &b].map(DeviceRange::from), [DeviceRange::from(&sum)]);
        context.stream().launch("AddV2", reads, writes, |[a, b], [sum]| {
            add(cast_slice(a), cast_slice(b), cast_slice_mut(sum));
            Ok(())
        })
    }
}

/// Adds the numbers of two slices.
pub fn add(a: &[f32], b: &[f32], sum: &mut [f32]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum = a + b;
    }
}

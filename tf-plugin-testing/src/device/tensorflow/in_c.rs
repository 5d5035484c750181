//! The smoke tests of devices in TensorFlow's C library; the list has each under the same name.
//!
//! They load a plugin as C programs do, and copy and compute. The in-process cases and those in
//! Python test devices and kernels further, since they see more.

use crate::abi::tensorflow::{Context, Device, Handle, TensorFlow};
use crate::tensor::{Content, Tensor};
use crate::tensorflow::worker::{
    Environment, Step, Stop, holds, in_threads, path, payload, same, same_bytes,
};
use serde_json::Value;
use tf_fs_sys::{TF_FLOAT, TF_UINT8};
use tf_plugin_core::{Code, Error, Result, ResultExt};

const CPU: &str = "/device:CPU:0";
const SHAPES: [&[i64]; 6] = [&[], &[0], &[3, 0, 2], &[257], &[2, 1, 3, 1, 2, 2], &[(16 << 20) + 1]];

/// The first device of the plugin.
pub(super) struct OnDevice {
    tf: &'static TensorFlow,
    context: Context<'static>,
    settings: Value,
    kind: String,
    /// `/device:KIND:0`.
    device: String,
    count: usize,
}

impl Environment for OnDevice {
    fn new(tf: &'static TensorFlow, settings: &Value) -> std::result::Result<Self, String> {
        let library = path(settings, "library");
        let refused = |error: Error| format!("{} is refused: {error:#}", library.display());
        tf.load_device(&library).map_err(refused)?;
        let context = tf.context().map_err(|error| format!("there is no context: {error:#}"))?;
        let kind = settings["type"].as_str().unwrap_or_default().to_owned();
        let devices = context.devices().map_err(|error| format!("no devices: {error:#}"))?;
        let count = devices.iter().filter(|device| device.kind == kind).count();
        let (device, settings) = (format!("/device:{kind}:0"), settings.clone());
        Ok(Self { tf, context, settings, kind, device, count })
    }

    fn begin(&mut self, _case: &str) -> Step {
        let reason = || Stop::Skip(format!("this machine has no device of the type {}", self.kind));
        if self.count == 0 { Err(reason()) } else { Ok(()) }
    }

    fn end(&mut self, _outcome: &Step) {}
}

fn bytes_of(tensor: &Tensor) -> &[u8] {
    match &tensor.content {
        Content::Bytes(bytes) => bytes,
        Content::Strings(_) => &[],
    }
}

fn any_bytes(shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    Tensor::bytes(TF_UINT8, shape, payload(usize::try_from(count).unwrap_or(0), 1))
}

/// Creates a vector of float32s that are not round numbers.
fn uneven(count: usize, seed: u64) -> Tensor {
    let values = payload(count, seed).into_iter().map(|byte| f32::from(byte) / 37.0 - 3.0);
    let bytes = values.flat_map(f32::to_ne_bytes).collect();
    Tensor::bytes(TF_FLOAT, &[count as i64], bytes)
}

impl OnDevice {
    fn put<'c>(&self, context: &'c Context<'_>, tensor: &Tensor) -> Step<Handle<'c>> {
        let there = context.handle(tensor)?.copy_to(context, &self.device);
        let there = there.context("TFE_TensorHandleCopyToDevice")?;
        let device = there.backing_device()?;
        let what = format!("the tensor is on the device, not on {device}");
        holds(what, device.ends_with(&self.device))?;
        Ok(there)
    }

    fn there_and_back(&self, context: &Context<'_>, tensor: &Tensor) -> Step {
        let there = self.put(context, tensor)?;
        let back = there.tensor().context("TFE_TensorHandleResolve")?;
        let what = format!("type {} of {:?}", tensor.data_type, tensor.shape);
        let (got, wanted) = ((back.data_type, &back.shape), (tensor.data_type, &tensor.shape));
        same(format_args!("type and shape of {what}"), got, wanted)?;
        same_bytes(format_args!("the bytes of {what}"), bytes_of(&back), bytes_of(tensor))?;
        // Also through a tensor on another device, which is a separate copy.
        let second = (self.count > 1).then(|| format!("/device:{}:1", self.kind));
        for other in [Some(CPU), second.as_deref()].into_iter().flatten() {
            let copy = there.copy_to(context, other).context("TFE_TensorHandleCopyToDevice")?;
            let device = copy.backing_device()?;
            let what = format!("the copy of {what} is on {other}, not on {device}");
            holds(&what, device.ends_with(other))?;
            same_bytes(what, bytes_of(&copy.tensor()?), bytes_of(tensor))?;
        }
        Ok(())
    }

    fn double(&self, op: &str, x: &Handle<'_>, device: &str) -> Result<Tensor> {
        let given = self.context.execute(op, &[x, x], None, Some(device), 1)?;
        given.first().ok_or_else(|| Error::internal(format!("{op} gives nothing")))?.tensor()
    }

    /// Returns an operation that adds float32s on the device.
    fn adds(&self) -> Step<&'static str> {
        const OPS: [&str; 2] = ["AddV2", "Add"];
        let x = self.put(&self.context, &uneven(1, 1))?;
        let lacks = |op: &&str| {
            self.double(op, &x, &self.device).is_err_and(|error| {
                let missing = matches!(error.code(), Code::InvalidArgument | Code::NotFound);
                missing && error.message().contains("registered")
            })
        };
        let reason = || Stop::Skip(format!("the plugin has no kernel of {}", OPS.join(" or ")));
        OPS.into_iter().find(|op| !lacks(op)).ok_or_else(reason)
    }
}

pub(super) fn c_device_is_listed(place: &OnDevice) -> Step {
    let own = place.context.devices()?.into_iter().filter(|device| device.kind == place.kind);
    let short = |Device { name, .. }: Device| match name.rfind("/device:") {
        Some(at) => name[at..].to_owned(),
        None => name,
    };
    let wanted = (0..place.count).map(|number| format!("/device:{}:{number}", place.kind));
    same("TFE_ContextListDevices", own.map(short).collect(), wanted.collect::<Vec<_>>())
}

pub(super) fn c_loaded_twice(place: &OnDevice) -> Step {
    place.tf.load_device(&path(&place.settings, "library")).context("loading it once more")?;
    let context = place.tf.context()?;
    let count = context.devices()?.iter().filter(|device| device.kind == place.kind).count();
    same("the devices of a new context", count, place.count)?;
    place.there_and_back(&place.context, &uneven(1000, 1))
}

pub(super) fn c_contexts_come_and_go(place: &OnDevice) -> Step {
    for seed in 0..3 {
        let context = place.tf.context()?;
        place.there_and_back(&context, &uneven(1003, seed))?;
        drop(context);
        place.there_and_back(&place.context, &uneven(1003, seed))?;
    }
    Ok(())
}

pub(super) fn c_copies(place: &OnDevice) -> Step {
    for shape in SHAPES {
        place.there_and_back(&place.context, &any_bytes(shape))?;
    }
    Ok(())
}

pub(super) fn c_threads_compute(place: &OnDevice) -> Step {
    let op = place.adds()?;
    in_threads(8, |thread| {
        let tensor = uneven(1000, thread as u64);
        let wanted = place.double(op, &place.context.handle(&tensor)?, CPU)?;
        let there = place.put(&place.context, &tensor)?;
        for _ in 0..20 {
            let got = place.double(op, &there, &place.device)?;
            same_bytes(format_args!("{op} in a thread"), bytes_of(&got), bytes_of(&wanted))?;
        }
        Ok(())
    })
}

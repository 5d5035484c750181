//! The cases for devices in TensorFlow's C library; the list has each under the same name.

use crate::wire::{Value as Field, values};
use std::collections::BTreeMap;
use tf_fs_plugin::testing::__private::serde_json::Value;
use tf_fs_plugin::testing::__private::work::{
    Outcome, Place, Stop, fails, holds, in_threads, path, payload, same, same_bytes, together,
};
use tf_fs_plugin::testing::__private::{
    Attribute, Content, Context, Device, Handle, Output, Tensor, TensorFlow,
};
use tf_fs_plugin::testing::Deviation;
use tf_fs_sys::{
    TF_BFLOAT16, TF_BOOL, TF_COMPLEX64, TF_COMPLEX128, TF_DOUBLE, TF_DataType, TF_FLOAT, TF_HALF,
    TF_INT8, TF_INT16, TF_INT32, TF_INT64, TF_UINT8, TF_UINT16, TF_UINT32, TF_UINT64,
};
use tf_plugin_core::{Code, Error, Result, ResultExt};

const CPU: &str = "/device:CPU:0";
/// Sizes around those by which memory is given away.
const SIZES: [usize; 9] = [0, 1, 3, 17, 255, 256, 257, 4096, 100_003];
const ADDS: [&str; 4] = ["AddV2", "Add", "Mul", "Sub"];

/// For each operation that the device has kernels for, the types of each attribute that a kernel is bound to.
type Kernels = BTreeMap<String, Vec<BTreeMap<String, Vec<TF_DataType>>>>;

/// The first device of the plugin.
#[derive(Debug)]
pub(super) struct OnDevice {
    tf: &'static TensorFlow,
    context: Context<'static>,
    settings: Value,
    kind: String,
    /// `/device:KIND:0`.
    device: String,
    count: usize,
    kernels: Kernels,
}

impl Place for OnDevice {
    fn new(tf: &'static TensorFlow, settings: &Value) -> std::result::Result<Self, String> {
        let library = path(settings, "library");
        let refused = |error: Error| format!("{} is refused: {error:#}", library.display());
        tf.load_device(&library).map_err(refused)?;
        let context = tf.context().map_err(|error| format!("there is no context: {error:#}"))?;
        let kind = settings["type"].as_str().unwrap_or_default().to_owned();
        let of_kind = |device: &Device| device.kind == kind;
        let devices = context.devices().map_err(|error| format!("no devices: {error:#}"))?;
        let count = devices.iter().filter(|device| of_kind(device)).count();
        let kernels = tf.registered_kernels().and_then(|list| kernels(&list, &kind));
        let kernels = kernels.map_err(|error| format!("the kernels are unknown: {error:#}"))?;
        let (device, settings) = (format!("/device:{kind}:0"), settings.clone());
        Ok(Self { tf, context, settings, kind, device, count, kernels })
    }

    fn begin(&mut self, _case: &str) -> Outcome {
        let reason = || Stop::Skip(format!("this machine has no device of the type {}", self.kind));
        if self.count == 0 { Err(reason()) } else { Ok(()) }
    }

    fn end(&mut self, _outcome: &Outcome) {}
}

/// The kernels of a `KernelList` that are for a type of devices.
fn kernels(list: &[u8], kind: &str) -> Result<Kernels> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut kernels: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for kernel in values(list) {
        let (1, Field::Bytes(kernel)) = kernel? else { continue };
        let (mut op, mut device, mut types) = (String::new(), String::new(), BTreeMap::new());
        for field in values(kernel) {
            match field? {
                (1, Field::Bytes(name)) => op = text(name),
                (2, Field::Bytes(name)) => device = text(name),
                (3, Field::Bytes(constraint)) => {
                    let (mut attribute, mut allowed) = (String::new(), Vec::new());
                    for field in values(constraint) {
                        match field? {
                            (1, Field::Bytes(name)) => attribute = text(name),
                            (2, Field::Bytes(value)) => allowed = listed_types(value)?,
                            _ => {}
                        }
                    }
                    types.insert(attribute, allowed);
                }
                _ => {}
            }
        }
        if device == kind {
            kernels.entry(op).or_default().push(types);
        }
    }
    Ok(kernels)
}

/// The types of an `AttrValue` that is a list of them.
fn listed_types(value: &[u8]) -> Result<Vec<TF_DataType>> {
    let mut types = Vec::new();
    for field in values(value) {
        let (1, Field::Bytes(list)) = field? else { continue };
        for field in values(list) {
            match field? {
                (6, Field::Varint(one)) => types.push(one as TF_DataType),
                // Packed: each is below 128, and so a byte.
                (6, Field::Bytes(packed)) => {
                    types.extend(packed.iter().map(|one| TF_DataType::from(*one)))
                }
                _ => {}
            }
        }
    }
    Ok(types)
}

fn size_of_type(data_type: TF_DataType) -> usize {
    match data_type {
        TF_INT8 | TF_UINT8 | TF_BOOL => 1,
        TF_HALF | TF_BFLOAT16 | TF_INT16 | TF_UINT16 => 2,
        TF_FLOAT | TF_INT32 | TF_UINT32 => 4,
        TF_COMPLEX128 => 16,
        _ => 8,
    }
}

fn name_of_type(data_type: TF_DataType) -> &'static str {
    match data_type {
        TF_FLOAT => "float32",
        TF_DOUBLE => "float64",
        TF_HALF => "float16",
        TF_BFLOAT16 => "bfloat16",
        TF_INT8 => "int8",
        TF_INT16 => "int16",
        TF_INT32 => "int32",
        TF_INT64 => "int64",
        TF_UINT8 => "uint8",
        TF_UINT16 => "uint16",
        TF_UINT32 => "uint32",
        TF_UINT64 => "uint64",
        TF_BOOL => "bool",
        TF_COMPLEX64 => "complex64",
        TF_COMPLEX128 => "complex128",
        _ => "another type",
    }
}

fn bytes_of(tensor: &Tensor) -> &[u8] {
    match &tensor.content {
        Content::Bytes(bytes) => bytes,
        Content::Strings(_) => &[],
    }
}

/// A tensor with any bytes, as far as the type allows them.
fn any(data_type: TF_DataType, shape: &[i64], seed: usize) -> Tensor {
    let count: i64 = shape.iter().product();
    let size = usize::try_from(count).unwrap_or(0) * size_of_type(data_type);
    let mut bytes = payload(size, seed as u64 + 1);
    if data_type == TF_BOOL {
        bytes.iter_mut().for_each(|byte| *byte &= 1);
    }
    Tensor::bytes(data_type, shape, bytes)
}

fn float32s(shape: &[i64], value: impl Fn(usize) -> f32) -> Tensor {
    let count: i64 = shape.iter().product();
    let values = 0..usize::try_from(count).unwrap_or(0);
    Tensor::bytes(TF_FLOAT, shape, values.flat_map(|at| value(at).to_ne_bytes()).collect())
}

/// Numbers that are not too round.
fn uneven(shape: &[i64], seed: u64) -> Tensor {
    let count: i64 = shape.iter().product();
    let bytes = payload(usize::try_from(count).unwrap_or(0), seed);
    float32s(shape, |at| f32::from(bytes[at]) / 37.0 - 3.0)
}

impl OnDevice {
    fn put(&self, tensor: &Tensor) -> Outcome<Handle<'_>> {
        let on_host = self.context.handle(tensor)?;
        let there = on_host.copy_to(&self.context, &self.device);
        let there = there.context("TFE_TensorHandleCopyToDevice")?;
        let device = there.backing_device()?;
        let what = format!("the tensor is on the device, not on {device}");
        holds(what, device.ends_with(&self.device))?;
        Ok(there)
    }

    fn there_and_back(&self, tensor: &Tensor) -> Outcome {
        let there = self.put(tensor)?;
        let back = there.tensor().context("TFE_TensorHandleResolve")?;
        let what = format!("{} of {:?}", name_of_type(tensor.data_type), tensor.shape);
        let (got, wanted) = ((back.data_type, &back.shape), (tensor.data_type, &tensor.shape));
        same(format_args!("type and shape of {what}"), got, wanted)?;
        same_bytes(format_args!("the bytes of {what}"), bytes_of(&back), bytes_of(tensor))?;
        // By way of a tensor on the CPU, too, which is a copy of its own.
        let copy = there.copy_to(&self.context, CPU).context("TFE_TensorHandleCopyToDevice")?;
        let device = copy.backing_device()?;
        holds(format_args!("the copy is on the CPU, not on {device}"), device.ends_with(CPU))?;
        same_bytes(
            format_args!("the bytes of the copy of {what}"),
            bytes_of(&copy.tensor()?),
            bytes_of(tensor),
        )
    }

    fn copies(&self, types: &[TF_DataType]) -> Outcome {
        for data_type in types {
            for size in SIZES {
                self.there_and_back(&any(*data_type, &[size as i64], size))?;
            }
        }
        Ok(())
    }

    /// The types that a kernel has; without a constraint one that will do.
    fn types(&self, op: &str) -> Vec<TF_DataType> {
        let (attribute, will_do) = match op {
            "All" | "Any" | "LogicalAnd" | "LogicalNot" | "LogicalOr" => ("", TF_BOOL),
            "GatherV2" => ("Tparams", TF_FLOAT),
            _ => ("T", TF_FLOAT),
        };
        let kernels = self.kernels.get(op).map(Vec::as_slice).unwrap_or_default();
        let types = kernels.iter().flat_map(|kernel| match kernel.get(attribute) {
            Some(types) => types.clone(),
            None => vec![will_do],
        });
        let mut types: Vec<_> = types.collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// The first of these that the plugin has for float32.
    fn has(&self, ops: &[&'static str]) -> Outcome<&'static str> {
        let found = ops.iter().find(|op| self.types(op).contains(&TF_FLOAT));
        let reason = || Stop::Skip(format!("the plugin has no kernel of {}", ops.join(" or ")));
        found.copied().ok_or_else(reason)
    }

    fn run(&self, op: &str, inputs: &[&Handle<'_>], device: &str) -> Result<Handle<'_>> {
        let given = self.context.execute(op, inputs, &[], Some(device), 1)?;
        given.into_iter().next().ok_or_else(|| Error::internal(format!("{op} gives nothing")))
    }

    /// What an operation answers to tensors of the host.
    fn answer(
        &self,
        op: &str,
        inputs: &[Tensor],
        attributes: &[(&str, Attribute<'_>)],
        device: &str,
    ) -> Result<Tensor> {
        let inputs: Vec<_> =
            inputs.iter().map(|input| self.context.handle(input)).collect::<Result<_>>()?;
        let inputs: Vec<_> = inputs.iter().collect();
        let given = self.context.execute(op, &inputs, attributes, Some(device), 1)?;
        given[0].tensor()
    }

    /// A tensor of other elements, converted on the CPU.
    fn cast(&self, tensor: &Tensor, to: TF_DataType) -> Result<Tensor> {
        if tensor.data_type == to {
            return Ok(tensor.clone());
        }
        self.answer("Cast", std::slice::from_ref(tensor), &[("DstT", Attribute::Type(to))], CPU)
    }

    /// Numbers of a type, in these bounds; whole ones up to 8.
    fn numbers(&self, data_type: TF_DataType, of: &Of) -> Result<Tensor> {
        let count: i64 = of.shape.iter().product();
        let bytes = payload(usize::try_from(count).unwrap_or(0) * 2, of.seed);
        let part = |at: usize| f64::from(bytes[at]) / 256.0;
        let within = |part: f64| of.low + (of.high - of.low) * part;
        let unsigned = matches!(data_type, TF_UINT8 | TF_UINT16 | TF_UINT32 | TF_UINT64);
        let whole = |part: f64| {
            let low = if unsigned { 1.0 } else { of.low.ceil() };
            (low + (9.0 - low) * part).floor()
        };
        let count = bytes.len() / 2;
        let doubles = |value: &dyn Fn(usize) -> f64| -> Vec<u8> {
            (0..count).flat_map(|at| value(at).to_ne_bytes()).collect()
        };
        let doubles = match data_type {
            TF_COMPLEX64 | TF_COMPLEX128 => {
                let pairs = (0..2 * count).flat_map(|at| within(part(at)).to_ne_bytes());
                let pairs = Tensor::bytes(TF_COMPLEX128, of.shape, pairs.collect());
                return self.cast(&pairs, data_type);
            }
            TF_BOOL => doubles(&|at| f64::from(bytes[at] & 1)),
            TF_FLOAT | TF_DOUBLE | TF_HALF | TF_BFLOAT16 => doubles(&|at| within(part(at))),
            _ => doubles(&|at| whole(part(at))),
        };
        self.cast(&Tensor::bytes(TF_DOUBLE, of.shape, doubles), data_type)
    }

    /// Holds an answer against the CPU's.
    fn near(&self, what: &str, got: &Tensor, wanted: &Tensor) -> Outcome {
        let kinds = |tensor: &Tensor| (tensor.data_type, tensor.shape.clone());
        same(format_args!("type and shape of {what}"), kinds(got), kinds(wanted))?;
        let tolerance = match got.data_type {
            TF_HALF => 2e-2,
            TF_BFLOAT16 => 0.1,
            TF_FLOAT | TF_COMPLEX64 => 1e-4,
            TF_DOUBLE | TF_COMPLEX128 => 1e-10,
            _ => return same_bytes(what, bytes_of(got), bytes_of(wanted)),
        };
        let wide = match got.data_type {
            TF_COMPLEX64 | TF_COMPLEX128 => TF_COMPLEX128,
            _ => TF_DOUBLE,
        };
        let doubles = |tensor: &Tensor| -> Result<Vec<f64>> {
            let wide = self.cast(tensor, wide)?;
            let (chunks, _) = bytes_of(&wide).as_chunks::<8>();
            Ok(chunks.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect())
        };
        let (got, wanted) = (doubles(got)?, doubles(wanted)?);
        let differ = |(a, b): (&f64, &f64)| {
            let equal = a == b || (a.is_nan() && b.is_nan());
            !(equal || (a - b).abs() <= tolerance * b.abs().max(1.0))
        };
        if let Some(at) = got.iter().zip(&wanted).position(differ) {
            let detail = format!("element {at}; the CPU's is the wanted one");
            let deviation = Deviation::new(what).wanted(wanted[at].to_string());
            return Err(deviation.got(got[at].to_string()).because(detail).into());
        }
        Ok(())
    }

    /// Each operation that the plugin has a kernel for, in each of the kernel's types, against the CPU.
    fn compared(&self, samples: &[Sample]) -> Outcome {
        let (mut checks, mut done) = (Vec::new(), 0);
        for Sample { op, inputs, attributes } in samples {
            let (types, before) = (self.types(op), done);
            for data_type in &types {
                let given = inputs.iter().map(|input| match input {
                    Input::Numbers(of) => self.numbers(*data_type, of),
                    Input::Always(tensor) => Ok(tensor.clone()),
                });
                let Ok(given) = given.collect::<Result<Vec<_>>>() else { continue };
                // Not even the CPU can.
                let Ok(wanted) = self.answer(op, &given, attributes, CPU) else { continue };
                done += 1;
                let shapes: Vec<_> = given.iter().map(|tensor| tensor.shape.clone()).collect();
                let what = format!("{op} of {} {shapes:?}", name_of_type(*data_type));
                checks.push(match self.answer(op, &given, attributes, &self.device) {
                    Ok(got) => self.near(&what, &got, &wanted),
                    Err(error) => {
                        let got = format!("{:?}", error.code());
                        let deviation = Deviation::new(what).wanted("what the CPU answers".into());
                        Err(deviation.got(got).because(format!("{error:#}")).into())
                    }
                });
            }
            if !types.is_empty() && done == before {
                // A mistake of these cases, which must not hide a kernel.
                let deviation = Deviation::new(format_args!("{op} of {types:?}"));
                let deviation = deviation.wanted("an answer of the CPU".into()).got("none".into());
                checks.push(Err(deviation.into()));
            }
        }
        if done == 0 && checks.is_empty() {
            return Err(Stop::Skip("the plugin has none of these kernels".into()));
        }
        together(checks)
    }
}

/// Numbers for an operation.
#[derive(Clone, Debug)]
struct Of {
    shape: &'static [i64],
    low: f64,
    high: f64,
    seed: u64,
}

#[derive(Clone, Debug)]
enum Input {
    /// Of the kernel's type.
    Numbers(Of),
    Always(Tensor),
}

/// An operation with arguments.
#[derive(Debug)]
struct Sample {
    op: &'static str,
    inputs: Vec<Input>,
    attributes: Vec<(&'static str, Attribute<'static>)>,
}

fn of(shape: &'static [i64]) -> Input {
    between(shape, -3.0, 3.0, 1)
}

fn other(shape: &'static [i64]) -> Input {
    between(shape, -3.0, 3.0, 2)
}

fn between(shape: &'static [i64], low: f64, high: f64, seed: u64) -> Input {
    Input::Numbers(Of { shape, low, high, seed })
}

fn always(values: &[i32]) -> Input {
    Input::Always(Tensor::int32s(values))
}

fn one(value: i32) -> Input {
    Input::Always(Tensor::bytes(TF_INT32, &[], value.to_ne_bytes().to_vec()))
}

fn sample(op: &'static str, inputs: Vec<Input>) -> Sample {
    Sample { op, inputs, attributes: Vec::new() }
}

fn unary(ops: &[&'static str], low: f64) -> Vec<Sample> {
    const SHAPES: [&[i64]; 4] = [&[], &[0], &[17], &[2, 3, 5]];
    let with = |op| move |shape| sample(op, vec![between(shape, low, 3.0, 1)]);
    ops.iter().flat_map(|op| SHAPES.into_iter().map(with(*op))).collect()
}

type Shapes = (&'static [i64], &'static [i64]);
const EQUAL: [Shapes; 4] = [(&[], &[]), (&[17], &[17]), (&[2, 3], &[2, 3]), (&[0, 3], &[0, 3])];
const BROADCAST: [Shapes; 4] = [(&[3], &[]), (&[2, 3], &[3]), (&[4, 1], &[1, 5]), (&[0, 3], &[3])];

fn binary(ops: &[&'static str], low: f64, shapes: [Shapes; 4]) -> Vec<Sample> {
    let with =
        |op| move |(a, b)| sample(op, vec![between(a, low, 3.0, 1), between(b, low, 3.0, 2)]);
    ops.iter().flat_map(|op| shapes.into_iter().map(with(*op))).collect()
}

// The device ----------------------------------------------------------------------------------------------------

pub(super) fn c_device_is_listed(place: &OnDevice) -> Outcome {
    let names = |devices: Vec<Device>| -> Vec<String> {
        let own = devices.into_iter().filter(|device| device.kind == place.kind);
        let short =
            |name: String| name.rfind("/device:").map_or(name.clone(), |at| name[at..].to_owned());
        own.map(|device| short(device.name)).collect()
    };
    let wanted: Vec<_> =
        (0..place.count).map(|number| format!("/device:{}:{number}", place.kind)).collect();
    same("TFE_ContextListDevices", names(place.context.devices()?), wanted.clone())?;
    let graph = place.tf.graph();
    let session = graph.session()?;
    same("TF_SessionListDevices", names(session.devices()?), wanted)?;
    Ok(session.close()?)
}

pub(super) fn c_loaded_twice(place: &OnDevice) -> Outcome {
    place.tf.load_device(&path(&place.settings, "library")).context("loading it once more")?;
    let context = place.tf.context()?;
    let count = context.devices()?.iter().filter(|device| device.kind == place.kind).count();
    same("the devices of a new context", count, place.count)?;
    place.there_and_back(&uneven(&[1000], 1))
}

pub(super) fn c_contexts_come_and_go(place: &OnDevice) -> Outcome {
    for seed in 0..3 {
        let context = place.tf.context()?;
        let tensor = uneven(&[1003], seed);
        let there = context.handle(&tensor)?.copy_to(&context, &place.device)?;
        same_bytes(
            "the bytes in a context of its own",
            bytes_of(&there.tensor()?),
            bytes_of(&tensor),
        )?;
        drop(there);
        drop(context);
        place.there_and_back(&tensor)?;
    }
    Ok(())
}

// Copies --------------------------------------------------------------------------------------------------------

pub(super) fn c_copies_of_floats(place: &OnDevice) -> Outcome {
    place.copies(&[TF_HALF, TF_BFLOAT16, TF_FLOAT, TF_DOUBLE])
}

pub(super) fn c_copies_of_integers(place: &OnDevice) -> Outcome {
    place.copies(&[TF_INT8, TF_INT16, TF_INT64, TF_UINT8, TF_UINT16, TF_UINT32, TF_UINT64])
}

pub(super) fn c_copies_of_bool_and_complex(place: &OnDevice) -> Outcome {
    place.copies(&[TF_BOOL, TF_COMPLEX64, TF_COMPLEX128])
}

pub(super) fn c_copies_of_shapes(place: &OnDevice) -> Outcome {
    let shapes: [&[i64]; 7] =
        [&[], &[1], &[0], &[3, 0, 2], &[1, 1, 1, 5], &[2, 3, 4], &[2, 1, 3, 1, 2, 2]];
    for shape in shapes {
        place.there_and_back(&any(TF_FLOAT, shape, 1))?;
    }
    Ok(())
}

pub(super) fn c_copy_of_16_mib(place: &OnDevice) -> Outcome {
    place.there_and_back(&any(TF_FLOAT, &[4 << 20], 1))?;
    place.there_and_back(&any(TF_UINT8, &[(16 << 20) + 1], 2))
}

pub(super) fn c_copy_between_devices(place: &OnDevice) -> Outcome {
    if place.count < 2 {
        return Err(Stop::Skip("there is one device".into()));
    }
    let tensor = uneven(&[100_003], 1);
    let second = format!("/device:{}:1", place.kind);
    let there = place.put(&tensor)?.copy_to(&place.context, &second)?;
    let device = there.backing_device()?;
    holds(
        format_args!("the copy is on the second device, not on {device}"),
        device.ends_with(&second),
    )?;
    same_bytes("the bytes", bytes_of(&there.tensor()?), bytes_of(&tensor))
}

pub(super) fn c_resolved_twice(place: &OnDevice) -> Outcome {
    let tensor = uneven(&[5000], 3);
    let there = place.put(&tensor)?;
    for _ in 0..2 {
        same_bytes("TFE_TensorHandleResolve", bytes_of(&there.tensor()?), bytes_of(&tensor))?;
        let device = there.device()?;
        holds(
            format_args!("the tensor stays on the device, not on {device}"),
            device.ends_with(&place.device),
        )?;
    }
    let again = there.copy_to(&place.context, &place.device)?;
    drop(there);
    same_bytes("a copy whose source is gone", bytes_of(&again.tensor()?), bytes_of(&tensor))
}

// Many ----------------------------------------------------------------------------------------------------------

pub(super) fn c_many_small_tensors(place: &OnDevice) -> Outcome {
    let kept: Vec<_> = (0..2000)
        .map(|number| place.put(&float32s(&[], |_| number as f32)))
        .collect::<Outcome<_>>()?;
    for (number, tensor) in kept.iter().enumerate() {
        let wanted = float32s(&[], |_| number as f32);
        same_bytes(
            format_args!("tensor {number}"),
            bytes_of(&tensor.tensor()?),
            bytes_of(&wanted),
        )?;
    }
    Ok(())
}

pub(super) fn c_memory_comes_back(place: &OnDevice) -> Outcome {
    // 64 times 4 MiB, of which few are kept at a time.
    let mut kept = std::collections::VecDeque::new();
    for number in 0..64_u8 {
        let tensor = Tensor::bytes(TF_UINT8, &[4 << 20], vec![number; 4 << 20]);
        kept.push_back((number, place.put(&tensor)?));
        if kept.len() > 3 {
            kept.pop_front();
        }
    }
    for (number, tensor) in kept {
        let tensor = tensor.tensor()?;
        let all = bytes_of(&tensor).iter().all(|byte| *byte == number);
        holds(format_args!("number {number} is still there"), all)?;
    }
    Ok(())
}

pub(super) fn c_threads_copy(place: &OnDevice) -> Outcome {
    in_threads(8, |thread| {
        for step in 0..20 {
            place
                .there_and_back(&uneven(&[1 + 997 * step], (100 * thread) as u64 + step as u64))?;
        }
        Ok(())
    })
}

pub(super) fn c_threads_compute(place: &OnDevice) -> Outcome {
    let op = place.has(&ADDS)?;
    in_threads(8, |thread| {
        let tensor = uneven(&[1000], thread as u64);
        let wanted = place.answer(op, &[tensor.clone(), tensor.clone()], &[], CPU)?;
        let there = place.put(&tensor)?;
        for _ in 0..20 {
            let got = place.run(op, &[&there, &there], &place.device)?.tensor()?;
            place.near(&format!("{op} in thread {thread}"), &got, &wanted)?;
        }
        Ok(())
    })
}

// Kernels -------------------------------------------------------------------------------------------------------

pub(super) fn c_kernels_of_one_argument(place: &OnDevice) -> Outcome {
    let mut samples = unary(
        &[
            "Abs",
            "Neg",
            "Sign",
            "Square",
            "Exp",
            "Expm1",
            "Sin",
            "Cos",
            "Tan",
            "Tanh",
            "Sinh",
            "Cosh",
            "Sigmoid",
            "Erf",
            "Atan",
            "Floor",
            "Ceil",
            "IsNan",
            "IsInf",
            "IsFinite",
            "ZerosLike",
            "OnesLike",
            "Conj",
            "LogicalNot",
            "Identity",
        ],
        -3.0,
    );
    samples.extend(unary(
        &["Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal", "Inv", "Digamma", "Lgamma"],
        0.2,
    ));
    place.compared(&samples)
}

pub(super) fn c_kernels_of_two_arguments(place: &OnDevice) -> Outcome {
    let ops = ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "MulNoNan"];
    let mut samples = binary(&ops, -3.0, EQUAL);
    samples.extend(binary(&["RealDiv", "Div", "DivNoNan", "Pow", "Xdivy", "Xlogy"], 0.5, EQUAL));
    place.compared(&samples)
}

pub(super) fn c_kernels_that_broadcast(place: &OnDevice) -> Outcome {
    let ops = [
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "Less",
        "Equal",
        "LogicalAnd",
    ];
    let mut samples = binary(&ops, -3.0, BROADCAST);
    samples.extend(binary(&["RealDiv", "Div", "DivNoNan", "Pow"], 0.5, BROADCAST));
    place.compared(&samples)
}

pub(super) fn c_kernels_that_compare(place: &OnDevice) -> Outcome {
    let ops = [
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "Equal",
        "NotEqual",
        "LogicalAnd",
        "LogicalOr",
    ];
    place.compared(&binary(&ops, -3.0, EQUAL))
}

pub(super) fn c_kernels_that_reduce(place: &OnDevice) -> Outcome {
    const SHAPES: [(&[i64], &[i32]); 6] = [
        (&[5], &[0]),
        (&[2, 3], &[0]),
        (&[2, 3], &[1]),
        (&[2, 3, 4], &[0, 2]),
        (&[2, 3], &[]),
        (&[300, 4], &[0]),
    ];
    let mut samples = Vec::new();
    for op in ["Sum", "Mean", "Max", "Min", "Prod", "All", "Any"] {
        let (low, high) = if op == "Prod" { (0.9, 1.1) } else { (0.0, 1.0) };
        let with = |(shape, axis)| sample(op, vec![between(shape, low, high, 1), always(axis)]);
        samples.extend(SHAPES.into_iter().map(with));
    }
    for op in ["ArgMax", "ArgMin"] {
        samples.push(sample(op, vec![of(&[4, 7]), one(1)]));
    }
    place.compared(&samples)
}

pub(super) fn c_kernels_of_matrices(place: &OnDevice) -> Outcome {
    let turned =
        vec![("transpose_a", Attribute::Bool(true)), ("transpose_b", Attribute::Bool(true))];
    place.compared(&[
        sample("MatMul", vec![of(&[3, 5]), other(&[5, 7])]),
        sample("MatMul", vec![of(&[33, 17]), other(&[17, 9])]),
        Sample { op: "MatMul", inputs: vec![of(&[5, 3]), other(&[7, 5])], attributes: turned },
        sample("BatchMatMul", vec![of(&[2, 3, 4]), other(&[2, 4, 5])]),
        sample("BatchMatMulV2", vec![of(&[1, 3, 4]), other(&[6, 4, 2])]),
        sample("BiasAdd", vec![of(&[4, 5]), other(&[5])]),
        sample("L2Loss", vec![between(&[17], -1.0, 1.0, 1)]),
    ])
}

pub(super) fn c_kernels_of_networks(place: &OnDevice) -> Outcome {
    let mut samples =
        unary(&["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"], -3.0);
    samples.extend([
        sample("ReluGrad", vec![of(&[3, 5]), other(&[3, 5])]),
        sample("TanhGrad", vec![between(&[3, 5], -1.0, 1.0, 1), other(&[3, 5])]),
        sample("SigmoidGrad", vec![between(&[3, 5], 0.0, 1.0, 1), other(&[3, 5])]),
        sample("Softmax", vec![of(&[4, 7])]),
        sample("LogSoftmax", vec![of(&[4, 7])]),
    ]);
    place.compared(&samples)
}

pub(super) fn c_kernels_that_arrange(place: &OnDevice) -> Outcome {
    let paddings = || {
        let mut paddings = Tensor::int32s(&[1, 0, 0, 2]);
        paddings.shape = vec![2, 2];
        Input::Always(paddings)
    };
    place.compared(&[
        sample("Transpose", vec![of(&[2, 3, 4]), always(&[2, 0, 1])]),
        sample("Reshape", vec![of(&[2, 6]), always(&[3, 4])]),
        sample("Fill", vec![always(&[2, 3]), of(&[])]),
        sample("Tile", vec![of(&[2, 3]), always(&[2, 2])]),
        sample("Pad", vec![of(&[2, 3]), paddings()]),
        sample("PadV2", vec![of(&[2, 3]), paddings(), of(&[])]),
        sample("Slice", vec![of(&[4, 5]), always(&[1, 0]), always(&[2, -1])]),
        sample(
            "StridedSlice",
            vec![of(&[4, 5]), always(&[3, 0]), always(&[0, 4]), always(&[-1, 2])],
        ),
        sample("GatherV2", vec![of(&[4, 5]), always(&[3, 0, 0]), one(0)]),
        sample("BroadcastTo", vec![of(&[3, 1]), always(&[2, 3, 4])]),
        sample("ExpandDims", vec![of(&[3]), one(0)]),
        sample("Cumsum", vec![of(&[3, 4]), one(1)]),
    ])
}

pub(super) fn c_shapes_that_do_not_fit(place: &OnDevice) -> Outcome {
    let op = place.has(&ADDS)?;
    let (two, three) = (place.put(&uneven(&[2], 1))?, place.put(&uneven(&[3], 2))?);
    let wrong = place.run(op, &[&two, &three], &place.device).and_then(|result| result.tensor());
    let what = format!("{op} of shapes that do not fit");
    fails(what, &[Code::InvalidArgument], wrong)?;
    let right = place.run(op, &[&two, &two], &place.device)?.tensor()?;
    same(format_args!("the shape of {op} afterwards"), right.shape, vec![2])
}

pub(super) fn c_missing_kernel(place: &OnDevice) -> Outcome {
    if place.kernels.contains_key("Betainc") {
        return Err(Stop::Skip("the plugin has a kernel for `Betainc`".into()));
    }
    let x = place.put(&float32s(&[1], |_| 0.5))?;
    let missing = place.run("Betainc", &[&x, &x, &x], &place.device);
    let codes = [Code::InvalidArgument, Code::NotFound];
    fails("an operation without a kernel on the device", &codes, missing.map(drop))?;
    place.there_and_back(&uneven(&[3], 1))
}

pub(super) fn c_chain_of_work(place: &OnDevice) -> Outcome {
    let op = place.has(&ADDS[..2])?;
    let mut x = place.put(&float32s(&[10_000], |_| 0.0))?;
    let step = place.put(&float32s(&[10_000], |_| 1.0))?;
    for _ in 0..500 {
        x = place.run(op, &[&x, &step], &place.device)?;
    }
    let wanted = float32s(&[10_000], |_| 500.0);
    same_bytes("500 steps without a look between them", bytes_of(&x.tensor()?), bytes_of(&wanted))
}

// Sessions ------------------------------------------------------------------------------------------------------

/// What a session gives that adds `y` to `x` so many times on the device, and divides on the CPU in between if it is
/// to; and what comes if all is done on the CPU.
fn session(place: &OnDevice, turns: usize, on_the_cpu_too: bool, runs: usize) -> Outcome {
    let op = place.has(&ADDS)?;
    let mut graph = place.tf.graph();
    let float = [("dtype", Attribute::Type(TF_FLOAT))];
    let x = Output(graph.add("Placeholder", &[], &[], &float, None)?, 0);
    let y = Output(graph.add("Placeholder", &[], &[], &float, None)?, 0);
    let half = graph.constant(&float32s(&[], |_| 0.5))?;
    let mut ends = Vec::new();
    for device in [place.device.as_str(), CPU] {
        let mut end = x;
        for _ in 0..turns {
            end = Output(graph.add(op, &[end, y], &[], &[], Some(device))?, 0);
            if on_the_cpu_too {
                end = Output(graph.add("Mul", &[end, half], &[], &[], Some(CPU))?, 0);
            }
        }
        ends.push(end);
    }
    let session = graph.session()?;
    for run in 0..runs {
        let feeds = [(x, uneven(&[1003], run as u64)), (y, uneven(&[1003], 100 + run as u64))];
        let found = session.run(&feeds, &ends, &[]).context("TF_SessionRun")?;
        place.near(&format!("{op} in a session"), &found[0], &found[1])?;
    }
    Ok(session.close()?)
}

pub(super) fn c_session(place: &OnDevice) -> Outcome {
    session(place, 1, false, 1)
}

pub(super) fn c_session_runs_often(place: &OnDevice) -> Outcome {
    session(place, 5, false, 50)
}

pub(super) fn c_session_with_copies(place: &OnDevice) -> Outcome {
    session(place, 10, true, 5)
}

pub(super) fn c_session_after_an_error(place: &OnDevice) -> Outcome {
    let op = place.has(&ADDS)?;
    let mut graph = place.tf.graph();
    let float = [("dtype", Attribute::Type(TF_FLOAT))];
    let x = Output(graph.add("Placeholder", &[], &[], &float, None)?, 0);
    let y = Output(graph.add("Placeholder", &[], &[], &float, None)?, 0);
    let sum = Output(graph.add(op, &[x, y], &[], &[], Some(&place.device))?, 0);
    let session = graph.session()?;
    let run = |a: &Tensor, b: &Tensor| session.run(&[(x, a.clone()), (y, b.clone())], &[sum], &[]);
    let (two, three) = (uneven(&[2], 1), uneven(&[3], 2));
    let what = format!("{op} of shapes that do not fit, in a session");
    fails(what, &[Code::InvalidArgument], run(&two, &three))?;
    let wanted = place.answer(op, &[two.clone(), two.clone()], &[], CPU)?;
    place.near(&format!("{op} afterwards"), &run(&two, &two)?[0], &wanted)?;
    Ok(session.close()?)
}

pub(super) fn c_threads_in_one_session(place: &OnDevice) -> Outcome {
    let op = place.has(&ADDS)?;
    let mut graph = place.tf.graph();
    let float = [("dtype", Attribute::Type(TF_FLOAT))];
    let x = Output(graph.add("Placeholder", &[], &[], &float, None)?, 0);
    let sum = Output(graph.add(op, &[x, x], &[], &[], Some(&place.device))?, 0);
    let session = graph.session()?;
    in_threads(8, |thread| {
        let tensor = uneven(&[2000], thread as u64);
        let wanted = place.answer(op, &[tensor.clone(), tensor.clone()], &[], CPU)?;
        for _ in 0..10 {
            let found = session.run(&[(x, tensor.clone())], &[sum], &[])?;
            place.near(&format!("{op} in a session, thread {thread}"), &found[0], &wanted)?;
        }
        Ok(())
    })?;
    Ok(session.close()?)
}

//! The registration of ops, and of their kernels for the CPU.

use super::args::{Inputs as _, Outputs as _};
use super::attribute::{AttributeSpec, type_name};
use super::kernel::OpKernel;
use super::spec::{ArgSpec, ArgType, Repeat, Spec};
use super::{Op, OpSpec};
use crate::abi::library::{own_path, owner_of};
use crate::abi::ops::{self, Ops};
use crate::abi::register::register as register_kernel;
use crate::abi::shapes::{Infer, infer_op};
use crate::abi::status::{HostApi, Status};
use crate::dtype::DType;
use crate::inventory::Inventory;
use crate::kernel::OpDefinitionBuilder;
use crate::kernel::registry::{Options, Registration};
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::race::OnceBox;
use tf_plugin_core::__private::boundary::{guard_logged, log_error, watch_panics};
use tf_plugin_core::{Code, Error, Result, ensure};

/// An op with its types, as `#[op]` collects it.
#[derive(Debug)]
pub struct OpEntry {
    pub(super) spec: Spec,
    pub(super) attributes: fn() -> Vec<AttributeSpec>,
    pub(super) instances: &'static [Instance],
    is_registered: AtomicBool,
    /// Why it could not be registered.
    pub(super) error: OnceBox<String>,
}

/// An op for some types.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    pub(super) types: &'static [(&'static str, DType)],
    pub(super) inputs: &'static [ArgType],
    pub(super) outputs: &'static [ArgType],
    infer: Infer,
    kernel: Registration,
}

impl Instance {
    /// Creates the instance for some types of the type parameters.
    #[must_use]
    pub const fn new<O: Op>(types: &'static [(&'static str, DType)]) -> Self {
        let spec = O::SPEC;
        assert!(
            spec.inputs.len() == O::Inputs::TYPES.len(),
            "`inputs(...)` of `#[op]` has to name each type in `type Inputs`"
        );
        assert!(
            spec.outputs.len() == O::Outputs::TYPES.len(),
            "`outputs(...)` of `#[op]` has to name each type in `type Outputs`"
        );
        let options = Options {
            types,
            host_memory: &[],
            label: "",
            priority: 0,
            variables: false,
            variants: false,
        };
        Self {
            types,
            inputs: O::Inputs::TYPES,
            outputs: O::Outputs::TYPES,
            infer: infer_op::<O>,
            kernel: Registration::new::<OpKernel<O>>(spec.name, spec.place, options),
        }
    }
}

static ALL: Inventory<OpEntry> = Inventory::new();

impl OpEntry {
    /// Creates the entry of an op; `O` is one of the instances.
    #[must_use]
    pub const fn new<O: OpSpec>(instances: &'static [Instance]) -> Self {
        assert!(!instances.is_empty());
        Self {
            spec: O::SPEC,
            attributes: O::attributes,
            instances,
            is_registered: AtomicBool::new(false),
            error: OnceBox::new(),
        }
    }

    /// Adds the op to those of the library. In TensorFlow it is registered at once: `tf.load_op_library` returns wrappers
    /// for the ops that are registered while it loads the library.
    pub fn collect(&'static self) {
        ALL.push(self);
        if HostApi::get().is_ok() {
            register_logged([self]);
        }
    }

    /// Returns all ops of the library, by name.
    pub(super) fn all() -> Vec<&'static Self> {
        let mut all = ALL.all();
        all.sort_by_key(|one| one.spec.name);
        all
    }

    /// Returns the type parameter that decides the type of an argument, if one does.
    pub(super) fn parameter(
        &self,
        types: fn(&Instance) -> &'static [ArgType],
        index: usize,
    ) -> Option<&'static str> {
        let dtype = |instance: &Instance| types(instance)[index].dtype;
        let first = self.instances.first()?;
        if self.instances.iter().all(|one| dtype(one) == dtype(first)) {
            return None;
        }
        let decides = |at: usize| self.instances.iter().all(|one| one.types[at].1 == dtype(one));
        (0..first.types.len()).find(|&at| decides(at)).map(|at| first.types[at].0)
    }

    /// Returns the type parameters, and the types that each can have.
    pub(super) fn parameters(&self) -> Vec<(&'static str, Vec<DType>)> {
        let names = self.instances[0].types.iter().map(|(name, _)| *name);
        names
            .enumerate()
            .map(|(at, name)| {
                let mut types = Vec::new();
                for one in self.instances {
                    if !types.contains(&one.types[at].1) {
                        types.push(one.types[at].1);
                    }
                }
                (name, types)
            })
            .collect()
    }

    /// Checks that a type that differs with the type parameters is that of one.
    fn check_types(
        &self,
        what: &str,
        args: &[ArgSpec],
        types: fn(&Instance) -> &'static [ArgType],
    ) -> Result<()> {
        for (index, arg) in args.iter().enumerate() {
            let dtype = |instance: &Instance| types(instance)[index].dtype;
            let first = dtype(&self.instances[0]);
            let is_one = self.instances.iter().all(|one| dtype(one) == first);
            ensure!(
                is_one || self.parameter(types, index).is_some(),
                Error::invalid_argument(format!(
                    "the type of {what} `{}` differs with the type parameters, and is none of them; make it a parameter in \
                     `types(...)`",
                    arg.name
                ))
            );
        }
        Ok(())
    }

    /// Returns the definition.
    fn definition(&self) -> Result<OpDefinitionBuilder> {
        self.check_types("input", self.spec.inputs, |one| one.inputs)?;
        self.check_types("output", self.spec.outputs, |one| one.outputs)?;
        let mut op = OpDefinitionBuilder::default();
        let first = &self.instances[0];
        let mut counts: Vec<(String, bool)> = Vec::new();
        let mut arguments = |args: &[ArgSpec], types: fn(&Instance) -> &'static [ArgType]| {
            let mut texts = Vec::new();
            for (index, (arg, ty)) in args.iter().zip(types(first)).enumerate() {
                let parameter = self.parameter(types, index);
                let element = parameter.unwrap_or(type_name(ty.dtype));
                match ty.repeat {
                    Repeat::One => texts.push(format!("{}: {element}", arg.name)),
                    Repeat::Ragged => {
                        let [values, splits] = &arg.names(ty.repeat)[..] else { continue };
                        texts.push(format!("{values}: {element}"));
                        texts.push(format!("{splits}: int64"));
                    }
                    Repeat::List | Repeat::Optional => {
                        let count = arg.count_attribute();
                        texts.push(format!("{}: {count} * {element}", arg.name));
                        if !counts.iter().any(|(name, _)| *name == count) {
                            counts.push((count, ty.repeat == Repeat::Optional));
                        }
                    }
                }
            }
            texts
        };
        op.inputs = arguments(self.spec.inputs, |one| one.inputs);
        op.outputs = arguments(self.spec.outputs, |one| one.outputs);
        // The parameters that a tensor decides that each node has.
        let inputs = self.spec.inputs.iter().zip(first.inputs).enumerate();
        let always =
            inputs.filter(|(_, (_, ty))| matches!(ty.repeat, Repeat::One | Repeat::Ragged));
        let inferred: Vec<_> =
            always.filter_map(|(index, _)| self.parameter(|one| one.inputs, index)).collect();
        for (name, types) in self.parameters() {
            let names: Vec<_> = types.iter().map(|dtype| type_name(*dtype)).collect();
            let default = match inferred.contains(&name) {
                true => String::new(),
                false => format!(" = DT_{}", names[0].to_uppercase()),
            };
            op.attributes.push(format!("{name}: {{{}}}{default}", names.join(", ")));
        }
        for (name, _) in &counts {
            op.attributes.push(format!("{name}: int >= 0"));
        }
        let attributes = (self.attributes)();
        attributes.iter().try_for_each(AttributeSpec::check)?;
        op.attributes.extend(attributes.iter().map(AttributeSpec::text));
        let all = op.inputs.iter().chain(&op.outputs).chain(&op.attributes);
        let mut names: Vec<&str> = all.filter_map(|text| text.split(':').next()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let text =
                format!("two inputs, outputs or attributes are named `{}`; rename one", twice[0]);
            return Err(Error::invalid_argument(text));
        }
        op.is_stateful = self.spec.stateful;
        op.check(self.spec.name)?;
        Ok(op)
    }

    /// Registers the op with its kernels, unless that was done.
    fn register(&self, host: &HostApi, status: &Status) -> Result<()> {
        if self.is_registered.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let definition = self.definition()?;
        // Of a second op of the name TensorFlow would ignore the definition and take the kernel, and then refuse both.
        ensure!(!Ops::of_host(status)?.has(self.spec.name), exists_already(self.spec.name));
        ops::register(status, self.spec.name, &definition, self.instances[0].infer)?;
        self.instances.iter().try_for_each(|one| register_kernel(host, status, &one.kernel))
    }
}

#[cold]
fn exists_already(op: &str) -> Error {
    let own = own_path().unwrap_or_else(|| String::from("this library"));
    let text = match owner_of(op) {
        Some(owner) => format!(
            "{owner} has registered an op of this name, so that of {own} is not used; load one of the two libraries, or \
             rename the op"
        ),
        None => format!(
            "TensorFlow has an op of this name, so that of {own} is not used; rename the op"
        ),
    };
    Error::new(Code::AlreadyExists, text)
}

/// Registers ops. Logs those that cannot be registered.
fn register_logged(ops: impl IntoIterator<Item = &'static OpEntry>) {
    watch_panics();
    let body = || {
        let host = HostApi::get().map_err(Error::failed_precondition)?;
        let status = Status::new()?;
        for op in ops {
            if let Err(error) = op.register(&host, &status) {
                let text = format!("the op {} is not registered: {error:#}", op.spec.name);
                log_error(&text);
                let _ = op.error.set(Box::new(text));
            }
        }
        Ok(())
    };
    guard_logged("the registration of ops", || (), body);
}

/// Registers the ops of the library that are not registered yet: those of a library that was loaded before TensorFlow.
pub fn register_ops() {
    register_logged(OpEntry::all());
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the constructor that `#[op]` writes")]
mod tests {
    use crate::prelude::*;
    use core::marker::PhantomData;
    use std::string::String;

    /// An op with everything.
    #[op(
        name = "AllKinds",
        inputs(x: [..s], texts: N * [], others: N, rows, maybe, flag),
        outputs(y: [..s, 2], words, count),
        types(T = [f32, i64], Tidx = [i32, i64]),
        stateful
    )]
    struct AllKinds<T: Element, Tidx: Element> {
        /// A number.
        #[attr(default = 3, min = 1)]
        number: i64,
        #[attr]
        names: Vec<String>,
        #[state(names.len() as i64 + number)]
        sum: i64,
        kind: PhantomData<(T, Tidx)>,
    }

    impl<T: Element, Tidx: Element> Op for AllKinds<T, Tidx> {
        type Inputs = (
            Tensor<T>,
            Vec<Strings>,
            Vec<Tensor<f64>>,
            Ragged<Tensor<Tidx>>,
            Option<Tensor<u8>>,
            bool,
        );
        type Outputs = (Tensor<T>, Ragged<Strings>, i64);

        fn compute(&self, (x, ..): Self::Inputs, _: &OpContext<'_>) -> Result<Self::Outputs> {
            Ok((x, RaggedBuf::<StringsBuf>::new().finish(), self.sum + self.names.len() as i64))
        }
    }

    fn entry(name: &str) -> &'static super::OpEntry {
        super::OpEntry::all().into_iter().find(|one| one.spec.name == name).unwrap()
    }

    #[test]
    fn a_definition_has_the_types_of_the_rust_types() {
        let definition = entry("AllKinds").definition().unwrap();
        assert_eq!(
            definition.inputs,
            [
                "x: T",
                "texts: N * string",
                "others: N * double",
                "rows_values: Tidx",
                "rows_row_splits: int64",
                "maybe: num_maybe * uint8",
                "flag: bool",
            ]
        );
        assert_eq!(
            definition.outputs,
            ["y: T", "words_values: string", "words_row_splits: int64", "count: int64"]
        );
        assert_eq!(
            definition.attributes,
            [
                "T: {float, int64}",
                "Tidx: {int32, int64}",
                "N: int >= 0",
                "num_maybe: int >= 0",
                "number: int >= 1 = 3",
                "names: list(string)",
            ]
        );
        assert!(definition.is_stateful);
        assert_eq!(entry("AllKinds").instances.len(), 4);
    }

    /// An op of which no tensor that it always has decides the types.
    #[op(name = "Undecided", inputs(xs, maybe), outputs(y), types(T = [f32, i64], U = [i32, i64], V = [u8, i8]))]
    struct Undecided<T: Element, U: Element, V: Element> {
        kind: PhantomData<(T, U, V)>,
    }

    impl<T: Element, U: Element, V: Element> Op for Undecided<T, U, V> {
        type Inputs = (Vec<Tensor<T>>, Option<Tensor<U>>);
        type Outputs = Tensor<V>;

        fn compute(&self, _: Self::Inputs, _: &OpContext<'_>) -> Result<Tensor<V>> {
            Ok(TensorBuf::new().into())
        }
    }

    #[test]
    fn a_type_that_no_tensor_decides_has_a_default() {
        let attributes = entry("Undecided").definition().unwrap().attributes;
        assert_eq!(
            attributes[..3],
            [
                "T: {float, int64} = DT_FLOAT",
                "U: {int32, int64} = DT_INT32",
                "V: {uint8, int8} = DT_UINT8",
            ]
        );
    }

    trait Wider: Element {
        type Wide: Element;
    }

    impl Wider for f32 {
        type Wide = f64;
    }

    impl Wider for i32 {
        type Wide = i64;
    }

    /// An op whose output has a type that is not a parameter.
    #[op(name = "Widens", inputs(x), outputs(wide), types(T = [f32, i32]))]
    struct Widens<T: Wider> {
        kind: PhantomData<T>,
    }

    impl<T: Wider> Op for Widens<T> {
        type Inputs = Tensor<T>;
        type Outputs = Tensor<T::Wide>;

        fn compute(&self, _: Tensor<T>, _: &OpContext<'_>) -> Result<Self::Outputs> {
            Ok(TensorBuf::new().into())
        }
    }

    #[test]
    fn a_type_that_is_not_a_parameter_is_an_error() {
        let error = entry("Widens").definition().unwrap_err().to_string();
        assert!(
            error.contains("the type of output `wide` differs with the type parameters"),
            "{error}"
        );
    }

    #[test]
    fn a_description_is_json_with_the_docs() {
        let description: serde_json::Value = serde_json::from_str(&crate::op::describe()).unwrap();
        let ops = description["ops"].as_array().unwrap();
        let op = ops.iter().find(|op| op["name"] == "AllKinds").unwrap();
        assert_eq!(op["doc"], "An op with everything.");
        assert_eq!(op["inputs"][0]["type"], "T");
        assert_eq!(op["inputs"][0]["shape"], "[..s]");
        assert_eq!(op["inputs"][1]["count"], "N");
        assert_eq!(op["inputs"][3]["repeat"], "ragged");
        assert_eq!(op["inputs"][4]["repeat"], "optional");
        assert_eq!(op["types"][1]["allowed"][0], "int32");
        assert_eq!(op["attributes"][0]["default"], 3);
        assert_eq!(op["attributes"][0]["doc"], "A number.");
        assert!(op["attributes"][1].get("default").is_none());
    }
}
